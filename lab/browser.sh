#!/usr/bin/env bash
# Runs headless Chromium on the pages of a system whose gaps are known.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/target/lab/browser
bin=$root/target/lab/bin
scratch=$(mktemp --directory)
demo=
started=()

usage() {
    cat <<'TEXT'
Usage: lab/browser.sh PROGRAM [PICTURES]

Runs PROGRAM (a skewtap) as `demo --keep`, sends 33 calls of a faulty and of a repaired libcurl to
its collector through a second proxy, and then clicks through all pages with lab/browser. With
PICTURES it takes pictures of the pages into that folder instead.
It needs Chromium, curl, Node.js with npm, and the lab's programs; what npm packages it needs, it
puts into target/lab/browser.
TEXT
}

main() {
    if (($# < 1 || $# > 2)) || [[ $1 == -h || $1 == --help ]]; then
        usage
        [[ ${1:-} == -h || ${1:-} == --help ]]
        return
    fi
    local program=$1 pictures=${2:-} page
    trap stop EXIT
    install_packages
    "$program" demo --keep >"$scratch/demo" 2>&1 &
    demo=$!
    page=$(wait_for_line "$scratch/demo" 'page http://[0-9.:]*')
    export SKEWTAP_PAGES=${page#page }
    send_sweeps "$program"
    if [[ -n $pictures ]]; then
        mkdir -p "$pictures"
        pictures=$(realpath "$pictures")
        (cd "$tools" && node pictures.mjs "$scratch")
        make_small "$scratch" "$pictures"
    else
        (cd "$tools" && node pages.test.mjs)
    fi
}

# Installed anew only when what is wanted has changed.
install_packages() {
    mkdir -p "$tools"
    cp "$root"/lab/browser/*.mjs "$root/lab/browser/package.json" "$tools"
    if ! cmp --silent "$root/lab/browser/package-lock.json" "$tools/installed.json"; then
        cp "$root/lab/browser/package-lock.json" "$tools"
        (cd "$tools" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
        cp "$root/lab/browser/package-lock.json" "$tools/installed.json"
    fi
}

# Real libcurls through a proxy of their own, to the demo's collector.
send_sweeps() {
    local program=$1 health grpc server traffic version sweeps=()
    health=$(curl --fail --silent --show-error "$SKEWTAP_PAGES/health")
    grpc=$(address_of "$health" 'OTLP over gRPC')
    SKEWTAP_OTLP_HTTP=http://$(address_of "$health" 'OTLP over HTTP')
    "$bin/delay-server" --otlp "$SKEWTAP_OTLP_HTTP" >"$scratch/server" &
    started+=("$!")
    server=$(wait_for_line "$scratch/server" 'listening [0-9.:]*')
    "$program" proxy --listen 127.0.0.1:0 --admin 127.0.0.1:0 --otlp "http://$grpc" \
        --upstream "http://${server#listening }" >"$scratch/proxy" 2>&1 &
    started+=("$!")
    traffic=$(wait_for_line "$scratch/proxy" 'traffic=[0-9.:]*')
    export SKEWTAP_OTLP_HTTP SKEWTAP_PROXY=${traffic#traffic=} SKEWTAP_FAULTY_CLIENT=$bin/libcurl-7.62.0
    for version in 7.62.0 7.64.1; do
        "$bin/libcurl-$version" --service "libcurl-$version" --server "$SKEWTAP_PROXY" \
            --otlp "$SKEWTAP_OTLP_HTTP" --method expect --timeout-ms 30000 \
            --sweep-ms 250:8250:250 >"$scratch/sweep-$version" &
        sweeps+=("$!")
    done
    wait "${sweeps[@]}"
    for version in 7.62.0 7.64.1; do
        wait_for_verdicts "libcurl-$version"
    done
}

address_of() {
    grep --only-matching "$2</dt><dd><code>[^<]*" <<<"$1" | sed 's/.*>//'
}

# A verdict is whole once it rests on the spans of both sides.
wait_for_verdicts() {
    local deadline=$((SECONDS + 60)) list
    while ((SECONDS < deadline)); do
        list=$(curl --fail --silent --show-error \
            "$SKEWTAP_PAGES/api/v1/exchanges?service=$1&limit=100")
        if (($(count "$list" '"client_seconds":[0-9]') == 33)) &&
            (($(count "$list" '"server_seconds":[0-9]') == 33)); then
            return
        fi
        sleep 0.2
    done
    fail "the verdicts on $1 did not come within 60 s"
}

count() {
    grep --only-matching "$2" <<<"$1" | wc -l
}

# What the line has that matches, as soon as the file has such a line.
wait_for_line() {
    local deadline=$((SECONDS + 60)) found
    while ((SECONDS < deadline)); do
        if found=$(grep --only-matching --max-count=1 "$2" "$1"); then
            echo "$found"
            return
        fi
        [[ -z $demo ]] || kill -0 "$demo" 2>/dev/null || fail 'the demo ended early'
        sleep 0.1
    done
    fail "no line with $2 came within 60 s"
}

# Pictures of pages have few colours, so a palette loses nothing that can be seen.
make_small() {
    local picture
    for picture in "$1"/*.png; do
        pngquant --force --strip --speed 1 --output "$2/${picture##*/}" 128 "$picture"
    done
}

fail() {
    echo "lab/browser.sh: $*" >&2
    [[ ! -s $scratch/demo ]] || tail -n 20 "$scratch/demo" >&2
    exit 1
}

stop() {
    local process
    for process in "${started[@]}"; do
        kill -TERM "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    if [[ -n $demo ]]; then
        kill -INT "$demo" 2>/dev/null || true
        wait "$demo" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}

main "$@"
