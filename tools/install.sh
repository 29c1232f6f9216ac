#!/usr/bin/env bash
# Installs what `make` has built, and builds nothing.  It only reads the build folder: another user, root after a
# user's build, leaves nothing there.  DESTDIR stands in front of all paths.  usage: tools/install.sh PREFIX [BUILD]
set -euo pipefail
prefix=${1:?the folder to install under, such as /usr/local}
build=$(realpath -m "${2:-$(dirname "$0")/../build}")
[[ $prefix == /* ]] || prefix=$PWD/$prefix
if [ ! -x "$build/kiln" ] || [ ! -f "$build/public/man/kiln.1" ] || [ ! -f "$build/public/libkiln.a" ]; then
    echo "install: $build has no program yet: run make first" >&2
    exit 1
fi
script=$(mktemp)
trap 'rm -f "$script"' EXIT
# CMake writes the list of installed files beside its script
sed '/^ *file(WRITE .*MANIFEST}"/s/"[^"]*"/"\/dev\/null"/' "$build/cmake_install.cmake" >"$script"
cmake -DCMAKE_INSTALL_PREFIX="$prefix" -P "$script" >/dev/null
echo "installed kiln under ${DESTDIR:-}$prefix"
