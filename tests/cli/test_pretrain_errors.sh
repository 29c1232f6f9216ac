#!/usr/bin/env bash
# What `kiln pretrain` and `kiln fill` say when the world is wrong: exit code, the file or flag, and the way out.
. "$(dirname "$0")/begin.sh"
make_store

flags=(--input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --train_batch_size 8 --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar)

pretrain() { "$kiln" pretrain "${flags[@]}" --output_dir "$dir/run" --max_steps 4 "$@"; }

expect 64 "needs --input_dir" "$kiln" pretrain
expect 65 "does not exist" pretrain --input_dir "$dir/none"
expect 65 "none.json" pretrain --config_file "$dir/none.json"
echo '{"hidden_size": 64, "num_attention_heads": 3}' >"$dir/bad.json"
expect 65 'not a multiple of "num_attention_heads" 3' pretrain --config_file "$dir/bad.json"
echo '{"hidden_size": "big"}' >"$dir/bad.json"
expect 65 '"hidden_size" must be a whole number, but is a string' pretrain --config_file "$dir/bad.json"
echo '{"hidden_size": 64, "hidden_size": 64}' >"$dir/bad.json"
expect 65 "duplicate" pretrain --config_file "$dir/bad.json"
echo '{"hidden_size": 64, "num_attention_heads": 2, "vocab_size": 77}' >"$dir/bad.json"
expect 65 '"vocab_size" 77' pretrain --config_file "$dir/bad.json"
expect 65 "fewer than --max_seq_length 128" pretrain --max_seq_length 128
expect 64 "not a positive multiple of gradient_accumulation_steps" pretrain --gradient_accumulation_steps 3
expect 64 "must be one of lamb|nvlamb_exp|ds_fused_lamb|lans|adam|adamw" pretrain --optimizer adagrad
expect 64 "--phase2 continues phase 1" pretrain --phase2
expect 66 "for --resume_step 3; leave the flag out" pretrain --resume_from_checkpoint --resume_step 3
expect 66 "has no checkpoint" pretrain --phase2 --phase1_end_step 4 --resume_from_checkpoint
echo \
    '{"hidden_size": 65536, "num_attention_heads": 64, "num_hidden_layers": 64, "intermediate_size": 262144, "max_position_embeddings": 64}' >"$dir/bad.json"
expect 71 "not even one sequence at a time would fit" pretrain --config_file "$dir/bad.json"
# 4.7 TiB of activations, of batches that a laptop holds; which flags make it fit depends on the machine
too_large=(--config_file mini --train_batch_size 2000000)
expect 71 "it fits with --" pretrain "${too_large[@]}"
grep -qE 'it fits with .*--gradient_accumulation_steps [0-9]+ ' "$dir/err" || fail "no number of steps: $(cat "$dir/err")"
expect 0 "it fits with --" pretrain "${too_large[@]}" --dry_run
[ ! -e "$dir/run/log.jsonl" ] || fail "a refused run left a log"

# a dry run says what would happen and touches nothing
expect 0 "M parameters" pretrain --output_dir "$dir/dry" --dry_run
[ ! -e "$dir/dry" ] || fail "--dry_run made a directory"

# another vocabulary than the store's
sed 's/^city$/cities/' "$dir/store/vocab.txt" >"$dir/vocab2.txt"
cp -r "$dir/store" "$dir/store2"
cp "$dir/vocab2.txt" "$dir/store2/vocab.txt"
expect 65 "vocabulary" pretrain --input_dir "$dir/store2"
truncate -s -1 "$dir/store2/train.bin"
cp "$dir/store/vocab.txt" "$dir/store2/vocab.txt"
expect 65 "train" pretrain --input_dir "$dir/store2"

# learning that blows up: one gradient is made infinite by a rate that no float survives
expect 99 "first tensor that is not finite" pretrain --learning_rate 100 --warmup_proportion 0 --optimizer adamw \
    --weight_decay 10 --max_grad_norm 0 --lr_schedule constant --max_steps 400 --output_dir "$dir/nan" --skip_checkpoint

# two runs in one directory
"$kiln" pretrain "${flags[@]}" --output_dir "$dir/busy" --max_steps 100000 --num_steps_per_checkpoint 0 2>/dev/null &
owner=$!
await $owner [ -s "$dir/busy/log.jsonl" ]
expect 74 "$owner" pretrain --output_dir "$dir/busy"
kill -9 "$owner"
wait "$owner" 2>/dev/null || true

# a full disk: training goes on, the older checkpoint stays whole
if mkdir "$dir/small" && mount -t tmpfs -o size=3m tmpfs "$dir/small" 2>/dev/null; then
    mounted=$dir/small
    expect 74 "free some or keep fewer checkpoints" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/small/run" \
        --max_steps 6 --num_steps_per_checkpoint 1 --keep_checkpoints 0 --log_freq 1
    grep -q "training continues, older checkpoints are intact" "$dir/err" || fail "the failed save was not reported"
    grep -q "5/6 loss" "$dir/err" || fail "training did not go on"
    "$kiln" inspect "$dir/small/run/ckpt_1" >/dev/null || fail "the older checkpoint is damaged"
else
    echo "the full disk was not tried: tmpfs cannot be mounted here"
fi

# fill
pretrain 2>/dev/null
expect 65 "no [MASK]" "$kiln" fill --model "$dir/run/ckpt_4" "the king"
expect 65 "reads at most 64" "$kiln" fill --model "$dir/run/ckpt_4" "[MASK] $(yes the | head -80 | tr '\n' ' ')"
expect 65 "config.json" "$kiln" fill --model "$dir/none" "the [MASK]"
expect 0 "[MASK] 2 of 2" "$kiln" fill --model "$dir/run/ckpt_4" "the [MASK] of [MASK]"
truncate -s 5000 "$dir/run/ckpt_4/model.safetensors"
expect 65 "model.safetensors" "$kiln" fill --model "$dir/run/ckpt_4" "the [MASK]"
echo "test_pretrain_errors: all refused as they should be"
