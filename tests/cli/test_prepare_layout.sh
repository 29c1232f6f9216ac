#!/usr/bin/env bash
# Text as it is, in stores of whole documents: white space, indentation and blank lines are kept, of all formats in a folder;
# what is no text is left out and said; parts of few documents are held out; and `kiln tokenize --decode` shows it.
. "$(dirname "$0")/begin.sh"
golden=$(realpath "$(dirname "$0")/../golden/documents")
cd "$dir"
vocab=(--vocab_file "$golden/vocab.json") # merges.txt lies beside it
prepare=("$kiln" prepare --format gpt "${vocab[@]}")

# the text of all tokens of a store
text_of() {
    od -An -v -w2 -tu2 "$1.bin" | tr -s ' \n' '  ' | "$kiln" tokenize "${vocab[@]}" --decode
}
mkdir folder
printf 'def f(x):\r\n    return x\r\n\r\n\r\n# two\r\n\tTab' >folder/a.txt
printf '# Title\n\n- x\n  - y\n' >folder/b.md
printf '{"text": "one\\n\\n  two "}\n{"text": ""}\n\n{"text": "\\r\\n3", "other": "o"}\n' >folder/c.jsonl
printf '<doc id="1" url="u" title="T">\nT\n\nFirst.\nSecond.\n</doc>\n' >folder/wiki_00
printf ' \n\n' >folder/z.txt
head -c 4000 "$kiln" >folder/picture
expect 0 'folder/picture is binary data, not plain text: give plain text in UTF-8; it is left out' \
    "${prepare[@]}" --input folder --output_prefix new/folder/all --append_eod
grep -q '(3 as text, 0 as lines, 1 as wiki, 1 as json, 0 as dump)' err && grep -q '3: 2 kept, 1 without text' err &&
    grep -q '1 files are not text and were left out' err && grep -q '1 documents have no text' err || fail "the report: $(cat err)"
printf 'def f(x):\n    return x\n\n\n# two\n\tTab<|endoftext|># Title\n\n- x\n  - y\n<|endoftext|>one\n\n  two <|endoftext|>\r\n3<|endoftext|>First.\n\nSecond.<|endoftext|>\n' >wanted
text_of new/folder/all_text_document | cmp - wanted || fail "the text is not kept: $(text_of new/folder/all_text_document)"

# another field, other formats, and what is no text when it is named
expect 0 'read 1 files' "${prepare[@]}" --input folder/c.jsonl --text_field other --max_bad_lines 2 --output_prefix field
[ "$(text_of field_other_document)" = o ] || fail "--text_field: $(text_of field_other_document)"
printf 'a b.\n  c.\n\nd.\n' >lines.txt
expect 0 '2 documents' "${prepare[@]}" --input lines.txt --input_format lines --output_prefix lines --append_eod
[ "$(text_of lines_text_document)" = $'a b.\n  c.\n<|endoftext|>d.\n<|endoftext|>' ] || fail "lines: $(text_of lines_text_document)"
expect 0 '1 documents' "${prepare[@]}" --input lines.txt --output_prefix one
printf '\xe9t\xe9\n' >latin.txt
expect 65 'latin.txt is not UTF-8' "${prepare[@]}" --input latin.txt --output_prefix latin
expect 0 '1 documents' "${prepare[@]}" --input latin.txt --output_prefix latin --encoding latin-1
[ "$(text_of latin_text_document)" = $'\xc3\xa9t\xc3\xa9' ] || fail "latin-1: $(text_of latin_text_document)"
expect 65 'is binary data' "${prepare[@]}" --input folder/picture --output_prefix x
expect 64 'has 2 names, and folder/a.txt is not lines' "${prepare[@]}" --input folder --json_keys text,other --output_prefix x
printf '[\n{"text": "a"}]\n' >list.json
expect 65 "list.json is JSON, but not in lines" "${prepare[@]}" --input list.json --output_prefix x
mkdir none && cp folder/picture none
expect 65 'no text' "${prepare[@]}" --input none --output_prefix x
expect 64 'not both' "${prepare[@]}" --input folder --output_prefix x --output_dir y

# a long text is one document in pieces, the same ids on any number of threads
for i in $(seq 60); do sed -e "s/and/and $i/" "$golden/../../cli/corpus.sh"; done >long.txt
while [ "$(stat -c %s long.txt)" -lt 2300000 ]; do cat long.txt long.txt >longer && mv longer long.txt; done
expect 0 '1 documents' "${prepare[@]}" --input long.txt --output_prefix long
text_of long_text_document | head -c -1 | cmp - long.txt || fail "the pieces of a long text"
OMP_NUM_THREADS=3 expect 0 '1 documents' "${prepare[@]}" --input long.txt --output_prefix short
cmp long_text_document.bin short_text_document.bin || fail "three threads give other ids"

# zstd and xz: the same ids; a cut file is an error unless it is allowed, a damaged one always
head -c 300000 long.txt >whole.txt
expect 0 '1 documents' "${prepare[@]}" --input whole.txt --output_prefix whole
for pack in zstd xz; do
    if ! command -v $pack >/dev/null || ! "$kiln" doctor | grep '^archives  *libarchive' >/dev/null; then
        lack $pack "$pack or libarchive is not installed: text packed by it was not tried"
        continue
    fi
    $pack -qc whole.txt >packed.txt.$pack
    expect 0 '1 documents' "${prepare[@]}" --input packed.txt.$pack --output_prefix packed --overwrite
    cmp packed_text_document.bin whole_text_document.bin || fail "$pack: other ids"
    head -c -40 packed.txt.$pack >cut.txt.$pack
    expect 65 "cut.txt.$pack is cut short" "${prepare[@]}" --input cut.txt.$pack --output_prefix x
    expect 0 '1 documents' "${prepare[@]}" --input cut.txt.$pack --output_prefix cut --overwrite --allow_truncated_input
    dd if=/dev/zero of=packed.txt.$pack bs=1 seek=300 count=40 conv=notrunc 2>/dev/null
    expect 65 'is damaged' "${prepare[@]}" --input packed.txt.$pack --output_prefix x
