#!/usr/bin/env bash
# What `kiln prepare` can write in one pass, under its own names and the replaced scripts', and what it can leave out: each
# output is that of a run of its own, cleaned text read again gives the same store, and what is left out is counted.
. "$(dirname "$0")/begin.sh"
make_store
cd "$dir"
export OMP_NUM_THREADS=2
prepare=("$kiln" prepare --vocab_file vocab.txt --do_lower_case --holdout_fraction 0.1)
lines=(--input corpus.txt --input_format lines --one_sentence_per_line)
told() { grep -qF -- "$1" err || fail "'$1' is not told: $(cat err)"; }

# the text as lines of JSON; read again, it is the same text
expect 0 "documents.jsonl: 60 documents" "${prepare[@]}" "${lines[@]}" --format store,text --output_dir both
cmp both/train.bin store/train.bin || fail "the store is not that of a run of its own"
expect 0 "60 kept" "${prepare[@]}" --input both/documents.jsonl --input_format json --output_dir again --format text
cmp both/documents.jsonl again/documents.jsonl || fail "the text that was read again is another"
[ ! -e again/train.bin ] && [ ! -e again/vocab.txt ] || fail "--format text wrote more"
"$kiln" prepare --input corpus.txt --format text --output_dir bare 2>err || fail "text alone needs a vocabulary: $(cat err)"
expect 64 "needs --vocab_file" "$kiln" prepare --input corpus.txt --output_dir none
expect 64 "needs --input" "$kiln" prepare --vocab_file vocab.txt --output_dir none
expect 64 "must be a list of store, hdf5, packed and text" "${prepare[@]}" "${lines[@]}" --format store,json --output_dir none
expect 64 "already has documents.jsonl" "${prepare[@]}" "${lines[@]}" --format text --output_dir both

# id, address and title of each format that has them
cat >page.xml <<'XML'
<mediawiki xml:lang="en"><siteinfo><base>https://x.example/wiki/Main_Page</base></siteinfo>
<page>
<title>A "title"</title>
<ns>0</ns>
<id>7</id>
<revision>
<model>wikitext</model>
<text>The king went to the city.</text>
</revision>
</page>
</mediawiki>
XML
printf \
    '<doc id="7" url="https://x.example/wiki?curid=7" title="A &quot;title&quot;">\nA "title"\n\nThe king went to the city.\n</doc>\n' >page.wiki
printf '{"text": "The king went to the city.", "id": 7, "title": "A \\"title\\"", "url": "https://x.example/wiki?curid=7"}\n' \
    >page.json
for page in page.xml page.wiki page.json; do
    "$kiln" prepare --input $page --format text --output_dir $page.out 2>err || fail "$(cat err)"
    [ "$(cat $page.out/documents.jsonl)" = \
        '{"id": "7", "url": "https://x.example/wiki?curid=7", "title": "A \"title\"", "text": "The king went to the city."}' ] ||
        fail "$page: $(cat $page.out/documents.jsonl)"
done

# cleaning: each is counted, and changes nothing else
{
    echo 'The king went to the city of stone and gave his people land.'
    echo 'All rights are reserved.'
    echo
    echo 'The water of the river came in over night.'
    echo 'All rights are reserved.'
    echo
    echo 'The king went to the city of stone and gave his people land.'
    echo 'All rights are reserved.'
    echo
    echo 'Short.'
    echo
    echo 'Король пошёл в город и дал людям землю, и река пришла ночью.'
    echo
    echo '0123456789 0123456789 0123456789 0123456789.'
} >dirty.txt
clean() { "$kiln" prepare --input dirty.txt --input_format lines --format text --output_dir clean --overwrite "$@"; }
n() { [ "$(wc -l <clean/documents.jsonl)" -eq "$1" ] || fail "$(wc -l <clean/documents.jsonl) documents, not $1: $(cat err)"; }
expect 0 "6 documents" clean && n 6
! grep -q 'left out by cleaning' err || fail "something was left out"
expect 0 "left out by cleaning: 1: 1 equal to an earlier one" clean --drop_duplicates && n 5
expect 0 "left out by cleaning: 1: 1 shorter than --min_document_chars" clean --min_document_chars 20 && n 5
expect 0 "left out by cleaning: 2: 2 in other scripts" clean --keep_script latin && n 4
expect 0 "left out by cleaning: 1: 1 in other scripts" clean --keep_script latin,cyrillic && n 5
expect 0 "repeated lines left out: 3" clean --drop_repeated_lines 1 && n 5 # all lines of one document
[ "$(grep -c reserved clean/documents.jsonl)" -eq 1 ] || fail "lines remain: $(cat clean/documents.jsonl)"
expect 0 "4: 2 shorter than --min_document_chars, 1 in other scripts than --keep_script, 1 equal" clean --drop_duplicates \
    --min_document_chars 45 --keep_script latin && n 2
expect 64 "--keep_script has 'klingon'" clean --keep_script latin,klingon

# a book of Project Gutenberg, with a byte order mark and its ends of lines; only one mark leaves it as it is
mkdir books
{
    printf '\xef\xbb\xbfThe Project Gutenberg eBook of A Book\r\n\r\nThis eBook is for the use of anyone.\r\n\r\n'
    printf '*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***\r\n\r\nIt was a night.\r\nThe king came.\r\n\r\n'
    printf '*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***\r\n\r\nSection 1. General Terms of Use.\r\n'
} >books/a.txt
sed '/END OF/d' books/a.txt >books/b.txt
gzip -c books/a.txt >books/c.txt.gz
: >books/empty.txt
book() { "$kiln" prepare --input books --input_format text --format text --output_dir book --overwrite "$@"; }
expect 0 "left out of 2 books" book
told "1 documents have no text"
for line in 1 3; do
    sed -n ${line}p book/documents.jsonl | grep -F '"text": "It was a night. The king came."}' >/dev/null ||
        fail "$(cat book/documents.jsonl)"
