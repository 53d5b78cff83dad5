#!/usr/bin/env bash
# Takes the pictures in docs/images anew, from the pages of a running demo.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp --directory)
demo=

usage() {
    cat <<'TEXT'
Usage: lab/screenshots.sh

Runs target/release/skewtap demo --keep, waits for its page, and writes
  docs/images/exchanges.png   the list of exchanges
  docs/images/waterfall.png   a flagged exchange
It needs Chromium and curl.
TEXT
}

main() {
    if (($# > 0)); then
        usage
        [[ $1 == -h || $1 == --help ]]
        return
    fi
    trap stop EXIT
    "$root/target/release/skewtap" demo --keep >"$scratch/demo" 2>&1 &
    demo=$!
    local page exchange
    page=$(wait_for_page)
    exchange=$(flagged_exchange "$page")
    "$root/lab/screenshot.sh" "$page/" "$root/docs/images/exchanges.png"
    "$root/lab/screenshot.sh" "$page$exchange" "$root/docs/images/waterfall.png"
}

# The demo says where its page is once all of it has been measured.
wait_for_page() {
    local deadline=$((SECONDS + 60)) page
    while ((SECONDS < deadline)); do
        if page=$(grep --only-matching --max-count=1 'page http://[0-9.:]*' "$scratch/demo"); then
            echo "${page#page }"
            return
        fi
        kill -0 "$demo" 2>/dev/null || fail 'the demo ended early'
        sleep 0.2
    done
    fail 'the demo named no page within 60 s'
}

# The path of the page of the flagged exchange that the API names first.
flagged_exchange() {
    local trace path
    trace=$(curl --fail --silent --show-error "$1/api/v1/exchanges?flagged=true&limit=1" |
        grep --only-matching --extended-regexp '[0-9a-f]{32}' | sed -n 1p) || fail 'nothing was flagged'
    path=$(curl --fail --silent --show-error "$1/" |
        grep --only-matching "href=\"[^\"]*${trace}[^\"]*\"" | sed -n 1p) || fail "no link to $trace"
    path=${path#href=\"}
    echo "${path%\"}"
}

fail() {
    echo "lab/screenshots.sh: $*" >&2
    [[ ! -s $scratch/demo ]] || tail -n 20 "$scratch/demo" >&2
    exit 1
}

stop() {
    if [[ -n $demo ]]; then
        kill -INT "$demo" 2>/dev/null || true
        wait "$demo" || true
    fi
    rm -rf "$scratch"
}

main "$@"
