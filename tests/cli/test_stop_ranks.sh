#!/usr/bin/env bash
# A signal to one of two ranks within a step of many micro-batches: both give up the step before the same micro-batch, without and
# with shared gradients, and the run that goes on ends with the bits of one that was never stopped.
. "$(dirname "$0")/begin_ranks.sh"
steps=(--max_steps 1000)
n_micro=256 # of all ranks
long=(--global_batch_size $((n_micro * 2)) --gradient_accumulation_steps $n_micro --eval_steps 0 --num_steps_per_checkpoint 0)
for stage in 0 2; do
    pretrain_command 1 "cut$stage" "${long[@]}" --zero_stage $stage
    "${patient[@]}" "${mpi[@]}" -n 1 "${command[@]}" : -n 1 bash -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" "${command[@]}" \
        </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await $pid grep -qs '"event":"step".*"step":1,' "$dir/cut$stage/log.jsonl"
    kill -TERM "$(cat "$dir/pid")"
    wait $pid && status=0 || status=$?
    [ "$status" -eq 75 ] || fail "SIGTERM gave exit code $status: $(cat "$dir/err")"
    # a step that is shorter than the second between decisions ends first, and more do if this shell is late
    at=$(sed -n "s/.*stopped by a signal after step \([0-9]*\);.*/\1/p" "$dir/err")
    given_up=$(sed -n "s/^step \([0-9]*\) is given up after [0-9]* of.*/\1/p" "$dir/err")
    [ "${at:-0}" -ge 1 ] && [ "${given_up:-$((at + 1))}" -eq $((at + 1)) ] || fail "no reason: $(cat "$dir/err")"
    pretrain 2 "cut$stage" "${long[@]}" --zero_stage $stage --resume_from_checkpoint --steps_this_run $((at + 1))
    grep -q "^resumed from .*ckpt_$at" "$dir/err" || fail "not resumed: $(cat "$dir/err")"
    pretrain 2 "whole$stage" "${long[@]}" --zero_stage $stage --steps_this_run $((at + 1))
    same_weights "whole$stage/ckpt_$((at + 1))" "cut$stage/ckpt_$((at + 1))"
done
echo "test_stop_ranks: two ranks give up the same step"
