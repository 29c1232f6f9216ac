#!/usr/bin/env bash
# What kiln convert writes, read by PyTorch and `transformers` (tests/golden/check_converted.py, check_megatron.py), and every importer's logits
# beside PyTorch's (tests/golden/check_imports.py), with the Python that KILN_PYTHON names.
set -euo pipefail
kiln=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/expect.sh"
need_python transformers torch transformers safetensors
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
"$python" "$here/../golden/check_converted.py" "$kiln" "$(dirname "$kiln")/tests/test_api"
"$python" "$here/../golden/check_megatron.py" "$kiln"
if [ -n "${KILN_TF_PYTHON:-}" ]; then
    "$python" "$here/../golden/check_imports.py" "$kiln" "$KILN_TF_PYTHON"
else
    lack tensorflow \
        "KILN_TF_PYTHON names no Python with tensorflow and safetensors, which writes checkpoints to read: python3 -m venv V; V/bin/pip install tensorflow-cpu safetensors; export KILN_TF_PYTHON=V/bin/python"
    "$python" "$here/../golden/check_imports.py" "$kiln"
fi
