#!/usr/bin/env bash
# `kiln pretrain --arch modernbert`: a ModernBERT of a BERT's sizes learns masked words of a token store, a stopped run goes on with the same bits, the export
# answers, a configuration of its own needs no flag, and flags of a table of positions and other configurations are refused.
. "$(dirname "$0")/begin.sh"
make_store

train()
{
    local out=$1
    shift
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" --max_seq_length 32 \
        --train_batch_size 8 --max_steps 20 --optimizer adamw --learning_rate 1e-2 --eval_steps 20 --disable_progress_bar "$@"
}

train whole --arch modernbert >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
grep -q 'model: ModernBERT: ' "$dir/log" || fail "$(cat "$dir/log")"
train cut --arch modernbert --steps_this_run 9 >/dev/null 2>&1
train cut --arch modernbert --resume_from_checkpoint >/dev/null 2>&1
for file in model.safetensors optimizer.safetensors config.json; do
    cmp "$dir/whole/ckpt_20/$file" "$dir/cut/ckpt_20/$file" || fail "$file differs after a stop"
done
cp "$dir/whole/ckpt_20/config.json" "$dir/own.json"
train own --config_file "$dir/own.json" >/dev/null 2>&1
cmp "$dir/whole/ckpt_20/model.safetensors" "$dir/own/ckpt_20/model.safetensors" || fail "a configuration of its own is another model"
expect 0 "wrote $dir/hf" "$kiln" export --model "$dir/whole/ckpt_20" --output_dir "$dir/hf"
expect 0 'model                           ModernBertForMaskedLM' "$kiln" inspect "$dir/hf"
expect 0 "" "$kiln" fill --model "$dir/hf" "the [MASK]"

# its heads for words, answers and texts begin where the words' ended
printf 'the O\nhouse B-X\nis O\n\nit O\nis O\n\n' >"$dir/words.txt"
printf 'text,label\nthe house,yes\nit is,no\n' >"$dir/texts.csv"
echo '{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the house is old", "qas": [{"id": "1", "question": "is it",
    "answers": [{"text": "old", "answer_start": 13}]}]}]}]}' >"$dir/answers.json"
tune() { "$kiln" "$1" --init_checkpoint "$dir/hf" --do_train --train_file "$2" --output_dir "$dir/$1" --max_steps 3 --train_batch_size 2 --max_seq_length 24 "${@:3}"; }
expect 0 "saved $dir/tag/model" tune tag "$dir/words.txt"
expect 0 "saved $dir/classify/model" tune classify "$dir/texts.csv"
expect 0 "saved $dir/squad/model" tune squad "$dir/answers.json" --max_query_length 8 --doc_stride 4
for row in tag:TokenClassification classify:SequenceClassification squad:QuestionAnswering; do
    expect 0 "ModernBertFor${row#*:}" "$kiln" inspect "$dir/${row%%:*}/model"
done

train bert-recipe --arch modernbert --recipe modern >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
! grep -q 'sinusoidal' "$dir/log" || fail "the recipe has flags of BERT's positions: $(grep sinusoidal "$dir/log")"

expect 64 "--shifted_positions needs a BERT model, which has a table of positions" train no --arch modernbert --shifted_positions
expect 64 "--recipe reference is BERT's" train no --arch modernbert --recipe reference
echo '{"model_type": "gpt2", "n_embd": 32}' >"$dir/gpt2.json"
expect 64 "takes the sizes of a BERT, but $dir/gpt2.json is of a \"gpt2\"" train no --arch modernbert --config_file "$dir/gpt2.json"
echo '{"model_type": "bert", "hidden_size": 64}' >"$dir/short.json"
expect 65 "num_hidden_layers" train no --arch modernbert --config_file "$dir/short.json"
