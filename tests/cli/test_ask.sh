#!/usr/bin/env bash
# kiln ask as a user drives it: on a terminal a line tells how far it is, and is gone before the answer; elsewhere a short
# question says nothing but its answer.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests

"$tests/test_api" unpack "$dir"
for _ in $(seq 40); do
    echo 'A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab.'
done >"$dir/text"
"$kiln" ask --model "$dir/question_answering" --context "$dir/text" 'had a man?' >"$dir/answer" 2>"$dir/log"
[ "$(wc -l <"$dir/answer")" = 1 ] && [ ! -s "$dir/log" ] || fail "said: $(cat "$dir/answer" "$dir/log")"
if command -v script >/dev/null; then
    script -qec "'$kiln' ask --model '$dir/question_answering' --context '$dir/text' 'had a man?'" "$dir/typescript" </dev/null \
        >"$dir/screen"
    grep -q 'predicting [0-9]* %.*left' "$dir/screen" || fail "no sign of life: $(cat "$dir/screen")"
    tail -n 1 "$dir/screen" | tr -d '\r' | sed 's/.*\x1b\[K//' | cmp - "$dir/answer" || fail "the line stands in the answer's way"
else
    echo "left out: the line on a terminal, without script(1)"
fi
: >"$dir/empty"
expect 65 'no words' "$kiln" ask --model "$dir/question_answering" --context "$dir/empty" 'had a man?'

# text that is not UTF-8 is refused with its place, or converted
printf 'A man had a dog.\nA caf\351 had food.\n' >"$dir/latin"
ask() { "$kiln" ask --model "$dir/question_answering" "$@"; }
expect 65 'latin line 2 is not UTF-8: byte 6 of the line is 0xe9' ask --context "$dir/latin" 'had a man?'
expect 65 'the text line 2 is not UTF-8: byte 6 of the line is 0xe9' ask 'had a man?' <"$dir/latin"
expect 65 'argument 1 line 1 is not UTF-8: byte 2 of the line' ask --context "$dir/text" $'a\351'
expect 65 'standard input line 2 is not UTF-8' ask --context "$dir/text" < <(printf 'had a man?\n\351?\n')
expect 0 '[bytes' ask --context "$dir/latin" --encoding latin-1 'had a man?'
iconv -f LATIN1 -t UTF-16 "$dir/latin" >"$dir/wide"
cp "$dir/out" "$dir/answer"
expect 0 "$(cat "$dir/answer")" ask --context "$dir/wide" --encoding utf-16 'had a man?'
expect 65 'give --encoding utf-16' ask --context "$dir/wide" 'had a man?'
expect 64 "--context is given twice, as 'a' and as 'b'" "$kiln" ask --init_checkpoint "$dir/question_answering" --context a \
    --context b 'had a man?'
expect 65 \
    "--init_checkpoint and --model are two names of the same flag: '$dir/none' of --model is used, not '$dir/question_answering'" \
    "$kiln" ask --init_checkpoint "$dir/question_answering" --model "$dir/none" --context a 'had a man?'
expect 64 "unknown command 'aks'; did you mean ask?" "$kiln" aks
expect 0 "usage: kiln ask" "$kiln" help ask

# the same as JSON, and what a model does not answer
expect 0 '{"question":"had a man?","answers":[{"text":"' ask --json --context "$dir/text" 'had a man?'
number() { sed -nE "1 s/.*\"$1\":([0-9]+).*/\1/p" "$dir/out"; }
text=$(sed -nE '1 s/.*"text":"([^"]*)".*/\1/p' "$dir/out")
[ -n "$text" ] && [ "$(head -c "$(number end)" "$dir/text" | tail -c +"$(($(number start) + 1))")" = "$text" ] ||
    fail "the place of an answer in JSON: $(cat "$dir/out")"
fill() { "$kiln" fill --model "$dir/masked_lm" "$@"; }
expect 0 '{"text":"a [MASK]","masks":[[{"token":"' fill --json --top_k 2 'a [MASK]'
expect 65 'this model answers: fill, embed, blimp' "$kiln" ask --model "$dir/masked_lm" --context "$dir/text" 'had a man?'
expect 65 'this model answers: ask, embed' "$kiln" fill --model "$dir/question_answering" 'a [MASK]'
expect 65 'this model answers: ask, embed' "$kiln" blimp --dry_run --model "$dir/question_answering" --input "$dir/text"
expect 0 'answers                         fill, embed, blimp' "$kiln" inspect "$dir/masked_lm"
