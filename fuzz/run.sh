#!/usr/bin/env bash
# Runs every fuzz target for a while, from its seeds.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: fuzz/run.sh SECONDS [TARGET...]

Runs each target for SECONDS, or those named, and stops at the first input that breaks one; the
input is then below fuzz/artifacts. Needs a nightly compiler (`rustup toolchain install nightly`);
where there is none, that is put down in the file that SKEWTAP_NOT_RUN names, or is an error.
TEXT
}

fuzz=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$fuzz")
tools=$root/target/tools
version=0.13.2

install_cargo_fuzz() {
    [[ -x $tools/bin/cargo-fuzz ]] ||
        cargo install --locked --debug --root "$tools" --target-dir "$tools/build" "cargo-fuzz@$version"
}

has_nightly() {
    cargo +nightly --version >/dev/null 2>&1
}

not_run() {
    if [[ -z ${SKEWTAP_NOT_RUN:-} ]]; then
        echo "fuzz/run.sh: $1" >&2
        exit 1
    fi
    echo "fuzz targets: $1" >>"$SKEWTAP_NOT_RUN"
}

main() {
    if (($# == 0)) || [[ $1 == -h || $1 == --help ]]; then
        usage
        return
    fi
    local seconds=$1 targets=("${@:2}") target
    if ! has_nightly; then
        not_run 'needs a nightly compiler (rustup toolchain install nightly)'
        return
    fi
    install_cargo_fuzz
    cd "$fuzz"
    if ((${#targets[@]} == 0)); then
        mapfile -t targets < <("$tools/bin/cargo-fuzz" list)
    fi
    for target in "${targets[@]}"; do
        mkdir -p "$root/target/fuzz-corpus/$target"
        cargo +nightly fuzz run --target-dir "$root/target/fuzz" "$target" \
            "$root/target/fuzz-corpus/$target" "seeds/$target" -- \
            -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -print_final_stats=0
    done
}

PATH=$tools/bin:$PATH
main "$@"
