#!/usr/bin/env bash
# kiln serve with encoders, asked by the official clients (tests/peers/check_encoder_clients.py), and beside the pipelines of
# transformers (tests/peers/check_pipelines.py), with the Python that KILN_PYTHON names.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
! "$kiln" doctor --dry_run | grep "^server *not built in" >/dev/null ||
    skip microhttpd "this build has no libmicrohttpd; install libmicrohttpd-dev"
peers=$(dirname "$0")/../peers
python=${KILN_PYTHON:-}

# has MODULE...: whether that Python has them
has() { [ -n "$python" ] && "$python" -c "import $(IFS=,; echo "$*")" 2>/dev/null; }

unpack_golden hf_dirs
unpack_golden classify
cp -r "$dir/single" "$dir/entailment"
sed -i 's/"yes"/"Entailment"/' "$dir/entailment/config.json"
models=(encoder masked_lm question_answering tokens single multi regression entailment)
"$kiln" serve --port 0 "${models[@]/#/--model=$dir/}" 2>"$dir/log" &
pid=$!
await "$pid" grep -q "serving on http" "$dir/log"
url=$(sed -n 's/.*serving on \(http[^ ]*\).*/\1/p' "$dir/log")

ran=0
if has openai cohere langchain_openai huggingface_hub; then
    "$python" "$peers/check_encoder_clients.py" "$url"
    ran=1
fi
if has torch transformers huggingface_hub; then
    TOKENIZERS_PARALLELISM=false "$python" "$peers/check_pipelines.py" "$url" "$dir" 2>"$dir/err" || fail "$(tail -3 "$dir/err")"
    ran=1
fi
[ "$ran" -eq 1 ] || skip clients \
    "KILN_PYTHON names no Python with clients; make it by: python3 -m venv V; V/bin/pip install openai cohere langchain-openai huggingface_hub transformers torch; export KILN_PYTHON=V/bin/python"
