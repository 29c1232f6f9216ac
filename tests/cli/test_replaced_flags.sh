#!/usr/bin/env bash
# Command lines of run_pretraining.py and run_squad.py run as they stand: what has no meaning here says so, what asks for
# another computation is refused, and recomputing activations changes no bit of a checkpoint.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
make_store
export OMP_NUM_THREADS=1

# the README's phase 1, with every flag of the script that is not about a device
reference=(--do_train --bert_model=bert-base-uncased --autocast --config_file="$dir/config.json" --use_habana
    --allreduce_post_accumulation --allreduce_post_accumulation_fp16 --json-summary="$dir/run/dllogger.json"
    --output_dir="$dir/run" --use_fused_lamb --input_dir "$dir/store" --train_batch_size 8 --max_seq_length 32
    --max_predictions_per_seq 5 --max_steps 3.0 --warmup_proportion 0.2843 --num_steps_per_checkpoint 200
    --learning_rate 0.006 --gradient_accumulation_steps 2 --enable_packed_data_mode False --log_freq 1.0
    --num_train_epochs 3.0 --local_rank -1 --seed 42 --tf32 --loss_scale 0.0 --init_loss_scale 1048576 --use_env
    --use_lazy_mode True --use-hpu-graphs False --use_torch_compile --log_memory_usage True --use_zero_optimizer False
    --steps_this_run -1 --resume_step -1 --profile False --profile_steps 0 --tensorboard_logdir "$dir/profile" --no_cuda)
expect 0 "--use_habana has no meaning here and is ignored" "$kiln" pretrain "${reference[@]}"
[ -s "$dir/run/ckpt_3/model.safetensors" ] || fail "no checkpoint"
grep -q '^DLLL ' "$dir/run/dllogger.json" || fail "no dllogger lines"
[ ! -e "$dir/profile" ] || fail "--profile False profiled"
expect 64 "computes in bf16" "$kiln" pretrain "${reference[@]}" --fp16
for flag in --fp16 --amp; do
    expect 64 "the cpu does not compute in fp16; --autocast" "$kiln" squad --init_checkpoint "$dir/run/ckpt_3" \
        --output_dir "$dir/answers" --do_predict --predict_file "$dir/none.json" --autocast $flag
done
expect 64 "clipped at their global norm" "$kiln" squad --per_param_grad_clipping

flags=(--input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --train_batch_size 8 --learning_rate 1e-3 --eval_steps 0 --max_steps 3)
expect 0 "MiB" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/all"
expect 0 "MiB" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/few" --checkpoint_activations
for name in model optimizer; do
    cmp "$dir/all/ckpt_3/$name.safetensors" "$dir/few/ckpt_3/$name.safetensors" || fail "other bits in $name"
done
