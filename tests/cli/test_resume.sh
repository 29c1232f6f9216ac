#!/usr/bin/env bash
# Training that was killed or stopped and went on equals training that was not, file by file (`cmp`): with gradient
# accumulation and dropout, in fp32 and bf16, after kill -9 and after SIGTERM, in phase 1 and across into phase 2.
. "$(dirname "$0")/begin.sh"
make_store
last=120                  # steps of phase 1: a log of many pages

# The command that writes to $1, in ${command[@]}.
pretrain_command()
{
    local out=$1
    shift
    command=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 32 --gradient_accumulation_steps 4 \
        --max_steps $last --learning_rate 1e-3 --num_steps_per_checkpoint 10 --keep_checkpoints 0 --eval_steps 7 \
        --log_freq 1 --disable_progress_bar "$@")
}

pretrain()
{
    pretrain_command "$@"
    "${command[@]}"
}

same()
{
    for file in model.safetensors optimizer.safetensors config.json vocab.txt tokenizer_config.json trainer_state.json \
        manifest.json $([ ! -e "$dir/$1/ckpt_$3/fp8.safetensors" ] || echo fp8.safetensors); do
        cmp "$dir/$1/ckpt_$3/$file" "$dir/$2/ckpt_$3/$file" || fail "$file of step $3 differs between $1 and $2"
    done
}

for precision in "" --autocast --fp8; do
    name=run${precision#--}
    pretrain "$name" $precision 2>/dev/null

    pretrain_command "$name-killed" $precision
    start_held "${command[@]}"
    stop_held KILL "$dir/$name-killed"
    [ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
    pretrain "$name-killed" $precision --resume_from_checkpoint 2>"$dir/log"
    grep -q "resumed from" "$dir/log" || fail "nothing was resumed after kill -9"
    same "$name" "$name-killed" $last

    pretrain_command "$name-stopped" $precision
    start_held "${command[@]}"
    stop_held TERM "$dir/$name-stopped"
    [ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status, wanted 75"
    pretrain "$name-stopped" $precision --resume_from_checkpoint 2>/dev/null
    same "$name" "$name-stopped" $last
done

# SIGHUP, of a terminal that goes away, is like SIGTERM, unless it was ignored from the start, as nohup does
pretrain_command hung-up
start_held "${command[@]}"
stop_held HUP "$dir/hung-up"
[ "$status" -eq 75 ] || fail "SIGHUP gave exit code $status, wanted 75"
pretrain hung-up --resume_from_checkpoint 2>/dev/null
same run hung-up $last
# SIGUSR1, which launchers pass on, may come twice
pretrain_command told
start_held "${command[@]}"
await "$pid" compgen -G "$dir/told/ckpt_*" >/dev/null
kill -USR1 "$pid"
stop_held USR1 "$dir/told"
[ "$status" -eq 75 ] || fail "SIGUSR1 gave exit code $status, wanted 75"
pretrain_command nohup
start_held bash -c 'trap "" HUP; exec "$@"' nohup "${command[@]}"
stop_held HUP "$dir/nohup"
[ "$status" -eq 0 ] || fail "SIGHUP that is ignored gave exit code $status, wanted 0"
same run nohup $last

# a pipe that nobody reads is not waited for: the run says so, and trains
mkfifo "$dir/unread"
pretrain_command waiting --json-summary "$dir/unread"
"${patient[@]}" "${command[@]}" >/dev/null 2>"$dir/log" || fail "a pipe without a reader: $(cat "$dir/log")"
grep -q "no process reads it" "$dir/log" || fail "nothing is said of a pipe without a reader: $(cat "$dir/log")"

# another number of threads changes nothing
OMP_NUM_THREADS=1 pretrain one-thread 2>/dev/null
OMP_NUM_THREADS=3 pretrain three-threads 2>/dev/null
same one-thread three-threads $last

# phase 2: another length, batch and rate, on from the end of phase 1; then resumed in the middle of itself
phase2() { pretrain "$@" --phase2 --phase1_end_step $last --resume_from_checkpoint --max_seq_length 48 \
    --max_predictions_per_seq 8 --train_batch_size 16 --learning_rate 5e-4 --max_steps 8; }
phase2 run 2>/dev/null
phase2 run-killed --steps_this_run 3 2>/dev/null
phase2 run-killed 2>"$dir/log"
grep -q "phase 2, 3 steps done" "$dir/log" || fail "phase 2 did not go on at step 3"
same run run-killed $((last + 8))

# so it is in fp8, whose histories go on into the next phase
phase2 runfp8 --fp8 2>/dev/null
phase2 runfp8-killed --fp8 --steps_this_run 3 2>/dev/null
phase2 runfp8-killed --fp8 2>/dev/null
same runfp8 runfp8-killed $((last + 8))
[ -s "$dir/runfp8/ckpt_$((last + 8))/fp8.safetensors" ] || fail "a run in fp8 keeps no histories"
[ ! -e "$dir/run/ckpt_$((last + 8))/fp8.safetensors" ] || fail "a run without fp8 keeps histories"

# what cannot be resumed says why
pretrain run 2>"$dir/log" && fail "an output directory with checkpoints was written over"
grep -q "already has checkpoints of a BertForPreTraining; add --resume_from_checkpoint" "$dir/log" ||
    fail "no reason: $(cat "$dir/log")"
sed 's/"intermediate_size": 128/"intermediate_size": 64/' "$dir/config.json" >"$dir/other.json"
pretrain run --resume_from_checkpoint --phase2 --phase1_end_step $last --config_file "$dir/other.json" 2>"$dir/log" &&
    fail "another architecture was accepted"
grep -q '"intermediate_size" is 128 there and 64 here' "$dir/log" || fail "no reason: $(cat "$dir/log")"

# a damaged newest checkpoint is named, and the one before it is used
printf 'x' | dd of="$dir/run-killed/ckpt_$((last + 8))/model.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
phase2 run-killed 2>"$dir/log"
grep -q "ckpt_$((last + 8)).*model.safetensors" "$dir/log" || fail "the damaged checkpoint was not named: $(cat "$dir/log")"
same run run-killed $((last + 8))
echo "test_resume: all runs equal"
