#!/usr/bin/env bash
# What linguists ask: kiln eval --tokens, --words and --sentences, kiln blimp of runs and kiln embed --tokens, of a decoder and of a masked model: the three tables agree with each other, with the
# perplexity and with kiln blimp, and with transformers where there is one; what cannot be scored is refused by name.
. "$(dirname "$0")/begin.sh"
make_store
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 1 --eval_steps 0 --disable_progress_bar 2>/dev/null
bert=$dir/run/ckpt_1
for i in $(seq 60); do echo "{\"text\": \"The king's people number $i came  in from the garden, didn't they?\"}"; done >"$dir/all.jsonl"
mkdir "$dir/bpe" "$dir/data"
"$kiln" vocab --input "$dir/all.jsonl" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 290 >/dev/null 2>&1
"$kiln" prepare --format gpt --input "$dir/all.jsonl" --vocab_file "$dir/bpe/tokenizer.json" --output_prefix "$dir/data/x" >/dev/null 2>&1
echo '{"model_type": "gpt2", "n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}' >"$dir/gpt2.json"
"$kiln" pretrain --input_dir "$dir/data" --vocab_file "$dir/bpe/tokenizer.json" --config_file "$dir/gpt2.json" --output_dir "$dir/gpts" \
    --max_seq_length 32 --train_batch_size 4 --max_steps 2 --num_steps_per_checkpoint 1 --eval_steps 0 --disable_progress_bar \
    >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
gpt=$dir/gpts/ckpt_2
printf '%s\n' "The king's people came  in from the garden." '' 'Kings  “didn’t” come	in, riverlands.' 'They came.' >"$dir/s.txt"

# sums TABLE: by sentence, the sum of its last column; NA is none
sums() { awk -F '\t' 'NR > 1 && $NF != "NA" { s[$1] += $NF } END { for (i = 1; i in s; i++) printf "%d %.3f\n", i, s[i] }' "$1"; }
for model in "$gpt" "$bert"; do
    for unit in tokens words sentences; do
        "$kiln" eval --model "$model" --input "$dir/s.txt" --$unit --bos >"$dir/$unit"
    done
    [ "$(sums "$dir/tokens" | wc -l)" -eq 3 ] || fail "sentences: $(cat "$dir/tokens")"
    same_numbers <(sums "$dir/tokens") <(sums "$dir/sentences") || fail "tokens and sentences differ: $(paste "$dir/tokens" "$dir/sentences")"
    same_numbers <(sums "$dir/words") <(sums "$dir/sentences") || fail "words and sentences differ"
    [ "$(cut -f 4 "$dir/words" | tail -n +2 | tr '\n' '|')" = \
        "The|king's|people|came|in|from|the|garden.|Kings|“didn’t”|come|in,|riverlands.|They|came.|" ] || fail "$(cat "$dir/words")"
    "$kiln" eval --model "$model" --tokens --bos <"$dir/s.txt" | cmp - "$dir/tokens" || fail "standard input gives another table"
done
head -n 1 "$dir/tokens" | cmp - <(printf 'sentence\tword\ttoken\ttext\tsurprisal\n')

# Without --bos the first token of a decoder is NA, and the rest is the perplexity; base e is base 2 times ln 2.
"$kiln" eval --model "$gpt" --input "$dir/s.txt" --tokens --base e >"$dir/tokens"
[ "$(grep -c 'NA$' "$dir/tokens")" -eq 3 ] && [ "$(sed -n 2p "$dir/tokens" | cut -f 5)" = NA ] || fail "$(cat "$dir/tokens")"
printf '%s' 'They came.' >"$dir/one.txt"
total=$("$kiln" eval --model "$gpt" --input "$dir/one.txt" --json | sed 's/.*"tokens":\([0-9]*\),.*"nats_per_token":\([0-9.]*\).*/\1 \2/' | awk '{ print 3, $1 * $2 }')
same_numbers <(printf '3 %.3f\n' "${total#3 }") <(sums "$dir/tokens" | tail -n 1) || fail "perplexity: $total, not $(sums "$dir/tokens")"
"$kiln" eval --model "$gpt" --input "$dir/s.txt" --sentences --bos --base e >"$dir/sentences"

