#!/usr/bin/env bash
# The main job, start to end: text -> vocabulary -> token store -> BERT in two phases -> filled masks.
#
#   scripts/demo.sh            about ten minutes on two cores
#   scripts/demo.sh --long     one to two hours: a larger model
#   scripts/demo.sh --ci       one minute: every stage, too short to learn much
#
# DATA=dir uses your own text (a document per file, or documents separated by blank lines, or WikiExtractor output) in
# place of the King James Bible; DEMO_DIR says where everything is written (default: demo).  Stop it with Ctrl-C or kill
# it, start it again, and it goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."

kiln=build/kiln
[ -x $kiln ] || make all
mode=${1:-}
work=${DEMO_DIR:-demo}${mode:+/${mode#--}}
config=configs/demo.json
vocab_size=2048
# phase 1: short sequences and small batches leave the plateau of word frequencies soonest; phase 2 reads twice as far
phase1=(--max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --max_steps 11000 --learning_rate 2e-3)
phase2=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 16 --max_steps 3500 --learning_rate 7e-4)
phase1_steps=11000
eval_steps=1000
case $mode in
"") ;;
--ci)
    phase1=(--max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --max_steps 120 --learning_rate 2e-3)
    phase2=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 16 --max_steps 40 --learning_rate 5e-4)
    phase1_steps=120
    eval_steps=40
    ;;
--long)
    config=configs/demo_long.json
    phase1=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 32 --max_steps 20000 --learning_rate 1e-3)
    phase2=(--max_seq_length 128 --max_predictions_per_seq 20 --train_batch_size 32 --max_steps 3000 --learning_rate 3e-4)
    phase1_steps=20000
    ;;
*)
    echo "usage: scripts/demo.sh [--ci|--long]" >&2
    exit 64
    ;;
esac

# bf16 where the processor multiplies it faster than fp32
precision=()
if grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then precision=(--autocast); fi

say() { printf '\n== %s\n' "$*"; }

# Real English prose from a Debian package: the King James Bible, a verse a line, a blank line between chapters.
king_james()
{
    tools/install_deps.sh bible-kjv bible-kjv-text >&2
    PATH=$PATH:/usr/games bible -f gen1:1-rev22:21 | awk '{
        split($1, place, ":")
        if (place[1] != chapter && NR > 1) print ""
        chapter = place[1]
        $1 = ""
        sub(/^ /, "")
        print
    }'
}

mkdir -p "$work"
if [ -n "${DATA:-}" ]; then
    text=$DATA
    format=(--format auto)
    vocab_size=4096
    say "1/6 text: your own, $text"
else
    text=$work/king_james.txt
    format=(--format lines --one_sentence_per_line)
    [ -s "$text" ] || { king_james >"$text.part" && mv "$text.part" "$text"; }
    say "1/6 text: $text, $(wc -w <"$text") words of the King James Bible"
fi

say "2/6 vocabulary: $work/vocab.txt"
[ -s "$work/vocab.txt" ] ||
    $kiln vocab --input "$text" --vocab_size $vocab_size --vocab_file "$work/vocab.txt" --do_lower_case

say "3/6 token store: $work/store"
[ -s "$work/store/train.json" ] ||
    $kiln prepare --input "$text" "${format[@]}" --vocab_file "$work/vocab.txt" --do_lower_case \
        --holdout_fraction 0.03 --output_dir "$work/store"

pretrain()
{
    $kiln pretrain --input_dir "$work/store" --config_file $config --output_dir "$work/model" \
        --optimizer adamw --adam_beta2 0.98 --lr_schedule linear --warmup_proportion 0.05 --eval_steps $eval_steps \
        --eval_samples 512 --log_freq 100 --num_steps_per_checkpoint 1000 --resume_from_checkpoint "${precision[@]}" "$@"
}

say "4/6 pre-training, phase 1: $work/model"
[ -d "$work/model/ckpt_$phase1_steps" ] || pretrain "${phase1[@]}"

say "5/6 pre-training, phase 2: longer sequences"
pretrain "${phase2[@]}" --phase2 --phase1_end_step $phase1_steps
model=$(ls -d "$work"/model/ckpt_* | sort -t_ -k2 -n | tail -1)

say "6/6 what it learnt: $model"
grep '"evaluation"' "$work/model/log.jsonl" | tail -1 | tr ',{}' '\n\n\n' | tr -d '"' | awk -F: '
    { value[$1] = $2 }
    END {
        printf "held-out text: loss %.2f, %.2f below the word frequencies alone (%.2f)\n", value["mlm_loss"],
            value["unigram_mlm_loss"] - value["mlm_loss"], value["unigram_mlm_loss"]
        printf "               accuracy %.3f, %.1f times that of the most frequent word (%.3f)\n", value["mlm_accuracy"],
            value["mlm_accuracy"] / value["unigram_mlm_accuracy"], value["unigram_mlm_accuracy"]
    }'
echo
if [ -n "${DATA:-}" ]; then
    # sentences of the text itself, a word in the middle of each hidden
    find "$DATA" -type f | sort | head -50 | xargs -d '\n' cat | awk 'NF >= 8 && NF <= 16 && $0 !~ /[<>]/ {
        if (++n % 40 == 1) { $(int(NF / 2) + 1) = "[MASK]"; print; if (++shown == 4) exit }
    }' | $kiln fill --model "$model" --top_k 3
else
    $kiln fill --model "$model" --top_k 3 \
        "and it came to [MASK] in that day" \
        "In the beginning God created the [MASK] and the earth." \
        "And the LORD spake unto [MASK], saying," \
        "the children of [MASK]" \
        "He that hath ears to [MASK], let him hear."
fi
echo
echo "try your own: $kiln fill --model $model 'the king of [MASK]'"
