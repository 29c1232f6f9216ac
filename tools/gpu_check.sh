#!/usr/bin/env bash
# Checks everything that must hold on a GPU, the most informative first: the ops that training spends its time
# in, at odd sizes and at BERT-Large's, and two steps of BERT-Large compared with the cpu; then every op,
# training, loss curves of both devices, a run that is killed and resumed. A step that fails or exceeds its
# time is reported, and the next one runs.
#
#   tools/gpu_check.sh              every step; `first` only the first part, `rest` the others
#   STEPS=REGEX                     only those whose name matches
#   SANITIZE=1                      compute-sanitizer's checks of memory and of races on some ops too
#   BUILD=dir                       the build (build-carry/ of tools/gpu_carry.sh, else build-gpu/, compiled here)
#   OUT=dir                         gpu_check.log, all output, and gpu_check.txt, one line per step, go there
#   LIMIT=90                        seconds of a step
#   BUDGET=300                      seconds in all: steps that would begin later are left out
set -euo pipefail
set -a # steps run in separate shells, with a time limit
cd "$(dirname "$0")/.."
. tools/gpu_common.sh
if [ "${1:-}" = --build ]; then
    build_for_gpu "${BUILD:-build-gpu}"
    exit
fi
open_gpu_build
need_device cuda
out=${OUT:-$work}
log=$out/gpu_check.log table=$out/gpu_check.txt
checkop=$build/tests/checkop
limit=${LIMIT:-90}
case_limit=$((limit > 30 ? 30 : limit)) # of a case of checkop
failed=0
mkdir -p "$out"
: >"$log"
: >"$table"
KILN_REQUIRE=cuda
XDG_CACHE_HOME=$work/cache # so that every shape is timed

tell() { echo "$*" | tee -a "$table"; }

# step NAME COMMAND...: runs it, says in a line how it ended, and counts failures
step()
{
    local name=$1 start=$SECONDS lines code=0 what
    [[ $name =~ ${STEPS:-.} ]] || return 0
    [ "$(seconds_left)" -gt 0 ] || { tell "left out $name" && return 0; }
    shift
    echo "== $name: $*" >>"$log"
    lines=$(wc -l <"$log")
    limited "$limit" "$@" >>"$log" 2>&1 || code=$?
    tail -n +$((lines + 1)) "$log" >"$work/step"
    what="$name ($((SECONDS - start)) s)"
    if [ $code = 0 ]; then
        tell "passed  $what"
    elif [ $code = 77 ]; then
        tell "skipped $what: $(tail -n 1 "$work/step")"
    else
        ! ran_out $code || what="$what: not done in time"
        tell "FAILED  $what"
        failed=$((failed + 1))
        { grep -E 'FAILED|expected|error' "$work/step" | head -n 12 && echo ... || true; tail -n 4 "$work/step"; } | cut -c 1-300 | tee -a "$table"
    fi
}

# op_steps WORDS DTYPE OP...: each op in a separate process; "large" in WORDS: at BERT-Large's sizes
op_steps()
{
    local words=$1 dtype=$2 op flags=("--seconds=$case_limit")
    shift 2
    case $words in *large*) flags+=(--large) ;; esac
    for op in "$@"; do step "$op, $dtype$words" "$checkop" "${flags[@]}" cuda "$dtype" "$op"; done
}

attention_steps() # kernel dtype words
{
    KILN_ATTENTION=$1 op_steps "$3 by $1" "$2" attention attention_backward
}

product_steps() # tile dtype
{
    KILN_PRODUCT=$1 op_steps ", by $1" "$2" linear linear_gelu
}

dir=$work # for corpus.sh
. tests/cli/corpus.sh

