#!/usr/bin/env bash
# `make bench`: kiln beside its peers, measured in one run on this machine, alternating, medians of three.
#
# Peers: PyTorch with Hugging Face transformers, and Hugging Face tokenizers, from PyPI in a virtual environment under
# build/ (PEERS_PYTHON names another interpreter that has them).  Text: what `make demo` made; it is made if missing.
# BENCH="mini" measures one model only.  SQUAD=dev.json adds question answering on those questions, with the vocabulary
# SQUAD_VOCAB (by default the one made here, whose pieces are shorter than those of an English model).
set -euo pipefail
cd "$(dirname "$0")/.."
kiln=build/kiln
work=build/bench
mkdir -p "$work"

python=${PEERS_PYTHON:-build/peers/bin/python}
if ! "$python" -c 'import torch, transformers, tokenizers' 2>/dev/null; then
    tools/install_deps.sh python3-venv
    python3 -m venv build/peers
    python=build/peers/bin/python
    "$python" -m pip install --quiet torch transformers tokenizers
fi

text=$work/king_james.txt
if [ ! -s "$text" ]; then
    tools/install_deps.sh bible-kjv bible-kjv-text
    PATH=$PATH:/usr/games bible -f gen1:1-rev22:21 | sed 's/^[^ ]* //' >"$text"
fi
[ -s "$work/vocab.txt" ] ||
    $kiln vocab --input "$text" --vocab_size 8192 --vocab_file "$work/vocab.txt" --do_lower_case 2>/dev/null
[ -s "$work/store/train.json" ] ||
    $kiln prepare --input "$text" --input_format lines --one_sentence_per_line --vocab_file "$work/vocab.txt" --do_lower_case \
        --output_dir "$work/store" 2>/dev/null
vocab=$(wc -l <"$work/vocab.txt")

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# tokens per second of kiln: config length batch dtype steps
kiln_rate()
{
    local flags=()
    [ "$4" = bf16 ] && flags=(--autocast)
    rm -rf "$work/out"
    $kiln pretrain --input_dir "$work/store" --config_file "$1" --output_dir "$work/out" --max_seq_length "$2" \
        --max_predictions_per_seq "$(($2 * 15 / 100 + 1))" --train_batch_size "$3" --short_seq_prob 0 --optimizer adamw \
        --max_steps "$5" --learning_rate 1e-4 --eval_steps 0 --skip_checkpoint --disable_progress_bar "${flags[@]}" \
        2>/dev/null
    sed -n 's/.*"event":"step".*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$work/out/log.jsonl" | tail -n +3 | median
}

ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

echo "$(date +%F), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
"$python" -c 'import torch, transformers, tokenizers as t
print("torch", torch.__version__, torch.backends.mkldnn.is_available() and "with oneDNN", "transformers", transformers.__version__, "tokenizers", t.__version__)'
$kiln doctor
echo
printf '%-34s %14s %14s %8s\n' "pre-training step, tokens/s" kiln PyTorch ratio
for row in "tiny 128 32 12" "mini 128 32 8" "mini 512 8 8" "base 128 8 6"; do
    read -r name length batch steps <<<"$row"
    [ -z "${BENCH:-}" ] || [ "$BENCH" = "$name" ] || continue
    for dtype in fp32 bf16; do
        config=configs/bert_$name.json
        : >"$work/kiln.txt"
        : >"$work/torch.txt"
        for _ in 1 2 3; do
            kiln_rate "$config" "$length" "$batch" $dtype "$steps" >>"$work/kiln.txt"
            "$python" bench/peers/torch_bert.py "$config" "$length" "$batch" $dtype "$vocab" 2>/dev/null >>"$work/torch.txt"
        done
        ours=$(median <"$work/kiln.txt")
        theirs=$(median <"$work/torch.txt")
        printf '%-34s %14.0f %14.0f %8s\n' "BERT-$name s$length B$batch $dtype" "$ours" "$theirs" "$(ratio "$ours" "$theirs")"
    done
done

if [ -n "${SQUAD:-}" ]; then
    printf '\n%-34s %14s %14s %8s\n' "answering, sequences/s" "kiln, ragged" "PyTorch, 384" ratio
    for dtype in fp32 bf16; do
        flags=()
        [ $dtype = bf16 ] && flags=(--autocast)
        : >"$work/kiln.txt"
        : >"$work/torch.txt"
        for _ in 1 2 3; do
            "$python" bench/peers/torch_squad.py configs/bert_base.json "${SQUAD_VOCAB:-$work/vocab.txt}" "$work/qa" $dtype \
                2>/dev/null >>"$work/torch.txt"
            rm -rf "$work/out"
            $kiln squad --init_checkpoint "$work/qa" --output_dir "$work/out" --do_predict --predict_file "$SQUAD" \
                --disable-progress-bar "${flags[@]}" 2>/dev/null
            sed -n 's/.*"inference_sequences_per_second":\([0-9.]*\).*/\1/p' "$work/out/log.jsonl" >>"$work/kiln.txt"
        done
        ours=$(median <"$work/kiln.txt")
        theirs=$(median <"$work/torch.txt")
        printf '%-34s %14.2f %14.2f %8s\n' "BERT-base s384, $dtype" "$ours" "$theirs" "$(ratio "$ours" "$theirs")"
    done
fi

printf '\n%-34s %14s %14s %8s\n' "WordPiece, one thread, MB/s" kiln tokenizers ratio
for _ in 1 2 3; do
    start=$(date +%s.%N)
    $kiln tokenize --vocab_file "$work/vocab.txt" --do_lower_case <"$text" >/dev/null
    end=$(date +%s.%N)
    awk "BEGIN { print $(stat -c %s "$text") / 1e6 / ($end - $start) }"
done | median >"$work/kiln.txt"
for _ in 1 2 3; do "$python" bench/peers/hf_tokenizers.py "$work/vocab.txt" "$text"; done | median >"$work/hf.txt"
printf '%-34s %14.1f %14.1f %8s\n' "King James Bible, to ids" "$(cat "$work/kiln.txt")" "$(cat "$work/hf.txt")" \
    "$(ratio "$(cat "$work/kiln.txt")" "$(cat "$work/hf.txt")")"
