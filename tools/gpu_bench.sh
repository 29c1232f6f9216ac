#!/usr/bin/env bash
# Measures the goals of the CUDA table on one GPU, the most informative first: medians, each row printed as
# soon as it is known, each command with its own time limit. Text is generated in the size that is needed;
# nothing is downloaded.
#
#   tools/gpu_bench.sh [PART...]    all of these, in this order:
#     ops     where BERT-Large's time goes at 128 tokens, op by op, compared with the peaks of the same run
#     goals   kiln's rows, of pre-training once forward and backward and once whole steps with LAMB
#     tables  op by op at 512 tokens, in fp8, and of post-LN 1.5B
#     peers   the same rows by tuned PyTorch (bench/peers/torch_tuned.py), with its fused AdamW
#     learn   the learning proof, where DATA is set: pre-train for SECONDS_OF_LEARNING=300, fine-tune, score SQuAD v1.1 dev.
#             DATA=DIR holds enwiki-2015-extracted/ (or store/, made by `kiln prepare`),
#             bert-base-uncased-vocab.txt, squadshifts/*.json and squad-v1.1-dev*.json at any depth
#
#   ROWS=REGEX                  only rows whose name matches
#   BUILD=dir                   the build (build-carry/ of tools/gpu_carry.sh, else build-gpu/, compiled here)
#   PEERS_PYTHON=python3        the interpreter that has torch
#   ROW_SECONDS=150             time limit of a table; a row, of two runs, has twice that; LEARN_SECONDS=580 that of learn
#   BUDGET=300                  seconds in all: parts that would begin later are left out
#   OUT=dir                     gpu_bench.txt (the rows), gpu_bench.log (what failed and why), gpu_ops.txt (bench/results)
#   DEVICE=cpu SIZES=tiny       tries the script itself, with the smallest model for every row
set -uo pipefail
set -a # measurements run in separate shells, with a time limit
cd "$(dirname "$0")/.." || exit 1
. tools/gpu_common.sh
open_gpu_build
python=${PEERS_PYTHON:-python3}
device=${DEVICE:-cuda}
need_device "$device"
row_seconds=${ROW_SECONDS:-150} double_row=$((2 * ${ROW_SECONDS:-150}))
out=${OUT:-bench/results}
mkdir -p "$out"
log=$out/gpu_bench.log table=$out/gpu_bench.txt
: >"$log"
: >"$table"
: >"$out/gpu_ops.txt"
: >"$work/kept"

median() { sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

# The last value of a field in a log.jsonl: field file
logged() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2" 2>/dev/null | tail -1; }

config_of() { if [ "${SIZES:-}" = tiny ]; then echo configs/bert_tiny.json; else echo "configs/$1.json"; fi; }

# try SECONDS NAME COMMAND...: prints its output, or "-", and then its last lines are in the log
try()
{
    local seconds=$1 name=$2 code=0
    shift 2
    limited "$seconds" "$@" >"$work/result" 2>"$work/errors" || code=$?
    if [ $code = 0 ] && [ -s "$work/result" ]; then
        cat "$work/result"
        return
    fi
    {
        echo "== $name: $*"
        ! ran_out $code || echo "not done in time"
        tail -n 5 "$work/errors"
    } >>"$log"
    echo "-"
}

# A row: name, kiln, PyTorch, goal, and 1 if less is better, which inverts the ratios.
row()
{
    awk -v name="$1" -v kiln="$2" -v torch="$3" -v goal="$4" -v less="${5:-0}" '
        function ratio(to) { return kiln + 0 > 0 && to + 0 > 0 ? sprintf("%.2f", less ? to / kiln : kiln / to) : "-" }
        BEGIN { printf("%-68s %9.9s %9.9s %8s %8s %8s\n", name, kiln, torch, goal,
            goal == "goal" ? "/goal" : ratio(goal), torch == "PyTorch" ? "/PyTorch" : ratio(torch)) }' | tee -a "$table"
}

head_of_rows() { row "$1" kiln PyTorch goal; }

wanted() { [[ $1 =~ ${ROWS:-.} ]]; }

# kiln's results are kept for the rows of the peers.
keep() { printf '%s\t%s\n' "$1" "$2" >>"$work/kept"; }
kept() { awk -F '\t' -v name="$1" '$1 == name { value = $2 } END { print value == "" ? "-" : value }' "$work/kept"; }

# A vocabulary of BERT's size, and documents of its words.
make_text()
{
    [ ! -d "$work/store" ] || return 0
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
    "$kiln" prepare --input "$work/text.txt" --input_format lines --one_sentence_per_line --vocab_file \
        "$work/vocab.txt" --output_dir "$work/store" >/dev/null 2>"$work/errors" || { cat "$work/errors" >&2 && return 1; }
}

# The median seconds of a step, without the first steps, which time algorithms and record: config length batch
# short micro-batches flags... With short sequences a dozen sizes of batches must occur twice before most
# steps have known sizes.
step_seconds()
{
    local config=$1 length=$2 batch=$3 short=$4 micro=$5 steps=12 skipped=4
    shift 5
    [ "$micro" = 1 ] || steps=8
    [ "$short" = 0 ] || { steps=$((4 * steps + 12)) && skipped=$((steps * 2 / 3)); }
    [ "$device" = cuda ] || { steps=4 && skipped=1; }
    rm -rf "$work/out"
    "$kiln" pretrain --device "$device" --autocast --input_dir "$work/store" --config_file "$(config_of "$config")" \
        --output_dir "$work/out" --max_seq_length "$length" --max_predictions_per_seq "$((length * 15 / 100 + 1))" \
        --train_batch_size "$((batch * micro))" --gradient_accumulation_steps "$micro" --short_seq_prob "$short" \
        --max_steps "$steps" --learning_rate 1e-4 --eval_steps 0 --skip_checkpoint --disable_progress_bar "$@" >/dev/null
    sed -n 's/.*"event":"step".*"seconds_per_step":\([0-9.e+-]*\).*/\1/p' "$work/out/log.jsonl" | tail -n +$((skipped + 1)) |
        median
}

# Sequences a second of forward and backward, and of whole steps.  A step of m micro-batches is m times the passes and one update,
# so the difference of steps of 4 and of 1 is 3 times the passes.
kiln_rates() # config length batch short flags...
{
    local one four
    one=$(step_seconds "$1" "$2" "$3" "$4" 1 "${@:5}")
    four=$(step_seconds "$1" "$2" "$3" "$4" 4 "${@:5}")
    awk -v one="$one" -v four="$four" -v batch="$3" 'BEGIN { printf("%.6g %.6g\n", 3 * batch / (four - one), batch / one) }'
}

# job config length batch flags...
peer_rates()
{
    local job=$1 config=$2 length=$3 batch=$4 trial=()
    shift 4
    [ "$device" = cuda ] || trial=(--compile none)
    "$python" bench/peers/torch_tuned.py "$job" "$(config_of "$config")" "$length" "$batch" --device "$device" "$@" \
        "${trial[@]}"
}

# Each row of pre-training: side name goal config length batch short_seq_prob [flag]
training_rows()
{
    "$1" "BERT-Large s128 B256" 2300 bert_large 128 256 0
    "$1" "BERT-Large s512 B64, full" 520 bert_large 512 64 0
    "$1" "BERT-Large s512 B64, real lengths, mean 384" 700 bert_large 512 64 0.5
    "$1" "BERT-Large s128 B256, fp8" 3200 bert_large 128 256 0 --fp8
    "$1" "post-LN 1.5B s128 B192" 500 post_ln_1.5b 128 192 0
    "$1" "post-LN 1.5B s128 B192, checkpointed activations" 400 post_ln_1.5b 128 192 0 --checkpoint_activations
    "$1" "BERT-base s128 B256" - bert_base 128 256 0
    "$1" "post-LN 5B s128 B64" 160 post_ln_5b 128 64 0
    "$1" "post-LN 5B s128 B64, checkpointed activations" 130 post_ln_5b 128 64 0 --checkpoint_activations
}

print_training() # name goal kiln's and PyTorch's rates, forward and backward, then whole steps
{
    local kiln_rates torch_rates
    read -ra kiln_rates <<<"$3"
    read -ra torch_rates <<<"$4"
    row "$1, forward + backward" "${kiln_rates[0]}" "${torch_rates[0]}" "$2"
    row "$1, whole step" "${kiln_rates[1]:--}" "${torch_rates[1]:--}" -
}

kiln_training() # a row of training_rows
{
    wanted "$1" || return 0
    make_text || return 0
    keep "$1" "$(try "$double_row" "$1, kiln" kiln_rates "${@:3}")"
    print_training "$1" "$2" "$(kept "$1")" -
}

peer_training()
{
    local compile=whole
    case " $* " in *" --fp8 "*) return 0 ;; esac # PyTorch alone has no such layers
    wanted "$1" || return 0
    [ "$3" = bert_large ] || [ "$3" = bert_base ] || compile=layer
    print_training "$1" "$2" "$(kept "$1")" "$(try "$double_row" "$1, PyTorch" peer_rates train "$3" "$4" "$5" \
        --short "$6" --compile $compile "${@:7}")"
}

