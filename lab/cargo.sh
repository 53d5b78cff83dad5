#!/usr/bin/env bash
# Runs one cargo command in each workspace of the lab.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    cat <<'TEXT'
Usage: lab/cargo.sh COMMAND [ARGUMENT]...

Runs `cargo COMMAND ARGUMENT...` in each workspace of the lab, and stops at the first that fails.
Each builds in a folder of its own below target/lab: the two libcurls cannot share one.

Example: lab/cargo.sh test --release --locked
TEXT
}

main() {
    case "${1:-}" in
        '' | -h | --help)
            usage
            return
            ;;
    esac
    run_in "$lab" servers "$@"
    run_in "$lab/libcurl/v7.62.0" libcurl-7.62.0 "$@"
    run_in "$lab/libcurl/v7.64.1" libcurl-7.64.1 "$@"
    run_in "$lab/bench/load" bench "$@"
}

# Cargo finds lab/libcurl/.cargo/config.toml by the folder it runs in.
run_in() {
    local folder=$1 target=$lab/../target/lab/$2
    shift 2
    (cd "$folder" && CARGO_TARGET_DIR=$target cargo "$@")
}

main "$@"
