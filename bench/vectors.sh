#!/usr/bin/env bash
# How fast sentences become vectors by the shapes of BERT-base, XLM-R-base and ModernBERT-base (random weights): kiln, Hugging Face
# transformers and, where the peers' interpreter has onnxruntime, onnx and onnxscript, onnxruntime; alternating, medians of three. MODELS="bert", DTYPES="fp32"
# and TEXTS=FILE (of lines) select rows; REPEATS=1 is faster. Part of `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
texts=${TEXTS:-$text}
n=256
"$python" -c 'import onnxruntime, onnx, onnxscript' 2>/dev/null && onnx=yes || onnx=no

# The seconds that kiln takes for the first N texts, with loading the model: N dtype
seconds()
{
    local start=$EPOCHREALTIME
    head -n "$1" "$texts" | $kiln embed --model "$model" --dtype "$2" >/dev/null 2>&1
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

peer() { "$python" bench/peers/hf_vectors.py "$1" "$model" "$texts" $n "$dtype" 2>/dev/null >>"$work/$1.txt"; }

for name in ${MODELS:-bert xlm-roberta modernbert}; do
    model=$work/vectors_of/$name
    [ -s "$model/model.safetensors" ] || "$python" bench/peers/hf_vectors.py make "$name" "$model" "$text" >/dev/null 2>&1
    [ $onnx = no ] || [ -s "$model/onnx/model.onnx" ] || "$python" bench/peers/hf_vectors.py onnx "$model" >/dev/null 2>"$work/onnx.log" ||
        echo "onnxruntime: no $name: $(tail -n 1 "$work/onnx.log")" >&2
    row "vectors of sentences by $name, texts/s" kiln peer ratio
    for dtype in ${DTYPES:-fp32 bf16 int8}; do
        rm -f "$work"/{kiln,transformers,onnxruntime}.txt
        for _ in $(seq "${REPEATS:-3}"); do
            awk -v n=$n -v one="$(seconds 1 "$dtype")" -v all="$(seconds $n "$dtype")" 'BEGIN { print (n - 1) / (all - one) }' >>"$work/kiln.txt"
            [ "$dtype" = int8 ] || peer transformers
            [ "$dtype" != fp32 ] || [ ! -s "$model/onnx/model.onnx" ] || peer onnxruntime
        done
        ours=$(median <"$work/kiln.txt")
        [ "$dtype" != int8 ] || row "  int8" "$ours" - -
        for engine in transformers onnxruntime; do
            [ ! -s "$work/$engine.txt" ] || row "  $dtype, $engine" "$ours" "$(median <"$work/$engine.txt")"
        done
    done
done
