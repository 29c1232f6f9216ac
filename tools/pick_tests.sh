#!/usr/bin/env bash
# Chooses which tests of a build a run leaves out: prints a regex for `ctest -E`, nothing if all run, and says on standard error what is left
# out.  The tests of kernels (each op by each kernel and dtype of the cuda table, on the emulator) take as much time as all
# others together. One in KERNELS of them runs; in the build of `make test` all of them,
# if the commits in question (tools/turn.sh) have changed these kernels or what they are tested by. Of
# the other tests one in REST runs. Which ones depends on the number of commits: all take their turn. The line on standard error
# begins with the variable that repeats this choice.
# KILN_TESTS=all leaves out nothing (`make test-slow`).  usage: tools/pick_tests.sh BUILD KERNELS REST
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?a build} kernels=${2:?one in how many} rest=${3:?one in how many}
[ "${KILN_TESTS:-}" != all ] || exit 0

is_kernel='^(checkop_(emulated_|cuda_)|test_emulated_|test_gpu_scripts$)'
what_kernels_are='^(src/ops/(cuda/(kernels|table|choice)/|(ops|ref|accept|attention_bits|half_ops)[a-z_]*\.[ch]$)|tests/(emulated|ops/(checkop|test_cuda))|tools/gpu_)'
. tools/turn.sh
if grep -qE "$what_kernels_are" <<<"$changed" && [ "$build" = build ]; then
    kernels=1
fi

left_out=()
runs=0
while read -r name; do
    one_in=$rest
    [[ ! $name =~ $is_kernel ]] || one_in=$kernels
    if [ $((($(cksum <<<"$name" | cut -d' ' -f1) + turn) % one_in)) -ne 0 ]; then
        left_out+=("$name")
    else
        runs=$((runs + 1))
    fi
done < <(ctest --test-dir "$build" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
[ ${#left_out[@]} -gt 0 ] || exit 0
echo "KILN_TURN=$turn: left out of this run, $runs others run (KILN_TESTS=all runs all): ${left_out[*]}" | fold -s -w 150 >&2
(IFS='|'; echo "^(${left_out[*]})\$")
