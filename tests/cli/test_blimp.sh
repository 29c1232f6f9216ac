#!/usr/bin/env bash
# kiln blimp as a user drives it: the table counts what --scores lists, ties are wrong, groups are BLiMP's keys or the file, and
# what is wrong with pairs is said with file and line.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests
make_store
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 3 --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar \
    2>/dev/null
model=$dir/run/ckpt_3
blimp() { "$kiln" blimp --model "$model" --disable_progress_bar "$@"; }

# Two files: 30 pairs of a paradigm with class and field, and 20 that only have their file's name.
mkdir "$dir/pairs"
awk -v dir="$dir/pairs" 'BEGIN {
    n = split("the a king city river stone people light water night men stones riverland", w, " "); s = 3
    for (p = 0; p < 50; p++) {
        for (side = 1; side <= 2; side++) {
            s = (s * 16807) % 2147483647; text[side] = ""
            for (i = 2 + s % 6; i > 0; i--) { s = (s * 16807) % 2147483647; text[side] = text[side] w[1 + s % n] " " }
        }
        pair = "{\"sentence_good\": \"" text[1] ".\", \"sentence_bad\": \"" text[2] "\""
        if (p < 30) print pair ", \"UID\": \"verbs\", \"linguistics_term\": \"agreement\", \"field\": \"syntax\", \"x\": 1}" >dir "/a.jsonl"
        else print pair "}" >dir "/nouns.jsonl"
    }
    print "" >dir "/nouns.jsonl"
    print "{\"sentence_good\": \"The king\", \"sentence_bad\": \"the KING\"}" >dir "/nouns.jsonl"
    print "{\"sentence_good\": \"men\", \"sentence_bad\": \"men\"}" >dir "/nouns.jsonl"
}'
blimp --input "$dir/pairs" --json "$dir/table.json" --scores "$dir/scores.jsonl" >"$dir/table" 2>"$dir/log" ||
    fail "$(cat "$dir/log")"
grep -q '^2 pairs\|2 pairs have two sentences with the same tokens' "$dir/log" || fail "nothing about ties: $(cat "$dir/log")"
[ "$(wc -l <"$dir/scores.jsonl")" -eq 52 ] || fail "$(wc -l <"$dir/scores.jsonl") scores"
# right FILE: the percentage of the lines with the better right sentence
right() { grep "$1" "$dir/scores.jsonl" | sed 's/.*"good":\([^,]*\),"bad":\([^,]*\),.*/\1 \2/' |
    awk '{ n++; if ($1 < 0 && $2 < 0) k += $1 > $2; else exit 1 } END { printf "%.2f", 100 * k / n }'; }
row() { awk -v name="$1" 'index($0, name " ") == 1 { print $(NF - 2), $(NF - 1), $NF }' "$dir/table"; }
[ "$(row verbs)" = "30 $(right a.jsonl) 0" ] || fail "verbs: $(row verbs), $(right a.jsonl)"
[ "$(row agreement)" = "$(row verbs)" ] || fail "the class differs from its only paradigm"
[ "$(row syntax)" = "$(row verbs)" ] || fail "the field differs from its only paradigm"
[ "$(row nouns)" = "22 $(right nouns.jsonl) 2" ] || fail "nouns: $(row nouns), $(right nouns.jsonl)"
[ "$(row 'all pairs')" = "52 $(right .) 2" ] || fail "all: $(row 'all pairs'), $(right .)"
tail -1 "$dir/scores.jsonl" | grep '"file":"[^"]*nouns.jsonl","line":23,.*"good_tokens":1,"bad_tokens":1' >/dev/null ||
    fail "$(tail -1 "$dir/scores.jsonl")"
tr -d ' \n' <"$dir/table.json" >"$dir/flat.json"
for part in '{"pairs":52,' '"ties":2,' '"same_tokens":2,' '"paradigm":{"verbs":{"pairs":30,' \
    '"class":"agreement","field":"syntax"}' \
    '"masking":"token","limit":null}'; do
    grep -qF "$part" "$dir/flat.json" || fail "$part is not in $(cat "$dir/table.json")"
done

