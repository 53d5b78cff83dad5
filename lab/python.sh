#!/usr/bin/env bash
# Makes target/lab/python, a Python with the HTTP clients that tests run through skewtap.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$lab/../target/lab/python
wanted=$lab/clients/requirements.txt

usage() {
    cat <<'TEXT'
Usage: lab/python.sh

Makes target/lab/python, a virtual environment with the packages of lab/clients/requirements.txt,
unless it has them already. It needs Python 3 with its venv module.
TEXT
}

main() {
    if (($# > 0)); then
        usage
        [[ $1 == -h || $1 == --help ]]
        return
    fi
    if cmp --silent "$wanted" "$python/requirements.txt"; then
        return
    fi
    python3 -m venv --clear "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
    # Written last, so that an interrupted installation is begun anew.
    cp "$wanted" "$python/requirements.txt"
}

main "$@"
