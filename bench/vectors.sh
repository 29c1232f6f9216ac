#!/usr/bin/env bash
# How fast sentences become vectors by BERT-base (random weights): kiln and Hugging Face transformers, alternating, medians of three. DTYPES="fp32"
# selects rows; REPEATS=1 is faster. Part of `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
model=$work/vectors
n=256
[ -s "$model/model.safetensors" ] || "$python" bench/peers/hf_vectors.py make "$model" "$work/vocab.txt" 2>/dev/null

# The seconds that kiln takes for the first N texts, with loading the model: N dtype
seconds()
{
    local start=$EPOCHREALTIME
    head -n "$1" "$text" | $kiln embed --model "$model" --dtype "$2" >/dev/null 2>&1
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

row "vectors of sentences, texts/s" kiln transformers ratio
for dtype in ${DTYPES:-fp32 bf16 int8}; do
    : >"$work/kiln.txt"
    : >"$work/hf.txt"
    for _ in $(seq "${REPEATS:-3}"); do
        awk -v n=$n -v one="$(seconds 1 "$dtype")" -v all="$(seconds $n "$dtype")" 'BEGIN { print (n - 1) / (all - one) }' >>"$work/kiln.txt"
        [ "$dtype" = int8 ] || "$python" bench/peers/hf_vectors.py "$model" "$text" $n "$dtype" 2>/dev/null >>"$work/hf.txt"
    done
    [ -s "$work/hf.txt" ] || { row "BERT-base, $dtype" "$(median <"$work/kiln.txt")" - -; continue; }
    row "BERT-base, $dtype" "$(median <"$work/kiln.txt")" "$(median <"$work/hf.txt")"
done
