#!/usr/bin/env bash
# Checkpoints of other programs as a user names them: every command that reads a model takes PyTorch's, DeepSpeed's and
# TensorFlow's, and gets the same from each.  The files are those of tests/golden/make_imports.py.
. "$(dirname "$0")/begin.sh"

unpack_golden imports
unpack_golden catalog
cd "$dir"
pretraining=(pretraining_bin pretraining_ckpt/ckpt_20.pt pretraining_states pretraining_states/mp_rank_00_model_states.pt
    pretraining_tf pretraining_tf/bert_model.ckpt)
qa=(qa_bin_shards qa_ckpt/model.ckpt-3.pt qa_tf/model.ckpt-8)

# same_export WANTED MODEL...: byte for byte
same_export()
{
    local wanted=$1 model
    expect 0 wrote "$kiln" export --model "$wanted" --output_dir wanted
    for model in "${@:2}"; do
        expect 0 wrote "$kiln" export --model "$model" --output_dir exported
        cmp wanted/model.safetensors exported/model.safetensors || fail "$model has other weights"
        cmp wanted/vocab.txt exported/vocab.txt || fail "$model has another vocabulary"
    done
}
same_export pretraining_safetensors "${pretraining[@]}"
same_export qa_safetensors "${qa[@]}"
# a card of Habana's catalog, as PyTorch of Gaudi saved it: each tensor is an array of numpy
same_export pretraining_safetensors catalog/ckpt_8601.pt
expect 0 "ignored     2  state of the run" "$kiln" export --model pretraining_ckpt/ckpt_20.pt --output_dir exported

"$kiln" fill --model pretraining_safetensors 'a b [MASK] d' >filled 2>/dev/null
"$kiln" embed --model pretraining_safetensors 'a b c' >vectors 2>/dev/null
echo 'a b c d e' >text
"$kiln" ask --model qa_safetensors --context text 'd?' >answered 2>/dev/null
[ -s filled ] && [ -s vectors ] && [ -s answered ] || fail "no answers"
for model in "${pretraining[@]}"; do
    "$kiln" fill --model "$model" 'a b [MASK] d' 2>/dev/null | cmp - filled || fail "fill of $model differs"
    "$kiln" embed --model "$model" 'a b c' 2>/dev/null | cmp - vectors || fail "embed of $model differs"
done
for model in "${qa[@]}"; do
    "$kiln" ask --model "$model" --context text 'd?' 2>/dev/null | cmp - answered || fail "ask of $model differs"
done

expect 0 "PyTorch file" "$kiln" inspect pretraining_ckpt/ckpt_20.pt
expect 0 "module.bert.pooler.dense_act.weight" "$kiln" inspect pretraining_ckpt/ckpt_20.pt
expect 0 "has a dtype that kiln does not support" "$kiln" inspect bad/integers.pt
expect 0 "TensorFlow checkpoint" "$kiln" inspect pretraining_tf/bert_model.ckpt
expect 0 "bert/encoder/layer_1/output/dense/kernel" "$kiln" inspect pretraining_tf/bert_model.ckpt.index
expect 0 "mp_rank_00_model_states.pt" "$kiln" inspect pretraining_states
expect 65 "_io.BytesIO" "$kiln" inspect bad/refused.pt
expect 65 "1 damaged" "$kiln" inspect bad
expect 65 "no token store or TensorFlow checkpoint of that name" "$kiln" inspect nothing.ckpt

# Training from them, the configuration and the vocabulary named as the replaced scripts want it.
make_questions
mkdir alone
cp pretraining_ckpt/ckpt_20.pt pretraining_tf/bert_model.ckpt.* catalog/ckpt_8601.pt alone/
short=(--train_file questions.json --do_train --max_steps 2 --train_batch_size 4 --max_seq_length 24 --max_query_length 8
    --doc_stride 8 --skip_cache)
named=(--config_file pretraining_ckpt/bert_config.json --vocab_file pretraining_ckpt/vocab.txt)
expect 65 "no config.json or bert_config.json beside alone/ckpt_20.pt" "$kiln" squad --init_checkpoint alone/ckpt_20.pt \
    --output_dir run "${short[@]}"
for model in alone/ckpt_20.pt alone/bert_model.ckpt alone/ckpt_8601.pt; do
    expect 0 "weights of $model" "$kiln" squad --init_checkpoint "$model" --output_dir "run_${model##*/}" "${short[@]}" \
        "${named[@]}"
    expect 0 "model: $model" "$kiln" squad --init_checkpoint "$model" --output_dir planned "${short[@]}" "${named[@]}" --dry_run
    cmp "run_${model##*/}/model/model.safetensors" run_ckpt_20.pt/model/model.safetensors || fail "$model trains otherwise"
done

for word in classify tag; do # plans, which need no head
    expect 0 "missing: --train_file none.csv" "$kiln" "$word" --init_checkpoint alone/ckpt_20.pt --output_dir planned --do_train \
        --train_file none.csv --max_seq_length 24 "${named[@]}" --dry_run
done

# Pre-training goes on from them; its own directory is a model too.
awk 'BEGIN { for (d = 0; d < 40; d++) { for (l = 0; l < 8; l++) { line = ""; for (k = 0; k < 6; k++) line = line sprintf("%c%c ",
    97 + (d * 7 + l * 3 + k) % 26, 97 + (d + l * k) % 26); print line "a" } print "" } }' >corpus.txt
"$kiln" prepare --input corpus.txt --vocab_file pretraining_ckpt/vocab.txt --do_lower_case --input_format lines \
    --one_sentence_per_line --output_dir store 2>/dev/null
command=("$kiln" pretrain --input_dir store --config_file pretraining_ckpt/bert_config.json --max_seq_length 24
    --max_predictions_per_seq 4 --train_batch_size 4 --max_steps 2 --eval_steps 0)
expect 0 "weights of pretraining_safetensors" "${command[@]}" --init_checkpoint pretraining_safetensors --output_dir trained
for model in alone/ckpt_20.pt alone/bert_model.ckpt pretraining_states pretraining_bin; do
    expect 0 "weights of $model" "${command[@]}" --init_checkpoint "$model" --output_dir "on_${model##*/}"
    cmp trained/ckpt_2/model.safetensors "on_${model##*/}/ckpt_2/model.safetensors" || fail "$model trains otherwise"
done
expect 0 "" "${command[@]}" --init_checkpoint alone/bert_model.ckpt --output_dir planned --dry_run
! grep -q "missing:" err || fail "a prefix is no missing file: $(cat err)"
expect 0 "missing: --init_checkpoint alone/none.ckpt" "${command[@]}" --init_checkpoint alone/none.ckpt --output_dir planned \
    --dry_run
mkdir replaced
cp alone/ckpt_20.pt replaced/
cp alone/ckpt_20.pt replaced/ckpt_3.pt
expect 65 "its optimizer has 1 parameters in 1 group(s)" "${command[@]}" --output_dir replaced --resume_from_checkpoint
expect 0 "weights of replaced/ckpt_20.pt" "${command[@]}" --output_dir replaced --resume_from_checkpoint \
    --init_checkpoint replaced/ckpt_20.pt
expect 0 "newest checkpoint is trained/ckpt_2" "$kiln" fill --model trained 'a b [MASK] d'
expect 0 "newest checkpoint is trained/ckpt_2" "$kiln" squad --init_checkpoint trained --output_dir run_own "${short[@]}"
echo "test_import_commands: the same from every form"
