#!/usr/bin/env bash
# Installs the OpenTelemetry SDKs that the collector is tested with.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
installed=$lab/../target/sdks

usage() {
    cat <<'TEXT'
Usage: lab/sdks.sh

Puts the SDKs for Python and Node.js, in the versions that lab/sdks names, into target/sdks, unless
they are there. Nothing is installed elsewhere but the Debian packages they need.
TEXT
}

main() {
    if (($# > 0)); then
        usage
        [[ $1 == -h || $1 == --help ]]
        return
    fi
    mkdir -p "$installed"
    up_to_date python requirements.txt || python
    up_to_date node package-lock.json || node
}

# A copy of what was asked for, put beside what was installed at the very end, says that it is whole.
up_to_date() {
    cmp --silent "$lab/sdks/$2" "$installed/$1/$2"
}

python() {
    "$lab/install.sh" python3-venv
    rm -rf "$installed/python"
    python3 -m venv "$installed/python"
    "$installed/python/bin/pip" install --quiet --disable-pip-version-check \
        --requirement "$lab/sdks/requirements.txt"
    cp "$lab/sdks/requirements.txt" "$installed/python/"
}

node() {
    "$lab/install.sh" nodejs npm
    rm -rf "$installed/node.new" "$installed/node"
    mkdir "$installed/node.new"
    cp "$lab/sdks/package.json" "$lab/sdks/package-lock.json" "$installed/node.new/"
    npm --prefix "$installed/node.new" ci --ignore-scripts --no-audit --no-fund --loglevel=error
    mv "$installed/node.new" "$installed/node"
}

main "$@"
