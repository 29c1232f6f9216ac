#!/usr/bin/env bash
# BENCH=decoder: a pre-training step of GPT-2 in kiln and in PyTorch, eager and compiled, in turns, medians; part of `make bench`.
# SHAPES="124m" and LENGTHS="256" select rows, COMPILED=no leaves out torch.compile, which needs a C++ compiler and minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
here=$work/decoder
mkdir -p "$here/store"
compiled=${COMPILED:-yes}

# The widths of a small decoder and of GPT-2 124M, without dropout, as GPT-2 is trained today.
config()
{
    local widths
    case $1 in
    small) widths='"n_embd": 256, "n_layer": 4, "n_head": 4' ;;
    124m) widths='"n_embd": 768, "n_layer": 12, "n_head": 12' ;;
    esac
    echo "{\"model_type\": \"gpt2\", \"vocab_size\": $2, \"n_positions\": 1024, $widths, \"activation_function\": \"gelu_new\"," \
        '"attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0}'
}

if [ ! -s "$here/store/text_text_document.idx" ]; then
    sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/{"text": "&"}/' "$text" >"$here/text.jsonl"
    $kiln vocab --input "$here/text.jsonl" --kind bpe --vocab_file "$here/vocab.json" --vocab_size 8192 2>/dev/null
    $kiln prepare --format gpt --input "$here/text.jsonl" --vocab_file "$here/tokenizer.json" --append_eod \
        --output_prefix "$here/store/text" 2>/dev/null
fi

# Tokens per second of kiln, the median of its steps behind the warm-up: config length batch dtype steps
kiln_rate()
{
    local flags=()
    [ "$4" = bf16 ] && flags=(--autocast)
    rm -rf "$here/out"
    $kiln pretrain --input_dir "$here/store" --vocab_file "$here/tokenizer.json" --config_file "$1" --output_dir "$here/out" \
        --max_seq_length "$2" --train_batch_size "$3" --optimizer adamw --max_steps "$5" --learning_rate 1e-4 --eval_steps 0 \
        --skip_checkpoint --disable_progress_bar "${flags[@]}" >/dev/null 2>&1
    sed -n 's/.*"event":"step".*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$here/out/log.jsonl" | tail -n +3 | median
}

row "GPT-2 pre-training step, tokens/s" kiln PyTorch ratio
for shape in "small 8192 256 16 12" "124m 50304 256 8 6" "124m 50304 1024 2 6"; do
    read -r name vocab_size length batch steps <<<"$shape"
    [[ " ${SHAPES:-small 124m} " == *" $name "* ]] || continue
    [[ " ${LENGTHS:-256 1024} " == *" $length "* ]] || continue
    config "$name" "$vocab_size" >"$here/$name.json"
    for dtype in ${DTYPES:-fp32 bf16}; do
        : >"$here/kiln.txt"
        : >"$here/eager.txt"
        : >"$here/compiled.txt"
        for _ in $(seq "${REPEATS:-3}"); do
            kiln_rate "$here/$name.json" "$length" "$batch" "$dtype" "$steps" >>"$here/kiln.txt"
            "$python" bench/peers/torch_gpt2.py "$here/$name.json" "$length" "$batch" "$dtype" 2>/dev/null >>"$here/eager.txt"
            [ "$compiled" = no ] ||
                "$python" bench/peers/torch_gpt2.py "$here/$name.json" "$length" "$batch" "$dtype" compiled 2>/dev/null >>"$here/compiled.txt"
        done
        row "$name s$length B$batch $dtype, eager" "$(median <"$here/kiln.txt")" "$(median <"$here/eager.txt")"
        [ "$compiled" = no ] || row "  compiled" "$(median <"$here/kiln.txt")" "$(median <"$here/compiled.txt")"
    done
done
