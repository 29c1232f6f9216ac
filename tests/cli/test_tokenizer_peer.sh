#!/usr/bin/env bash
# Ids are those of Hugging Face's `tokenizers`, with the Python that KILN_PYTHON names: a megabyte of each made-up text of
# tools/check_tokenizer.py, cased and uncased.  By hand: the same with 100 MB each, and real text.
set -euo pipefail
kiln=$(realpath "$1")
. "$(dirname "$0")/expect.sh"
need_python transformers tokenizers
PYTHONDONTWRITEBYTECODE=1 "$python" "$(dirname "$0")/../../tools/check_tokenizer.py" --kiln "$kiln" --megabytes 1
