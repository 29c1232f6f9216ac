#!/usr/bin/env bash
# `kiln finetune-gpt` takes a Hugging Face directory of GPT-2 or BLOOM and a text: ten steps have the losses of PyTorch's AdamW to six
# digits, the text gives the same model as lines, as a text and as a store, a run that lost its end goes on with the same bits, the
# model is one that transformers loads with the same logits, and what cannot be is one sentence.
. "$(dirname "$0")/begin.sh"
unpack_golden decoders
unpack_golden finetuned
train=$dir/finetuned/train.jsonl

# tune NAME FLAGS...: ten steps of all windows of the text, as make_finetuned.py
tune()
{
    local out=$1
    shift
    "$kiln" finetune-gpt --train_file "${store:-$train}" --validation_file "$dir/finetuned/heldout.txt" --output_dir "$dir/$out" \
        --max_seq_length 24 --train_batch_size 80 --max_steps 10 --learning_rate 1e-3 --weight_decay 0.01 --log_freq 1 \
        --disable_progress_bar "$@"
}
losses() { grep "\"event\":\"$1\"" "$dir/$2/log.jsonl" | grep -o '"lm_loss":[0-9.]*' | cut -d : -f 2; }
# equal A B: numbers, to six digits
equal() { paste <(echo "$1") <(echo "$2") | awk 'NF != 2 || ($1 - $2) ^ 2 > (5e-7 * $2) ^ 2 { bad = 1 } END { exit bad || NR == 0 }'; }

for case in gpt2 bloom; do
    tune $case-run --model "$dir/$case" >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
    equal "$(losses step $case-run)" "$(cat "$dir/numbers/${case}_losses")" ||
        fail "losses of $case are not PyTorch's: $(losses step $case-run) and $(cat "$dir/numbers/${case}_losses")"
    equal "$(losses evaluation $case-run)" "$(cat "$dir/numbers/${case}_nats")" || fail "held-out losses of $case are others"
    before=$(head -n 1 "$dir/numbers/${case}_nats") after=$(tail -n 1 "$dir/numbers/${case}_nats")
    awk -v a="$before" -v b="$after" 'BEGIN { printf "perplexity of held-out text: %.2f before, %.2f after\n", exp(a), exp(b) }' >"$dir/wanted"
    grep -qxFf "$dir/wanted" "$dir/log" || fail "$(cat "$dir/wanted") is not said: $(tail -n 1 "$dir/log")"
    # what was saved is what was measured
    tune $case-again --model "$dir/$case-run/model" --max_steps 1 >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
    equal "$(losses evaluation $case-again | head -n 1)" "$after" || fail "$case/model is not what was trained"
    expect 0 '' "$kiln" generate --model "$dir/$case-run/model" --prompt 'the hand' --max_new_tokens 3
done
same() { cmp "$dir/$1/model/model.safetensors" "$dir/$2/model/model.safetensors" || fail "$1 and $2 are two models"; }

# a store, whose directory says nothing else, and lines
"$kiln" prepare --format gpt --input "$train" --vocab_file "$dir/gpt2/tokenizer.json" --append_eod --output_prefix "$dir/meg" >/dev/null 2>&1
store=$dir/meg_text_document tune store --model_name_or_path "$dir/gpt2" >/dev/null 2>&1
same gpt2-run store
[ ! -e "$dir/store/data/train.bin" ] || fail "a store was copied"
# a checkpoint of the middle
tune cut --model "$dir/gpt2" --num_steps_per_checkpoint 4 --keep_checkpoints 0 >/dev/null 2>&1
rm -r "$dir"/cut/ckpt_{8,10} "$dir/cut/model"
expect 0 'resumed from' tune cut --model "$dir/gpt2" --resume_from_checkpoint
same gpt2-run cut
expect 64 'already has checkpoints' tune cut --model "$dir/gpt2"
expect 65 'another architecture' tune cut --model "$dir/gpt2_exact" --resume_from_checkpoint

# epochs, the model's length, and a part of the text held out
plain() { "$kiln" finetune-gpt --model "$dir/gpt2" --output_dir "$dir/$1" --disable_progress_bar "${@:2}"; }
plain usual --train_file "$train" --early_stopping_patience 1 --eval_steps 5 >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
grep -q '76 windows of 24 to train on' "$dir/log" && grep -q 'phase 1, 29 steps' "$dir/log" || fail "$(cat "$dir/log")"
for i in 1 2 3 4 5 6; do cat "$dir/finetuned/heldout.txt"; done >"$dir/long.txt"
expect 0 'windows of 24 to train on' plain text --train_file "$dir/long.txt" --validation_split_percentage 20 --train_batch_size 4
expect 0 '40 documents, 1889 tokens, of which' plain dry --train_file "$train" --dry_run
expect 0 'phase 1, 29 steps' plain dry --train_file "$train" --dry_run
expect 65 'has 17 windows to train on: fewer than a batch of 32 sequences of 24' plain dry --train_file "$dir/finetuned/heldout.txt" \
    --train_batch_size 32 --dry_run
