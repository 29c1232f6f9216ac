#!/usr/bin/env bash
# `kiln prepare --format gpt --shuffle_documents SEED` writes each document once, in an order of the seed alone: not of memory, nor of
# whether lines or stores of them are read; and a run that is killed leaves nothing that looks whole.
. "$(dirname "$0")/begin.sh"
golden=$(realpath "$(dirname "$0")/../golden/documents")
cd "$dir"
prepare=("$kiln" prepare --format gpt --vocab_file "$golden/vocab.json" --merge_file "$golden/merges.txt" --append_eod)

# documents PREFIX: a line of ids each
documents()
{
    local n
    n=$(od -An -j18 -N8 -tu8 "$1.idx" | tr -d ' ')
    paste -d' ' <(od -An -v -j34 -N$((4 * n)) -w4 -td4 "$1.idx") /dev/null >sizes
    od -An -v -w2 -tu2 "$1.bin" | awk 'NR == FNR { size[NR] = $1; next }
        { line = line " " $1 } ++got == size[at + 1] { print line; line = ""; got = 0; at++ }' sizes -
}

for i in $(seq 20000); do echo "{\"text\": \"number $i of the documents, $((i * i % 977)) and $((i % 7)) words more\"}"; done >lines.jsonl
"${prepare[@]}" --input lines.jsonl --output_prefix plain 2>err || fail "$(cat err)"
"${prepare[@]}" --input lines.jsonl --output_prefix shuffled --shuffle_documents 5 2>err || fail "$(cat err)"
grep -q 'shuffled 20000 documents by the seed 5, in [1-9] parts' err || fail "$(cat err)"
documents plain_text_document >plain && documents shuffled_text_document >shuffled
[ "$(wc -l <plain)" = 20000 ] && cmp <(sort plain) <(sort shuffled) || fail "documents are lost, changed or there twice"
[ "$(paste -d= plain shuffled | awk -F= '$1 == $2' | wc -l)" -lt 20 ] || fail "documents are where they were"

same() { cmp "$1_text_document.bin" "$2.bin" && cmp "$1_text_document.idx" "$2.idx" || fail "$1 and $2 differ"; }
"${prepare[@]}" --input lines.jsonl --output_prefix small --shuffle_documents 5 --shuffle_memory_mb 1 2>err || fail "$(cat err)"
grep -q 'in [1-9][0-9]* parts' err && ! grep -q 'in 1 parts' err || fail "1 MiB was one part: $(cat err)"
same shuffled small_text_document
"${prepare[@]}" --input lines.jsonl --output_prefix other --shuffle_documents 6 2>err || fail "$(cat err)"
! cmp -s shuffled_text_document.bin other_text_document.bin || fail "two seeds give one order"
head -n 7000 lines.jsonl >first.jsonl && tail -n +7001 lines.jsonl >second.jsonl
for half in first second; do "${prepare[@]}" --input $half.jsonl --output_prefix $half 2>err || fail "$(cat err)"; done
"$kiln" prepare --format gpt --merge --input first_text_document second_text_document --output_prefix merged --shuffle_documents 5 \
    --shuffle_memory_mb 1 2>err || fail "$(cat err)"
same shuffled merged

# killed in the middle, and the same again
"${prepare[@]}" --input lines.jsonl --output_prefix killed --shuffle_documents 5 2>/dev/null &
pid=$!
while kill -0 $pid 2>/dev/null && ! [ -e killed_text_document.unfinished.bin ]; do :; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
mkdir -p killed_text_document.unfinished.parts && echo x >killed_text_document.unfinished.parts/0 # of a run that died while it dealt out
"${prepare[@]}" --input lines.jsonl --output_prefix killed --shuffle_documents 5 --overwrite 2>err || fail "$(cat err)"
same shuffled killed_text_document
[ -z "$(find . -name '*unfinished*')" ] || fail "something is left: $(ls)"

expect 64 'shuffle_documents needs --format gpt' "$kiln" prepare --input lines.jsonl --vocab_file v --output_dir o --shuffle_documents 5
"${prepare[@]}" --input lines.jsonl --output_prefix dry --shuffle_documents 5 --dry-run 2>err || fail "$(cat err)"
[ -z "$(find . -name 'dry*')" ] || fail "a dry run wrote something"
