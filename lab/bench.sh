#!/usr/bin/env bash
# Builds what is measured and what it is measured with, then measures.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$lab/..
venv=$root/target/bench/venv
rotel=rotel==0.0.1a15

usage() {
    cat <<'TEXT'
Usage: lab/bench.sh [PART...]

Measures skewtap beside nginx, HAProxy and Rotel and writes every figure to
target/bench/results.json. PART is one or more of: speed, sources, size, collector; all without.
BENCH_QUICK=1 makes the run short and its figures coarse. Installs nginx-light, haproxy, wrk,
nghttp2-client and python3-venv where they are missing, and Rotel below target/bench.
TEXT
}

main() {
    case "${1:-}" in
        -h | --help)
            usage
            return
            ;;
    esac
    "$lab/install.sh" nginx-light haproxy wrk nghttp2-client python3-venv
    (cd "$root" && CARGO_TARGET_DIR=target cargo build --release --locked --package skewtap-cli)
    (cd "$lab/bench/load" && CARGO_TARGET_DIR=$root/target/lab/bench cargo build --release --locked)
    if ! [[ -x $venv/bin/pip ]]; then
        python3 -m venv "$venv"
    fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$rotel"
    # Debian puts servers where a user's PATH may not reach.
    exec env PATH="$PATH:/usr/sbin" PYTHONDONTWRITEBYTECODE=1 python3 "$lab/bench/bench.py" "$@"
}

main "$@"
