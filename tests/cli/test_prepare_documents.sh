#!/usr/bin/env bash
# `kiln prepare --format gpt` as a user of preprocess_data.py runs it: its files, byte for byte (tests/golden/make_documents.py), from
# plain and compressed lines, on one thread and several; bad lines by file and line; nothing half written.
. "$(dirname "$0")/begin.sh"
golden=$(realpath "$(dirname "$0")/../golden/documents")
cd "$dir"
vocab=(--vocab-file "$golden/vocab.json" --merge-file "$golden/merges.txt")
prepare=("$kiln" prepare --format gpt --tokenizer-type GPT2BPETokenizer --dataset-impl mmap --workers 4)

expect_golden() {
    for key in text title; do
        for end in bin idx; do
            cmp "$1_${key}_document.$end" "$golden/$key.$end" || fail "$1: $key.$end is other than preprocess_data.py's"
        done
    done
}
"${prepare[@]}" --input "$golden/lines.jsonl" "${vocab[@]}" --json-keys text,title --append-eod --output-prefix one 2>err ||
    fail "$(cat err)"
expect_golden one
grep -q '"documents": 7' one_text_document.json && grep -q 'vocab_hash' one_text_document.json || fail "the description: $(cat one*.json)"
gzip -c "$golden/lines.jsonl" >lines.gz
OMP_NUM_THREADS=3 "${prepare[@]}" --input lines.gz "${vocab[@]}" --json_keys text,title --append_eod --output_prefix two 2>err ||
    fail "$(cat err)"
expect_golden two
if command -v bzip2 >/dev/null; then
    bzip2 -c "$golden/lines.jsonl" >lines.bz2
    "${prepare[@]}" --input lines.bz2 "${vocab[@]}" --json_keys text,title --append_eod --output_prefix two --overwrite 2>err ||
        fail "$(cat err)"
    expect_golden two
else
    lack bzip2 "bzip2 is not installed: lines compressed by it were not tried"
fi

# without ends of text: a token less for each document
"${prepare[@]}" --input "$golden/lines.jsonl" "${vocab[@]}" --output_prefix bare 2>err || fail "$(cat err)"
[ $(($(stat -c %s "$golden/text.bin") - $(stat -c %s bare_text_document.bin))) = 14 ] || fail "a document's end without --append_eod"

# 65,500 pieces or more: four bytes a token, the same ids
{
    head -c -1 "$golden/vocab.json" | sed '$ s/}$//'
    seq $((256 + $(wc -l <"$golden/merges.txt"))) 65500 | sed 's/.*/,"q#&":&/'
    echo '}'
} | tr -d '\n' >large.json
"${prepare[@]}" --input "$golden/lines.jsonl" --vocab_file large.json --merge_file "$golden/merges.txt" --append_eod --output_prefix large 2>err ||
    fail "$(cat err)"
od -An -v -w4 -td4 large_text_document.bin | tr -d ' ' >wide
od -An -v -w2 -tu2 "$golden/text.bin" | tr -d ' ' >narrow
cmp wide narrow || fail "other ids with four bytes a token"
[ "$(od -An -j17 -N1 -tu1 large_text_document.idx | tr -d ' ')" = 4 ] || fail "the type of four bytes"

# bad lines
{
    head -2 "$golden/lines.jsonl"
    echo '{"text": "cut'
    echo '{"other": "x"}'
    echo '{"text": 3}'
    printf '{"text": "\xff"}\n\n'
    tail -1 "$golden/lines.jsonl"
} >bad.jsonl
expect 65 'bad.jsonl:3: the line is not a JSON object' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix bad
expect 65 'bad.jsonl:6: the line is not UTF-8' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix bad --max_bad_lines 3
grep -q 'bad.jsonl:4: the line lacks the key' err && grep -q 'bad.jsonl:5: the line has a value that is not a string' err || fail "$(cat err)"
[ -z "$(find . -name 'bad_*')" ] || fail "something half written was left: $(ls)"
"${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix bad --max_bad_lines 4 2>err || fail "$(cat err)"
grep -q 'lines of JSON: 7: 3 kept, 1 malformed, 1 without the field' err && grep -q '"documents": 3' bad_text_document.json || fail "bad lines are counted: $(cat err)"
expect 0 'wrote new/one/bad_text_document' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix new/one/bad --max_bad_lines 4
expect 65 'this is number 1; --check counts them all' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix x
expect 0 '1 not UTF-8, 1 with a text that is not a string' "${prepare[@]}" --input bad.jsonl --check
expect 64 'already exists' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix bad --max_bad_lines 4
echo '{"text": ""}' >none.jsonl
expect 65 'no line of the input' "${prepare[@]}" --input none.jsonl "${vocab[@]}" --output_prefix none
expect 64 'needs --output_prefix' "${prepare[@]}" --input bad.jsonl "${vocab[@]}"
expect 64 'needs --format gpt' "$kiln" prepare --input bad.jsonl --vocab_file v --output_dir o --append_eod
for flag in tokenizer_type=GPT2BPETokenizer json_keys=a shuffle_memory_mb=5; do
    expect 64 "--${flag%=*} needs --format gpt" "$kiln" prepare --input bad.jsonl --vocab_file v --output_dir o "--$flag"