# A BERT-Large for question answering, with random weights.
make_answerer()
{
    [ ! -d "$work/tuned/model" ] || return 0
    make_text
    questions 178 8 "$work/few.json"
    "$kiln" pretrain --device "$device" --autocast --input_dir "$work/store" --config_file "$(config_of bert_large)" \
        --output_dir "$work/start" --max_seq_length 128 --max_predictions_per_seq 20 --train_batch_size 8 --max_steps 1 \
        --learning_rate 1e-4 --eval_steps 0 --disable_progress_bar >/dev/null
    "$kiln" squad --device "$device" --autocast --init_checkpoint "$work/start/ckpt_1" --output_dir "$work/tuned" \
        --do_train --train_file "$work/few.json" --train_batch_size 8 --max_steps 1 --skip_cache \
        --num_steps_per_checkpoint 0 --disable-progress-bar >/dev/null
}

# questions MEAN COUNT FILE: COUNT texts of 0.35 to 1.65 times MEAN words, a question about each.
questions()
{
    awk -v mean="$1" -v most="$2" 'BEGIN {
        printf("{\"data\":[{\"title\":\"t\",\"paragraphs\":[")
        for (n = 0; n < most; n++) {
            printf("%s{\"context\":\"w7", n ? "," : "")
            for (k = int(mean * (0.35 + 1.3 * ((n * 0.618034) % 1))); k > 1; k--) printf(" w%d", 6 + (k * 7919 + n) % 30000)
            printf("\",\"qas\":[{\"id\":\"q%d\",\"question\":\"w8 w9 w10 w11 w12 w13 w14 w15 w16 w17\"," \
                "\"answers\":[{\"text\":\"w7\",\"answer_start\":0}]}]}", n)
        }
        printf("]}]}\n")
    }' >"$3"
}

# Features and seconds of answering `count` questions: mean count batch precision
answer_seconds()
{
    local file=$work/questions_$1_$2.json
    [ -f "$file" ] || questions "$1" "$2" "$file"
    rm -rf "$work/answers"
    "$kiln" squad --device "$device" "$4" --init_checkpoint "$work/tuned/model" --output_dir "$work/answers" \
        --do_predict --predict_file "$file" --predict_batch_size "$3" --doc_stride 360 --max_query_length 16 --skip_cache \
        --disable-progress-bar >/dev/null
    echo "$(logged features "$work/answers/log.jsonl") $(logged e2e_inference_time "$work/answers/log.jsonl")"
}

# Sequences per second, from the difference in time between many questions and few, so that the start cancels.
# Sizes that occur only among the many were timed by an earlier run, and are in the cache of algorithms.
answer_rate() # mean few batch precision
{
    local few many
    make_answerer
    answer_seconds "$1" $((6 * $2)) "$3" "$4" >/dev/null
    few=$(answer_seconds "$1" "$2" "$3" "$4")
    many=$(answer_seconds "$1" $((6 * $2)) "$3" "$4")
    awk -v few="$few" -v many="$many" 'BEGIN { split(few, f, " "); split(many, m, " "); printf("%.6g\n", (m[1] - f[1]) / (m[2] - f[2])) }'
}

# The same for one question at a time, full length, warm: the median of thousands.
single_rate() # precision
{
    "$kiln" bench --device "$device" --task squad --config_file "$(config_of bert_large)" --train_batch_size 1 --max_seq_length 384 \
        "$1" | sed -n 's/^warm, nothing timed inside: median .*, \([0-9.]*\) sequences\/s$/\1/p'
}

# Each row of answers: side name goal mean few batch precision peer's flags...
answer_rows()
{
    local full=$((${QUESTIONS:-3000} / 150 + 1)) # texts of 20,000 words are 56 full sequences each
    "$1" "BERT-Large answers s384, batch 1, ms" 1.0 384 1 1 --autocast
    "$1" "BERT-Large answers s384, padded, B128" 2400 20000 "$full" 128 --autocast
    "$1" "BERT-Large answers s384, natural lengths, B128" 5500 178 "${QUESTIONS:-3000}" 128 --autocast --natural 191
    "$1" "BERT-Large answers s384, natural lengths, B128, fp8" 7500 178 "${QUESTIONS:-3000}" 128 --fp8
}

