#!/usr/bin/env bash
# What changes while a run of `kiln pretrain` goes on: --mask_rate A:B, --mask_keep_rate, --warmup_tokens, --total_training_time;
# and --recipe, which sets flags by a table.  Runs that were killed go on to the same bytes; a run by the clock ends in time, and goes on with the seconds that are left; what cannot be is refused in a sentence.
. "$(dirname "$0")/begin.sh"
make_store

pretrain_command()
{
    local out=$1
    shift
    command=("$kiln" pretrain --max_seq_length 32 --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out"
        --learning_rate 1e-3 --num_steps_per_checkpoint 10 --keep_checkpoints 0 --eval_steps 10
        --log_freq 1 --disable_progress_bar "$@")
}

pretrain()
{
    pretrain_command "$@"
    "${command[@]}"
}

# field NAME STEP RUN: a number of a step's line of log.jsonl
field()
{
    grep '"event":"step"' "$dir/$3/log.jsonl" | grep "\"step\":$2," | tail -1 | sed "s/.*\"$1\":\([-0-9.e+]*\).*/\1/"
}

is() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 0 ? -d <= 1e-9 : d <= 1e-9) }' || fail "$3: $1, not $2"; }

# a ramp is a function of the step: killed and gone on, it ends with the same bytes
ramped=(--optimizer muon --train_batch_size 4 --mask_rate 0.3:0.15 --mask_keep_rate 0.2 --warmup_tokens 2000 --max_steps 30
    --no_nsp)
pretrain ramped "${ramped[@]}" 2>"$dir/log"
grep -q "masks of 0.3, and at the end 0.15 of the tokens" "$dir/log" || fail "$(cat "$dir/log")"
grep -q '"data": ".*, masks 0.3:0.15, keep 0.2"' "$dir/ramped/ckpt_30/trainer_state.json" ||
    fail "the data does not say how it was drawn"
first=$(field learning_rate 1 ramped)
awk -v a="$first" 'BEGIN { exit !(a > 1e-5 && a < 1e-4) }' || fail "the rate begins at $first"
is "$(field learning_rate 29 ramped)" "$(awk 'BEGIN { print 1e-3 * sqrt(1 / 30) }')" "after the warm-up"
resumes_to ramped "${ramped[@]}"
rm -r "$dir/killed/ckpt_30"
expect 65 "other data" pretrain killed "${ramped[@]}" --mask_rate 0.3 --resume_from_checkpoint

# how samples are drawn is said of the data
pretrain turns --no_nsp --even_masks --shifted_positions --short_seq_prob 0 --max_steps 2 2>"$dir/log"
grep -q '"data": ".*, in turns, shifted"' "$dir/turns/ckpt_2/trainer_state.json" || fail "the data does not say how it was drawn"

# a rate that stays is the same run, however it is written
pretrain same --train_batch_size 8 --max_steps 3 --mask_rate 0.15:0.15 --mask_keep_rate 0.1 --max_predictions_per_seq 20 \
    2>/dev/null
pretrain plain --train_batch_size 8 --max_steps 3 2>/dev/null
cmp "$dir/same/ckpt_3/model.safetensors" "$dir/plain/ckpt_3/model.safetensors" || fail "0.15:0.15 is not 0.15"
pretrain kept --train_batch_size 8 --max_steps 3 --mask_keep_rate 0.5 2>/dev/null
! cmp -s "$dir/kept/ckpt_3/model.safetensors" "$dir/plain/ckpt_3/model.safetensors" || fail "--mask_keep_rate does nothing"

# how positions begin is all that --sinusoidal_positions changes
begin=(--train_batch_size 8 --max_steps 1 --learning_rate 1e-12)
pretrain random "${begin[@]}" 2>/dev/null
pretrain sinusoids "${begin[@]}" --sinusoidal_positions 2>/dev/null
expect 1 "they differ, first in bert.embeddings.position_embeddings.weight" \
    "$kiln" inspect --diff --atol 1e-6 "$dir/random/ckpt_1/model.safetensors" "$dir/sinusoids/ckpt_1/model.safetensors"

# how words begin is all that --ppmi_embeddings changes, to the same bits on any number of threads
pretrain words "${begin[@]}" --sinusoidal_positions --ppmi_embeddings 2>"$dir/log"
grep -q "word embeddings: begin as vectors of" "$dir/log" || fail "$(cat "$dir/log")"
expect 1 "they differ, first in bert.embeddings.word_embeddings.weight" \
    "$kiln" inspect --diff --atol 1e-6 "$dir/sinusoids/ckpt_1/model.safetensors" "$dir/words/ckpt_1/model.safetensors"
OMP_NUM_THREADS=3 pretrain threads "${begin[@]}" --sinusoidal_positions --ppmi_embeddings 2>/dev/null
cmp "$dir/words/ckpt_1/model.safetensors" "$dir/threads/ckpt_1/model.safetensors" || fail "word vectors depend on the threads"

