#!/usr/bin/env bash
# What `kiln prepare` leaves out because of its words: text of evaluation files (--decontaminate), and what is beyond the limits of
# --quality; counted by reason and by file, the same for both kinds of stores.
. "$(dirname "$0")/begin.sh"
golden=$(realpath "$(dirname "$0")/../golden/documents")
cd "$dir"
gpt=("$kiln" prepare --format gpt --vocab_file "$golden/vocab.json" --merge_file "$golden/merges.txt" --output_prefix gpt --overwrite --json)
text=("$kiln" prepare --format text --output_dir text --overwrite --json)

# 13 words in a row that an evaluation file has, whatever is between them; twelve are few enough
mkdir docs
seq -s ' ' 40 >eval.txt
printf '{"q": {"a": ["One two three four five six seven eight nine ten eleven twelve thirteen fourteen"]}, "n": 3}\n' >eval.jsonl
echo 'before 5, 6 7 8 9 10 11 12 13 14 15 16 (17) after' >docs/a.txt
echo 'before 5, 6 7 8 9 10 11 12 13 14 15 16 after' >docs/b.txt
printf '%s\n' '{"text":"Well: TWO three, four five\nsix \u201cseven\u201d eight nine ten eleven twelve thirteen fourteen"}' '{"text":"short"}' '{}' >docs/c.jsonl
sources='"sources":[{"path":"docs/a.txt","documents":0,"left_out":1,"tokens":0},{"path":"docs/b.txt","documents":1,"left_out":0,"tokens":'
for format in gpt text; do
    declare -n prepare=$format
    [ $format = text ] || set -- --max_bad_lines 1
    expect 0 "$sources" "${prepare[@]}" --input docs --decontaminate eval.txt eval.jsonl "$@"
    grep -q '"documents":2,"left_out":{"without_field":1,"contaminated":2}' out || fail "$format: $(cat out)"
    grep -q '"path":"docs/c.jsonl","documents":1,"left_out":2,' out || fail "$format: $(cat out)"
    grep -q '^  docs/c.jsonl: 1 documents, 2 left out' err || fail "the files: $(cat err)"
    expect 0 '"contaminated":3' "${prepare[@]}" --input docs --decontaminate eval.txt eval.jsonl --decontaminate_words 12 "$@"
    set --
done
echo 'A short question?' >short.txt
expect 65 'has 13 words: look for shorter' "${text[@]}" --input docs --decontaminate short.txt
expect 65 'is binary data' "${text[@]}" --input docs --decontaminate "$kiln"

# a piece of a long text is left out by itself
{ seq 200000 && echo && seq -s ' ' 300001 480000 && echo && seq 500000 600000; } >long.txt
seq -s ' ' 350001 350040 >eval2.txt
expect 0 '"contaminated":1' "${gpt[@]}" --input long.txt --decontaminate eval2.txt
expect 0 '"documents":1,' "${text[@]}" --input long.txt --decontaminate eval2.txt
! grep -c 350010 text/documents.jsonl >/dev/null && grep -c 599999 text/documents.jsonl >/dev/null || fail "not one piece is left out"

# the limits, one after the other: 80 words of prose pass all of them
{
    printf 'River%d stone%d carried%d waters. ' $(seq 60) && echo
    echo 'Too short.'
    printf 'a b %d ' $(seq 60) && echo
    printf 'River%d# stone%d... carried%d waters. ' $(seq 60) && echo
    printf 'River%d stone%d carried%d\\nsame line\\nsame line\\n' $(seq 60) && echo
    printf 'over the hills and far away, said River%d. ' $(seq 30) && echo
} | sed 's/.*/{"text": "&"}/' >prose.jsonl
reasons='"documents":1,"left_out":{"number_of_words":1,"word_length":1,"symbols":1,"repeated_lines":1,"repeated_words":1}'
expect 0 "$reasons" "${text[@]}" --input prose.jsonl --quality gopher
grep -q 'recipe gopher: --min_words 50 --max_words 100000' err || fail "the limits: $(cat err)"
expect 0 "$reasons" "${gpt[@]}" --input prose.jsonl --quality gopher
expect 0 '"left_out":{"number_of_words":6}' "${text[@]}" --input prose.jsonl --max_words 1 --check
expect 0 '"left_out":{"word_length":4}' "${text[@]}" --input prose.jsonl --max_word_length 4 --check