# Milliseconds of one sequence, from sequences per second.
milliseconds() { awk -v rate="$1" 'BEGIN { print (rate + 0 > 0 ? 1000 / rate : "-") }'; }

print_answers() # name goal batch kiln PyTorch
{
    if [ "$3" = 1 ]; then
        row "$1, forward" "$(milliseconds "$4")" "$(milliseconds "$5")" "$2" 1
    else
        row "$1, forward" "$4" "$5" "$2"
    fi
}

kiln_answers() # a row of answer_rows
{
    wanted "$1" || return 0
    if [ "$5" = 1 ]; then
        keep "$1" "$(try "$double_row" "$1, kiln" single_rate "$6")"
    else
        keep "$1" "$(try "$double_row" "$1, kiln" answer_rate "${@:3:4}")"
    fi
    print_answers "$1" "$2" "$5" "$(kept "$1")" -
}

peer_answers()
{
    [ "$6" != --fp8 ] || return 0 # PyTorch alone has no such layers
    wanted "$1" || return 0
    print_answers "$1" "$2" "$5" "$(kept "$1")" "$(try "$double_row" "$1, PyTorch" peer_rates answer bert_large 384 "$5" "${@:7}")"
}

# Op by op: name config length batch flags...
op_table()
{
    local name=$1 config=$2 length=$3 batch=$4
    wanted "$name" || return 0
    shift 4
    [ "$device" = cuda ] || batch=4
    echo "== $name"
    try "$row_seconds" "$name" "$kiln" bench --device "$device" --config_file "$(config_of "$config")" --optimizer lamb \
        --max_seq_length "$length" --train_batch_size "$batch" "$@" | tee "$work/ops" | tee -a "$out/gpu_ops.txt"
}

# The peaks, LAMB, and the slowest memory-bound kernel that takes at least a hundredth of the step: percent of
# the copying rate.
ops()
{
    op_table "ops of BERT-Large s128 B256" bert_large 128 256 --autocast
    grep -q '^all ops' "$work/ops" 2>/dev/null || return 0
    head_of_rows "BERT-Large s128 B256, op by op"
    row "ceiling: products, bf16, TFLOP/s" "$(sed -n 's|.*products of bf16 \([0-9.]*\) GF/s.*|\1|p' "$work/ops" |
        awk '{ print $1 / 1000 }')" - -
    row "ceiling: copies, TB/s read and written" "$(sed -n 's|.*copies \([0-9.]*\) GB/s.*|\1|p' "$work/ops" |
        awk '{ print $1 / 1000 }')" - -
    row "LAMB, % of the copies" "$(awk '$1 ~ /^lamb_/ { ms += $3; part += $3 * $(NF - 1) }
        END { if (ms > 0) printf "%.0f", part / ms }' "$work/ops")" - 85
    awk '$1 ~ /layernorm|gelu_backward|^embed|cross_entropy|squares|lamb_/ && $NF == "%" && $4 >= 1 { print $(NF - 1), $1 }' \
        "$work/ops" | sort -g | sed -n 1p >"$work/slowest"
    row "slowest memory-bound op, % ($(cut -d ' ' -f 2 "$work/slowest"))" "$(cut -d ' ' -f 1 "$work/slowest")" - 85
}

goals()
{
    head_of_rows "sequences/s, bf16"
    training_rows kiln_training
    answer_rows kiln_answers
}

tables()
{
    op_table "ops of BERT-Large s512 B64" bert_large 512 64 --autocast
    op_table "ops of BERT-Large s128 B256, fp8" bert_large 128 256 --fp8
    op_table "ops of post-LN 1.5B s128 B192" post_ln_1.5b 128 192 --autocast
}

peers()
{
    local ceilings
    head_of_rows "beside PyTorch, sequences/s, bf16"
    if wanted ceilings; then
        read -ra ceilings <<<"$(try "$row_seconds" "ceilings, PyTorch" "$python" bench/peers/torch_tuned.py ceilings)"
        row "ceiling: products, bf16, TFLOP/s" - "${ceilings[0]}" -
        row "ceiling: copies, TB/s read and written" - "${ceilings[1]:--}" -
    fi
    training_rows peer_training
    answer_rows peer_answers
}

# The first path under DATA of this name.
find_data() { find "$DATA" -name "$1" -print -quit; }

