#!/usr/bin/env bash
# Lists public functions and tables of a build that only their own file uses, which could be static, and those that only tests use.
# Prints SYMBOL and SOURCE. include/kiln's names, and names that sources outside this build contain (kernels of CUDA, tests of the
# emulator, fuzz targets), are left out.  usage: tools/find_private.sh [--tests] [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
which=own
[ "${1:-}" != --tests ] || { which=tests && shift; }
build=${1:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Lines "OBJECT SYMBOL KIND" of every object: KIND is U where it is used, another letter where it is defined.
find "$build" -path '*/CMakeFiles/*.c.o' -print0 | LC_ALL=C sort -z | xargs -0 nm -g -P -A | sed -E 's/^([^ ]+): /\1 /' | awk '{ print $1, $2, $3 }' >"$work/symbols"
cat src/ops/cuda/*/*.c src/ops/cuda/*/*.h src/ops/cuda/*/*.cu* src/dist/mpi/*.c tests/emulated/* tests/fake_nccl/* fuzz/*.c |
    grep -oE '[a-z_][a-z_0-9]+' | LC_ALL=C sort -u >"$work/elsewhere"

awk -v which="$which" '
    NR == FNR { elsewhere[$1] = 1; next }
    { of_src = $1 ~ /\/(kiln|kiln_program|kiln_kernels_[a-z0-9]+)\.dir\// }
    $3 == "U" { if (of_src) in_src[$2] = 1; else in_tests[$2] = 1; next }
    of_src && $1 ~ /\.dir\/src\// { source = $1; sub(/.*\.dir\//, "", source); sub(/\.o$/, "", source); place[$2] = source }
    END {
        for (name in place) {
            if (in_src[name] || name == "main" || name ~ /^kiln_/ || name in elsewhere) continue
            if ((which == "tests") == (name in in_tests)) print name, place[name]
        }
    }' "$work/elsewhere" "$work/symbols" | LC_ALL=C sort -k 2
