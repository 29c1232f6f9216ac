#!/usr/bin/env bash
# `kiln ngram` counts a store, lines of JSON or a text and measures others in the form of `kiln eval`, with one result for one text in all
# forms; `kiln eval` reads these forms too, and last words; what cannot be measured is refused by name.
. "$(dirname "$0")/begin.sh"
for i in $(seq 150); do
    echo "{\"text\": \"The king number $i went to the city, and the queen number $((i * 7 % 100)) came in from the garden.\"}"
done >"$dir/all.jsonl"
head -n 140 "$dir/all.jsonl" >"$dir/train.jsonl"
tail -n 10 "$dir/all.jsonl" >"$dir/heldout.jsonl"
mkdir "$dir/bpe"
vocab=$dir/bpe/tokenizer.json
"$kiln" vocab --input "$dir/train.jsonl" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 300 >/dev/null 2>&1
for part in train heldout; do
    "$kiln" prepare --format gpt --input "$dir/$part.jsonl" --vocab_file "$vocab" --output_prefix "$dir/$part" >/dev/null 2>&1
done
store() { echo "$dir/$1_text_document"; }
# measured WORDS...: what ngram prints of them, without their names
measured() { "$kiln" ngram --vocab_file "$vocab" --train "$@" 2>"$dir/log" | sed 's/^.*: \([0-9]* tokens\)/\1/'; }

from_store=$(measured "$(store train)" --input "$(store heldout)")
grep -qE '^[0-9]+ tokens of [0-9]+ bytes, context 5, stride 1: [0-9.]+ nats a token, perplexity [0-9.]+, [0-9.]+ bits a byte$' <<<"$from_store" ||
    fail "not the form of eval: $from_store"
[ "$from_store" = "$(measured "$dir/train.jsonl" --input "$dir/heldout.jsonl")" ] || fail "lines give $(measured "$dir/train.jsonl" --input "$dir/heldout.jsonl")"
grep -q 'order 6: .* n-grams, discounts' "$dir/log" && grep -q 'takes at most 1 MiB' "$dir/log" || fail "$(cat "$dir/log")"
nats() { "$kiln" ngram --vocab_file "$vocab" --train "$(store train)" --input "$(store heldout)" --json --order "$1" 2>/dev/null | grep -o '"nats_per_token":[0-9.]*' | cut -d : -f 2; }
awk -v one="$(nats 1)" -v three="$(nats 3)" 'BEGIN { exit !(three > 0 && three < one / 2) }' || fail "three tokens predict as one: $(nats 1), $(nats 3)"
sed 's/{"text": "//; s/"}$//' "$dir/heldout.jsonl" | head -n 1 | tr -d '\n' >"$dir/one.txt"
head -n 1 "$dir/heldout.jsonl" >"$dir/one.jsonl"
[ "$(measured "$(store train)" --input "$dir/one.txt")" = "$(measured "$(store train)" --input "$dir/one.jsonl")" ] || fail "a text and its line differ"
expect 0 'all texts: ' "$kiln" ngram --vocab_file "$vocab" --train "$(store train)" --input "$dir/one.txt" "$dir/one.jsonl"
cp "$(store train).bin" "$dir/other.bin" # as preprocess_data.py leaves it
cp "$(store train).idx" "$dir/other.idx"
[ "$from_store" = "$(measured "$dir/other" --input "$(store heldout)")" ] || fail "a store without .json is another one"
expect 0 'counting them takes at most' "$kiln" ngram --vocab_file "$vocab" --train "$(store train)" --input none --dry-run

# the forms of texts, and last words, with a model
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 1, "n_head": 2}' >"$dir/gpt2.json"
mkdir "$dir/data"
for end in bin idx json; do cp "$(store train).$end" "$dir/data/train.$end" && cp "$(store heldout).$end" "$dir/data/heldout.$end"; done
"$kiln" pretrain --input_dir "$dir/data" --vocab_file "$vocab" --config_file "$dir/gpt2.json" --output_dir "$dir/run" --max_seq_length 32 \
    --train_batch_size 4 --max_steps 300 --optimizer muon --learning_rate 4e-3 --eval_steps 0 --disable_progress_bar >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
