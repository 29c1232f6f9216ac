#!/usr/bin/env bash
# Question answering with BERT-base at 384 tokens, kiln and PyTorch with Hugging Face transformers: answering
# and fine-tuning, fp32 and bf16, alternating, medians of three.
#
# "full length" is a text so long that every window has 384 tokens.  "natural lengths" are paragraphs of the King James
# Bible of 70 to 300 tokens whose mean is that of SQuAD, 178; SQUAD=dev-v1.1.json takes real ones, with the vocabulary
# SQUAD_VOCAB.  The peer pads to 384, as run_squad.py does.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
vocab_file=${SQUAD_VOCAB:-$work/vocab.txt}

# questions MEAN MAX: at most MAX paragraphs of 0.35 to 1.65 times MEAN words, one question about each.
questions()
{
    LC_ALL=C awk -v MEAN="$1" -v MAX="$2" '
        BEGIN { printf("{\"data\":[{\"title\":\"t\",\"paragraphs\":[") }
        { gsub(/[^A-Za-z .,;:?!]/, ""); context = context $0 " "; words += NF }
        words >= MEAN * (0.35 + 1.3 * ((n * 0.618034) % 1)) {
            sub(/ $/, "", context)
            answer = context; sub(/ .*/, "", answer)
            printf("%s{\"context\":\"%s\",\"qas\":[{\"id\":\"q%d\",\"question\":\"What was it that they said unto him?\"," \
                "\"answers\":[{\"text\":\"%s\",\"answer_start\":0}]}]}", n++ ? "," : "", context, n, answer)
            context = ""; words = 0
            if (n == MAX) exit
        }
        END { printf("]}]}\n") }' "$text"
}
questions 5000 1 >"$work/full.json"
natural=${SQUAD:-$work/natural.json}
[ -n "${SQUAD:-}" ] || questions 126 40 >"$natural"

# Sequences per second of kiln: answer|train file dtype
kiln_rate()
{
    local flags=(--do_predict --predict_file "$2")
    [ "$1" = train ] && flags=(--do_train --train_file "$2" --train_batch_size 8 --max_steps 3 --throughput_warmup_steps 1)
    [ "$3" = bf16 ] && flags+=(--autocast)
    rm -rf "$work/out"
    $kiln squad --init_checkpoint "$work/qa" --output_dir "$work/out" --doc_stride 360 --skip_cache --skip_checkpoint \
        --disable-progress-bar "${flags[@]}" >/dev/null 2>&1
    if [ "$1" = train ]; then
        logged training_sequences_per_second "$work/out/log.jsonl"
    else
        logged inference_sequences_per_second "$work/out/log.jsonl"
    fi
}

row "BERT-base s384, sequences/s" kiln PyTorch ratio
for dtype in ${DTYPES:-fp32 bf16}; do
    for job in answer train; do
        : >"$work/full.txt"
        : >"$work/natural.txt"
        : >"$work/torch.txt"
        for _ in $(seq "${REPEATS:-3}"); do
            "$python" bench/peers/torch_squad.py configs/bert_base.json "$vocab_file" "$work/qa" $job $dtype \
                2>/dev/null >>"$work/torch.txt"
            kiln_rate $job "$work/full.json" $dtype >>"$work/full.txt"
            kiln_rate $job "$natural" $dtype >>"$work/natural.txt"
        done
        peer=$(median <"$work/torch.txt")
        row "$job, $dtype, full length" "$(median <"$work/full.txt")" "$peer"
        row "$job, $dtype, natural lengths" "$(median <"$work/natural.txt")" "$peer"
    done
done
