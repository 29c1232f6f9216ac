#!/usr/bin/env bash
# `kiln pretrain --balance_tokens`: two ranks with nearly equal tokens of the same sequences train almost the same weights as
# without, and a run that goes on from a checkpoint the same bits; one rank is as it was; what cannot be is refused.
. "$(dirname "$0")/begin_ranks.sh"

pretrain_command()
{
    local n=$1 out=$2
    shift 2
    as_ranks "$n" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --max_seq_length 64 --max_steps 6 --learning_rate 1e-3 --short_seq_prob 0.5 --num_steps_per_checkpoint 3 \
        --keep_checkpoints 0 --eval_steps 0 --disable_progress_bar --global_batch_size 16 --gradient_accumulation_steps 4 "$@"
}
loss() { grep -o '"step_loss":[^,]*' "$dir/$1/log.jsonl" | cut -d: -f2; }

pretrain 2 plain
pretrain 2 balanced --balance_tokens
grep -q '"event":"balance"' "$dir/balanced/log.jsonl" || fail "nothing tells what it gained"
read -r with without < <(sed -n 's/.*"fullest_over_mean":\([0-9.]*\),"without":\([0-9.]*\).*/\1 \2/p' "$dir/balanced/log.jsonl")
awk -v a="$with" -v b="$without" 'BEGIN { exit !(a >= 1 && a < 1.02 && b > 1.04) }' ||
    fail "the fullest rank has $with, without $without"
grep -q "^balance: the fullest rank of a step had $(printf %.4f "$with") times" "$dir/err" || fail "$(cat "$dir/err")"
[ "$(grep -c '^balance:' "$dir/err")" -eq 1 ] || fail "each rank tells it: $(cat "$dir/err")"
paste <(loss plain) <(loss balanced) | awk '{ n++; d = $1 - $2; if (d * d > 1e-8) exit 1 } END { exit n != 6 }' ||
    fail "losses: $(loss plain) with, $(loss balanced) without"
! "$kiln" inspect --diff "$dir/plain/ckpt_6" "$dir/balanced/ckpt_6" >/dev/null 2>&1 || fail "the flag changes nothing"

# gone on from a checkpoint, as after a kill
mkdir "$dir/killed"
cp -r "$dir/balanced/ckpt_3" "$dir/killed"
pretrain 2 killed --balance_tokens --resume_from_checkpoint
same_weights balanced/ckpt_6 killed/ckpt_6

# of one rank it changes nothing
pretrain 1 one
pretrain 1 one-balanced --balance_tokens
same_weights one/ckpt_6 one-balanced/ckpt_6

pretrain_command 1 refused --balance_tokens --reproducible_ranks 2
expect 64 "leave out one of the two" "${command[@]}"
pretrain_command 2 refused --balance_tokens --global_batch_size 15 --gradient_accumulation_steps 3
expect 64 "--gradient_accumulation_steps 3 of --global_batch_size 15 is not a multiple of 2" "${command[@]}"
[ ! -e "$dir/refused" ] || fail "a refused run wrote something"
echo "test_balance: ranks have equal tokens"
