#!/usr/bin/env bash
# `kiln score` as a user runs it: the scores of answers to SQuAD v1.1 and v2.0, with a warning for a missing one, and errors for
# damaged files.
. "$(dirname "$0")/begin.sh"
cd "$dir"

cat >dev.json <<'END'
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "The cat sat on a mat in 1895.", "qas": [
  {"id": "who", "question": "Who sat?", "answers": [{"text": "The cat", "answer_start": 0}, {"text": "cat", "answer_start": 4}]},
  {"id": "where", "question": "Where?", "answers": [{"text": "on a mat", "answer_start": 12}]},
  {"id": "when", "question": "When?", "answers": [{"text": "1895", "answer_start": 24}]}]}]}]}
END
echo '{"who": "the CAT!", "where": "a mat", "other": "ignored"}' >predictions.json

got=$("$kiln" score dev.json predictions.json 2>err) || fail "score: $(cat err)"
[ "$got" = '{"exact_match": 33.333333333333336, "f1": 55.55555555555555}' ] || fail "scores: $got"
grep -qF 'Unanswered question when will receive score 0.' err || fail "the missing question: $(cat err)"

sed 's/"1.1"/"v2.0"/; s/\[{"text": "1895", "answer_start": 24}\]/[]/' dev.json >dev2.json
echo '{"who": "the CAT!", "where": "mat", "when": ""}' >predictions2.json
got=$("$kiln" score dev2.json predictions2.json)
[ "$got" = '{"exact_match": 66.66666666666667, "f1": 88.88888888888887}' ] || fail "scores of v2: $got"

"$kiln" score --dry-run dev.json predictions.json >out 2>err || fail "dry run: $(cat err)"
[ ! -s out ] && grep -q '3 predictions .* 3 questions .* v1.1' err || fail "dry run: $(cat out err)"

expect 64 'DATASET.json' "$kiln" score dev.json
expect 65 'missing.json' "$kiln" score missing.json predictions.json
expect 65 'missing.json' "$kiln" score dev.json missing.json
echo '{"who": 3}' >number.json
expect 65 '"who" must be a string' "$kiln" score dev.json number.json
echo '{"who": "a", "who": "b"}' >twice.json
expect 65 'duplicate' "$kiln" score dev.json twice.json
head -c 300 dev.json >cut.json
expect 65 'cut.json is not valid JSON' "$kiln" score cut.json predictions.json
sed 's/"where"/"who"/' dev.json >same.json
expect 65 'data[0].paragraphs[0].qas[1]: the "id" who occurs twice' "$kiln" score same.json predictions.json
if [ -e /dev/full ]; then
    expect 74 'writing to standard output failed' bash -c '"$1" score dev2.json predictions2.json >/dev/full' _ "$kiln"
fi
