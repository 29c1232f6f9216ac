#!/usr/bin/env bash
# --average_last on several ranks: the mean of checkpoints is that of one rank, is a model for every command, and is the same
# after a kill.
. "$(dirname "$0")/begin_ranks.sh"
steps=(--max_steps 8)

# the mean of checkpoints: each rank that of its slices, and all of them a model; the same after a kill
mean=(--num_steps_per_checkpoint 2 --global_batch_size 16 --gradient_accumulation_steps 8 --reproducible_ranks 2
    --average_last 3 --keep_checkpoints 3 --eval_steps 8)
pretrain 1 one-mean "${mean[@]}"
pretrain 2 two-mean "${mean[@]}"
grep -q "average_8: the mean of 3 checkpoints" "$dir/err" || fail "$(cat "$dir/err")"
[ "$(grep -c "average_8 held-out" "$dir/err")" -eq 1 ] || fail "the mean was not evaluated, or by each rank: $(cat "$dir/err")"
[ "$(cd "$dir/two-mean" && echo average_* ckpt_*)" = "average_4 average_6 average_8 ckpt_4 ckpt_6 ckpt_8" ] ||
    fail "$(ls "$dir/two-mean")"
for step in 4 8; do same_weights one-mean/average_$step two-mean/average_$step; done
! "$kiln" inspect --diff "$dir/two-mean/average_8" "$dir/two-mean/ckpt_8" >/dev/null 2>&1 || fail "the mean is the last"
expect 0 "" "$kiln" fill --model "$dir/two-mean/average_8" "the king went to the [MASK]"
expect 0 "" "$kiln" export --model "$dir/two-mean/average_8" --output_dir "$dir/exported"
pretrain 1 on --init_checkpoint "$dir/two-mean/average_8"
cp -r "$dir/two-mean/average_8" "$dir/exported/ckpt_8"
pretrain_command 1 exported --resume_from_checkpoint
expect 66 "holds a model without the state of a run, so no run can resume from it" "${command[@]}"
rm -r "$dir"/two-mean/{average,ckpt}_8
pretrain 2 two-mean "${mean[@]}" --zero_stage 1 --resume_from_checkpoint
same_weights one-mean/average_8 two-mean/average_8
echo "test_average_ranks: all as it should be"
