#!/usr/bin/env bash
# What the same seconds teach: BERT-mini on the same text by `kiln pretrain --recipe modern` and `--recipe reference`, and by PyTorch with
# transformers and the recipe of 2018, each alone on all cores; then each model's held-out loss, BLiMP, SQuAD v1.1 and five tasks of GLUE,
# all measured by kiln; and those of random weights.
#
# Takes hours: SECONDS_EACH=3600 for each of RECIPES="modern reference torch random" and SEEDS="42 43".  What is done is not done again, and
# a run of kiln that was stopped goes on: start the same command again.
# TEXT=DIR is what they read, of which WORDS=10000000 are taken.  What is not named is left out: BLIMP=DIR of .jsonl files, GLUE=DIR of its
# five folders, SQUAD_TRAIN="FILE..." and SQUAD_DEV=FILE.
set -euo pipefail
cd "$(dirname "$0")/.."
text_of_proof=${TEXT:?TEXT=DIR names the text}
[[ " ${RECIPES:-torch} " == *" torch "* ]] || needs_peers=no
. bench/common.sh
tools/install_deps.sh jq
seconds=${SECONDS_EACH:-3600} proof=${PROOF:-$work/learn}
config=$proof/mini.json
mkdir -p "$proof"

# Whole files until there are WORDS.
take_text()
{
    local f n=0
    mkdir -p "$proof/text.tmp"
    while read -r f && [ "$n" -lt "${WORDS:-10000000}" ]; do
        n=$((n + $(wc -w <"$f")))
        cp "$f" "$proof/text.tmp/$(printf %06d "$n")"
    done < <(find -L "$text_of_proof" -type f | sort)
    mv "$proof/text.tmp" "$proof/text"
}
[ -d "$proof/text" ] || take_text
[ -s "$proof/vocab.txt" ] || $kiln vocab --input "$proof/text" --vocab_size 8192 --vocab_file "$proof/vocab.txt" --do_lower_case
[ -s "$proof/store/train.json" ] || $kiln prepare --input "$proof/text" --vocab_file "$proof/vocab.txt" --do_lower_case \
    --output_dir "$proof/store" --holdout_fraction 0.02
# modern leaves dropout out: ten million words are read a few times only
sed 's/"\(hidden\|attention_probs\)_dropout_prob": *[0-9.]*/"\1_dropout_prob": 0.0/' configs/bert_mini.json >"$config"

# pretrain OUT CONFIG FLAG...: by the clock; the model is the newest checkpoint
pretrain()
{
    $kiln pretrain --autocast --input_dir "$proof/store" --output_dir "$1" --config_file "$2" --total_training_time "$seconds" --eval_steps 500 \
        --eval_samples 512 --log_freq 500 --num_steps_per_checkpoint 500 --keep_checkpoints 1 --resume_from_checkpoint --disable_progress_bar "${@:3}"
}

# train RECIPE SEED OUT: leaves a model in OUT/model
train()
{
    local out=$3
    case $1 in
    modern) pretrain "$out" "$config" --recipe modern --seed "$2" ;;
    reference) pretrain "$out" configs/bert_mini.json --recipe reference --seed "$2" ;;
    random) $kiln pretrain --recipe modern --input_dir "$proof/store" --output_dir "$out" --config_file "$config" --seed "$2" --max_steps 1 \
        --learning_rate 1e-30 --eval_steps 0 --disable_progress_bar ;;
    torch) "$python" bench/peers/torch_learn.py "$proof/store" configs/bert_mini.json "$out/torch" "$seconds" bf16 "$2" ;;
    *) echo "RECIPES: modern, reference, torch, random, not $1" >&2 && return 64 ;;
    esac
    if [ "$1" = torch ]; then
        ln -sfn torch "$out/model"
    else
        ln -sfn "$(cd "$out" && ls -d ckpt_* | sort -t_ -k2 -n | tail -n 1)" "$out/model"
    fi
}

# Of windows of 128 tokens, 15 % masked, the same for all: a step without a rate is only there to evaluate before it.
heldout()
{
    rm -rf "$1/heldout"
    $kiln pretrain --autocast --no_nsp --short_seq_prob 0 --input_dir "$proof/store" --config_file "$config" --init_checkpoint "$1/model" \
        --output_dir "$1/heldout" --max_steps 1 --learning_rate 1e-30 --eval_steps 1 --eval_samples 4096 --skip_checkpoint --disable_progress_bar
    logged mlm_loss <(grep '"event":"evaluation"' "$1/heldout/log.jsonl")
}
blimp()
{
    $kiln blimp --model "$1/model" --dtype bf16 --input "$BLIMP" --json "$1/blimp.json" >/dev/null
    jq .accuracy "$1/blimp.json"
}
squad()
{
    $kiln squad --autocast --init_checkpoint "$1/model" --output_dir "$1/squad" --do_train --train_file "$proof/squad.json" \
        --train_batch_size 32 --learning_rate 3e-4 --num_train_epochs 3 --do_predict --predict_file "$SQUAD_DEV" --do_eval --max_seq_length 384 \
        --num_steps_per_checkpoint 200 --resume_from_checkpoint --disable_progress_bar
    logged F1 "$1/squad/log.jsonl"
}
glue()
{
    $kiln glue --model "$1/model" --data_dir "$GLUE" --output_dir "$1/glue" --resume_from_checkpoint autocast=true learning_rate=3e-4 >/dev/null
    jq .mean "$1/glue/glue.json"
}
# measure NAME OUT CONDITION: once; "-" where the data is not named
measure()
{
    [ -n "$3" ] || { echo -; return; }
    [ -s "$2/$1.txt" ] || "$1" "$2" 2>>"$proof/log" >"$2/$1.txt"
    cat "$2/$1.txt"
}

[ -z "${SQUAD_TRAIN:-}" ] || [ -s "$proof/squad.json" ] || jq -s '{version: "1.1", data: [.[].data[]]}' $SQUAD_TRAIN >"$proof/squad.json"
table=("$(printf '%-14s %6s %10s %10s %10s %10s' recipe seed held-out BLiMP F1 GLUE)")
for seed in ${SEEDS:-42 43}; do
    for recipe in ${RECIPES:-modern reference torch random}; do
        out=$proof/${recipe}_$seed
        mkdir -p "$out"
        [ -e "$out/trained" ] || { echo "== $recipe, seed $seed, $seconds s"; train "$recipe" "$seed" "$out" >>"$proof/log" 2>&1; touch "$out/trained"; }
        table+=("$(printf '%-14s %6s %10.4s %10.5s %10.5s %10.5s' "$recipe" "$seed" "$(measure heldout "$out" yes)" "$(measure blimp "$out" "${BLIMP:-}")" \
            "$(measure squad "$out" "${SQUAD_DEV:-}")" "$(measure glue "$out" "${GLUE:-}")")")
        echo "${table[-1]}"
    done
done
printf '%s\n' "${table[@]}"
