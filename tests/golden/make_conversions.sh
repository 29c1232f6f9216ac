#!/usr/bin/env bash
# Makes conversions.sha256 beside itself: the files that `kiln convert` makes of the directories in hf_dirs.safetensors and
# classify.safetensors, after PyTorch and onnxruntime have read them and computed kiln's logits (tests/cli/test_convert_torch.sh and
# test_convert_onnx.sh), which lets tests/cli/test_convert.sh hold kiln to both where there is neither.
# usage: make_conversions.sh KILN PYTHON_WITH_TORCH PYTHON_WITH_ONNX; made with torch 2.15, transformers 5, onnx 1.23, onnxruntime 1.32
set -euo pipefail
kiln=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
KILN_REQUIRE=transformers KILN_PYTHON=$2 bash "$here/../cli/test_convert_torch.sh" "$kiln"
KILN_REQUIRE=onnx KILN_PYTHON=$3 bash "$here/../cli/test_convert_onnx.sh" "$kiln"
"$(dirname "$kiln")/tests/test_api" unpack "$dir/from"
cd "$dir"
for model in from/*; do
    for format in pt onnx; do
        "$kiln" convert --format $format --model "$model" --output_dir "$format/${model#*/}" >/dev/null 2>&1
    done
done
find pt onnx -type f ! -name kiln.sha256 | LC_ALL=C sort | xargs sha256sum >"$here/conversions.sha256"
