#!/usr/bin/env bash
# Ranks are one run: where one of them has another setting, model, start, data, directory or kernels, all end before the first
# step, and the error names the rank, the thing and both values; a rank never ends without a word.
. "$(dirname "$0")/begin_ranks.sh"
sed 's/"intermediate_size": *[0-9]*/"intermediate_size": 48/' "$dir/config.json" >"$dir/wide.json"
train=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --max_steps 2 --train_batch_size 4 --eval_steps 0 --disable_progress_bar)

# differ CODE MESSAGE flag...: rank 1 has these flags as well
differ()
{
    local code=$1 message=$2
    shift 2
    expect "$code" "$message" "${patient[@]}" "${mpi[@]}" -n 1 "${train[@]}" --output_dir "$dir/o" : -n 1 "${train[@]}" \
        --output_dir "$dir/o" "$@"
    [ -z "$(find "$dir/o" -name 'ckpt_*' 2>/dev/null)" ] || fail "a checkpoint was saved with rank 1 as $*"
    [ "$(grep -c 'kiln: error' "$dir/err")" -eq 1 ] || fail "not one error: $(cat "$dir/err")"
}
differ 64 'rank 1 of 2: --learning_rate is 0.1 here, but 5e-5 on rank 0' --learning_rate 0.1
differ 64 'rank 1 of 2: --skip_checkpoint is true here, but false on rank 0' --skip_checkpoint
differ 64 'rank 1 of 2: unknown flag --nonsense' --nonsense
differ 65 "rank 1 of 2: \"intermediate_size\" of the model's configuration is 48 here" --config_file "$dir/wide.json"
differ 65 'rank 1 of 2: the directory of --output_dir is inode' --output_dir "$dir"

# a copy of the store that was damaged on another node: rank 1 checks what only it reads
cp -r "$dir/store" "$dir/copy"
printf '\377\377\377\377' | dd of="$dir/copy/train.bin" bs=1 seek=100 conv=notrunc 2>/dev/null
differ 65 "rank 1 of 2: $dir/copy/train.bin" --input_dir "$dir/copy"

# rank 0 is not there
expect 69 'WORLD_SIZE is 2' env RANK=1 WORLD_SIZE=2 "${train[@]}" --output_dir "$dir/o"
expect 64 'unknown flag --nonsense' env RANK=3 "$kiln" pretrain --nonsense