done

# few documents: parts of them are held out, and nothing is lost
head -c 60000 long.txt >novel.txt
expect 0 'heldout.bin' "${prepare[@]}" --input novel.txt --output_dir split --holdout_fraction 0.1
cut=$(text_of split/heldout | wc -c) && all=$(wc -c <novel.txt)
[ $((cut * 20)) -gt "$all" ] && [ $((cut * 6)) -lt "$all" ] || fail "$cut of $all bytes are held out"
[ $(($(text_of split/train | wc -c) + cut - 2)) = "$all" ] || fail "the stores have not all of the text"
expect 0 'heldout.bin' "${prepare[@]}" --input folder --output_dir few
expect 65 'nothing can be held out of a text this short' "${prepare[@]}" --input folder/b.md --output_dir short
[ -z "$(ls short)" ] || fail "something was left: $(ls short)"
expect 0 '1 documents' "${prepare[@]}" --input folder/b.md --output_dir short --holdout_fraction 0

# a store that is looked at, with the tokenizer that is beside it or given
expect 0 'share_of_end_tokens' "$kiln" inspect new/folder/all_text_document "${vocab[@]}" --documents 1-2
grep -q '^  longest  *35$' out && grep -q '^text_bytes_per_token  *0.965' out && grep -q '^most_frequent' out &&
    tail -10 out | diff - <(printf -- '--- document 1, 20 tokens\n# Title\n\n- x\n  - y\n<|endoftext|>\n--- document 2, 11 tokens\none\n\n  two <|endoftext|>\n') ||
    fail "inspect: $(cat out)"
expect 0 '"text": "one\n\n  two <|endoftext|>"' "$kiln" inspect new/folder/all_text_document "${vocab[@]}" --documents 2-2 --json
expect 64 'needs the tokenizer' "$kiln" inspect new/folder/all_text_document --documents 1
expect 0 '--- document 0' "$kiln" inspect split/train --documents 1
expect 64 'is neither a number of documents nor a range' "$kiln" inspect split/train --documents 3-1
expect 64 'the store has 6 documents' "$kiln" inspect split/train --documents 90-99
expect 64 'and folder is a' "$kiln" inspect folder --documents 1

# what is left out, by reason; a near duplicate differs in a word of thirty
seq -s ' ' 30 >n1.txt
sed 's/29/other/' n1.txt >n2.txt
cp n1.txt n3.txt
seq -s ' ' 50 90 >n4.txt
repeats=("${prepare[@]}" --input n1.txt n2.txt n3.txt n4.txt folder --drop_duplicates)
expect 0 '"other_files":1,' "${repeats[@]}" --drop_near_duplicates --output_prefix repeats --json
grep -q '"documents":7,"left_out":{"without_text":2,"duplicate":1,"near_duplicate":1}' out &&
    grep -q '"stores":\[{"path":"repeats_text_document","documents":7,' out && grep -q '2: 1 equal to an earlier one, 1 nearly' err ||
    fail "the reasons: $(cat out err)"
expect 0 '"documents":8,"left_out":{"without_text":2,"duplicate":1}' "${repeats[@]}" --check --json
expect 0 'plan: hashes of documents take at most' "${repeats[@]}" --drop_near_duplicates --output_prefix dry --dry-run

# lines of JSON, cleaned, keep their layout and the fields that are asked for
printf '{"id":3,"meta":{"a":[1,2]},"source":"x","text":"f:\\n    g\\n\\n\\n\\tt  u"}\n' >code.jsonl
expect 0 '1 documents' "$kiln" prepare --format text --input code.jsonl --keep_layout --keep_fields source,meta --output_dir clean
[ "$(cat clean/documents.jsonl)" = '{"id": "3", "url": "", "title": "", "source": "x", "meta": {"a":[1,2]}, "text": "f:\n    g\n\n\n\tt  u"}' ] ||
    fail "the cleaned text: $(cat clean/documents.jsonl)"
expect 64 'id is kept anyway' "$kiln" prepare --format text --input code.jsonl --keep_fields id --output_dir x
expect 64 'is for --format text alone' "$kiln" prepare --format text --input code.jsonl --keep_layout --drop_repeated_lines 2 --output_dir x
printf 'PAR1\025\004\025' >rows.parquet
expect 65 'rows.parquet is a Parquet file, not plain text: write its column of text as lines of JSON first' "${prepare[@]}" --input rows.parquet --output_prefix x

# back from ids
printf 'a  b\n\nc\n' | "$kiln" tokenize "${vocab[@]}" | "$kiln" tokenize "${vocab[@]}" --decode >back && printf 'a  b\n\nc\n' | cmp - back || fail "decoded: $(cat back)"
expect 65 "line 2: '1x' is not an id from 0 to" "$kiln" tokenize "${vocab[@]}" --decode < <(printf '1\n1x\n')
expect 65 "text 1: '1x' is not an id from 0 to" "$kiln" tokenize "${vocab[@]}" --decode 1x
expect 0 '"tokens":["a"," ","b"],"offsets":[[0,1],[1,2],[2,3]]}' "$kiln" tokenize "${vocab[@]}" --json "a b"
expect 64 'needs --vocab_file FILE, or --model DIR' "$kiln" tokenize --decode
