#!/usr/bin/env bash
# Builds the lab's programs and puts them into target/lab/bin.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$lab/../target/lab/bin

usage() {
    cat <<'TEXT'
Usage: lab/build.sh

Builds the lab's programs, as far as their sources have changed. Then there are
  target/lab/bin/delay-server     answers after a wanted delay
  target/lab/bin/libcurl-7.62.0   a client that sleeps blind
  target/lab/bin/libcurl-7.64.1   the same client with a fixed libcurl
It needs a C compiler.
TEXT
}

main() {
    if (($# > 0)); then
        usage
        [[ $1 == -h || $1 == --help ]]
        return
    fi
    "$lab/cargo.sh" build --release --locked
    mkdir -p "$bin"
    place servers/release/delay-server delay-server
    place libcurl-7.62.0/release/client libcurl-7.62.0
    place libcurl-7.64.1/release/client libcurl-7.64.1
}

place() {
    ln --symbolic --force --no-dereference "../$1" "$bin/$2"
}

main "$@"
