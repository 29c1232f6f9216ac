#!/usr/bin/env bash
# soak.py by the models of goldens.  usage: tests/service/soak.sh build/kiln MINUTES
here=$(dirname "$0")
minutes=$2
. "$here/../cli/expect.sh"
set -euo pipefail
kiln=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for golden in decoders hf_dirs classify; do unpack_golden $golden; done
python3 "$here/soak.py" "$kiln" "$dir" "$minutes"
