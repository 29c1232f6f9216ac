#!/usr/bin/env bash
# The program as a user of a GPU meets it, with the kernels emulated on the cpu: training, its profile, its migration log
# and its resumption, fine-tuning in fp16, answers, and the cpu's losses beside them.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
here=$(dirname "$0")
. "$here/../cli/corpus.sh"
. "$here/../cli/expect.sh"
make_store
export OMP_NUM_THREADS=1

expect 0 "kernels emulated on the cpu" "$kiln" doctor --dry_run
expect 0 "attention of a new shape, heads of 64: fp32 plain, bf16 mma.sync or wgmma" "$kiln" doctor --dry_run

train() # directory flags...
{
    local out=$1
    shift
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$out" --max_seq_length 16 \
        --max_predictions_per_seq 3 --train_batch_size 4 --gradient_accumulation_steps 2 --learning_rate 1e-3 --max_steps 4 \
        --num_steps_per_checkpoint 2 --eval_steps 0 --disable_progress_bar "$@"
}

KILN_ATTENTION=flash expect 64 "KILN_ATTENTION=flash: no kernel of attention is called that; there are plain" \
    train "$dir/flash" --device cuda
KILN_PRODUCT=huge expect 64 "KILN_PRODUCT=huge: no form of a product is called that; there are library, 64x64," \
    train "$dir/huge" --device cuda
KILN_ATTENTION=plain expect 0 "memory" train "$dir/plain" --device cuda --max_steps 1 --migration_log "$dir/plain.log"
grep -q "plain attention: KILN_ATTENTION asks for it" "$dir/plain.log" || fail "$(grep attention "$dir/plain.log")"

losses() { sed -n 's/.*"event":"step".*"loss":\([0-9.e+-]*\).*/\1/p' "$1/log.jsonl"; }

train "$dir/cpu" --device cpu 2>/dev/null
expect 0 "memory: emulated cuda took" train "$dir/cuda" --device cuda --sync_ops --migration_log "$dir/ops.log" --profile \
    --profile_steps 3:4
paste <(losses "$dir/cpu") <(losses "$dir/cuda") | awk '
    { d = ($1 - $2) / $1; n++; if (d > 2e-5 || d < -2e-5) wrong++ } END { exit n != 4 || wrong > 0 }' ||
    fail "the losses are not the cpu's: $(losses "$dir/cpu") and $(losses "$dir/cuda")"
for op in embed attention_backward linear_gelu lamb_direction lamb_apply; do
    grep -q "$op" "$dir/ops.log" || fail "$op is not in the migration log"
done
# Tensors of the first step are the cpu's within rounding, and logging them changes nothing; with one wrong op the log
# would say where; every op can be its definition.
logs=(--log_model_inputs --log_fwd_activations --log_bwd_grads --tensor_logger_max_iterations 2)
train "$dir/cpu_log" --device cpu --steps_this_run 1 "${logs[@]}" 2>/dev/null
expect 0 "their work is not replayed" train "$dir/cuda_log" --device cuda --log_memory_usage "${logs[@]}"
grep -q "memory: emulated cuda [0-9.]* GiB, at most .*; host [0-9.]* GiB, at most" "$dir/err" || fail "$(grep memory: "$dir/err")"
expect 0 "compared  " "$kiln" inspect --diff --atol 1e-5 --rtol 1e-4 "$dir/cpu_log/tensor_logger" "$dir/cuda_log/tensor_logger"
cmp "$dir/cuda/ckpt_4/model.safetensors" "$dir/cuda_log/ckpt_4/model.safetensors" || fail "logging tensors changed the weights"
expect 0 "on the host through copies" train "$dir/plain_ops" --device cuda --steps_this_run 1 --plain_ops all "${logs[@]}" \
    --migration_log "$dir/mismatch.log" --migration_log_level 3
