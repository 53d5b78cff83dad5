#!/usr/bin/env bash
# Installs Debian packages that are missing, and says which.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: lab/install.sh PACKAGE...

Installs those of the named Debian or Ubuntu packages that this machine lacks. A package counts as
present when what it is wanted for is there (a compiler under another name, say). Runs apt-get as
root, through sudo if need be. Where there is no apt-get it says what to install instead.
TEXT
}

main() {
    case "${1:-}" in
        '' | -h | --help)
            usage
            return
            ;;
    esac
    local package missing=()
    for package in "$@"; do
        present "$package" || missing+=("$package")
    done
    if ((${#missing[@]} > 0)); then
        install_packages "${missing[@]}"
    fi
}

present() {
    case "$1" in
        gcc) has cc ;;
        chromium) has chromium || has chromium-browser || has google-chrome ;;
        libpcap-dev) has_header pcap/pcap.h || installed libpcap-dev ;;
        nodejs) has node ;;
        python3-venv) has python3 && python3 -c 'import ensurepip, venv' 2>/dev/null ;;
        curl | docker-compose | make | npm | pkg-config | pngquant | shellcheck) has "$1" ;;
        prometheus) has prometheus && has promtool ;;
        prometheus-alertmanager) has prometheus-alertmanager && has amtool ;;
        nginx-light) has nginx ;;
        *) installed "$1" ;;
    esac
}

has() {
    command -v "$1" >/dev/null
}

has_header() {
    has cc && echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1
}

installed() {
    has dpkg-query && [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

install_packages() {
    if ! has apt-get; then
        fail "this machine lacks: $* (names of Debian packages); install them with its package manager"
    fi
    if ((EUID != 0)) && ! has sudo; then
        fail "there is no sudo here; run as root: apt-get install $*"
    fi
    echo "installing missing packages: $*" >&2
    as_root apt-get update -qq
    # Programs are wanted, not services: a systemd that is told it is offline starts none.
    as_root env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 \
        apt-get install --yes --no-install-recommends -qq -o Dpkg::Use-Pty=0 "$@" >&2
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        # Nobody could type a password.
        sudo --non-interactive "$@"
    fi
}

fail() {
    echo "lab/install.sh: $*" >&2
    exit 1
}

main "$@"
