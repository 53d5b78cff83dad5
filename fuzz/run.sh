#!/usr/bin/env bash
# Runs every fuzz target for a while, from its seeds.
#
# Without a sanitizer. One would watch over unsafe code, and there is none of ours in a target's reach
# (only crates/sockstamp may have any) and no C, which is not even linked; what is left is in libraries,
# whose memory is not what is tested here. What targets look for are panics, overflows, failed
# assertions, and too much time or memory, and that takes none. So the project's own compiler does.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: fuzz/run.sh SECONDS [TARGET...]

Runs each target for SECONDS, or those named, as many at once as there are processors. An input that
breaks one ends the run; it is then below fuzz/artifacts.
TEXT
}

fuzz=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$fuzz")
tools=$root/target/tools
version=0.13.2
how=(--sanitizer none --codegen-units 16 --target-dir "$root/target/fuzz")

install_cargo_fuzz() {
    [[ -x $tools/bin/cargo-fuzz ]] && return
    cargo install --locked --debug --root "$tools" --target-dir "$tools/build" "cargo-fuzz@$version"
    rm -rf "$tools/build"
}

# Runs a target; prints how often, or all that was said of an input that broke it.
run_target() {
    local target=$1 seconds=$2 corpus=$root/target/fuzz-corpus/$1 log=$root/target/fuzz-$1.txt
    mkdir -p "$corpus"
    if cargo fuzz run "${how[@]}" "$target" "$corpus" "seeds/$target" -- \
        -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -print_final_stats=0 >"$log" 2>&1; then
        echo "$target: $(grep --text --only-matching '^Done .*' "$log")"
    else
        cat "$log"
        return 1
    fi
}

# Runs one target in so many, from the first on that is named by its place.
run_from() {
    local at
    for ((at = $1; at < ${#targets[@]}; at += cores)); do
        run_target "${targets[at]}" "$seconds"
    done
}

main() {
    if (($# == 0)) || [[ $1 == -h || $1 == --help ]]; then
        usage
        return
    fi
    local seconds=$1 targets=("${@:2}") cores first worker workers=()
    install_cargo_fuzz
    cd "$fuzz"
    if ((${#targets[@]} == 0)); then
        mapfile -t targets < <(cargo fuzz list)
    fi
    cargo fuzz build "${how[@]}"
    cores=$(nproc)
    for ((first = 0; first < cores; first++)); do
        run_from "$first" &
        workers+=($!)
    done
    for worker in "${workers[@]}"; do
        wait "$worker"
    done
}

PATH=$tools/bin:$PATH
main "$@"
