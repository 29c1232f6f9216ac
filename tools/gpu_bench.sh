#!/usr/bin/env bash
# The goals of the cuda table on one GPU, beside PyTorch where it is installed: sequences a second of a pre-training step
# (forward, backward, optimizer), median of its steps.  Made-up text of the size that is needed; nothing is downloaded.
#
#   tools/gpu_bench.sh              takes the build of tools/gpu_check.sh (BUILD=dir another one)
#   PEERS_PYTHON=python3            the interpreter that has torch and transformers
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-gpu}
kiln=$build/kiln
python=${PEERS_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$kiln" ] || tools/gpu_check.sh --build

# A vocabulary of BERT's size, and documents of its words.
awk -v n=30522 -v vocab="$work/vocab.txt" 'BEGIN {
    split("[PAD] [UNK] [CLS] [SEP] [MASK]", special, " ")
    for (i = 1; i <= 5; i++) print special[i] > vocab
    for (i = 6; i <= n; i++) printf("w%d\n", i) > vocab
    s = 1
    for (line = 1; line <= 120000; line++) {
        text = ""
        for (k = 0; k < 24; k++) { s = (s * 16807) % 2147483647; text = text "w" (6 + s % (n - 5)) " " }
        print text
        if (line % 200 == 0) print ""
    }
}' >"$work/text.txt"
"$kiln" prepare --input "$work/text.txt" --input_format lines --one_sentence_per_line --vocab_file "$work/vocab.txt" \
    --output_dir "$work/store" >/dev/null 2>&1

median() { sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

# config length batch micro-batches short_seq_prob
kiln_rate()
{
    rm -rf "$work/out"
    "$kiln" pretrain --device cuda --autocast --input_dir "$work/store" --config_file "configs/$1.json" --output_dir \
        "$work/out" --max_seq_length "$2" --max_predictions_per_seq "$(($2 * 15 / 100 + 1))" --train_batch_size "$3" \
        --gradient_accumulation_steps "$4" --short_seq_prob "$5" --max_steps 14 --learning_rate 1e-4 --eval_steps 0 \
        --skip_checkpoint --disable_progress_bar >"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; echo -; return; }
    sed -n 's/.*"event":"step".*"sequences_per_second":\([0-9.e+]*\).*/\1/p' "$work/out/log.jsonl" | tail -n +5 | median
}

# config length batch
peer_rate()
{
    "$python" bench/peers/torch_bert.py "configs/$1.json" "$2" "$3" bf16 30522 cuda 2>/dev/null |
        awk -v length_="$2" '{ print $1 / length_ }' || true
}

row() { printf '%-44s %10s %10s %10s\n' "$@"; }

"$kiln" doctor --dry_run | grep '^cuda'
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null || true
row "pre-training, bf16, sequences/s" kiln PyTorch goal
row "BERT-Large s128 B256" "$(kiln_rate bert_large 128 256 1 0)" "$(peer_rate bert_large 128 256)" 2300
row "BERT-Large s512 B64, full" "$(kiln_rate bert_large 512 64 1 0)" "$(peer_rate bert_large 512 64)" 520
row "BERT-Large s512 B64, half of them cut short" "$(kiln_rate bert_large 512 64 1 0.5)" - 700
row "BERT-base s128 B256" "$(kiln_rate bert_base 128 256 1 0)" "$(peer_rate bert_base 128 256)" -