# kiln blimp adds the same numbers, and begins sentences likewise.
printf '{"sentence_good": "The people came.", "sentence_bad": "They came."}\n%s\n' \
    '{"sentence_good": "They came.", "sentence_bad": "Kings came."}' >"$dir/pairs.jsonl"
expect 0 'all pairs' "$kiln" blimp --model "$gpt" --input "$dir/pairs.jsonl" --scores "$dir/scores.jsonl" --disable_progress_bar
same_numbers <(sums "$dir/sentences" | sed -n 3p) \
    <(sed -n 's/.*line":2,"good":-\([0-9.]*\).*/\1/p' "$dir/scores.jsonl" | awk '{ printf "3 %.3f\n", $1 }') ||
    fail "blimp: $(cat "$dir/scores.jsonl"), eval: $(cat "$dir/sentences")"

# Vectors of tokens: a line for each, special ones included, and those of the last layer by default.
expect 0 '{"text":1,"token":1,"id":' "$kiln" embed --model "$bert" --tokens 'The king'
cp "$dir/out" "$dir/last"
layers=$(grep -o '"num_hidden_layers": *[0-9]*' "$dir/config.json" | grep -o '[0-9]*$')
"$kiln" embed --model "$bert" --tokens --layer "$layers" 'The king' 2>/dev/null | cmp - "$dir/last" || fail "another last layer"
[ "$(grep -c '"piece":"\[CLS\]"\|"piece":"\[SEP\]"' "$dir/last")" = 2 ] || fail "$(cut -c 1-60 "$dir/last")"
"$kiln" embed --model "$bert" --tokens --layer 1 'The king' 2>/dev/null | cut -d '"' -f 1-10 | cmp - <(cut -d '"' -f 1-10 "$dir/last") ||
    fail "other tokens of the first layer"
expect 64 "of a model of $layers layers" "$kiln" embed --model "$bert" --layer $((layers + 1)) x
expect 64 'leave out --pooling' "$kiln" embed --model "$bert" --tokens --pooling cls x

expect 0 'step	pairs	right	low	high	paradigms	paradigms_low	paradigms_high' \
    "$kiln" blimp --run "$dir/gpts" --input "$dir/pairs.jsonl" --disable_progress_bar
awk -F '\t' 'NR > 1 { if ($1 != NR - 1 || $2 != 2 || $4 > $3 || $5 < $3 || $3 != $6 || $8 > 100) exit 1 } END { exit NR != 3 }' "$dir/out" ||
    fail "$(cat "$dir/out")"
expect 64 'give --model PATH, or --run DIR' "$kiln" blimp --run "$dir/gpts" --model "$gpt" --input "$dir/pairs.jsonl"
expect 65 'has no checkpoints' "$kiln" blimp --run "$dir/data" --input "$dir/pairs.jsonl"

expect 65 'predicts the next word, and no masked ones; this model answers: generate, blimp, eval --tokens' \
    "$kiln" fill --model "$gpt" 'the [MASK]'
expect 64 'eval --tokens' "$kiln" score --model "$gpt"
expect 64 'eval --tokens' "$kiln" score
expect 64 '--bos is for tables' "$kiln" eval --model "$gpt" --input "$dir/s.txt" --bos
expect 64 'give one' "$kiln" eval --model "$gpt" --input "$dir/s.txt" --tokens --words
expect 64 '--input is missing' "$kiln" eval --model "$gpt"
echo ' ' >"$dir/x"
expect 65 'x line 1: the text has no token to predict' "$kiln" eval --model "$bert" --input "$dir/x" --tokens
echo x >"$dir/x"
expect 65 'x line 1: the text has one token' "$kiln" eval --model "$gpt" --input "$dir/x" --tokens

if [ -z "${KILN_PYTHON:-}" ]; then
    lack transformers "KILN_PYTHON names no Python with torch and transformers: surprisal is not compared with theirs"
    exit
fi
need_python transformers torch transformers safetensors
for name in gpt bert; do
    "$kiln" export --model "${!name}" --output_dir "$dir/$name" 2>/dev/null
    "$python" "$(dirname "$0")/../../tools/check_surprisal.py" "$kiln" "$dir/$name" "$dir/s.txt"
done
