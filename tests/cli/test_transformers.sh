#!/usr/bin/env bash
# kiln's models in `transformers` and its models in kiln: tests/golden/check_transformers.py and check_classifiers.py, with the
# Python that KILN_PYTHON names, which has torch and transformers, and the goldens of test_peer_goldens made again.  KILN_MODELS
# names more model directories to check.
set -euo pipefail
kiln=$1
. "$(dirname "$0")/expect.sh"
need_python transformers torch transformers safetensors
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# shellcheck disable=SC2086
"$python" "$(dirname "$0")/../golden/check_transformers.py" "$kiln" "$(dirname "$kiln")/tests/test_model_dir" ${KILN_MODELS:-}
"$python" "$(dirname "$0")/../golden/check_classifiers.py" "$kiln" "$(dirname "$kiln")/tests/test_model_dir"
"$python" "$(dirname "$0")/../golden/make_exports.py" "$kiln" "$(dirname "$kiln")/tests/test_model_dir" --check
