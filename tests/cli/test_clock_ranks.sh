#!/usr/bin/env bash
# --total_training_time on several ranks: all end after the same step, with the same rates on the way, and go on with the rest.
. "$(dirname "$0")/begin_ranks.sh"

# by the clock of the first rank: all end at the same step and rate, beside equal tokens; what was stopped has the rest
steps=()
timed=(--eval_steps 0 --total_training_time 1 --lr_schedule linear --train_batch_size 8 --gradient_accumulation_steps 4 --balance_tokens
    --num_steps_per_checkpoint 0 --replica_check_steps 1)
state() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" "$(ls -dv "$dir/$2"/ckpt_* | tail -1)/trainer_state.json"; }
pretrain 2 timed "${timed[@]}"
# only the clock ends this run, which has no last step; how late, depends on the machine
awk -v a="$(state elapsed_seconds timed)" 'BEGIN { exit !(a > 0.4) }' || fail "it took $(state elapsed_seconds timed) s in place of 1"
[ -e "$dir/timed/ckpt_$(state step timed)/optimizer-00002-of-00002.safetensors" ] || fail "rank 1 has ended at another step"
pretrain_command 2 timed "${timed[@]}" --resume_from_checkpoint
expect 0 "phase 1 is complete: $(state step timed) steps in" "${command[@]}"
was=$(state step timed) spent=$(state elapsed_seconds timed)
# 2 s more than were spent, however slow the first run's last step was, so that a step fits
pretrain 2 timed "${timed[@]}" --total_training_time "$(awk -v s="$spent" 'BEGIN { print int(s) + 3 }')" --resume_from_checkpoint
awk -v a="$(state step timed)" -v b="$was" -v t="$(state elapsed_seconds timed)" -v s="$spent" \
    'BEGIN { exit !(a > b && t > s) }' ||
    fail "from step $was at $spent s to step $(state step timed) at $(state elapsed_seconds timed) s"
echo "test_clock_ranks: all as it should be"
