#!/usr/bin/env bash
# The goals of the cuda table on one GPU, beside tuned PyTorch where there is one (bench/peers/torch_tuned.py), both in the
# same run: medians, forward + backward + optimizer.  Made-up text of the size that is needed; nothing is downloaded.
#
#   tools/gpu_bench.sh          every row; ROWS=REGEX only those whose name matches
#   tools/gpu_bench.sh learn    the learning proof: pre-train for SECONDS_OF_LEARNING=300, fine-tune, score SQuAD v1.1 dev.
#                               DATA=DIR holds enwiki-2015-extracted/ (or store/, made by `kiln prepare`),
#                               bert-base-uncased-vocab.txt, squadshifts/*.json and squad-v1.1-dev*.json at any depth
#
#   BUILD=dir                   the build of tools/gpu_check.sh (build-gpu)
#   PEERS_PYTHON=python3        the interpreter that has torch
#   OUT=dir                     where gpu_bench.log (what failed and why) and gpu_bench.txt (the table) go (bench/results)
#   DEVICE=cpu SIZES=tiny       tries the script itself, with the smallest model for every row
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build-gpu}
kiln=$build/kiln
python=${PEERS_PYTHON:-python3}
device=${DEVICE:-cuda}
out=${OUT:-bench/results}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
log=$out/gpu_bench.log table=$out/gpu_bench.txt
[ -x "$kiln" ] || tools/gpu_check.sh --build || exit 1
: >"$log"
: >"$table"

median() { sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

# The last value of a field in a log.jsonl: field file
logged() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2" 2>/dev/null | tail -1; }

config_of() { if [ "${SIZES:-}" = tiny ]; then echo configs/bert_tiny.json; else echo "configs/$1.json"; fi; }

# try NAME COMMAND...: what it prints, or "-" with its last words in the log
try()
{
    local name=$1
    shift
    if "$@" >"$work/result" 2>"$work/errors" && [ -s "$work/result" ] && [ "$(head -c 1 "$work/result")" != - ]; then
        cat "$work/result"
    else
        { echo "== $name: $*"; tail -n 5 "$work/errors"; } >>"$log"
        echo -
    fi
}

# A row: name, kiln, PyTorch, goal; the ratio is kiln's to PyTorch's, and turned round where less is better.
row()
{
    awk -v name="$1" -v kiln="$2" -v torch="$3" -v goal="$4" -v less="${5:-0}" 'BEGIN {
        ratio = goal == "goal" ? "ratio" : "-"
        if (kiln + 0 > 0 && torch + 0 > 0) ratio = sprintf("%.2f", less ? torch / kiln : kiln / torch)
        printf("%-52s %10.10s %10.10s %8s %7s\n", name, kiln, torch, goal, ratio)
    }' | tee -a "$table"
}

wanted() { [[ $1 =~ ${ROWS:-.} ]]; }

# A vocabulary of BERT's size, and documents of its words.
make_text()
{
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

# config length batch short_seq_prob flags...
kiln_rate()
{
    local config=$1 length=$2 batch=$3 short=$4 steps=14
    shift 4
    [ "$device" = cuda ] || steps=6
    rm -rf "$work/out"
    "$kiln" pretrain --device "$device" --autocast --input_dir "$work/store" --config_file "$(config_of "$config")" \
        --output_dir "$work/out" --max_seq_length "$length" --max_predictions_per_seq "$((length * 15 / 100 + 1))" \
        --train_batch_size "$batch" --short_seq_prob "$short" --max_steps "$steps" --learning_rate 1e-4 --eval_steps 0 \
        --skip_checkpoint --disable_progress_bar "$@" >/dev/null || return 1
    sed -n 's/.*"event":"step".*"sequences_per_second":\([0-9.e+]*\).*/\1/p' "$work/out/log.jsonl" | tail -n +5 | median
}

# job config length batch flags...
peer_rate()
{
    local job=$1 config=$2 length=$3 batch=$4 trial=()
    shift 4
    [ "$device" = cuda ] || trial=(--compile none)
    "$python" bench/peers/torch_tuned.py "$job" "$(config_of "$config")" "$length" "$batch" --device "$device" "$@" \
        "${trial[@]}"
}

# name goal config length batch short_seq_prob [flag]: a row of pre-training
training_row()
{
    local name=$1 goal=$2 config=$3 length=$4 batch=$5 short=$6 kiln_value torch_value flags=() compile=whole
    shift 6
    flags=("$@")
    wanted "$name" || return 0
    [ "$config" = bert_large ] || [ "$config" = bert_base ] || compile=layer
    kiln_value=$(try "$name, kiln" kiln_rate "$config" "$length" "$batch" "$short" "${flags[@]}")
    case " ${flags[*]} " in
    *" --fp8 "*) torch_value=- ;; # PyTorch alone has no such layers
    *) torch_value=$(try "$name, PyTorch" peer_rate train "$config" "$length" "$batch" --short "$short" --compile \
        $compile "${flags[@]}") ;;
    esac
    row "$name" "$kiln_value" "$torch_value" "$goal"
}