expect 64 '--num_train_epochs 0 trains nothing' plain dry --train_file "$train" --num_train_epochs 0
[ ! -e "$dir/dry" ] || fail "a dry run wrote"

# a store that is not the run's own stays as it is, whole or not; its own becomes that of another text
mkdir -p "$dir/mine/data"
for end in bin idx json; do echo "my own" >"$dir/mine/data/train.$end"; done
cp -r "$dir/mine" "$dir/mine_before"
for flags in '' '--dry_run'; do
    expect 64 'mine/data/train.bin is there already' plain mine --train_file "$train" $flags
done
for end in bin idx json; do cp "$dir/meg_text_document.$end" "$dir/mine/data/train.$end"; done
rm -r "$dir/mine_before" && cp -r "$dir/mine/data" "$dir/mine_before"
expect 64 'mine/data/train.bin is there already' plain mine --train_file "$dir/finetuned/heldout.txt"
rm "$dir/mine/data/train.json" "$dir/mine_before/train.json"
expect 64 'mine/data/train.bin is there already' plain mine --train_file "$dir/finetuned/heldout.txt"
diff -r "$dir/mine_before" "$dir/mine/data" || fail "a store of the user's was written over"
expect 65 'fewer than a batch of 32 sequences' plain again --train_file "$dir/finetuned/heldout.txt" --train_batch_size 32
expect 0 'windows of 24 to train on' plain again --train_file "$train" --max_steps 1
# nor does a run take the store away from one that trains on it
sha256sum "$dir"/again/data/* >"$dir/before"
exec 9>>"$dir/again/.lock" && flock 9
expect 74 'again is in use by another run' plain again --train_file "$dir/finetuned/heldout.txt" --resume_from_checkpoint
exec 9>&-
sha256sum --quiet -c "$dir/before" || fail "a run's store was replaced while another run was in the directory"
# nor is a model written over that no run of the directory made
mkdir "$dir/kept" && cp -r "$dir/again/model" "$dir/kept/model"
expect 64 'kept/model is there already' plain kept --train_file "$train" --max_steps 1
expect 64 'kept/model is there already' "$kiln" finetune-gpt --model "$dir/kept/model" --output_dir "$dir/kept" --train_file "$train" --max_steps 1
cmp "$dir/again/model/model.safetensors" "$dir/kept/model/model.safetensors" || fail "a model was written over"

# what cannot be
: >"$dir/empty.txt"
expect 65 'empty.txt is empty' plain none --train_file "$dir/empty.txt"
echo '{"text": ""}' >"$dir/empty.jsonl"
expect 65 'empty.jsonl has no text' plain none --train_file "$dir/empty.jsonl"
expect 65 "cannot read the input $dir/none.txt: No such file" plain none --train_file "$dir/none.txt"
expect 65 'has 24 positions, fewer than --max_seq_length 25' plain none --train_file "$train" --max_seq_length 25
expect 65 'fewer than a batch of 32 sequences of 24 takes' plain none --train_file "$dir/finetuned/heldout.txt" --train_batch_size 32
mkdir "$dir/bpe"
"$kiln" vocab --input "$train" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 270 >/dev/null 2>&1
"$kiln" prepare --format gpt --input "$train" --vocab_file "$dir/bpe/tokenizer.json" --output_prefix "$dir/other" >/dev/null 2>&1
expect 65 'was made with another vocabulary' plain none --train_file "$dir/other_text_document"
rm "$dir/other_text_document.json" # as preprocess_data.py leaves it: an id tells
expect 65 'it was made with another tokenizer' plain none --train_file "$dir/other_text_document"
# the width of a configuration that is not the model's
mkdir "$dir/stores"
for end in bin idx json; do cp "$dir/meg_text_document.$end" "$dir/stores/"; done
sed 's/"n_embd": 24/"n_embd": 48/' "$dir/gpt2/config.json" >"$dir/wide.json"
expect 65 '"n_embd" is 24' "$kiln" pretrain --input_dir "$dir/stores" --vocab_file "$dir/gpt2" --config_file "$dir/wide.json" \
    --init_checkpoint "$dir/gpt2" --output_dir "$dir/none" --max_seq_length 24 --max_steps 1 --train_batch_size 4
sed 's/"n_embd": 24/"n_embd": 48/' "$dir/gpt2/config.json" >"$dir/gpt2/wide" && mv "$dir/gpt2/wide" "$dir/gpt2/config.json"
expect 65 'config.json' plain none --train_file "$train"

if [ -n "${KILN_PYTHON:-}" ] && "$KILN_PYTHON" -c "import torch, transformers, safetensors" 2>/dev/null; then
    for case in gpt2 bloom; do
        "$kiln" convert --model "$dir/$case-run/model" --output_dir "$dir/$case-out" --logits "$dir/$case.logits" >"$dir/log" 2>&1
        "$KILN_PYTHON" "$(dirname "$0")/../golden/check_decoder.py" "$dir/$case-run/model" "$dir/$case.logits" >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
        grep largest "$dir/log"
    done
else
    lack transformers "KILN_PYTHON names no Python with torch, transformers and safetensors, which load what was saved"
fi
echo "test_finetune_gpt: a model goes on learning as in PyTorch"