grep -q "cuda_mismatch\]: attention_backward(.* --> its definition" "$dir/mismatch.log" || fail "no mismatch"
expect 0 "compared  " "$kiln" inspect --diff --atol 1e-5 --rtol 1e-4 "$dir/cpu_log/tensor_logger" "$dir/plain_ops/tensor_logger"
expect 64 "cannot compute an op in fp8" train "$dir/plain_fp8" --device cuda --fp8 --plain_ops gelu_backward
expect 64 "with --fp8 on" train "$dir/log_fp8" --device cuda --fp8 "${logs[@]}"
trace=$dir/cuda/profile/trace_3_4.json
grep -q '"copy batch"' "$trace" || fail "the copies of batches are not in the trace"
! command -v python3 >/dev/null || python3 "$here/../../tools/check_trace.py" "$trace" >/dev/null || fail "a bad trace"

train "$dir/cut" --device cuda --steps_this_run 2 2>/dev/null
train "$dir/cut" --device cuda --resume_from_checkpoint 2>/dev/null
cmp "$dir/cuda/ckpt_4/model.safetensors" "$dir/cut/ckpt_4/model.safetensors" || fail "resumed to other bits"

# What a run chose travels with its checkpoints: an hour later, without the files beside them, others would win.
sed 's/"hidden_size": [0-9]*/"hidden_size": 64/; s/_layers": 2/_layers": 1/; s/_heads": 2/_heads": 1/' "$dir/config.json" >"$dir/small.json"
bf16() # directory flags...
{
    train "$@" --device cuda --autocast --config_file "$dir/small.json" --max_steps 2 --num_steps_per_checkpoint 1 \
        --migration_log "$dir/bf16.log" 2>/dev/null
    grep -o "attention by [a-z.]*" "$dir/bf16.log" | sort -u >"$1/kernels"
}
bf16 "$dir/one"
KILN_EMULATED_TURN=1 bf16 "$dir/other"
! cmp -s "$dir/one/kernels" "$dir/other/kernels" || fail "no other kernel wins in another hour: $(cat "$dir/one/kernels")"
bf16 "$dir/moved" --steps_this_run 1
rm "$dir/moved/cublaslt.cache"
KILN_EMULATED_TURN=1 bf16 "$dir/moved" --resume_from_checkpoint
for file in kernels ckpt_2/model.safetensors ckpt_2/optimizer.safetensors ckpt_2/cublaslt.cache ckpt_2/manifest.json; do
    cmp "$dir/one/$file" "$dir/moved/$file" || fail "resumed with other kernels: $(cat "$dir/moved/kernels")"
done
expect 0 cublaslt.cache "$kiln" inspect "$dir/one/ckpt_2"

expect 0 "memory: emulated cuda took" train "$dir/fp8" --device cuda --fp8 --skip_checkpoint --migration_log "$dir/fp8.log"
grep "linear_backward_weight" "$dir/fp8.log" | grep e5m2 >/dev/null || fail "gradients were not multiplied in fp8"

model=$dir/cuda/ckpt_4
for dtype in fp32 bf16 fp16; do
    expect 0 "[MASK]" "$kiln" fill --device cuda --dtype $dtype --model "$model" "the king of [MASK]"
done
expect 0 "[" "$kiln" embed --device cuda --model "$model" "the king" "of the city"
cat >"$dir/squad.json" <<'JSON'
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the king came to the city", "qas": [
{"id": "a", "question": "the king", "answers": [{"text": "city", "answer_start": 21}]}]}]}]}
JSON
expect 0 "exact_match" "$kiln" squad --device cuda --fp16 --loss_scale 1024 --init_checkpoint "$model" --train_file "$dir/squad.json" --do_train \
    --predict_file "$dir/squad.json" --do_predict --do_eval --max_seq_length 24 --train_batch_size 1 --num_train_epochs 2 \
    --output_dir "$dir/qa" --vocab_file "$dir/vocab.txt"
