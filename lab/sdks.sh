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
    # The copy, put there at the very end, says that what is beside it is whole.
    cmp --silent "$lab/sdks/requirements.txt" "$installed/python/requirements.txt" || python
    "$lab/node.sh" "$lab/sdks" "$installed/node"
}

python() {
    "$lab/install.sh" python3-venv
    rm -rf "$installed/python"
    python3 -m venv "$installed/python"
    "$installed/python/bin/pip" install --quiet --disable-pip-version-check \
        --requirement "$lab/sdks/requirements.txt"
    cp "$lab/sdks/requirements.txt" "$installed/python/"
}

main "$@"