model=$dir/run/ckpt_300
evaluated() { "$kiln" eval --model "$model" --input "$1" | sed 's/^.*: \([0-9]* tokens\)/\1/'; }
[ "$(evaluated "$(store heldout)")" = "$(evaluated "$dir/heldout.jsonl")" ] || fail "eval of a store and of its lines differ"
[ "$(evaluated "$dir/one.txt")" = "$(evaluated "$dir/one.jsonl")" ] || fail "eval of a text and of its line differ"
counts() { sed 's/, context.*//' <<<"$1"; }
[ "$(counts "$from_store")" = "$(counts "$(evaluated "$(store heldout)")")" ] || fail "eval counts other tokens than ngram"
expect 0 '10 last words: 100.00 % guessed' "$kiln" eval --model "$model" --input "$dir/heldout.jsonl" --last_word
expect 0 '"texts":10,"accuracy":1.0,"nats_per_word":' "$kiln" eval --model "$model" --input "$dir/heldout.jsonl" --last_word --json
expect 0 'M parameters' "$kiln" eval --model "$model" --input none --last_word --dry_run

# what is refused
ngram() { "$kiln" ngram --vocab_file "$vocab" --train "$(store train)" "$@"; }
expect 64 'leave out --context' "$kiln" eval --model "$model" --input "$dir/heldout.jsonl" --last_word --context 8
expect 64 "--last_word measures lines of JSON, but the name of $dir/one.txt does not" "$kiln" eval --model "$model" --last_word \
    --input "$dir/heldout.jsonl" "$dir/one.txt"
echo '{"text": "word"}' >"$dir/word.jsonl"
expect 65 'word.jsonl line 1: the text has no word after another' "$kiln" eval --model "$model" --input "$dir/word.jsonl" --last_word
echo '{"words": "no text"}' >"$dir/key.jsonl"
expect 65 'key.jsonl line 1' ngram --input "$dir/key.jsonl"
: >"$dir/empty"
expect 65 'error: '"$dir"'/empty has no text of two tokens' ngram --input "$dir/empty"
printf x >"$dir/x"
expect 65 'a text of 1 tokens has none to predict' "$kiln" eval --model "$model" --input "$dir/x"
# a path that is missing is known before anything is counted or measured
expect 65 'cannot open none' ngram --input "$dir/one.txt" none
[ ! -s "$dir/out" ] && ! grep -q counted "$dir/err" || fail "counted: $(cat "$dir/out" "$dir/err")"
expect 65 'cannot open none' "$kiln" eval --model "$model" --input "$dir/one.txt" none
[ ! -s "$dir/out" ] || fail "measured: $(cat "$dir/out")"
expect 65 'there is no token to count' "$kiln" ngram --vocab_file "$vocab" --train "$dir/empty" --input "$dir/one.txt"
expect 64 '--order' ngram --input "$dir/one.txt" --order 7
mkdir "$dir/small"
"$kiln" vocab --input "$dir/train.jsonl" --kind bpe --vocab_file "$dir/small/vocab.json" --vocab_size 280 >/dev/null 2>&1
expect 65 'was made with another vocabulary' "$kiln" ngram --vocab_file "$dir/small/tokenizer.json" --train "$(store train)" --input "$dir/one.txt"
expect 65 'other document 0: token' "$kiln" ngram --vocab_file "$dir/small/tokenizer.json" --train "$dir/other" --input "$dir/one.txt"
expect 0 '' "$kiln" ngram --vocab_file "$dir/bpe/vocab.json" --merge_file "$dir/bpe/merges.txt" --train "$dir/train.jsonl" --input "$dir/one.txt"
# a name is on one line
cp "$dir/one.txt" "$dir/"$'two\nlines: 9 tokens\e[2J.txt'
expect 0 'two\x0alines: 9 tokens\x1b[2J.txt: ' "$kiln" eval --model "$model" --input "$dir/"$'two\nlines: 9 tokens\e[2J.txt'
[ "$(wc -l <"$dir/out")" -eq 1 ] || fail "a name makes a line: $(cat "$dir/out")"
# a store that was damaged is not measured, nor counted
for end in bin idx json; do cp "$(store heldout).$end" "$dir/damaged.$end"; done
printf '\1' | dd of="$dir/damaged.bin" bs=1 seek=8 conv=notrunc 2>/dev/null
expect 65 'damaged.bin is damaged' "$kiln" eval --model "$model" --input "$dir/damaged"
expect 65 'damaged.bin is damaged' ngram --input "$dir/damaged"
expect 65 'damaged.bin is damaged' "$kiln" ngram --vocab_file "$vocab" --train "$dir/damaged" --input "$dir/one.txt"
echo "test_ngram: counts measure as eval does"
