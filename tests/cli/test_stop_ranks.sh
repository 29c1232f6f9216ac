#!/usr/bin/env bash
# A signal to one of two ranks within a step of many micro-batches: both give up the step before the same micro-batch, without and
# with shared gradients, and the run that goes on ends with the bits of one that was never stopped.
. "$(dirname "$0")/begin_ranks.sh"
steps=(--max_steps 3)
n_micro=256 # of all ranks
long=(--global_batch_size $((n_micro * 2)) --gradient_accumulation_steps $n_micro --eval_steps 0 --num_steps_per_checkpoint 0)
for stage in 0 2; do
    pretrain 2 "whole$stage" "${long[@]}" --zero_stage $stage
    pretrain_command 1 "cut$stage" "${long[@]}" --zero_stage $stage
    timeout -k 5 60 "${mpi[@]}" -n 1 "${command[@]}" : -n 1 bash -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" "${command[@]}" \
        </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await $pid grep -qs '"event":"step".*"step":1,' "$dir/cut$stage/log.jsonl"
    kill -TERM "$(cat "$dir/pid")"
    wait $pid && status=0 || status=$?
    [ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status: $(cat "$dir/err")"
    # a step that is shorter than the second between decisions ends first
    grep -q "^step 2 is given up after [0-9]* of" "$dir/err" && at=1 || at=2
    grep -q "stopped by a signal after step $at;" "$dir/err" || fail "no reason: $(cat "$dir/err")"
    pretrain 2 "cut$stage" "${long[@]}" --zero_stage $stage --resume_from_checkpoint
    grep -q "^resumed from .*ckpt_$at" "$dir/err" || fail "not resumed: $(cat "$dir/err")"
    same_weights "whole$stage/ckpt_3" "cut$stage/ckpt_3"
done
echo "test_stop_ranks: two ranks give up the same step"
