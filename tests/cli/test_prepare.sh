#!/bin/bash
# `kiln prepare` as a user meets it: what it writes, that a rerun gives the same bytes, and that mistakes are told and
# leave nothing behind.
set -u
kiln=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
    echo "test_prepare: $*" >&2
    exit 1
}

# expect_error CODE PART COMMAND...: the command ends with CODE and says PART.
expect_error() {
    local code=$1 part=$2 got
    shift 2
    "$@" >out 2>err
    got=$?
    [ $got = "$code" ] || fail "'$*' ended with $got, not $code: $(cat err)"
    grep -qF -- "$part" err || fail "'$*' does not say '$part': $(cat err)"
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a b c . '##d' >vocab.txt
for i in $(seq 1 300); do
    echo "A b c. C b a! Ad bd."
    [ $((i % 20)) = 0 ] && echo
done >text
prepare="$kiln prepare --input text --vocab_file vocab.txt --do_lower_case"

$prepare --output_dir one 2>log || fail "$(cat log)"
for f in train.bin train.idx train.json heldout.bin heldout.idx heldout.json; do
    [ -s one/$f ] || fail "one/$f is missing: $(cat log)"
done
cmp vocab.txt one/vocab.txt || fail "the vocabulary was not copied"
grep -q 'sentences' log || fail "no summary: $(cat log)"
grep -q '"vocab_size": 10' one/train.json || fail "train.json: $(cat one/train.json)"
sentences() { sed -n 's/.*"sentences": \([0-9]*\).*/\1/p' "$1"; }
[ $(($(sentences one/train.json) + $(sentences one/heldout.json))) = 900 ] || fail "not 900 sentences"

$prepare --output_dir two 2>log || fail "$(cat log)"
for f in train.bin train.idx train.json heldout.bin heldout.idx heldout.json vocab.txt; do
    cmp "one/$f" "two/$f" || fail "a rerun gives another $f"
done
ls one | grep tmp >/dev/null && fail "temporary files remain"

# A store is replaced only when asked.
expect_error 64 '--overwrite' $prepare --output_dir one
expect_error 64 '--overwrite' $prepare --output_dir one --dry-run
$prepare --output_dir one --overwrite --holdout_fraction 0 2>log || fail "$(cat log)"
[ -e one/heldout.bin ] && fail "--holdout_fraction 0 left the old held-out store"
[ "$(sentences one/train.json)" = 900 ] || fail "--holdout_fraction 0 holds something out"

# A dry run reads a sample, which is all of a short text, and plans; --check reads everything; neither writes anything.
# Lines can be sentences; several inputs are read in order.
for flag in --dry-run --check; do
    $prepare --output_dir three $flag 2>log || fail "$(cat log)"
    [ -e three ] && fail "$flag made a directory"
    grep -q '15 documents' log || fail "$flag: $(cat log)"
done
$prepare --output_dir three --dry-run 2>log || fail "$(cat log)"
grep -q 'plan: 1 files, 0.0 MB; 1 as lines, plain' log && grep -q 'plan: memory at most about' log || fail "no plan: $(cat log)"
$prepare text --one_sentence_per_line --output_dir three --holdout_fraction 0 2>log || fail "$(cat log)"
[ "$(sentences three/train.json)" = 600 ] || fail "--one_sentence_per_line: $(cat three/train.json)"

# One short document: all of it is for training, and that is said.
echo 'A b c.' >short
$kiln prepare --input short --vocab_file vocab.txt --output_dir short.out 2>log || fail "$(cat log)"
grep -q 'nothing is held out' log || fail "no warning: $(cat log)"
[ -e short.out/heldout.json ] && fail "an empty held-out store"

# Mistakes.
printf 'abc\xff' >bad
: >empty
expect_error 65 'bad is not UTF-8: byte 3' $kiln prepare --input bad --vocab_file vocab.txt --output_dir no
expect_error 65 'empty is empty' $kiln prepare --input empty --vocab_file vocab.txt --output_dir no
expect_error 65 'missing' $kiln prepare --input missing --vocab_file vocab.txt --output_dir no
expect_error 65 'nothing.txt' $kiln prepare --input text --vocab_file nothing.txt --output_dir no
[ -n "$(ls no 2>/dev/null)" ] && fail "an error left $(ls no)"
expect_error 64 'input_format' $prepare --output_dir no --input_format html
expect_error 64 'one_sentence_per_line' $prepare --output_dir no --input_format text --one_sentence_per_line
expect_error 64 'holdout_fraction' $prepare --output_dir no --holdout_fraction 1
expect_error 74 'text' $prepare --output_dir text/no
printf ' \n' >blank
printf '{"body": "One."}\n{"body": "Two."}\n' >bodies
for format in text store; do
    expect_error 65 'the input has no text: 2 lines of JSON lack the field that --text_field names' $kiln prepare \
        --input bodies \
        --format $format --vocab_file vocab.txt --output_dir no
    [ -z "$(ls no)" ] || fail "an error left $(ls no)"
done
expect_error 65 'no text' $kiln prepare --input blank --vocab_file vocab.txt --output_dir no
for encoding in latin-1 utf-16 UTF-16BE; do # the store is that of the same text in UTF-8, unpacked or not
    printf 'Caf\303\251 of the king. The caf\303\251.\n\nA café again.\n' >utf8.txt
    { [ $encoding != UTF-16BE ] || printf '\376\377'; iconv -f UTF-8 -t "${encoding/latin-1/latin1}" utf8.txt; } |
        gzip >other.txt.gz
    for input in utf8.txt "other.txt.gz --encoding $encoding"; do
        # shellcheck disable=SC2086
        $kiln prepare --input $input --vocab_file vocab.txt --output_dir "encoded.${input%% *}" --overwrite 2>log ||
            fail "$(cat log)"
        # shellcheck disable=SC2086
        $kiln vocab --input $input --vocab_file "words.${input%% *}" --vocab_size 40 2>log || fail "$(cat log)"
    done
    cmp encoded.utf8.txt/train.bin encoded.other.txt.gz/train.bin && cmp words.utf8.txt words.other.txt.gz ||
        fail "$encoding is read otherwise"
done
printf 'the \201 king' >odd
expect_error 65 'odd is not cp1252: byte 4 is 0x81' "$kiln" prepare --input odd --encoding cp1252 --vocab_file vocab.txt \
    --output_dir never
expect_error 64 'which this machine does not know' "$kiln" prepare --input odd --encoding klingon --vocab_file vocab.txt \
    --output_dir never
$kiln prepare --input bad --replace_invalid_utf8 --vocab_file vocab.txt --output_dir yes 2>log || fail "$(cat log)"
grep -q '1 ill-formed' log || fail "no count of replacements: $(cat log)"

# A full disk leaves nothing; what a killed run has left is removed.
(
    trap '' XFSZ
    ulimit -f 8
    $prepare --output_dir full 2>log
    [ $? = 74 ] || fail "a full disk: $(cat log)"
) || exit 1
[ -z "$(ls full)" ] || fail "a full disk left $(ls full)"
left=full/.train.bin.kiln-0123456789abcdef.tmp
touch $left full/train.bin.tmp.mine
$prepare --output_dir full 2>log || fail "$(cat log)"
[ ! -e $left ] && grep -q "removing $left" log || fail "a temporary file remains: $(cat log)"
[ -e full/train.bin.tmp.mine ] || fail "a user's file is gone"

# An error in the middle of a run that replaces a store leaves the old one.
cp -r two before
expect_error 65 'bad is not UTF-8' $prepare bad --output_dir two --overwrite
diff -r -x .lock two before || fail "a failed run changed the old store"
exit 0