# A BERT-Large that answers questions, with random weights.
make_answerer()
{
    "$kiln" pretrain --device "$device" --autocast --input_dir "$work/store" --config_file "$(config_of bert_large)" \
        --output_dir "$work/start" --max_seq_length 128 --max_predictions_per_seq 20 --train_batch_size 8 --max_steps 1 \
        --learning_rate 1e-4 --eval_steps 0 --disable_progress_bar >/dev/null &&
        "$kiln" squad --device "$device" --autocast --init_checkpoint "$work/start/ckpt_1" --output_dir "$work/tuned" \
            --do_train --train_file "$work/natural.json" --train_batch_size 8 --max_steps 1 --skip_cache \
            --num_steps_per_checkpoint 0 --disable-progress-bar >/dev/null && echo made
}

# questions MEAN MAX FILE: MAX texts of 0.35 to 1.65 times MEAN words, a question about each.
questions()
{
    awk -v mean="$1" -v most="$2" 'BEGIN {
        printf("{\"data\":[{\"title\":\"t\",\"paragraphs\":[")
        for (n = 0; n < most; n++) {
            context = "w7"
            for (k = int(mean * (0.35 + 1.3 * ((n * 0.618034) % 1))); k > 1; k--) context = context " w" (6 + (k * 7919 + n) % 30000)
            printf("%s{\"context\":\"%s\",\"qas\":[{\"id\":\"q%d\",\"question\":\"w8 w9 w10 w11 w12 w13 w14 w15 w16 w17\"," \
                "\"answers\":[{\"text\":\"w7\",\"answer_start\":0}]}]}", n ? "," : "", context, n)
        }
        printf("]}]}\n")
    }' >"$3"
}

# file batch precision
answer_rate()
{
    rm -rf "$work/answers"
    "$kiln" squad --device "$device" "$3" --init_checkpoint "$work/tuned/model" --output_dir "$work/answers" \
        --do_predict --predict_file "$1" --predict_batch_size "$2" --doc_stride 360 --max_query_length 16 --skip_cache \
        --disable-progress-bar >/dev/null || return 1
    logged inference_sequences_per_second "$work/answers/log.jsonl"
}

# Of one sequence, from sequences a second.
milliseconds() { awk -v rate="$1" 'BEGIN { print (rate + 0 > 0 ? 1000 / rate : "-") }'; }

# name goal file batch precision peer's flags...
answer_row()
{
    local name=$1 goal=$2 file=$3 batch=$4 precision=$5 kiln_value torch_value=-
    shift 5
    wanted "$name" || return 0
    kiln_value=$(try "$name, kiln" answer_rate "$file" "$batch" "$precision")
    if [ "$precision" != --fp8 ]; then # PyTorch alone has no such layers
        torch_value=$(try "$name, PyTorch" peer_rate answer bert_large 384 "$batch" "$@")
    fi
    if [ "$batch" = 1 ]; then
        row "$name" "$(milliseconds "$kiln_value")" "$(milliseconds "$torch_value")" "$goal" 1
    else
        row "$name" "$kiln_value" "$torch_value" "$goal"
    fi
}

# Ceilings, LAMB and the slowest kernel that memory bounds, from one run of `kiln bench`: percent of the copies.
op_rows()
{
    local flags=(--config_file "$(config_of bert_large)") ceilings
    wanted "ceilings LAMB memory-bound" || return 0
    "$kiln" bench --device "$device" "${flags[@]}" --autocast --optimizer lamb --max_seq_length 128 >"$out/ops.txt" \
        2>"$work/errors" || { echo "== kiln bench"; tail -n 5 "$work/errors"; } >>"$log"
    ceilings=$(try "ceilings, PyTorch" "$python" bench/peers/torch_tuned.py ceilings)
    row "ceiling: products, bf16, TFLOP/s" "$(sed -n 's|.*products of bf16 \([0-9.]*\) GF/s.*|\1|p' "$out/ops.txt" |
        awk '{ print $1 / 1000 }')" "${ceilings% *}" -
    row "ceiling: copies, TB/s read and written" "$(sed -n 's|.*copies \([0-9.]*\) GB/s.*|\1|p' "$out/ops.txt" |
        awk '{ print $1 / 1000 }')" "${ceilings#* }" -
    row "LAMB, % of the copies" "$(awk '$1 == "lamb" { print $(NF - 1) }' "$out/ops.txt")" - 85
    awk '$1 ~ /layernorm|gelu_backward|^embed|cross_entropy|global_norm|lamb/ && $NF == "%" { print $(NF - 1), $1 }' \
        "$out/ops.txt" | sort -g | head -n 1 >"$work/slowest"
    row "slowest memory-bound op, % ($(cut -d ' ' -f 2 "$work/slowest"))" "$(cut -d ' ' -f 1 "$work/slowest")" - 85
}