# longest RUN: the seconds of its longest step, by which a run by the clock may end early or late
longest() { sed -n 's/.*"event":"step".*"seconds_per_step":\([0-9.e+-]*\).*/\1/p' "$dir/$1/log.jsonl" | sort -g | tail -1; }
elapsed() { sed -n 's/.*"elapsed_seconds": \([0-9.]*\).*/\1/p' "$(ls -dv "$dir/$1"/ckpt_* | tail -1)/trainer_state.json"; }
# holds EXPRESSION -v NAME=NUMBER...: it is true of the numbers
holds() { awk "${@:2}" "BEGIN { exit !($1) }" || fail "not $1: ${*:2}"; }

# by the clock: it ends in time, its rate near 0, and what was stopped has only the rest
timed=(--train_batch_size 8 --total_training_time 2 --lr_schedule linear --num_steps_per_checkpoint 0 --eval_steps 0)
pretrain timed "${timed[@]}" 2>"$dir/log"
grep -q "work: phase 1, 2 seconds" "$dir/log" || fail "$(cat "$dir/log")"
longest=$(longest timed)
holds 'took > 2 - 2 * longest && took <= 2 + 2 * longest' -v took="$(elapsed timed)" -v longest="$longest"
last=$(sed -n 's/.*"step": \([0-9]*\),.*/\1/p' "$dir"/timed/ckpt_*/trainer_state.json)
rate=$(field learning_rate "$last" timed)
holds 'rate < 1e-4 + 2e-3 * longest' -v rate="$rate" -v longest="$longest"
holds 'early > rate' -v early="$(field learning_rate $(((last + 3) / 4)) timed)" -v rate="$rate"
expect 0 "phase 1 is complete: $last steps in" pretrain timed "${timed[@]}" --resume_from_checkpoint
pretrain_command stopped "${timed[@]}" --total_training_time 1e6 --num_steps_per_checkpoint 10
start_held "${command[@]}"
stop_held TERM "$dir/stopped"
[ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status"
before=$(elapsed stopped)
total=$(awk -v a="$before" -v longest="$(longest stopped)" 'BEGIN { print a + 0.5 + 2 * longest }') # so that a step fits
pretrain stopped "${timed[@]}" --total_training_time "$total" --resume_from_checkpoint 2>"$dir/log"
grep -q "total_training_time was 1e+06 in the checkpoint and is" "$dir/log" || fail "$(cat "$dir/log")"
holds 'after > before && after <= total + 2 * longest' -v after="$(elapsed stopped)" -v before="$before" -v total="$total" \
    -v longest="$(longest stopped)"

# recipes
expect 0 "recipe modern: --optimizer muon --adam_beta2 0.98" pretrain modern --recipe modern --max_steps 2
grep -q "the command line has its own --learning_rate" "$dir/err" || fail "$(cat "$dir/err")"
grep -q ' --train_batch_size 16$' "$dir/err" || fail "another batch: $(cat "$dir/err")"
grep -q '"learning_rate": 0.001,' "$dir/modern/ckpt_2/trainer_state.json" || fail "another rate"
grep -q ' --sinusoidal_positions --shifted_positions --ppmi_embeddings ' "$dir/err" || fail "another beginning: $(cat "$dir/err")"
expect 0 "its own --learning_rate, --mask_rate, --train_batch_size" \
    pretrain small --recipe modern --masked_lm_prob 0.2 --train_batch_size 8 --max_steps 2
grep -q '"data": ".*, masks 0.2"' "$dir/small/ckpt_2/trainer_state.json" || fail "the flag did not win"
expect 0 "its own --learning_rate, --ppmi_embeddings" pretrain without --recipe modern --ppmi_embeddings=false --max_steps 2
! grep -q -- ' --ppmi_embeddings ' "$dir/err" || fail "it cannot be left out: $(cat "$dir/err")"
expect 0 "recipe reference: --optimizer lamb" pretrain reference --recipe reference --max_steps 2 --dry_run
expect 64 "--deepspeed needs --deepspeed_config" pretrain ds --recipe deepspeed
expect 64 "--recipe modern and --deepspeed are two recipes" pretrain ds --recipe modern --deepspeed --deepspeed_config x
expect 64 "must be one of modern|reference|deepspeed" pretrain ds --recipe old

# what cannot be
expect 64 "--warmup_tokens 10000 is longer than the run" pretrain no --warmup_tokens 10000 --max_steps 2 --train_batch_size 8
expect 64 "leave one out" pretrain no --warmup_tokens 100 --warmup_proportion 0.1
expect 64 "both say when the run ends" pretrain no --total_training_time 5 --max_steps 10
expect 64 "--mask_rate" pretrain no --mask_rate 0.3:
expect 64 "--mask_rate is 1.5" pretrain no --mask_rate 0.3:1.5
expect 64 "--mask_rate must be above 0" pretrain no --mask_rate 0.3:0
expect 64 "--mask_keep_rate is 0.95" pretrain no --mask_keep_rate 0.95
echo "test_recipe: all as it should be"