# length batch rate: steps a second of a short run
steps_per_second()
{
    rm -rf "$work/probe"
    "$kiln" pretrain "${learn_flags[@]}" --output_dir "$work/probe" --max_seq_length "$1" --train_batch_size "$2" \
        --max_predictions_per_seq "$(($1 * 15 / 100 + 1))" --max_steps 40 --eval_steps 0 --skip_checkpoint >/dev/null || return 1
    sed -n 's/.*"event":"step".*"sequences_per_second":\([0-9.e+]*\).*/\1/p' "$work/probe/log.jsonl" | tail -n 20 | median |
        awk -v batch="$2" '{ print $1 / batch }'
}

# Three quarters of the time at 128 tokens, the rest at 384; the schedule ends when the time does.
learning_proof()
{
    local seconds=${SECONDS_OF_LEARNING:-300} run=$work/learn n1 n2 start files=() f
    store=$(find_data store)
    if [ -z "$store" ]; then
        store=$work/store
        "$kiln" prepare --input "$(find_data enwiki-2015-extracted)" --do_lower_case --vocab_file \
            "$(find_data bert-base-uncased-vocab.txt)" --holdout_fraction 0.01 --output_dir "$store" || exit 1
    fi
    learn_flags=(--device "$device" --autocast --input_dir "$store" --config_file "$(config_of bert_medium)" --optimizer "${LEARN_OPTIMIZER:-adamw}"
        --learning_rate "${LEARN_RATE:-1e-3}" --lr_schedule linear --warmup_proportion 0.05 --disable_progress_bar)
    n1=$(steps_per_second 128 256 | awk -v s="$seconds" '{ print int($1 * s * 0.75) }')
    n2=$(steps_per_second 384 64 | awk -v s="$seconds" '{ print int($1 * s * 0.25) }')
    start=$SECONDS
    "$kiln" pretrain "${learn_flags[@]}" --output_dir "$run/pretrain" --max_seq_length 128 --train_batch_size 256 \
        --max_predictions_per_seq 20 --max_steps "$n1" --num_steps_per_checkpoint 0 || exit 1
    "$kiln" pretrain "${learn_flags[@]}" --output_dir "$run/pretrain" --max_seq_length 384 --train_batch_size 64 \
        --max_predictions_per_seq 58 --phase2 --phase1_end_step "$n1" --resume_from_checkpoint --max_steps "$n2" \
        --num_steps_per_checkpoint 0 || exit 1
    echo "pre-trained in $((SECONDS - start)) s: $n1 steps of 256 x 128, $n2 of 64 x 384"
    while read -r f; do files+=("$f"); done < <(find "$DATA" -path '*squadshifts*' -name '*.json')
    "$python" -c 'import json, sys
json.dump({"version": "1.1", "data": [d for f in sys.argv[1:] for d in json.load(open(f))["data"]]}, sys.stdout)' \
        "${files[@]}" >"$work/shifts.json" || exit 1
    "$kiln" squad --device "$device" --autocast --init_checkpoint "$run/pretrain/ckpt_$((n1 + n2))" --output_dir "$run/squad" \
        --do_train --train_file "$work/shifts.json" --train_batch_size 32 --learning_rate "${LEARN_SQUAD_RATE:-1e-4}" \
        --num_train_epochs 3 --do_predict --predict_file "$(find_data 'squad-v1.1-dev*.json')" --predict_batch_size 128 \
        --do_eval --skip_cache --num_steps_per_checkpoint 0 --disable-progress-bar || exit 1
    head_of_rows "$seconds s of learning, SQuAD v1.1 dev"
    grep '"event":"evaluation"' "$run/pretrain/log.jsonl" >"$work/evaluations"
    row "held-out loss of masked words" "$(logged mlm_loss "$work/evaluations")" 2.58 - 1
    row "exact match" "$(logged exact_match "$run/squad/log.jsonl")" 53.5 -
    row "F1" "$(logged F1 "$run/squad/log.jsonl")" 65.8 70
}

learn()
{
    if [ -z "${DATA:-}" ]; then
        echo "skipped: the learning proof needs DATA=DIR with text and questions"
        return
    fi
    limited "${LEARN_SECONDS:-580}" learning_proof 2>&1 | tee "$work/learning"
    [ "${PIPESTATUS[0]}" = 0 ] || { echo "== the learning proof"; tail -n 5 "$work/learning"; } >>"$log"
}

machine
[ $# -gt 0 ] || set -- ops goals tables peers learn
for part in "$@"; do
    case $part in
    ops | goals | tables | peers | learn) $part ;;
    *) echo "no part is called $part: ops, goals, tables, peers, learn" >&2 && exit 1 ;;
    esac
done
[ -s "$log" ] && { echo; echo "what failed ($log):"; cat "$log"; }
echo
cat "$table"
