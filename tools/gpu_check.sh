#!/usr/bin/env bash
# Everything that must hold on a GPU, in one go and under 5 minutes: each op against its definition, training beside the
# cpu, loss curves of both devices, a run that is killed and resumed, and the checkers of memory and of races on the ops.
#
#   tools/gpu_check.sh              builds in build-gpu/, without the CPU libraries that a GPU machine may lack
#   BUILD=dir tools/gpu_check.sh    takes a build that was carried there
#
# To build elsewhere:  tools/gpu_check.sh --build, where there is nvcc (tools/install_nvcc.sh fetches one), and carry the
# checkout with these files of the build, which need nothing of the machine but its C library and libcublasLt.so.13 (of
# CUDA 13, or of the wheel nvidia-cublas, with LD_LIBRARY_PATH):
#   kiln  libkiln_cuda.so  tests/checkop  tests/test_cuda_half  tests/test_cuda_fp8  tests/test_cuda_training
#   tests/test_cuda_session  tests/test_cuda_replay  tests/test_cuda_loss_scale  tests/test_cuda_squad
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-gpu}

if [ ! -x "$build/kiln" ] || [ "${1:-}" = --build ]; then
    cmake -S . -B "$build" -G Ninja -DKILN_CUDA=ON -DKILN_STATIC=ON -DKILN_ONEDNN=OFF -DKILN_BLAS=OFF -DKILN_HDF5=OFF
    cmake --build "$build" --target kiln_program kiln_cuda checkop test_cuda_half test_cuda_fp8 test_cuda_training \
        test_cuda_session test_cuda_replay test_cuda_loss_scale test_cuda_squad
    [ "${1:-}" != --build ] || exit 0
fi
export KILN_REQUIRE=cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# step NAME COMMAND...: runs it and counts failures
step()
{
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "passed  $name ($((SECONDS - start)) s)"
    elif [ $? = 77 ]; then
        echo "skipped $name: $(tail -n 1 "$work/log")"
    else
        echo "FAILED  $name ($((SECONDS - start)) s)"
        tail -n 15 "$work/log"
        failed=$((failed + 1))
    fi
}

kiln=$build/kiln
dir=$work # for corpus.sh
. tests/cli/corpus.sh

train() # device directory flags...
{
    local device=$1 out=$2
    shift 2
    "$kiln" pretrain --device "$device" --input_dir "$work/store" --config_file "$work/config.json" --output_dir "$out" \
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 16 --learning_rate 1e-3 --max_steps 40 \
        --eval_steps 0 --disable_progress_bar --num_steps_per_checkpoint 20 "$@"
}

losses() { sed -n 's/.*"event":"step".*"loss":\([0-9.e+-]*\).*/\1/p' "$1/log.jsonl"; }

# Both curves within 1 % (fp32), 2 % (tf32), 3 % (bf16) or 5 % (fp8) of one another at every step.
same_curves() # limit flags...
{
    local limit=$1
    shift
    rm -rf "$work/cpu" "$work/gpu"
    train cpu "$work/cpu" "$@"
    train cuda "$work/gpu" "$@"
    paste <(losses "$work/cpu") <(losses "$work/gpu") | awk -v limit="$limit" '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d; n++ }
        END { printf "%d steps, at most %.4f apart\n", n, worst; exit !(n > 30 && worst < limit) }'
}

resumes_to_the_bit() # flags...
{
    rm -rf "$work/whole" "$work/cut"
    train cuda "$work/whole" "$@"
    train cuda "$work/cut" --steps_this_run 20 "$@"
    # the user's cache is gone: the run knows its algorithms itself (docs/decisions/0024)
    XDG_CACHE_HOME=$work/empty train cuda "$work/cut" --resume_from_checkpoint "$@"
    cmp "$work/whole/ckpt_40/model.safetensors" "$work/cut/ckpt_40/model.safetensors"
}

# What BERT-base takes of the GPU, within 5 % of what was announced.
memory_as_planned()
{
    train cuda "$work/base" --config_file configs/bert_base.json --train_batch_size 256 --max_steps 3 --skip_checkpoint \
        --autocast 2>&1 | tee "$work/memory" | tail -n 3
    awk '/^memory: cuda took/ { found = 1; ratio = $4 / $7; print "taken:planned", ratio }
        END { exit !(found && ratio > 0.95 && ratio < 1.05) }' "$work/memory"
}

export XDG_CACHE_HOME=$work/cache # so that every shape is timed
"$kiln" doctor --dry_run | grep '^cuda'
step "ops, fp32" "$build/tests/checkop" cuda fp32
step "ops, bf16" "$build/tests/checkop" cuda bf16
step "ops, fp16" "$build/tests/checkop" cuda fp16
for kernel in plain mma.sync wgmma; do # whichever would be taken; where one does not fit, another is
    for dtype in bf16 fp16; do
        for op in attention attention_backward; do
            step "$op by $kernel, $dtype" env KILN_ATTENTION=$kernel "$build/tests/checkop" cuda $dtype $op
        done
    done
done
step "conversions of fp16" "$build/tests/test_cuda_half"
step "conversions to fp8" "$build/tests/test_cuda_fp8"
step "training beside the cpu" "$build/tests/test_cuda_training"
step "answers beside the cpu" "$build/tests/test_cuda_session"
step "replayed steps" "$build/tests/test_cuda_replay"
step "training in fp16" "$build/tests/test_cuda_loss_scale"
step "fine-tuning in fp16" "$build/tests/test_cuda_squad"
make_store
step "loss curves, fp32" same_curves 0.01
step "loss curves, bf16" same_curves 0.03 --autocast
step "loss curves, tf32" same_curves 0.02 --tf32
step "loss curves, fp8" same_curves 0.05 --fp8
step "killed and resumed" resumes_to_the_bit
step "killed and resumed, bf16" resumes_to_the_bit --autocast
step "memory as planned" memory_as_planned
if command -v compute-sanitizer >/dev/null; then
    for op in quantize embed_backward attention attention_backward layernorm_backward cross_entropy lamb; do
        step "memory of $op" compute-sanitizer --error-exitcode 1 "$build/tests/checkop" cuda bf16 $op
        step "races of $op" compute-sanitizer --tool racecheck --error-exitcode 1 "$build/tests/checkop" cuda bf16 $op
    done
else
    echo "skipped memory and races of the ops: there is no compute-sanitizer"
fi
echo "$failed failed"
[ "$failed" -eq 0 ]
