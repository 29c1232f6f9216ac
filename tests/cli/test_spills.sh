#!/usr/bin/env bash
# No innermost loop of the AVX2 kernels stores a vector to the stack (tools/find_spills.py), and the check sees one that does, and one
# that builds a vector by halves.
set -euo pipefail
build=$(dirname "$(realpath "$1")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
find_spills="$(dirname "$0")/../../tools/find_spills.py"
for tool in python3 objdump; do
    command -v $tool >/dev/null || skip objdump "there is no $tool on PATH; install python3 and binutils"
done
command -v cc >/dev/null || skip cc "there is no C compiler on PATH; install gcc"

kernels=CMakeFiles/kiln_kernels_avx2.dir/src/ops/cpu
mkdir -p "$dir/$kernels"
expect 69 "has no kernels for AVX2" "$find_spills" "$dir"
expect 64 "usage" "$find_spills" "$dir" "$dir"

# sums that need so many registers, over so many numbers
cat >"$dir/sums.c" <<'C'
typedef float vector __attribute__((vector_size(32), aligned(4)));
void add_up(float *out, const float *in, long n)
{
    vector sums[SUMS] = {0};
    for (long i = 0; i < n; i++) {
#pragma GCC unroll 32
        for (int s = 0; s < SUMS; s++) {
            sums[s] += *(const vector *)(in + 8 * i) * in[s];
        }
    }
    for (int s = 0; s < SUMS; s++) {
        *(vector *)(out + 8 * s) = sums[s];
    }
}
C
cat >"$dir/halves.c" <<'C'
#include <immintrin.h>
void add_halves(float *out, const float *a, const float *b, long n)
{
    __m256 sum = _mm256_setzero_ps();
    for (long i = 0; i < n; i++) {
        volatile __m128 halves[2] __attribute__((aligned(32)));
        halves[0] = _mm_loadu_ps(a + 4 * i);
        halves[1] = _mm_loadu_ps(b + 4 * i);
        sum += *(volatile __m256 *)halves;
    }
    _mm256_storeu_ps(out, sum);
}
C
make_kernels() { rm -f "$dir/$kernels"/* && cc -O2 -mavx2 -mfma "${@:2}" -c "$dir/$1.c" -o "$dir/$kernels/$1_kernels.c.o"; }
make_kernels sums -DSUMS=4 2>"$dir/err" || skip cpu-avx2 "the compiler has no AVX2: $(head -n 1 "$dir/err")"
"$find_spills" "$dir" || fail "four sums were found"
make_kernels sums -DSUMS=24
expect 1 "sums_kernels.c add_up " "$find_spills" "$dir"
make_kernels halves
expect 1 "halves_kernels.c add_halves " "$find_spills" "$dir"

# another compiler keeps other numbers in registers, and so does one that adds checks
objects=("$build/$kernels"/*.o)
[ -e "${objects[0]}" ] || skip cpu-avx2 "this build has no kernels for AVX2"
! grep -q '^KILN_SANITIZE:BOOL=ON' "$build/CMakeCache.txt" || skip cc "kernels with sanitizers were not looked at; build without them"
grep -aq 'GCC: ([^)]*) 12[.]' "${objects[@]}" || skip cc "kernels by another compiler than GCC 12 were not looked at"
"$find_spills" "$build" || fail "vectors are stored to the stack in these loops"
