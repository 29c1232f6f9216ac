#!/usr/bin/env bash
# tools/gpu_check.sh and tools/gpu_bench.sh in a short form, with the kernels emulated on the cpu: a step that hangs, one that
# fails and one that is skipped each say so, and the steps behind them run.
set -euo pipefail
emulated=$(dirname "$1")
tests=$emulated/..
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../cli/expect.sh"
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1 TMPDIR=$dir BUILD=$dir/build
mkdir -p "$BUILD/tests"
cp "$emulated"/{kiln,libkiln_cuda.so} "$BUILD/"
cp "$tests/checkop" "$BUILD/tests/"
cp "$tests/gpu_tests" "$BUILD/tests/all_tests"
cat >"$BUILD/tests/gpu_tests" <<EOF
#!/bin/sh
case \$1 in
test_cuda_large) exec "$BUILD/tests/all_tests" "\$@" ;;
test_cuda_training) exec 9>'$dir/hanging'; flock 9; echo begun; sleep 1000 & wait ;; # time: longer than the test
test_cuda_fp8) echo "expected (true): 2 and 2 are 5"; exit 1 ;;
test_cuda_session) echo "skipped: no reason"; exit 77 ;;
esac
EOF
chmod +x "$BUILD/tests/gpu_tests"

export LARGE="1 64 1 8"
# steps STEPS N [CODE FAILED]: N match, of which so many fail
steps()
{
    STEPS=$1 OUT=$dir/results expect "${3:-0}" "${4:-0} failed" tools/gpu_check.sh
    cp "$dir/results/gpu_check.txt" "$dir/table"
    [ "$(grep -cE '^(passed|FAILED|skipped) ' "$dir/table")" = "$2" ] || fail "not $2 steps: $(cat "$dir/table")"
}
says() { grep -qE "$1" "$dir/table" || fail "no line '$1': $(cat "$dir/table")"; }

LIMIT=900 steps '^(squares, bf16$|quantize, bf16$|two steps .* fp32|fill, bf16$)' 4
says '^cuda .*kernels emulated on the cpu'
says '^passed  quantize, bf16 \([0-9]+ s\)$'
says '^passed  squares, bf16 \([0-9]+ s\)$'
says '^passed  two steps of BERT-Large, fp32'
says '^passed  fill, bf16 '
grep -q "of its bound" "$dir/results/gpu_check.log" || fail "the log has no case: $(cat "$dir/results/gpu_check.log")"

# programs of a line, of which one hangs: the limit is for them
LIMIT=3 steps '^(training beside|replayed|conversions to|answers)' 4 1 2
says '^FAILED  training beside the cpu \([0-9]+ s\): not done in time$'
says '^passed  replayed steps'
says '^FAILED  conversions to fp8 \([0-9]+ s\)$'
says '2 and 2 are 5'
says '^skipped answers beside the cpu \([0-9]+ s\): skipped: no reason$'
all_gone "$dir/hanging"

BUDGET=0 STEPS='^fill, bf16$' expect 0 "left out fill, bf16" tools/gpu_check.sh

# where nothing can be built and nothing was carried, that is said at once
mkdir "$dir/bare"
for tool in bash dirname mktemp cat; do ln -s "$(command -v $tool)" "$dir/bare/"; done
expect 1 "tools/gpu_carry.sh" env BUILD="$dir/none" PATH="$dir/bare" CUDACXX=/nowhere tools/gpu_check.sh

# and where there is no GPU, once, and not in every step
mkdir "$dir/alone"
cp "$BUILD/kiln" "$dir/alone/"
for script in check bench; do
    OUT=$dir/none BUILD=$dir/alone expect 1 "nothing can be tried here" tools/gpu_$script.sh
    grep -q "kiln: error: --device cuda: " "$dir/err" || fail "no reason: $(cat "$dir/err")"
done

export DEVICE=cpu SIZES=tiny OUT=$dir/rows
ROWS='^(ops of BERT-Large s128|BERT-base s128)' expect 0 "BERT-base s128 B256, whole step" \
    tools/gpu_bench.sh ops goals peers
grep -qE '^all ops' "$dir/rows/gpu_ops.txt" || fail "no ops: $(cat "$dir/rows/gpu_bench.log")"
for what in "forward \+ backward" "whole step"; do
    grep -qE "^BERT-base s128 B256, $what +[0-9.]+ +- " "$dir/rows/gpu_bench.txt" || fail "no $what: $(cat "$dir/out")"
done
mv "$BUILD/kiln" "$BUILD/real"
hang='case $1 in pretrain) sleep 1000 ;; bench) echo "all ops" ;; *) exec '"'$BUILD/real'"' "$@" ;; esac' # time: longer than the test
printf '#!/bin/sh\n%s\n' "$hang" >"$BUILD/kiln"
chmod +x "$BUILD/kiln"
ROWS='^BERT-base s128|^ops of BERT-Large s512' ROW_SECONDS=2 expect 0 "not done in time" \
    tools/gpu_bench.sh goals tables
grep -qE '^all ops' "$dir/rows/gpu_ops.txt" || fail "a row that hangs hides a table: $(cat "$dir/rows/gpu_bench.log")"
grep -qE '^BERT-base s128 B256, whole step +- ' "$dir/rows/gpu_bench.txt" || fail "no row of what ran out of time"
echo "test_gpu_scripts: one failure hides no other step"
