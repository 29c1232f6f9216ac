#!/usr/bin/env bash
# `kiln inspect --diff`: names the first tensor that differs, where and by how much; of hand-made files, of logs of tensors,
# and of checkpoints and what was exported from them.
. "$(dirname "$0")/begin.sh"

# make FILE HEADER FLOATS...: a safetensors file; floats are bytes as printf has them, little-endian
make()
{
    local file=$1 header=$2
    shift 2
    { printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; printf "$(printf %s "$@")"; } >"$file"
}
zero='\0\0\0\0' one='\0\0\x80\x3f' two='\0\0\0\x40' nan='\0\0\xc0\x7f' inf='\0\0\x80\x7f'
both='{"z":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}'
make "$dir/a.safetensors" "$both" $zero $one $two $zero $one $two
make "$dir/b.safetensors" "$both" $zero $one $one $zero $one $zero
make "$dir/nan.safetensors" "$both" $zero $one $two $nan $one $two
make "$dir/inf.safetensors" "$both" $zero $one $two $inf $one $two
make "$dir/shape.safetensors" \
    '{"z":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}' \
    $zero $one $two $zero $one $two
make "$dir/one.safetensors" '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' $one $two
make "$dir/other.safetensors" '{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' $one $two

diff=("$kiln" inspect --diff)
expect 0 "different                       0" "${diff[@]}" "$dir/a.safetensors" "$dir/a.safetensors"
# in the order of the file, not of names
expect 1 "they differ, first in z" "${diff[@]}" "$dir/a.safetensors" "$dir/b.safetensors"
for line in "first_at                      \[1, 0\]" "max_abs                       1$" "a                             2$" \
    "elements_that_differ          1$" "different                       2$" "1 of 2 elements, max abs 2, max rel inf"; do
    grep -q "$line" "$dir/out" || fail "'$line' is not in: $(cat "$dir/out")"
done
expect 1 "they differ, first in a" "${diff[@]}" --rtol 1 "$dir/a.safetensors" "$dir/b.safetensors"
expect 0 "" "${diff[@]}" --atol 2 "$dir/a.safetensors" "$dir/b.safetensors"
expect 0 "" "${diff[@]}" "$dir/nan.safetensors" "$dir/nan.safetensors"
expect 0 "" "${diff[@]}" "$dir/inf.safetensors" "$dir/inf.safetensors"
expect 1 '"a": "nan"' "${diff[@]}" --json --atol 1e9 "$dir/nan.safetensors" "$dir/a.safetensors"
expect 1 '"max_abs": "inf"' "${diff[@]}" --json --atol 1e9 "$dir/a.safetensors" "$dir/inf.safetensors"
expect 1 "another shape" "${diff[@]}" "$dir/a.safetensors" "$dir/shape.safetensors"
expect 1 "only_in_a                       [z]" "${diff[@]}" "$dir/a.safetensors" "$dir/one.safetensors"
expect 65 "have no tensor of one name" "${diff[@]}" "$dir/a.safetensors" "$dir/other.safetensors"
expect 65 "nothing.safetensors" "${diff[@]}" "$dir/a.safetensors" "$dir/nothing.safetensors"
head -c 120 "$dir/a.safetensors" >"$dir/cut.safetensors"
expect 65 "cut.safetensors" "${diff[@]}" "$dir/a.safetensors" "$dir/cut.safetensors"
expect 64 "--diff compares two paths, not 1" "${diff[@]}" "$dir/a.safetensors"
expect 0 "b.safetensors" "${diff[@]}" --dry-run "$dir/a.safetensors" "$dir/b.safetensors"
grep -q "a.safetensors" "$dir/out" || fail "a dry run does not say what the first is"
expect 64 "two are compared with --diff" "$kiln" inspect "$dir/a.safetensors" "$dir/b.safetensors"
expect 64 "--atol" "${diff[@]}" --atol -1 "$dir/a.safetensors" "$dir/b.safetensors"

# logs of tensors: the same run twice; in bf16 the inputs are the same, and what comes after them is not
make_store
train() # directory flags...
{
    local out=$1
    shift
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$out" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 8 --gradient_accumulation_steps 2 --max_steps 2 --eval_steps 0 \
        --disable_progress_bar --log_model_inputs --log_fwd_activations --log_bwd_grads --tensor_logger_max_iterations 4 "$@" \
        2>"$dir/log" || fail "$(cat "$dir/log")"
}
train "$dir/one"
train "$dir/two"
train "$dir/bf16" --autocast
train "$dir/later" --tensor_logger_start_step 2
expect 0 "" "${diff[@]}" "$dir/one/tensor_logger" "$dir/two/tensor_logger"
expect 1 "micro_0.safetensors: fwd_act/model.bert.embeddings" "${diff[@]}" "$dir/one/tensor_logger" "$dir/bf16/tensor_logger"
expect 0 "" "${diff[@]}" --atol 0.3 --rtol 0.3 "$dir"/{one,bf16}/tensor_logger/tensor_logger_rank_0_step_1_micro_0.safetensors
expect 1 "only_in_a" "${diff[@]}" "$dir/one/tensor_logger" "$dir/later/tensor_logger"
grep -q "different  *0" "$dir/out" || fail "a later window has other tensors"

# checkpoints: layer 2 comes before layer 10; what was exported is the same, without the moments
expect 0 "" "${diff[@]}" "$dir/one" "$dir/two/ckpt_2"
expect 1 "they differ, first in weights: bert.embeddings.LayerNorm.bias" "${diff[@]}" "$dir/one" "$dir/bf16"
"$kiln" export --model "$dir/one/ckpt_2" --output_dir "$dir/exported" 2>/dev/null
expect 0 "only weights are compared" "${diff[@]}" "$dir/one/ckpt_2" "$dir/exported"

# fine-tuning has a log of its own head
make_questions
expect 0 "wrote the tensors of 1 micro-batches" "$kiln" squad --init_checkpoint "$dir/one/ckpt_2" --output_dir "$dir/qa" \
    --do_train \
    --train_file "$dir/questions.json" --max_seq_length 32 --train_batch_size 4 --max_steps 1 --skip_checkpoint \
    --log_model_inputs \
    --log_fwd_activations --log_bwd_grads --tensor_logger_max_iterations 1
"$kiln" inspect "$dir/qa/tensor_logger/tensor_logger_rank_0_step_1_micro_0.safetensors" >"$dir/names"
for name in model_inputs/span_labels fwd_act/model.qa_outputs bwd_grad_out/model.qa_outputs param_grad/qa_outputs.weight; do
    grep -q "$name" "$dir/names" || fail "$name is not in the log of fine-tuning: $(cat "$dir/names")"
done
echo "test_inspect_diff: the first difference is named"
