#!/usr/bin/env bash
# A signal within a step of many micro-batches: the step is given up at once, the last whole one is saved, and the run that goes
# on ends with the bits of one that was never stopped; in fp32 and fp8, of pre-training and fine-tuning; in the first step nothing
# is saved.
. "$(dirname "$0")/begin.sh"
make_store

n_micro=64 # of a step, so that the signal comes within it
pretrain_command()
{
    local out=$1
    shift
    command=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size $((n_micro * 6)) --max_steps 1000 --learning_rate 1e-3 \
        --gradient_accumulation_steps $n_micro --num_steps_per_checkpoint 0 --eval_steps 0 --disable_progress_bar "$@")
}

# has_used TICKS PID: the process has computed for so many hundredths of a second, whatever time that took
has_used() { [ "$(awk '{ print $14 + $15 }' "/proc/$2/stat" 2>/dev/null)" -ge "$1" ]; }

# stop_at STEP OUT: the array `command` gets SIGTERM when STEP - 1 steps are done; $at is the step that it gives up, that one, or a
# later one if this shell is late; empty: the signal came between two.
stop_at()
{
    local step=$1 out=$2 wanted='"event":"start"'
    [ "$step" -eq 1 ] || wanted="\"event\":\"step\".*\"step\":$((step - 1)),"
    "${command[@]}" >/dev/null 2>"$dir/err" &
    pid=$!
    await $pid grep -qs "$wanted" "$dir/$out/log.jsonl"
    [ "$step" -gt 1 ] || await $pid has_used $(($(awk '{ print $14 + $15 }' /proc/$pid/stat) + 20)) $pid # from the log's first line to the step
    kill -TERM $pid
    wait $pid && status=0 || status=$?
    [ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status: $(cat "$dir/err")"
    at=$(sed -n "s/^step \([0-9]*\) is given up after [0-9]* of [0-9]* micro-batches.*/\1/p" "$dir/err")
}

# stops_within STEP OUT: the same until the signal comes within a step. Nothing is saved but the last whole one.
stops_within()
{
    local step=$1 out=$2 tries=20
    stop_at "$step" "$out"
    while [ -z "$at" ] && [ $((tries -= 1)) -gt 0 ]; do
        rm -rf "${dir:?}/$out"
        stop_at "$step" "$out"
    done
    [ -n "$at" ] || fail "step $step was not given up soon: $(cat "$dir/err")"
    [ "$(cd "$dir/$out" && ls -d ckpt_* 2>/dev/null)" = "$([ "$at" -eq 1 ] || echo ckpt_$((at - 1)))" ] ||
        fail "checkpoints after $((at - 1)) steps: $(ls "$dir/$out")"
}

# same A B CKPT: every file of it, but for the one that says when it was saved and by which command
same()
{
    diff -r -x run.json "$dir/$1/$3" "$dir/$2/$3" || fail "$3 differs between $1 and $2"
}

for precision in "" --fp8; do
    pretrain_command "cut$precision" $precision
    stops_within 2 "cut$precision"
    pretrain_command "whole$precision" $precision --num_steps_per_checkpoint 1 --keep_checkpoints 0 --steps_this_run "$at"
    "${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
    same "whole$precision" "cut$precision" ckpt_$((at - 1))
    pretrain_command "cut$precision" $precision --resume_from_checkpoint --steps_this_run "$at"
    expect 0 "resumed from $dir/cut$precision/ckpt_$((at - 1))" "${command[@]}"
    same "whole$precision" "cut$precision" "ckpt_$at"
done

# without a whole step there is nothing to save, and the same command begins again; of a resumed run its checkpoint stays as it is
pretrain_command begun --train_batch_size $((n_micro * 48)) # so that the first step is long
stops_within 1 begun
grep -q "stopped by a signal within the first step; start the same command" "$dir/err" || fail "$(cat "$dir/err")"
pretrain_command begun --steps_this_run 1
expect 0 "saved" "${command[@]}"
cksum "$dir"/begun/ckpt_1/* >"$dir/before"
pretrain_command begun --resume_from_checkpoint --keep_checkpoints 0
rm "$dir/begun/log.jsonl"
"${command[@]}" >/dev/null 2>"$dir/err" &
pid=$!
await $pid grep -qs '"event":"start"' "$dir/begun/log.jsonl"
kill -TERM $pid
wait $pid && status=0 || status=$?
[ "$status" -eq 75 ] || fail "exit code $status: $(cat "$dir/err")"
if grep -qE "step 2 is given up|before the first step" "$dir/err"; then
    ! grep -q "^saved" "$dir/err" || fail "ckpt_1 was saved again: $(cat "$dir/err")"
else # this shell was late
    rm -rf "$dir"/begun/ckpt_{[02-9],[1-9]?}*
fi
cksum "$dir"/begun/ckpt_1/* | cmp - "$dir/before" || fail "ckpt_1 was saved again: $(cat "$dir/err")"
expect 0 "resumed from $dir/begun/ckpt_1" "${command[@]}" --steps_this_run 2
same whole begun ckpt_2

# fine-tuning goes through the same loop; its steps here are so short that the signal may come between two, or after all, so its log
# holds it: the 12 lines of the start and half of the steps' fit
make_questions
squad_command()
{
    local out=$1
    shift
    command=("$kiln" squad --init_checkpoint "$dir/whole/ckpt_2" --output_dir "$dir/$out" --do_train \
        --train_file "$dir/questions.json" \
        --max_seq_length 32 --max_query_length 8 --doc_stride 16 --train_batch_size 192 --gradient_accumulation_steps $n_micro \
        --num_train_epochs 12 --log_freq 1 --disable-progress-bar "$@")
}
squad_command tuned
"${command[@]}" >/dev/null 2>"$dir/log" || fail "$(cat "$dir/log")"
squad_command tuned-cut
room=$(($(wc -c <"$dir/log") * 2 / 3)) start_held "${command[@]}"
stop_held TERM "$dir/tuned-cut" grep -qs '"event":"step".*"step":1,' "$dir/tuned-cut/log.jsonl"
[ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status"
squad_command tuned-cut --resume_from_checkpoint
expect 0 "resumed from" "${command[@]}"
cmp "$dir/tuned/model/model.safetensors" "$dir/tuned-cut/model/model.safetensors" || fail "the fine-tuned models differ"
echo "test_stop: steps are given up and taken again"
