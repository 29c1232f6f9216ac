#!/usr/bin/env bash
# kiln ask as a user drives it: on a terminal a line tells how far it is, and is gone before the answer; elsewhere a short
# question says nothing but its answer.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests

"$tests/test_api" unpack "$dir"
for _ in $(seq 40); do echo 'A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab.'; done >"$dir/text"
"$kiln" ask --model "$dir/question_answering" --context "$dir/text" 'had a man?' >"$dir/answer" 2>"$dir/log"
[ "$(wc -l <"$dir/answer")" = 1 ] && [ ! -s "$dir/log" ] || fail "said: $(cat "$dir/answer" "$dir/log")"
if command -v script >/dev/null; then
    script -qec "'$kiln' ask --model '$dir/question_answering' --context '$dir/text' 'had a man?'" "$dir/typescript" </dev/null >"$dir/screen"
    grep -q 'predicting [0-9]* %.*left' "$dir/screen" || fail "no sign of life: $(cat "$dir/screen")"
    tail -n 1 "$dir/screen" | tr -d '\r' | sed 's/.*\x1b\[K//' | cmp - "$dir/answer" || fail "the line stands in the answer's way"
else
    echo "left out: the line on a terminal, without script(1)"
fi
: >"$dir/empty"
expect 65 'no words' "$kiln" ask --model "$dir/question_answering" --context "$dir/empty" 'had a man?'