train() # device directory flags...
{
    local device=$1 out=$2
    shift 2
    [ -d "$work/store" ] || make_store
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

# The resumed run reads its algorithms from its own directory, without the user's cache (docs/decisions/0024).
# It may also meet new shapes, for which it gets the choices of the run that was not stopped.
resumes_to_the_bit() # flags...
{
    rm -rf "$work/whole" "$work/cut"
    train cuda "$work/whole" "$@"
    train cuda "$work/cut" --steps_this_run 20 "$@"
    if [ -f "$work/whole/cublaslt.cache" ]; then cp "$work/whole/cublaslt.cache" "$work/cut/"; fi
    XDG_CACHE_HOME=$work/empty train cuda "$work/cut" --resume_from_checkpoint "$@"
    cmp "$work/whole/ckpt_40/model.safetensors" "$work/cut/ckpt_40/model.safetensors"
}

# The memory that BERT-base takes on the GPU, within 5 % of the plan.
memory_as_planned()
{
    train cuda "$work/base" --config_file configs/bert_base.json --train_batch_size 256 --max_steps 3 --skip_checkpoint \
        --autocast 2>&1 | tee "$work/memory" | tail -n 3
    awk '/^memory: .*cuda took/ { found = 1; ratio = $(NF - 4) / $(NF - 1); print "taken:planned", ratio }
        END { exit !(found && ratio > 0.95 && ratio < 1.05) }' "$work/memory"
}

hot="linear linear_gelu linear_backward_input linear_backward_weight bias_dropout_add_layernorm
    bias_dropout_add_layernorm_backward gelu_backward embed embed_backward cross_entropy quantize squares lamb_direction
    lamb_apply"
others=$("$checkop" ops | grep -vxF "$(printf '%s\n' $hot)")

first_part()
{
    attention_steps wgmma bf16 ""
    KILN_ATTENTION=cluster op_steps " by cluster" bf16 attention_backward
    attention_steps mma.sync bf16 ""
    for tile in 64x64 64x128 64x192 128x128 64x64by4 128x128by4; do product_steps $tile bf16; done
    op_steps "" bf16 $hot
    attention_steps wgmma bf16 ", large"
    KILN_ATTENTION=cluster op_steps ", large by cluster" bf16 attention_backward
    attention_steps mma.sync bf16 ", large"
    op_steps ", large" bf16 $hot
    limit=$((2 * limit)) step "two steps of BERT-Large, bf16" "$build/tests/gpu_tests" test_cuda_large ${LARGE:-24 1024 16 128} bf16
    step "training beside the cpu" "$build/tests/gpu_tests" test_cuda_training
    step "replayed steps" "$build/tests/gpu_tests" test_cuda_replay
}

rest()
{
    local kernel dtype
    limit=$((2 * limit)) step "two steps of BERT-Large, fp32" "$build/tests/gpu_tests" test_cuda_large ${LARGE:-24 1024 16 128} fp32
    op_steps "" bf16 $others
    step "conversions to fp8" "$build/tests/gpu_tests" test_cuda_fp8
    step "factors in fp8 rounded where they are made" "$build/tests/gpu_tests" test_cuda_rounding
    step "answers beside the cpu" "$build/tests/gpu_tests" test_cuda_session
    step "texts beside the cpu" "$build/tests/gpu_tests" test_cuda_generate
    step "steps in segments" "$build/tests/gpu_tests" test_cuda_segments
    step "loss curves, bf16" same_curves 0.03 --autocast
    step "killed and resumed, bf16" resumes_to_the_bit --autocast
    step "loss curves, fp8" same_curves 0.05 --fp8
    step "loss curves, fp32" same_curves 0.01
    step "loss curves, tf32" same_curves 0.02 --tf32
    step "killed and resumed" resumes_to_the_bit
    step "memory as planned" memory_as_planned
    op_steps "" fp32 $hot $others
    op_steps "" fp16 $hot $others
    for tile in 64x192 128x128by4; do product_steps $tile fp16; done
    for kernel in mma.sync wgmma cluster; do attention_steps $kernel fp16 ""; done # where one does not fit, another is taken
    for dtype in bf16 fp16; do attention_steps plain $dtype ""; done
    step "conversions of fp16" "$build/tests/gpu_tests" test_cuda_half
    step "training in fp16" "$build/tests/gpu_tests" test_cuda_loss_scale
    step "fine-tuning in fp16" "$build/tests/gpu_tests" test_cuda_squad
    op_steps ", large" fp32 $hot $others
    op_steps ", large" bf16 $others
    [ "${SANITIZE:-0}" = 0 ] || sanitize
}

sanitize()
{
    local op
    for op in quantize embed_backward attention attention_backward layernorm_backward cross_entropy lamb_direction lamb_apply; do
        step "memory of $op" compute-sanitizer --error-exitcode 1 "$checkop" --one-process cuda bf16 $op
        step "races of $op" compute-sanitizer --tool racecheck --error-exitcode 1 "$checkop" --one-process cuda bf16 $op
    done
}

machine | tee -a "$table"
[ "${1:-}" = rest ] || first_part
[ "${1:-}" = first ] || rest
tell "$failed failed"
[ "$failed" -eq 0 ]