# the same pairs from other files and keys, in other order; the first of each paradigm; words of several pieces
{
    echo 'wrong,right'
    sed -n 's/.*sentence_good": "\([^"]*\)", "sentence_bad": "\([^"]*\)".*/"\2",\1/p' "$dir/pairs/nouns.jsonl"
} >"$dir/nouns.csv"
blimp --input "$dir/nouns.csv" --good_field right --bad_field wrong >"$dir/other" 2>/dev/null
grep '^nouns ' "$dir/table" | cmp - <(grep '^nouns ' "$dir/other") || fail "CSV: $(cat "$dir/other")"
blimp --input "$dir/pairs/nouns.jsonl" "$dir/pairs/a.jsonl" --limit 4 --scores "$dir/few.jsonl" >/dev/null 2>&1
[ "$(sed 's/.*"line":\([0-9]*\),.*/\1/' "$dir/few.jsonl" | tr '\n' ' ')" = "1 2 3 4 1 2 3 4 " ] ||
    fail "--limit: $(cat "$dir/few.jsonl")"
same_numbers <(head -1 "$dir/few.jsonl") <(grep -m 1 nouns "$dir/scores.jsonl") || fail "a score depends on other pairs"
blimp --input "$dir/pairs" --masking within_word --scores "$dir/words.jsonl" >/dev/null 2>&1
! cmp -s "$dir/words.jsonl" "$dir/scores.jsonl" || fail "--masking within_word changes nothing"

# what is wrong: file and line
bad() { # TEXT LINE: the error for a file whose third line is LINE
    { head -2 "$dir/pairs/a.jsonl"; echo "$2"; } >"$dir/bad.jsonl"
    expect 65 "bad.jsonl line 3: $1" blimp --input "$dir/bad.jsonl" --json "$dir/none.json"
    [ ! -e "$dir/none.json" ] || fail "a result after an error"
}
bad '"sentence_bad" is missing; each line has a pair of sentences' '{"sentence_good": "the king"}'
bad '"sentence_good" is empty' '{"sentence_good": " ", "sentence_bad": "the king"}'
bad '"sentence_good" is a list' '{"sentence_good": ["a"], "sentence_bad": "the king"}'
bad 'each line must be a JSON object' '[1]'
bad 'the text has 82 tokens with the special ones, but the model reads at most' \
    "{\"sentence_good\": \"the$(printf ' king%.0s' {1..79})\", \"sentence_bad\": \"the king\"}"
printf '%s\n{"sentence_good": "the ki' "$(head -1 "$dir/pairs/a.jsonl")" >"$dir/bad.jsonl"
expect 65 "bad.jsonl line 2" blimp --input "$dir/bad.jsonl"
tail -1 "$dir/pairs/nouns.jsonl" >"$dir/bad.jsonl"
expect 65 'bad.jsonl line 1: "sentence_good" and "sentence_bad" are the same, as in all pairs' blimp --input "$dir/bad.jsonl"
echo >"$dir/bad.jsonl"
expect 65 'bad.jsonl has no pairs' blimp --input "$dir/bad.jsonl"
expect 65 'line 1: "right" is missing' blimp --input "$dir/pairs" --good_field right
expect 64 'the name of a table must end in' blimp --input "$dir/corpus.txt"
expect 64 'write' blimp --input "$dir/pairs" --scores "$dir/pairs/a.jsonl"
expect 64 '--limit' blimp --input "$dir/pairs" --limit 0
expect 64 '--masking' blimp --input "$dir/pairs" --masking all

# a model without the head
"$tests/test_sentence_dirs" unpack "$dir"
expect 65 'cls.predictions' "$kiln" blimp --model "$dir/mean" --input "$dir/pairs"
expect 65 'cls.predictions' "$kiln" blimp --model "$dir/mean" --input "$dir/pairs" --dry_run

# The sums and the table of transformers, where there is one.
"$kiln" export --model "$model" --output_dir "$dir/exported" 2>/dev/null
if [ -z "${KILN_PYTHON:-}" ]; then
    lack transformers "KILN_PYTHON names no Python with torch and transformers: sums are not compared with theirs"
else
    need_python transformers torch transformers safetensors
    "$python" "$(dirname "$0")/../../tools/check_blimp.py" "$kiln" "$dir/pairs/a.jsonl" "$dir/pairs/nouns.jsonl" \
        --model "$dir/exported"
fi
