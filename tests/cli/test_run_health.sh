#!/usr/bin/env bash
# Spikes of the gradient's norm in a small model, by a low bound: `kiln pretrain` goes back and leaves their batches out; runs
# that were interrupted before and behind them end with the same bits; too many end the run; wrong flags get a sentence.
. "$(dirname "$0")/begin.sh"
make_store

pretrain_command()
{
    local out=$1
    shift
    command=("${patient[@]}" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out"
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 28 --learning_rate 1e-3
        --num_steps_per_checkpoint 4 --eval_steps 0 --disable_progress_bar "$@")
}
pretrain()
{
    pretrain_command "$@"
    "${command[@]}" </dev/null 2>"$dir/err" || fail "exit code $?: ${command[*]} ($(cat "$dir/err"))"
}
spikes=(--spike_z 3 --spike_window 8 --spike_skip 1)

pretrain whole "${spikes[@]}"
line=$(grep -m 1 "a spike: log(loss) is" "$dir/err") || fail "no spike: $(cat "$dir/err")"
step=$(sed 's/.*step \([0-9]*\): a spike.*/\1/' <<<"$line") back=$(sed 's/.*rolling back to ckpt_\([0-9]*\) and.*/\1/' <<<"$line")
[ "$step" -gt 8 ] && [ "$back" -lt $((step - 1)) ] && [ $((back % 4)) -eq 0 ] || fail "a spike at $step, back to $back"
grep -q "leaving out the batches of steps $((step - 1)) to $step" <<<"$line" || fail "$line"
grep -q "^resumed from .*/ckpt_$back: phase 1, $back steps done" "$dir/err" || fail "it did not go back: $(cat "$dir/err")"
n=$(grep -c "a spike: log(loss) is" "$dir/err")
[ "$(grep -c '"event":"spike".*"left_out_from":' "$dir/whole/log.jsonl")" -eq "$n" ] || fail "the log has other spikes"
grep -q "\"left_out_from\":$((step - 1)),\"left_out_to\":$step,\"back_to_global_step\":$back" "$dir/whole/log.jsonl" ||
    fail "$(grep spike "$dir/whole/log.jsonl")"
grep -q "\"n_skipped\": $((2 * n))" "$dir/whole/ckpt_28/trainer_state.json" ||
    fail "$(cat "$dir/whole/ckpt_28/trainer_state.json")"
# what is left out is met once, before the run goes back, and what comes before it twice, with the same loss
of_step() { grep -o "\"step\":$1,.*\"step_loss\":[^,]*" "$dir/whole/log.jsonl" | sed 's/.*step_loss"://'; }
[ "$(of_step "$step" | wc -l)" -eq 1 ] && [ "$(of_step $((step + 1)) | wc -l)" -ge 1 ] || fail "steps met: $(of_step "$step")"
if [ "$back" -lt $((step - 2)) ]; then
    [ "$(of_step $((back + 1)) | sort -u | wc -l)" -eq 1 ] || fail "another loss: $(of_step $((back + 1)))"
fi

pretrain plain
"$kiln" inspect --diff "$dir/whole/ckpt_28" "$dir/plain/ckpt_28" >/dev/null 2>&1 && fail "leaving out changes nothing"

# stopped one step before the spike, whose checkpoint is in the range left out, and three steps behind it
for stop in $((step - 1)) $((step + 3)); do
    pretrain "to-$stop" "${spikes[@]}" --keep_checkpoints 0 --steps_this_run "$stop"
    pretrain "to-$stop" "${spikes[@]}" --keep_checkpoints 0 --resume_from_checkpoint
    for file in model.safetensors optimizer.safetensors trainer_state.json; do
        cmp "$dir/whole/ckpt_28/$file" "$dir/to-$stop/ckpt_28/$file" || fail "stopped after $stop: another $file"
    done
done

[ $(((step - 1) % 4)) -eq 0 ] || [ ! -e "$dir/to-$((step - 1))/ckpt_$((step - 1))" ] ||
    fail "a checkpoint of the range is still there"

pretrain_command none "${spikes[@]}" --spike_rollbacks 0
expect 99 "after 0 rollbacks (--spike_rollbacks)" "${command[@]}"
grep -q "error: step $step is a spike" "$dir/err" || fail "another step: $(cat "$dir/err")"
pretrain_command late "${spikes[@]}" --num_steps_per_checkpoint 39
expect 99 "has no checkpoint of this phase from before step $((step - 1)) to roll back to" "${command[@]}"

# refused before anything is read
refused()
{
    local text=$1
    shift
    pretrain_command refused --dry_run "${spikes[@]}" "$@"
    expect 64 "$text" "${command[@]}"
}
refused "--spike_z rolls back to checkpoints" --skip_checkpoint
refused "--spike_skip 9 reaches further back than --keep_checkpoints 3: these span 8 steps, with one every 4" --spike_skip 9
refused "spike_window" --spike_window 1
refused "spike_rollbacks" --spike_rollbacks 17
expect 64 "--spike_z cannot be combined with --total_training_time" "$kiln" pretrain --input_dir "$dir/store" --config_file \
    "$dir/config.json" --output_dir "$dir/refused" --total_training_time 60 --spike_z 3
