#!/usr/bin/env bash
# What changes while a run of several ranks goes on, and how a new model begins, have the bits of one rank, with
# --reproducible_ranks, and go on from a checkpoint to the same; so do ranks with equal tokens.
. "$(dirname "$0")/begin_ranks.sh"

pretrain_command()
{
    local n=$1 out=$2
    shift 2
    as_ranks "$n" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --max_seq_length 32 --max_predictions_per_seq 5 --max_steps 8 --learning_rate 1e-3 --num_steps_per_checkpoint 2 \
        --keep_checkpoints 0 --eval_steps 0 --disable_progress_bar "$@"
}
# resumes N OUT STEP flag...: N ranks go on from ckpt_STEP of OUT, as after a kill, and end as it did
resumes()
{
    local n=$1 out=$2 step=$3
    shift 3
    rm -rf "$dir/on"
    mkdir "$dir/on"
    for ((at = 2; at <= step; at += 2)); do cp -r "$dir/$out/ckpt_$at" "$dir/on"; done
    pretrain "$n" on "$@" --resume_from_checkpoint
    grep -q "^resumed from .*ckpt_$step" "$dir/err" || fail "not resumed: $(cat "$dir/err")"
    same_weights "$out/ckpt_8" on/ckpt_8
}

ramp=(--global_batch_size 16 --gradient_accumulation_steps 8 --mask_rate 0.3:0.15 --warmup_tokens 1000 --reproducible_ranks 2)
schedule=("${ramp[@]}" --optimizer muon --no_nsp --sinusoidal_positions --ppmi_embeddings)
pretrain 1 one "${schedule[@]}"
pretrain 2 two "${schedule[@]}" --zero_stage 1
same_weights one/ckpt_8 two/ckpt_8
for key in step_loss learning_rate; do
    [ "$(grep -o "\"$key\":[^,]*" "$dir/one/log.jsonl")" = "$(grep -o "\"$key\":[^,]*" "$dir/two/log.jsonl")" ] ||
        fail "$key differs"
done
resumes 2 two 4 "${schedule[@]}"

# without blocks, beside equal tokens; the sizes of each rank
dealt=(--balance_tokens --train_batch_size 8 --gradient_accumulation_steps 4)
pretrain 2 dealt "${dealt[@]}"
resumes 2 dealt 4 "${dealt[@]}"
echo "test_recipe_ranks: all as it should be"
