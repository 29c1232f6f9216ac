#!/usr/bin/env bash
# `make demo-gpt` in its short form, on a text of one's own: all stages run and print what they measured, and a second start continues. What
# is held out of the Bibles is the same chapter of both; parts of other texts keep quotes and backslashes; a text that is too small is refused.
. "$(dirname "$0")/begin.sh"
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
export KILN=$kiln DEMO_DIR=$dir/demo
mkdir "$dir/text"
for i in $(seq 1500); do
    echo "The king number $i went to the \"city\", and the queen number $((i * 7 % 100)) came in from the garden."
done >"$dir/text/all.txt"
demo() { DATA=$dir/text "$scripts/demo_gpt.sh" --ci; }
expect 0 'the perplexity of the GPT is' demo
for line in '1/6 text:' 'counts' 'GPT' '6/6 texts that it continues' 'The king number'; do
    grep -qF -- "$line" "$dir/out" || fail "not told: $line ($(cat "$dir/out"))"
done
[ -s "$dir/demo/gpt/ci/seed_42/model/report.html" ] || fail "there is no report"
cp "$dir/out" "$dir/once"
expect 0 'the perplexity of the GPT is' demo
cmp "$dir/once" "$dir/out" || fail "a second start says something else"
head -n 300 "$dir/text/all.txt" >"$dir/few"
mv "$dir/few" "$dir/text/all.txt"
DEMO_DIR=$dir/small expect 65 'fewer than ten parts of 50 lines' demo
expect 64 'usage: scripts/demo_gpt.sh' "$scripts/demo_gpt.sh" --now

# every tenth part of 50 lines, with the characters that JSON escapes
awk 'BEGIN { for (i = 1; i <= 1000; i++) printf "%sline %d \\\\n \\\"", i == 1 ? "{\"id\": \"\", \"text\": \"" : "\\n", i; print "\"}" }' |
    LC_ALL=C awk -v OUT="$dir" -f "$scripts/hold_out.awk"
[ "$(wc -l <"$dir/train.jsonl"), $(wc -l <"$dir/heldout.jsonl")" = "18, 2" ] || fail "$(wc -l "$dir"/*.jsonl)"
head -n 1 "$dir/heldout.jsonl" | grep -F '{"text": "line 451 \\n \"\nline 452 \\n \"\n' >/dev/null || fail "$(head -n 1 "$dir/heldout.jsonl")"
expect 0 '' "$kiln" prepare --input "$dir/heldout.jsonl" --format text --output_dir "$dir/read"

# chapter 10 of 11 is held out of both Bibles
for chapter in $(seq 11); do
    echo "Ge$chapter:1 In the \"beginning\" $chapter" >>"$dir/kjv.txt"
    printf 'Genesis %d:1: At first %d\n\n' "$chapter" "$chapter" >>"$dir/web.txt"
done
LC_ALL=C awk -v OUT="$dir" -v BOOKS=Genesis -f "$scripts/two_bibles.awk" reading=web "$dir/web.txt" reading=kjv "$dir/kjv.txt"
[ "$(cat "$dir/heldout.jsonl")" = "$(printf '%s\n' '{"text": "Ge10:1 In the \"beginning\" 10"}' '{"text": "Ge10:1 At first 10"}')" ] ||
    fail "held out: $(cat "$dir/heldout.jsonl")"
[ "$(wc -l <"$dir/train.jsonl")" = 20 ] || fail "$(cat "$dir/train.jsonl")"
echo "test_demo_gpt: every stage, and what is held out"
