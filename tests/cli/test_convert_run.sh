#!/usr/bin/env bash
# A run that kiln began goes back to the replaced scripts: kiln convert writes the moments and the step into ckpt_N.pt and into a
# folder of DeepSpeed's, from which a run goes on to the same bits.
. "$(dirname "$0")/begin.sh"
make_store
cd "$dir"

flags=(--config_file config.json --input_dir store --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8
    --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar --num_steps_per_checkpoint 2)
pretrain() { "$kiln" pretrain --output_dir "$1" "${flags[@]}" "${@:2}" >out 2>err || fail "$(cat err)"; }

# goes_on FORMAT CHECKPOINT WANTED MORE...: converted, and resumed by the flags MORE, it becomes WANTED
goes_on()
{
    local as=$1 from=$2 wanted=$3 file
    shift 3
    rm -rf back
    # shellcheck disable=SC2086
    expect 0 "read back: all weights, moments and steps are the same, bit by bit" \
        "$kiln" convert --model "$from" --format $as --output_dir back
    grep -q "^not written: a loss scale, and the place in the data" out || fail "nothing is said of what is left out: $(cat out)"
    pretrain back --vocab_file vocab.txt --resume_from_checkpoint "$@"
    for file in model.safetensors optimizer.safetensors; do
        cmp "$wanted/$file" "back/${wanted##*/}/$file" || fail "$as of $from goes on otherwise: $file"
    done
}

forms=("pt --optimizer" "deepspeed" "deepspeed --ranks 3")
pretrain run --max_steps 4
for as in "${forms[@]}"; do
    goes_on "$as" run/ckpt_2 run/ckpt_4 --max_steps 4
done
pretrain run --max_steps 4 --phase2 --phase1_end_step 4 --resume_from_checkpoint
for as in "${forms[@]}"; do
    goes_on "$as" run/ckpt_6 run/ckpt_8 --max_steps 4 --phase2 --phase1_end_step 4
done
[ "$(cat back/latest)" = 6 ] && [ "$(find back/6 -name 'bf16_zero_pp_rank_*' | wc -l)" = 3 ] || fail "$(ls back back/6)"

# a folder is replaced, another program's model has no state, and each format says what it can
expect 0 "" "$kiln" convert --model run/ckpt_6 --format deepspeed --output_dir again
expect 0 "" "$kiln" convert --model run/ckpt_6 --format deepspeed --output_dir again
expect 64 "which is not part of a checkpoint of DeepSpeed" "$kiln" convert --model run/ckpt_4 --format deepspeed --output_dir again
expect 0 "" "$kiln" convert --model run/ckpt_6 --format huggingface --output_dir hf
expect 65 "hf is not a checkpoint of kiln, so it has no state of a run to write" \
    "$kiln" convert --model hf --format deepspeed --output_dir none
expect 64 "--optimizer needs --format pt, deepspeed or universal, not huggingface" \
    "$kiln" convert --model run/ckpt_6 --format huggingface --optimizer --output_dir none
[ ! -e none ] || fail "a failed conversion wrote something"
echo "test_convert_run: all went on"