every_row()
{
    make_text || exit 1
    row "pre-training, bf16, sequences/s" kiln PyTorch goal
    training_row "BERT-Large s128 B256" 2300 bert_large 128 256 0
    training_row "BERT-Large s512 B64, full" 520 bert_large 512 64 0
    training_row "BERT-Large s512 B64, real lengths, mean 384" 700 bert_large 512 64 0.5
    training_row "BERT-Large s128 B256, fp8" 3200 bert_large 128 256 0 --fp8
    training_row "BERT-base s128 B256" - bert_base 128 256 0
    training_row "post-LN 1.5B s128 B192" 500 post_ln_1.5b 128 192 0
    training_row "post-LN 1.5B s128 B192, checkpointed activations" 400 post_ln_1.5b 128 192 0 --checkpoint_activations
    training_row "post-LN 5B s128 B64" 160 post_ln_5b 128 64 0
    training_row "post-LN 5B s128 B64, checkpointed activations" 130 post_ln_5b 128 64 0 --checkpoint_activations
    if wanted "BERT-Large answers, batch 1, ms; answers, padded to 384, B128; answers, natural lengths, B128, fp8"; then
        questions 178 "${QUESTIONS:-2000}" "$work/natural.json"
        questions 20000 1 "$work/full.json"
        row "question answering, s384, bf16, sequences/s" kiln PyTorch goal
        [ "$(try "a model that answers" make_answerer)" = made ]
        answer_row "BERT-Large answers, batch 1, ms" 1.0 "$work/full.json" 1 --autocast
        answer_row "BERT-Large answers, padded to 384, B128" 2400 "$work/full.json" 128 --autocast
        answer_row "BERT-Large answers, natural lengths, B128" 5500 "$work/natural.json" 128 --autocast --natural 191
        answer_row "BERT-Large answers, natural lengths, B128, fp8" 7500 "$work/natural.json" 128 --fp8
    fi
    op_rows
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
learn()
{
    local seconds=${SECONDS_OF_LEARNING:-300} run=$out/learn n1 n2 start files=() f
    : "${DATA:?DATA=DIR with text and questions}"
    store=$(find_data store)
    if [ -z "$store" ]; then
        store=$work/store
        "$kiln" prepare --input "$(find_data enwiki-2015-extracted)" --do_lower_case --vocab_file \
            "$(find_data bert-base-uncased-vocab.txt)" --holdout_fraction 0.01 --output_dir "$store" || exit 1
    fi
    learn_flags=(--device "$device" --autocast --input_dir "$store" --config_file "$(config_of bert_medium)" --optimizer adamw
        --learning_rate "${LEARN_RATE:-1e-3}" --lr_schedule linear --warmup_proportion 0.05 --disable_progress_bar)
    n1=$(steps_per_second 128 256 | awk -v s="$seconds" '{ print int($1 * s * 0.75) }')
    n2=$(steps_per_second 384 64 | awk -v s="$seconds" '{ print int($1 * s * 0.25) }')
    rm -rf "$run"
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
    row "300 s of learning, SQuAD v1.1 dev" kiln PyTorch goal
    grep '"event":"evaluation"' "$run/pretrain/log.jsonl" >"$work/evaluations"
    row "held-out loss of masked words" "$(logged mlm_loss "$work/evaluations")" 2.58 - 1
    row "exact match" "$(logged exact_match "$run/squad/log.jsonl")" 53.5 -
    row "F1" "$(logged F1 "$run/squad/log.jsonl")" 65.8 70
}

machine()
{
    "$kiln" doctor --dry_run | grep -A 3 '^cuda'
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv,noheader 2>/dev/null || true
    date -u +%Y-%m-%d
}

machine
if [ "${1:-}" = learn ]; then learn; else every_row; fi
[ -s "$log" ] && { echo; echo "what failed ($log):"; cat "$log"; }
echo
machine
cat "$table"
