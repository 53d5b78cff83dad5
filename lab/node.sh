#!/usr/bin/env bash
# Installs the npm packages of a folder elsewhere.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    cat <<'TEXT'
Usage: lab/node.sh FOLDER INTO

Puts the npm packages that FOLDER/package-lock.json names into INTO/node_modules, unless they are
there. Nothing is installed elsewhere but the Debian packages this needs.
TEXT
}

main() {
    if (($# != 2)); then
        usage
        [[ ${1:-} == -h || ${1:-} == --help ]]
        return
    fi
    local wanted=$1 into=$2
    # The copy comes with the packages, so it says that they are whole.
    if cmp --silent "$wanted/package-lock.json" "$into/package-lock.json"; then
        return
    fi
    "$lab/install.sh" nodejs npm
    rm -rf "$into.new" "$into"
    mkdir -p "$into.new"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$into.new/"
    npm --prefix "$into.new" ci --ignore-scripts --no-audit --no-fund --loglevel=error
    mv "$into.new" "$into"
}

main "$@"
