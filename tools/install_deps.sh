#!/usr/bin/env bash
# Installs the packages that building kiln needs on Debian or Ubuntu; does nothing if they are installed.
set -euo pipefail
required=(gcc cmake ninja-build pkg-config libjansson-dev libutf8proc-dev zlib1g-dev libbz2-dev libexpat1-dev)
optional=(libdnnl-dev libopenblas-dev libhdf5-dev libarchive-dev libmicrohttpd-dev libopenmpi-dev openmpi-bin g++)
# one flavour of libcurl excludes the others
dpkg-query -W -f='${Status}\n' 'libcurl4-*-dev' 2>/dev/null | grep 'install ok installed' >/dev/null ||
    optional+=(libcurl4-openssl-dev)

missing=()
for package in "${required[@]}" "${optional[@]}" "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep 'install ok installed' >/dev/null || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "install these packages as root, then run again: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
for package in "${missing[@]}"; do
    if ! "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$package" >/dev/null; then
        case " ${optional[*]} " in
        *" $package "*) echo "warning: $package is not available; kiln does without it" >&2 ;;
        *) echo "cannot install $package" >&2; exit 1 ;;
        esac
    fi
done
