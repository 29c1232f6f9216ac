#!/usr/bin/env bash
# `kiln tokenize` and `kiln vocab` as a user runs them: ids of lines, also long, binary and empty ones; vocabularies as published
# and as learned.
. "$(dirname "$0")/begin.sh"
cd "$dir"

printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\n!\n\xc3\xa9t\xc3\xa9\nete\n' >vocab.txt

got=$(printf 'Hellos!\n\n\xc3\x89t\xc3\xa9 [SEP]\nhe\0llo\nlast' | "$kiln" tokenize --vocab_file vocab.txt --do_lower_case)
[ "$got" = "$(printf '5 6 7\n\n9 1 1 1\n5\n1')" ] || fail "uncased ids: $got"
got=$(printf '\xc3\xa9t\xc3\xa9 Hello\n' | "$kiln" tokenize --vocab_file vocab.txt)
[ "$got" = "8 1" ] || fail "cased ids: $got"
[ -z "$("$kiln" tokenize --vocab_file vocab.txt </dev/null)" ] || fail "no text, no lines"
got=$(head -c 3000000 /dev/zero | tr '\0' '!' | "$kiln" tokenize --vocab_file vocab.txt | tr ' ' '\n' | sort -u)
[ "$got" = 7 ] || fail "a line of 3 MB: $got"
"$kiln" tokenize --vocab_file vocab.txt --dry-run 2>&1 | grep '10 pieces' >/dev/null || fail "dry run of tokenize"
expect 65 'missing.txt' "$kiln" tokenize --vocab_file missing.txt
expect 64 '--vocab_file' "$kiln" tokenize
printf 'a\n' >bad.txt
expect 65 'lacks the piece [UNK]' "$kiln" tokenize --vocab_file bad.txt
# as published vocabularies are: a byte-order mark, an empty line, a piece twice, no [PAD]; each with one warning
printf '\xef\xbb\xbf[UNK]\n\nhello\nhello\n!\n' >odd.txt
expect 0 "odd.txt: line 2 is empty" "$kiln" tokenize --vocab_file odd.txt <<<'hello ! x'
[ "$(cat out)" = "3 4 0" ] || fail "other ids: $(cat out)"
[ "$(grep -c warning err)" = 3 ] || fail "not three warnings: $(cat err)"
if [ -e /dev/full ]; then
    echo hello >text
    expect 74 'writing to standard output failed: No space' bash -c '"$1" tokenize --vocab_file vocab.txt <text >/dev/full' _ \
        "$kiln"
fi

mkdir corpus
for i in $(seq 50); do
    echo "The cat number $i sat on the mat. The cats sat on mats."
done >corpus/a.txt
cp corpus/a.txt b.txt
"$kiln" vocab --input corpus b.txt --vocab_file new.txt --vocab_size 60 --do_lower_case --dry-run 2>&1 |
    grep -q 'from 2 files' || fail "dry run of vocab"
[ ! -e new.txt ] || fail "a dry run wrote something"
"$kiln" vocab --input corpus b.txt --vocab_file new.txt --vocab_size 60 --do_lower_case 2>err || fail "vocab: $(cat err)"
[ "$(head -n 5 new.txt | tr '\n' ' ')" = "[PAD] [UNK] [CLS] [SEP] [MASK] " ] || fail "special pieces first"
grep -qx cat new.txt || fail "no piece for cat: $(tr '\n' ' ' <new.txt)"
[ -n "$(echo 'the cats' | "$kiln" tokenize --vocab_file new.txt --do_lower_case)" ] || fail "the vocabulary is not usable"
"$kiln" vocab --input b.txt corpus --vocab_file again.txt --vocab_size 60 --do_lower_case 2>err || fail "$(cat err)"
cmp new.txt again.txt || fail "another order of the files gives another vocabulary"
for threads in 1 2 3; do
    OMP_NUM_THREADS=$threads "$kiln" vocab --input corpus b.txt --vocab_file again.txt --vocab_size 60 --do_lower_case 2>err ||
        fail "$threads threads: $(cat err)"
    cmp new.txt again.txt || fail "another vocabulary from $threads threads"
done
"$kiln" vocab --input corpus b.txt --vocab_file /dev/stdout --vocab_size 60 --do_lower_case 2>err | cmp - new.txt ||
    fail "a vocabulary to standard output: $(cat err)"
