#!/usr/bin/env bash
# Builds the sender, then kills and restarts a collector under load.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$lab/..

usage() {
    cat <<'TEXT'
Usage: lab/soak/collector.sh PROGRAM [SECONDS [KILL_EVERY]]

Runs PROGRAM (a skewtap) as a collector, finds out how many spans it takes and judges a second, then
sends half of that for SECONDS (600) while it is ended with kill -9 and started again every KILL_EVERY (20)
seconds. Every span that was acknowledged must then be in the store, every verdict once and right.
TEXT
}

main() {
    case "${1:-}" in
        '' | -h | --help)
            usage
            [[ -n ${1:-} ]]
            return
            ;;
    esac
    (cd "$lab/bench/load" && CARGO_TARGET_DIR=$root/target/lab/bench cargo build --release --locked)
    exec env PYTHONPATH="$lab/bench" PYTHONDONTWRITEBYTECODE=1 python3 "$lab/soak/collector.py" "$@"
}

main "$@"