done
# no flag of the other formats is passed over in silence
for flag in drop_repeated_lines=1 max_seq_length=7 dupe_factor=2 masked_lm_prob=0.3 n_shards=3 do_lower_case; do
    expect 64 " cannot be combined with --format gpt" "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix x "--$flag"
done
expect 64 'both name the text' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix x --text_field body --json_keys a
expect 64 'needs --output_dir DIR' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix x --holdout_fraction 0.1
expect 64 'a document is one sequence' "${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix x --split-sentences
"${prepare[@]}" --input bad.jsonl "${vocab[@]}" --output_prefix dry --dry-run 2>err || fail "$(cat err)"
[ -z "$(find . -name 'dry*')" ] || fail "a dry run wrote something"

printf '\3757zXZ\0and more' >lines.xz
expect 65 'lines.xz is ' "${prepare[@]}" --input lines.xz "${vocab[@]}" --output_prefix dry-xz

# two halves merged are the whole; stores of another tokenizer, damaged or not described are refused
head -3 "$golden/lines.jsonl" >first.jsonl
tail -n +4 "$golden/lines.jsonl" >second.jsonl
for half in first second; do
    "${prepare[@]}" --input $half.jsonl "${vocab[@]}" --append_eod --output_prefix $half 2>err || fail "$(cat err)"
done
merge=("${prepare[@]}" --merge --output_prefix)
"${merge[@]}" merged --input first_text_document second_text_document 2>err || fail "$(cat err)"
cmp merged.bin "$golden/text.bin" && cmp merged.idx "$golden/text.idx" && cmp merged.json one_text_document.json || fail "the merged store"
"${merge[@]}" named --datasets first_text_document second_text_document 2>err || fail "$(cat err)"
cmp named.bin "$golden/text.bin" || fail "--datasets, as merge_preprocessed_data.py has it, is not --input"
expect 64 'merged.bin already exists' "${merge[@]}" merged --input first_text_document second_text_document
ln merged.bin linked.bin
for output in merged ./merged ../"${PWD##*/}"/merged linked; do
    expect 64 "over the input merged.bin" "${merge[@]}" $output --overwrite --input merged second_text_document
done
rm linked.bin
cmp merged.bin "$golden/text.bin" || fail "a merge wrote over what it reads"
expect 64 '--append_eod cannot be combined with --merge' "${merge[@]}" mixed --append_eod --input first_text_document second_text_document
expect 65 'vocab' "${merge[@]}" mixed --input first_text_document large_text_document
# what is damaged does not get new checksums
cp second_text_document.bin whole.bin
printf '\1' | dd of=second_text_document.bin bs=1 seek=8 conv=notrunc 2>/dev/null
expect 65 'second_text_document.bin is damaged' "${merge[@]}" mixed --input first_text_document second_text_document
expect 65 'second_text_document.bin is damaged' "${merge[@]}" mixed --dry_run --input first_text_document second_text_document
mv whole.bin second_text_document.bin
# two runs at once: one is refused, and the store is whole
for _ in $(seq 3000); do cat "$golden/lines.jsonl"; done >many.jsonl
for k in 1 2; do
    { "${prepare[@]}" --input many.jsonl "${vocab[@]}" --output_prefix both 2>both$k && echo 0 || echo $?; } >both$k.code &
done
wait
[ "$(sort both?.code | tr '\n' ' ')" = "0 74 " ] || [ "$(sort both?.code | tr '\n' ' ')" = "0 64 " ] ||
    fail "two runs into one store end with $(cat both?.code): $(cat both1 both2)"
expect 0 'hold' "$kiln" inspect both_text_document
rm many.jsonl both*

truncate -s -2 second_text_document.bin
expect 65 'second_text_document' "${merge[@]}" mixed --input first_text_document second_text_document
rm first_text_document.json
expect 65 'first_text_document.json' "${merge[@]}" mixed --input first_text_document
[ -z "$(find . -name 'mixed*')" ] || fail "something half written was left: $(ls)"
