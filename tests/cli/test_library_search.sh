#!/usr/bin/env bash
# A library that libkiln_cuda.so leans on is found where CUDA's toolkit or a wheel puts it, or the error names the places.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
command -v cc >/dev/null || skip cc "there is no C compiler on PATH; install gcc"
mkdir -p "$dir/bin" "$dir/lib"
cp "$1" "$dir/bin/kiln"
# of a version that no machine has, and a library of kernels that is refused once it is loaded
echo 'int needed;' | cc -shared -fPIC -x c - -Wl,-soname,libcublasLt.so.99 -o "$dir/lib/libcublasLt.so.99"
echo 'extern int needed; const char kiln_cuda_entry[64] = "another"; int *use(void) { return &needed; }' |
    cc -shared -fPIC -x c - -x none "$dir/lib/libcublasLt.so.99" -o "$dir/bin/libkiln_cuda.so"

unset CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX
search() { expect 69 "$1" env HOME="$dir/home" "${@:2}" "$dir/bin/kiln" bench --dry_run --device cuda; }

search "no CUDA: libcublasLt.so.99 was not found: name its folder in LD_LIBRARY_PATH" A=1
search "$dir/home/.local/lib/python3*/site-packages/nvidia/*/lib" A=1
loaded="libkiln_cuda.so belongs to another version of kiln"
search "$loaded" LD_LIBRARY_PATH="$dir/lib"
site=lib/python3.12/site-packages/nvidia/cu99/lib
for prefix in venv home/.local python; do
    mkdir -p "$dir/$prefix/$site" "$dir/$prefix/bin"
    cp "$dir/lib/libcublasLt.so.99" "$dir/$prefix/$site/"
    case $prefix in
    venv) search "$loaded" VIRTUAL_ENV="$dir/venv" ;;
    python)
        printf '#!/bin/sh\nexit 1\n' >"$dir/python/bin/python3"
        chmod +x "$dir/python/bin/python3"
        search "$loaded" PATH="/nowhere:$dir/python/bin:$PATH"
        ;;
    *) search "$loaded" A=1 ;;
    esac
    rm -r "${dir:?}/$prefix"
done
ln -s "$dir/lib" "$dir/lib64"
search "$loaded" CUDA_HOME="$dir"
search "libcublasLt.so.99 was not found" A=1 # nothing was left behind that it is found by
rm "$dir/bin/libkiln_cuda.so"
search "(\`make\` builds it where nvcc is installed)" A=1
echo "test_library_search: found in six places"
