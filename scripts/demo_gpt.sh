#!/usr/bin/env bash
# From text to a small GPT: vocabulary -> token stores -> pre-training -> its perplexity beside that of counts of n-grams -> texts that it
# continues.
#
#   scripts/demo_gpt.sh        about ten minutes on two cores
#   scripts/demo_gpt.sh --ci   a few seconds of training: every stage, too short to learn much
#
# DATA=dir uses your own text, in any form that `kiln prepare` reads, in place of the two Bibles; every tenth part of it is held out. DEMO_DIR
# says where everything is written (default: demo), SEED=n draws other weights and another order of the data.  Stop it with Ctrl-C or kill
# it, start it again, and it continues where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bibles.sh

kiln=${KILN:-build/kiln}
[ -x "$kiln" ] || make all
mode=${1:-}
work=${DEMO_DIR:-demo}/gpt${mode:+/${mode#--}}
run=$work/seed_${SEED:-42}
length=256 # llama.cpp reads no fewer positions
steps=2400
case $mode in
"") ;;
--ci) steps=40 ;;
*)
    echo "usage: scripts/demo_gpt.sh [--ci]" >&2
    exit 64
    ;;
esac

# bf16 if the processor multiplies it faster than fp32
precision=()
evaluation=()
if grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then
    precision=(--autocast)
    evaluation=(--dtype bf16)
fi

say() { printf '\n== %s\n' "$*"; }

mkdir -p "$run"
if [ ! -e "$work/text_is_whole" ]; then
    if [ -n "${DATA:-}" ]; then
        rm -f "$work"/{train,heldout}.jsonl
        $kiln prepare --input "$DATA" --format text --output_dir "$work/clean" --overwrite
        LC_ALL=C awk -v OUT="$work" -f scripts/hold_out.awk "$work/clean/documents.jsonl"
    else
        bibles
    fi
    if [ ! -s "$work/heldout.jsonl" ]; then
        echo "the text has fewer than ten parts of 50 lines, so none can be held out: give more text" >&2
        exit 65
    fi
    touch "$work/text_is_whole"
fi
source="the King James Bible and, if Debian has it, the World English Bible; every tenth chapter of both is held out"
[ -z "${DATA:-}" ] || source="$DATA; every tenth part is held out"
say "1/6 text: $(wc -w <"$work/train.jsonl") words of $source"

say "2/6 vocabulary: $work/bpe"
mkdir -p "$work/bpe" "$work/train" "$work/heldout"
vocab=$work/bpe/tokenizer.json
[ -s "$vocab" ] || $kiln vocab --input "$work/train.jsonl" --kind bpe --vocab_size 2048 --vocab_file "$work/bpe/vocab.json"

say "3/6 token stores: $work/train and $work/heldout"
for part in train heldout; do
    [ -s "$work/$part/tokens_text_document.json" ] ||
        $kiln prepare --format gpt --input "$work/$part.jsonl" --vocab_file "$vocab" --append_eod --output_prefix "$work/$part/tokens"
done

say "4/6 pre-training: $run/model, its curves in $run/model/report.html"
cat >"$work/gpt.json" <<JSON
{"model_type": "gpt2", "n_layer": 3, "n_embd": 192, "n_head": 6, "n_positions": $length, "activation_function": "gelu",
 "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
JSON
$kiln pretrain --input_dir "$work/train" --eval_input_dir "$work/heldout" --vocab_file "$vocab" --config_file "$work/gpt.json" \
    --output_dir "$run/model" --seed "${SEED:-42}" --max_seq_length $length --train_batch_size 8 --max_steps $steps --optimizer muon \
    --learning_rate 4e-3 --lr_schedule linear --warmup_proportion 0.06 --adam_beta2 0.98 --weight_decay 0.1 --eval_steps 800 \
    --eval_samples 512 --log_freq 100 --num_steps_per_checkpoint 800 --resume_from_checkpoint "${precision[@]}"
model=$run/model/ckpt_$steps

say "5/6 how well it predicts what was held out, and how well counts of n-grams do (Kneser-Ney, up to 6 tokens)"
value() { grep -o "\"$2\":[0-9.]*" <<<"$1" | cut -d : -f 2; }
counts=$($kiln ngram --train "$work/train/tokens_text_document" --input "$work/heldout.jsonl" --vocab_file "$vocab" --json)
gpt=$($kiln eval --model "$model" --input "$work/heldout.jsonl" --stride 32 --json "${evaluation[@]}")
row() { printf '%-8s %10.2f %15.3f\n' "$1" "$(value "$2" perplexity)" "$(value "$2" bits_per_byte)"; }
printf '%-8s %10s %15s\n' "" perplexity "bits per byte"
row counts "$counts"
row GPT "$gpt"
awk -v a="$(value "$gpt" perplexity)" -v b="$(value "$counts" perplexity)" \
    'BEGIN { printf "the perplexity of the GPT is %.2f times that of the counts\n", a / b }'

say "6/6 texts that it continues"
if [ -n "${DATA:-}" ]; then
    prompts=("$(head -n 1 "$work/heldout.jsonl" | sed 's/.*"text": "//; s/["\\].*//' | cut -d ' ' -f 1-6)")
else
    prompts=("In the beginning" "And the king said unto" "Blessed are they that" "The children of Israel")
fi
for prompt in "${prompts[@]}"; do
    $kiln generate --model "$model" --prompt "$prompt" --max_new_tokens 48 --temperature 0.7 --top_k 40
    echo
done
echo "try your own: $kiln generate --model $model --prompt 'And God said'"
