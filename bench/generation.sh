#!/usr/bin/env bash
# How fast decoders of the shapes of GPT-2 124M and Qwen2-0.5B (random weights) continue texts: kiln, Hugging Face transformers and, where
# the peers' interpreter has llama-cpp-python (LLAMA_PYTHON names another one), llama.cpp. Greedy, prompts of 128 tokens and 128
# new ones, one prompt and eight at once; alternating, medians of three. MODELS="qwen2", DTYPES="bf16", BATCHES="1" and PEERS="llama" select
# rows; REPEATS=1 is faster. Part of `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
peers=${PEERS:-hf llama}
llama=${LLAMA_PYTHON:-$python}
[[ $peers == *llama* ]] && "$llama" -c 'import llama_cpp' 2>/dev/null || llama=
dtypes=${DTYPES:-fp32 bf16 int8}

# The name of a dtype in GGUF.
gguf_type()
{
    case $1 in
    int8) echo q8_0 ;;
    *) echo "${1/fp/f}" ;;
    esac
}

# make_model SHAPE: sets $dir, $model and $prompts
make_model()
{
    dir=$work/generation/$1 model=$work/generation/$1/model prompts=$work/generation/$1/prompts.txt
    if [ ! -s "$model/model.safetensors" ]; then
        mkdir -p "$model"
        $kiln vocab --input "$text" --input_format lines --kind bpe --vocab_file "$model/vocab.json" --vocab_size 4096 2>/dev/null
        "$python" bench/peers/generation.py make "$1" "$model" "$text" "$prompts"
    fi
    for dtype in $dtypes; do
        type=$(gguf_type "$dtype")
        [ -z "$llama" ] || [ -s "$dir/$type/model.gguf" ] ||
            $kiln convert --model "$model" --to gguf --type "$type" --output_dir "$dir/$type" >/dev/null 2>&1
    done
}

# Tokens per second of prompts, and of new tokens: dtype batch
kiln_rates()
{
    head -n "$2" "$prompts" | $kiln generate --model "$model" --dtype "$1" --batch_size "$2" --temperature 0 --ignore_eos \
        --max_new_tokens 128 --ids 2>&1 >/dev/null | sed -n 's/.*prompts: .*s, \([0-9.]*\) tokens.s; .*s, \([0-9.]*\) tokens.s.*/\1 \2/p'
}

# A peer that dies has no row, and its last line is shown: result-file interpreter engine model
peer()
{
    "$2" bench/peers/generation.py "$3" "$4" "$prompts" "$dtype" "$batch" >>"$work/generation/$1.txt" 2>"$work/generation/peer.log" ||
        echo "$3, $dtype, $batch at once: failed: $(tail -n 1 "$work/generation/peer.log")" >&2
}

column() { awk -v n="$1" '{ print $n }' "$2" | median; }

# measure DTYPE BATCH: the rows of one model
measure()
{
    local dtype=$1 batch=$2
    rm -f "$work"/generation/{kiln,hf,llama}.txt
    for _ in $(seq "${REPEATS:-3}"); do
        kiln_rates "$dtype" "$batch" >>"$work/generation/kiln.txt"
        [ "$dtype" = int8 ] || [[ $peers != *hf* ]] || peer hf "$python" transformers "$model"
        [ -z "$llama" ] || peer llama "$llama" llama "$dir/$(gguf_type "$dtype")/model.gguf"
    done
    for what in 1:prompts 2:new; do
        ours=$(column "${what%:*}" "$work/generation/kiln.txt")
        for engine in hf:transformers llama:llama.cpp; do
            [ ! -s "$work/generation/${engine%:*}.txt" ] ||
                row "  ${what#*:}, $dtype, $batch at once, ${engine#*:}" "$ours" "$(column "${what%:*}" "$work/generation/${engine%:*}.txt")"
        done
    done
}

for name in ${MODELS:-gpt2 qwen2}; do
    make_model "$name"
    row "texts continued by $name, tokens/s" kiln peer ratio
    for batch in ${BATCHES:-1 8}; do
        for dtype in $dtypes; do
            measure "$dtype" "$batch"
        done
    done
done
