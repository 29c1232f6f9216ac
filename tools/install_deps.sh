#!/usr/bin/env bash
# Installs the packages that building kiln needs on Debian or Ubuntu; does nothing if they are installed.  Elsewhere it says how
# other systems name them, and goes on if compiler and libraries are there.
set -euo pipefail

# Whether a build would find what it requires: pkg-config and the compiler know.
finds_required()
{
    type cmake ninja pkg-config >/dev/null 2>&1 && pkg-config --exists jansson libutf8proc &&
        printf '#include <%s>\n' bzlib.h expat.h zlib.h omp.h | "${CC:-cc}" -fopenmp -fsyntax-only -x c - 2>/dev/null
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    finds_required && [ $# -eq 0 ] && exit
    cat >&2 <<'TEXT'
there is no apt-get here: install these packages, then run again
  dnf install gcc gcc-c++ cmake ninja-build pkgconf-pkg-config jansson-devel utf8proc-devel zlib-devel bzip2-devel expat-devel
    and, for more speed and files: onednn-devel openblas-devel hdf5-devel libarchive-devel libmicrohttpd-devel pcre2-devel libcurl-devel openmpi-devel
  pacman -S gcc cmake ninja pkgconf jansson libutf8proc zlib bzip2 expat
    and, for more speed and files: onednn openblas hdf5 libarchive libmicrohttpd pcre2 curl openmpi
  brew install gcc cmake ninja pkgconf jansson utf8proc zlib bzip2 expat, then CC=gcc-15 make
    and, for more speed and files: onednn openblas hdf5 libarchive libmicrohttpd pcre2 curl open-mpi
TEXT
    [ $# -eq 0 ] || echo "and what provides: $*" >&2
    finds_required && exit
    exit 1
fi

required=(gcc cmake ninja-build pkg-config libjansson-dev libutf8proc-dev zlib1g-dev libbz2-dev libexpat1-dev)
optional=(libdnnl-dev libopenblas-dev libhdf5-dev libarchive-dev libmicrohttpd-dev libpcre2-dev libopenmpi-dev openmpi-bin g++)
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