cp b.txt own.txt
expect 64 'over the input' "$kiln" vocab --input corpus own.txt --vocab_file ./own.txt --vocab_size 60
expect 64 'over the input' "$kiln" vocab --input own.txt --vocab_file own.txt --vocab_size 60 --dry_run
cmp b.txt own.txt || fail "the text was replaced"
expect 64 'has no room' "$kiln" vocab --input b.txt --vocab_file small.txt --vocab_size 10
expect 74 'cannot create the directory b.txt' "$kiln" vocab --input corpus --vocab_file b.txt/dir/v.txt
expect 65 'nothing.txt' "$kiln" vocab --input nothing.txt --vocab_file v.txt
[ ! -e small.txt ] && [ -z "$(find . -name '*.tmp*')" ] || fail "something half-written was left"

# byte-level BPE: three files, the same ids from each form, and refusals
"$kiln" vocab --input corpus b.txt --kind bpe --vocab_file bpe/vocab.json --vocab_size 300 2>err ||
    fail "vocab of bpe: $(cat err)"
[ "$(head -2 bpe/merges.txt)" = "$(printf '#version: 0.2\na t')" ] || fail "merges: $(head -3 bpe/merges.txt)"
echo "The cats sat, <|endoftext|>" | "$kiln" tokenize --vocab_file bpe/tokenizer.json >one || fail "ids by tokenizer.json"
echo "The cats sat, <|endoftext|>" | "$kiln" tokenize --vocab_file bpe/vocab.json --merge_file bpe/merges.txt >two
[ -s one ] && cmp -s one two || fail "other ids by the two files: $(cat one two)"
cp -r bpe bpe_before
bloom=("$kiln" vocab --input corpus --kind bpe --pattern bloom --vocab_file bpe/v.json --vocab_size 280)
for flags in '' '--dry_run' '--merge_file bpe/m.txt'; do
    # shellcheck disable=SC2086
    expect 64 'already exists; --overwrite replaces it' "${bloom[@]}" $flags
done
expect 64 'would be overwritten' "${bloom[@]}" --merge_file ./bpe/../bpe/v.json
diff -r bpe_before bpe || fail "a file that no flag names was overwritten"
"${bloom[@]}" --merge_file bpe/m.txt --overwrite 2>err ||
    fail "vocab of bloom: $(cat err)"
grep -q 'Isolated' bpe/tokenizer.json || fail "tokenizer.json has BLOOM's pattern"
: >empty
expect 65 'empty is empty: merges.txt has at least a line' "$kiln" tokenize --vocab_file bpe/vocab.json --merge_file empty --dry-run
head -n -9 bpe/m.txt >cut.txt
expect 65 'the file has lost its end' "$kiln" tokenize --vocab_file bpe/v.json --merge_file cut.txt --dry-run
head -1 bpe/m.txt >cut.txt
expect 65 "cut.txt has 0 merges, but piece" "$kiln" tokenize --vocab_file bpe/v.json --merge_file cut.txt --dry-run
sed 's/"merges"/"merged"/' bpe/tokenizer.json >without.json
expect 65 'the model'"'"'s "merges" must be a list' "$kiln" tokenize --vocab_file without.json --dry-run
expect 64 'cannot be combined with --kind bpe' "$kiln" vocab --input corpus --kind bpe --vocab_file bpe/v.json --do_lower_case
expect 64 'overwritten' "$kiln" vocab --input corpus --kind bpe --vocab_file bpe/merges.txt
expect 64 'ask for at least 257' "$kiln" vocab --input corpus --kind bpe --vocab_file bpe/v.json --vocab_size 200
expect 64 'ask for at least 260' "$kiln" vocab --input corpus --kind bpe --pattern bloom --vocab_file bpe/v.json --vocab_size 259 --dry_run

# no kind passes over a flag of the other in silence
for flag in '--alphabet_coverage 0.5' '--limit_alphabet 7'; do
    # shellcheck disable=SC2086
    expect 64 "${flag% *} cannot be combined with --kind bpe" "$kiln" vocab --input corpus --kind bpe --vocab_file bpe/v.json $flag --dry_run
done
for flag in '--pattern bloom' '--merge_file m.txt'; do
    # shellcheck disable=SC2086
    expect 64 "${flag% *} cannot be combined with --kind wordpiece" "$kiln" vocab --input corpus --vocab_file v.txt $flag --dry_run
done
