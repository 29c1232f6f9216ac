#!/usr/bin/env bash
# Makes the data of both phases: downloads, reads, and writes the HDF5 files of the documents.
#
#   scripts/create_datasets_from_start.sh              Wikipedia
#   scripts/create_datasets_from_start.sh wiki_books   with BooksCorpus
#   ... --dry-run                                      what it would run, and what is missing
#
# All files go to HL_DATA_DIR_ROOT (by default data, or the current folder if it is called data), in the documents' layout:
#
#   download/wikicorpus_en     the dump
#   download/bookscorpus       *.txt, a book each: they can no longer be downloaded, so provide them
#   download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt
#   extracted/wikicorpus_en    the output of WikiExtractor, if you have it: then no dump is needed
#   hdf5_lower_case_1_seq_len_128_..., hdf5_lower_case_1_seq_len_512_...: in each, DATASET/DATASET_training_0.hdf5 and so on
#
# VOCAB_FILE names another vocabulary, which is made from the text if it does not exist; N_SHARDS (256) is the number of files.
# Started again after an interruption, it continues.
set -euo pipefail
. "$(dirname "$0")/document_script.sh"
dataset=wikicorpus_en
for word in "$@"; do
    case $word in
    wiki_only) ;;
    wiki_books) dataset=books_wiki_en_corpus ;;
    --dry-run) dry_run=true ;;
    *) usage "[wiki_only|wiki_books] [--dry-run]" ;;
    esac
done
data=$(data_folder data .)
download=$data/download
extracted=$data/extracted/wikicorpus_en
books=$download/bookscorpus
google=uncased_L-24_H-1024_A-16 # the one archive of seven whose vocabulary is used
vocab=${VOCAB_FILE:-$download/google_pretrained_weights/$google/vocab.txt}

need_kiln
$dry_run || tell

# fetch SOURCE FLAGS...: continues if files cannot be downloaded, which are missed below, but not after Ctrl-C
fetch()
{
    local code=0
    run "$kiln" fetch "$1" --output_dir "$download" "${@:2}" || code=$?
    [ $code -ne 75 ] || exit $code
}

# The text of Wikipedia: the output of WikiExtractor, or the dump.
wiki=$extracted
if [ ! -d "$extracted" ]; then
    wiki=$download/wikicorpus_en/wikicorpus_en.xml.bz2
    [ -e "$wiki" ] || fetch wikipedia
    [ -e "$wiki" ] || miss "$wiki: the dump, or $extracted: the output of WikiExtractor"
fi
input=("$wiki")
if [ "$dataset" = books_wiki_en_corpus ]; then
    compgen -G "$books/*.txt" >/dev/null || miss "$books: BooksCorpus, a book in each .txt"
    input+=("$books")
fi
if [ -z "${VOCAB_FILE:-}" ] && [ ! -e "$vocab" ]; then
    fetch google --only "$google.zip"
    [ -e "$vocab" ] || miss "$vocab: Google's vocabulary, or another one by VOCAB_FILE"
fi
$dry_run || tell

if [ -n "${VOCAB_FILE:-}" ] && [ ! -e "$vocab" ]; then
    run "$kiln" vocab --input "${input[@]}" --vocab_file "$vocab" --do_lower_case
fi

# Both phases in one pass over the text, which goes on where it was interrupted.
set_of() { echo "$data/hdf5_lower_case_1_seq_len_$1_max_pred_$2_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/$dataset"; }
first=$(set_of 128 20) second=$(set_of 512 80)
if [ -d "$first" ] && [ -d "$second" ] && [ ! -e "$data/.prepare" ]; then
    echo "$first is there"
    echo "$second is there"
else
    run "$kiln" prepare --input "${input[@]}" --vocab_file "$vocab" --do_lower_case --output_dir "$data" --resume --overwrite \
        --format hdf5 --max_seq_length 128,512 --max_predictions_per_seq 20,80 --masked_lm_prob 0.15 --dupe_factor 5 \
        --seed 12345 --holdout_fraction 0.1 --n_shards "${N_SHARDS:-256}" --reference_names --dataset "$dataset"
fi
tell
