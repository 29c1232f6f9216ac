#!/usr/bin/env bash
# Sequences of 128 tokens a second that one thread makes batches of, from a token store and from HDF5 files (bench/load_rate.c).
# TEXT is the text, by default that of `make demo`; VOCAB a vocab.txt.  The machine that is replaced trains on 2,600 a second.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
words=${VOCAB:-$work/vocab.txt}
rm -rf "$work/load"
$kiln prepare --input "${TEXT:-$text}" --vocab_file "$words" --do_lower_case --output_dir "$work/load" --format store,hdf5,packed \
    --max_seq_length 128 --max_predictions_per_seq 20 2>/dev/null
for place in train hdf5_seq_len_128_max_pred_20/training packed_seq_len_128_max_pred_20/training; do
    echo "batches of 256 from $place: $(build/tests/load_rate "$words" "$work/load/$place" 128 20 256 "${STEPS:-1000}")"
done
