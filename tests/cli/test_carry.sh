#!/usr/bin/env bash
# What is carried to a machine without packages needs nothing that such a machine lacks: libkiln_cuda.so where it is built, and
# the programs of a build with KILN_STATIC.
set -euo pipefail
build=$(dirname "$1")
carry=$(dirname "$0")/../../tools/gpu_carry.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
files=()
if grep -q '^KILN_STATIC:BOOL=ON' "$build/CMakeCache.txt"; then
    files+=(kiln tests/checkop)
fi
if [ -f "$build/libkiln_cuda.so" ]; then
    files+=(libkiln_cuda.so)
fi
[ ${#files[@]} -gt 0 ] ||
    skip nvcc "this build is neither static nor has it libkiln_cuda.so; install nvcc (tools/install_nvcc.sh)"
for file in "${files[@]}"; do
    strip -o "$dir/$(basename "$file")" "$build/$file"
done
if readelf -d "$dir"/libkiln_cuda.so 2>/dev/null | grep RUNPATH >/dev/null; then # of a build that stays where it is
    expect 1 "looks for libraries where this machine has them" "$carry" --check "$dir/libkiln_cuda.so"
    echo "file(RPATH_REMOVE FILE \"$dir/libkiln_cuda.so\")" >"$dir/remove.cmake"
    cmake -P "$dir/remove.cmake"
fi
expect 0 "MiB in ${#files[@]} files" "$carry" --check $(printf "$dir/%s " "${files[@]##*/}")
if [ -f "$build/libkiln_cuda.so" ]; then # the programs of this build need more, but are about as large
    expect 0 "MiB in 4 files" "$carry" --size "$build"
fi
cc -x c - -o "$dir/other" -Wl,--no-as-needed -lz <<<'int main(void) { return 0; }'
expect 1 "needs more than a bare machine has" "$carry" --check "$dir/other"
echo "test_carry: ${files[*]} can be carried"
