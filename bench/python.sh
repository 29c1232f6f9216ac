#!/usr/bin/env bash
# Vectors from Python: kiln.SentenceTransformer(dir).encode beside sentence-transformers, onnxruntime and fastembed, each with all texts at
# once, alternating; medians of three.  all-MiniLM-L6-v2 in fp32, short texts (12 words of a verse) and passages of 1 to 12 verses.  And the
# seconds from `python -c` to the vector of a text, beside those of an interpreter that imports numpy.  PEERS_PYTHON has sentence-transformers,
# onnxruntime and fastembed, and ONNX_MODEL the model's directory with model.onnx (BENCH=serving makes one); peers that are not there are
# left out, with a line.  REPEATS=1 is faster.  Part of `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
. bench/minilm.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(nproc)} PYTHONPATH=$PWD/python KILN_LIBRARY=$PWD/build/libkiln.so.0 HF_HUB_OFFLINE=1
export PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$PWD/build/bench/python/cache # compiled once, as what pip installs
onnx=${ONNX_MODEL:-$work/serving/onnx}
out=$work/python
mkdir -p "$out"
shuf -n 512 --random-source=<(yes) "$text" | cut -d' ' -f1-12 >"$out/short.txt"
head -n 64 "$work/serving/vectors.txt" | cut -f2 >"$out/passages.txt"

peers=
for peer in sentence_transformers onnxruntime fastembed; do
    needs=$onnx/model.onnx
    [ $peer != sentence_transformers ] || needs=$minilm
    if [ -e "$needs" ] && "$python" -c "import $peer" 2>/dev/null; then
        peers="$peers $peer"
    else
        echo "$peer is not measured: PEERS_PYTHON has no $peer, or ONNX_MODEL no model.onnx"
    fi
done
rm -f "$out"/*.rate
for _ in $(seq "${REPEATS:-3}"); do
    for texts in short passages; do
        for peer in kiln $peers; do
            model=$onnx
            [[ $peer != kiln && $peer != sentence_transformers ]] || model=$minilm
            "$python" bench/peers/python_vectors.py "$peer" "$model" "$out/$texts.txt" "$out/$texts.$peer.npy" >>"$out/$texts.$peer.rate" 2>"$out/log" ||
                { cat "$out/log" >&2 && exit 1; }
        done
    done
done
row "vectors from Python, texts/s" kiln peer ratio
for texts in short passages; do
    for peer in $peers; do
        row "  $texts, $peer" "$(median <"$out/$texts.kiln.rate")" "$(median <"$out/$texts.$peer.rate")"
    done
done
"$python" - "$out" $peers <<'PYTHON'
import sys
import numpy as np

for texts in ("short", "passages"):
    kiln, *others = (np.load(f"{sys.argv[1]}/{texts}.{peer}.npy").astype(np.float64) for peer in ["kiln", *sys.argv[2:]])
    for peer, other in zip(sys.argv[2:], others):
        cosines = (kiln * other).sum(1) / np.linalg.norm(kiln, axis=1) / np.linalg.norm(other, axis=1)
        print(f"  {texts}: the least cosine with {peer} is {cosines.min():.7f}")
PYTHON

# The seconds of a Python program: code
seconds()
{
    local start=$EPOCHREALTIME
    "$python" -c "$1"
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}
rm -f "$out"/*.seconds
for _ in 1 2 3 4 5 6 7; do
    seconds "import numpy" >>"$out/numpy.seconds"
    seconds "import kiln; kiln.SentenceTransformer('$minilm').encode('a cat')" >>"$out/kiln.seconds"
done
row "a first vector from Python, s (peer: import numpy)" "$(median <"$out/kiln.seconds")" "$(median <"$out/numpy.seconds")"