done
sed -n 2p book/documents.jsonl | grep 'START OF' >/dev/null || fail "a file with one mark was cut"
expect 0 "3 documents" book --keep_gutenberg
[ "$(grep -c 'General Terms' book/documents.jsonl)" -eq 3 ] || fail "--keep_gutenberg"

# the plan: what clearly does not fit is refused before it is read
for _ in $(seq 20); do cat corpus.txt; done >sparse
truncate -s 4T sparse 2>/dev/null || rm -f sparse # a file system may not have such files
if [ -e sparse ]; then
    expect 74 "free, but the output is estimated at" "${prepare[@]}" --input sparse --input_format lines \
        --format store,text --output_dir full --dry_run
    [ ! -e full ] || fail "a dry run made a directory"
    rm sparse
fi
mkfifo pipe
expect 65 "pipe is neither a file nor a directory" "${prepare[@]}" --input pipe --output_dir none

# flags of the replaced scripts
expect 0 "--action has no meaning here and is ignored" "${prepare[@]}" --action create_hdf5_files \
    --input_files corpus.txt,dirty.txt \
    --do_lower_case 1 --random_seed 12345 --fraction_test_set 0.1 --n_processes 4 --segmentation_method nltk \
    --skip_wikiextractor 0 --bert_model bert-large-uncased --interactive_json_config_generator --output_dir flags --check
told "read 2 files"
expect 64 "--output_dir DIR --format hdf5" "${prepare[@]}" --input_file corpus.txt --output_file x.hdf5 --output_dir none
expect 0 "read 1 files" "${prepare[@]}" --input_file corpus.txt --do_lower_case --output_dir none --check

lacking=
if "$kiln" doctor --dry_run | grep '^hdf5 *not built in' >/dev/null; then
    lack hdf5 "this build has no HDF5: its outputs were not tried"
else
    # two phases, padded and packed, in one pass
    phases=(--max_seq_length 32,64 --max_predictions_per_seq 5,10 --dupe_factor 2 --n_shards 2 --n_test_shards 1)
    expect 0 "packed_seq_len_64_max_pred_10/test/*.hdf5: 1 files" "${prepare[@]}" "${lines[@]}" --format hdf5,packed,store \
        "${phases[@]}" --output_dir all
    for kind in '' --packed; do
        expect 0 "training/*.hdf5: 2 files" "${prepare[@]}" "${lines[@]}" --format hdf5 $kind --max_seq_length 64 \
            --max_predictions_per_seq 10 --dupe_factor 2 --n_shards 2 --n_test_shards 1 --output_dir one --overwrite
        name=hdf5
        [ -z "$kind" ] || name=packed
        diff -r -x .lock -x .prepared.json one all/${name}_seq_len_64_max_pred_10 || fail "$name differs from a run of its own"
    done
    cmp all/train.bin store/train.bin || fail "the store is not that of a run of its own"

    # the replaced scripts' names, beside those of another corpus
    reference=hdf5_lower_case_1_seq_len_32_max_pred_5_masked_lm_prob_0.15_random_seed_12345_dupe_factor_2
    for set in wikicorpus_en bookscorpus; do
        expect 0 "data/$reference/$set/${set}_training_*.hdf5: 2 files" "${prepare[@]}" "${lines[@]}" --format hdf5,packed \
            "${phases[@]}" --reference_names --dataset $set \
            --output_dir data
    done
    for file in wikicorpus_en/wikicorpus_en_training_1.hdf5 wikicorpus_en/wikicorpus_en_test_0.hdf5 \
        bookscorpus/bookscorpus_training_0.hdf5; do
        [ -s data/$reference/$file ] || fail "$file is missing: $(find data -type f)"
    done
    cmp data/$reference/wikicorpus_en/wikicorpus_en_training_1.hdf5 \
        all/hdf5_seq_len_32_max_pred_5/training/kiln_training_1.hdf5 ||
        fail "other names have other bytes"
    [ -s data/${reference}_packed/wikicorpus_en/training_metadata.json ] || fail "no metadata: $(find data)"
    expect 64 "already has $reference/bookscorpus" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_seq_length 32 \
        --max_predictions_per_seq 5 --dupe_factor 2 --reference_names --dataset bookscorpus --output_dir data
    expect 0 "held-out" "$kiln" pretrain --input_dir data/$reference/wikicorpus_en --config_file config.json --output_dir run \
        --max_steps 4 --train_batch_size 8 --learning_rate 1e-3 --eval_steps 2 --eval_samples 8 --disable_progress_bar

    # lists that do not fit each other
    expect 64 "fewer numbers" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_seq_length 32,64 --output_dir none
    expect 64 "more numbers" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_predictions_per_seq 5,6 --output_dir none
    expect 64 "a phase twice" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_seq_length 32,32 --max_predictions_per_seq 5,5 \
        --output_dir none
    expect 64 "must lie between 5 and 65536" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_seq_length 4 --output_dir none
    expect 64 "needs a whole number" "${prepare[@]}" "${lines[@]}" --format hdf5 --max_seq_length 32x --output_dir none
fi
[ ! -e none ] || fail "a mistake made a directory"
echo "test_prepare_outputs: done"
