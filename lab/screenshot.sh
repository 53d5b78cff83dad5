#!/usr/bin/env bash
# Takes a picture of one page.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: lab/screenshot.sh ADDRESS OUTPUT [WIDTH,HEIGHT]

Loads the page at ADDRESS (http:// or file://) in headless Chromium, waits until it is loaded, and
writes a picture of WIDTH x HEIGHT pixels (1280,900 unless given) to OUTPUT, as PNG. A page that
does not answer with success gives no picture. It needs Chromium, and curl for http://.
TEXT
}

main() {
    if (($# < 2 || $# > 3)); then
        usage
        [[ ${1:-} == -h || ${1:-} == --help ]]
        return
    fi
    local address=$1 output size=${3:-1280,900}
    [[ $size =~ ^[0-9]+,[0-9]+$ ]] || fail "$size is not of the form WIDTH,HEIGHT"
    check_page "$address"
    output=$(realpath --canonicalize-missing "$2")
    mkdir -p "$(dirname "$output")"
    take_picture "$address" "$output" "$size"
    echo "$2"
}

# Chromium would picture its own error page and call that a success.
check_page() {
    [[ $1 != http://* ]] || curl --fail --silent --show-error --max-time 10 --output /dev/null "$1"
}

take_picture() {
    local address=$1 output=$2 size=$3 browser profile log
    browser=$(find_browser)
    profile=$(mktemp --directory)
    # shellcheck disable=SC2064 # the folder's name is known now, and local
    trap "rm -rf '$profile'" EXIT
    log=$profile/log
    rm -f "$output"
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$profile/data" --window-size="$size" \
        --screenshot="$output" "$address" >"$log" 2>&1 || true
    if [[ ! -s $output ]]; then
        tail -n 20 "$log" >&2
        fail "no picture of $address"
    fi
}

find_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome ||
        fail "no Chromium; run lab/install.sh chromium"
}

fail() {
    echo "lab/screenshot.sh: $*" >&2
    exit 1
}

main "$@"
