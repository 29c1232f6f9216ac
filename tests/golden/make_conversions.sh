#!/usr/bin/env bash
# Makes conversions.sha256 beside itself: the files that `kiln convert` makes of the directories in hf_dirs.safetensors and
# classify.safetensors, after PyTorch has read them and computed kiln's logits (tests/cli/test_convert_torch.sh), which lets
# tests/cli/test_convert.sh hold kiln to it where there is none.
# usage: make_conversions.sh KILN PYTHON_WITH_TORCH; made with torch 2.15, transformers 5
set -euo pipefail
kiln=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
KILN_REQUIRE=transformers KILN_PYTHON=$2 bash "$here/../cli/test_convert_torch.sh" "$kiln"
"$(dirname "$kiln")/tests/test_api" unpack "$dir/from"
cd "$dir"
for model in from/*; do
    "$kiln" convert --format pt --model "$model" --output_dir "pt/${model#*/}" >/dev/null 2>&1
done
find pt -type f ! -name kiln.sha256 | LC_ALL=C sort | xargs sha256sum >"$here/conversions.sha256"
