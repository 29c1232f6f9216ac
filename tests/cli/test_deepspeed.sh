#!/usr/bin/env bash
# `kiln pretrain --deepspeed`: each key of DeepSpeed's JSON is used, translated or named, and what is not supported is
# refused by the name of the key.
. "$(dirname "$0")/begin.sh"
make_store
train=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32
    --max_predictions_per_seq 5 --max_steps 8 --num_steps_per_checkpoint 2 --eval_steps 0 --deepspeed
    --deepspeed_config "$dir/ds.json" --learning_rate 1e-3 --disable_progress_bar)

json() { echo "$1" >"$dir/ds.json"; }
# rates DIR: the learning rate of each step
rates() { sed -n 's/.*"learning_rate": *\([0-9.e+-]*\).*/\1/p' "$1/log.jsonl" | tail -n +2 | awk '{ printf "%.6g ", $1 }'; }

# the documents' file, smaller; their schedule: two steps of warm-up, two of the peak, four on a line to 0
json '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "steps_per_print": 48, "gradient_clipping": 1.0,
  "tensorboard": {"enabled": true, "output_path": "'"$dir"'/t", "job_name": "j"}, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}'
expect 0 '"zero_allow_untested_optimizer" has no meaning here: ranks share the ' "${train[@]}" --output_dir "$dir/a" \
    --optimizer nvlamb --use_lr_scheduler --warmup_proportion 0.25 --constant_proportion 0.25 --run_loss_in_fp32
grep -q "bf16, lamb" "$dir/err" || fail "precision and optimizer: $(cat "$dir/err")"
grep -q "ZeRO stage 1 has no effect with one rank" "$dir/err" || fail "ZeRO is not told"
[ "$(rates "$dir/a")" = "0.0005 0.001 0.001 0.001 0.00075 0.0005 0.00025 0 " ] || fail "rates: $(rates "$dir/a")"
[ "$(echo "$dir"/a/ckpt_*)" = "$dir/a/ckpt_2 $dir/a/ckpt_4 $dir/a/ckpt_6 $dir/a/ckpt_8" ] || fail "checkpoints were pruned"
compgen -G "$dir/t/j/*tfevents*" >/dev/null || fail "no event file"
[ ! -e "$dir/a/worker_0" ] || fail "event files of the other script"

# the same by kiln's own flags: the same bits
expect 0 "saved" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 \
    --max_predictions_per_seq 5 --max_steps 8 --num_steps_per_checkpoint 2 --eval_steps 0 --output_dir "$dir/b" \
    --train_batch_size 16 --gradient_accumulation_steps 4 --autocast --learning_rate 1e-3 --lr_schedule poly_constant \
    --warmup_proportion 0.25 --constant_proportion 0.25 --scheduler_degree 1
cmp "$dir/a/ckpt_8/model.safetensors" "$dir/b/ckpt_8/model.safetensors" || fail "other weights than by flags"
# event files that cannot be written are named, and end nothing
json '{"train_batch_size": 16, "tensorboard": {"enabled": true, "output_path": "'"$dir"'/vocab.txt", "job_name": "j"}}'
expect 0 'training continues without this log' "${train[@]}" --output_dir "$dir/no_events" --optimizer nvlamb --max_steps 2
[ ! -s "$dir/out" ] || fail "lines without --json-summary: $(cat "$dir/out")"
json '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0, "bf16": {"enabled": true}}'

# and in the order of the store others
expect 0 "saved" "${train[@]}" --output_dir "$dir/order" --optimizer nvlamb --use_lr_scheduler --warmup_proportion 0.25 \
    --constant_proportion 0.25 --disable_random_sampler
cmp -s "$dir/a/ckpt_8/model.safetensors" "$dir/order/ckpt_8/model.safetensors" && fail "the order changed nothing"

# LANS by the flags of the documents: other weights by the same rates, and resumed to the bit
lans=("${train[@]}" --optimizer=lans --use_lr_scheduler --warmup_proportion 0.25 --constant_proportion 0.25)
expect 0 "bf16, lans" "${lans[@]}" --output_dir "$dir/lans"
[ "$(rates "$dir/lans")" = "$(rates "$dir/a")" ] || fail "rates of LANS: $(rates "$dir/lans")"
cmp -s "$dir/a/ckpt_8/model.safetensors" "$dir/lans/ckpt_8/model.safetensors" && fail "LANS is LAMB"
expect 0 "saved" "${lans[@]}" --output_dir "$dir/lans_cut" --steps_this_run 4
expect 0 "saved" "${lans[@]}" --output_dir "$dir/lans_cut" --resume_from_checkpoint
for file in model.safetensors optimizer.safetensors; do
    cmp "$dir/lans/ckpt_8/$file" "$dir/lans_cut/ckpt_8/$file" || fail "LANS resumed to another $file"
done

# nvlamb_exp, with the moments corrected and with whole steps; torch's Adam
exp=("${train[@]}" --use_lr_scheduler --warmup_proportion 0.25 --optimizer nvlamb_exp)
expect 0 "bf16, nvlamb_exp" "${exp[@]}" --output_dir "$dir/exp"
grep -q '"adam_eps": *1e-08\|"adam_eps": *1e-8' "$dir/exp/log.jsonl" || fail "the script's eps"
expect 0 "saved" "${exp[@]}" --output_dir "$dir/exp_steps" --use_ds_lamb_bias_correction
cmp -s "$dir/exp/ckpt_8/model.safetensors" "$dir/exp_steps/ckpt_8/model.safetensors" && fail "the correction changed nothing"
expect 0 "bf16, adam" "${train[@]}" --use_lr_scheduler --optimizer adam --output_dir "$dir/adam"

# the file's own optimizer and scheduler; the first step is taken at the optimizer's rate
json '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
  "optimizer": {"type": "Adam", "params": {"lr": 2e-4, "betas": [0.9, 0.95], "eps": 1e-8}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 1e-3, "warmup_num_steps": 2,
    "total_num_steps": 10, "warmup_type": "linear"}}}'
json_train=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32
    --max_predictions_per_seq 5 --max_steps 6 --eval_steps 0 --deepspeed --deepspeed_config "$dir/ds.json")
expect 0 "fp32, adamw" "${json_train[@]}" --output_dir "$dir/c"
[ "$(rates "$dir/c")" = "0.0002 0 0.0005 0.001 0.000875 0.00075 " ] || fail "rates: $(rates "$dir/c")"
grep -q '"adam_beta2": *0.95' "$dir/c/log.jsonl" || fail "betas of the file"
sed 's/"warmup_num_steps": 2/"warmup_num_steps": 1/' "$dir/ds.json" >"$dir/ds_1.json" # DeepSpeed warms up for at least 2 steps
expect 0 "fp32, adamw" "${json_train[@]}" --deepspeed_config "$dir/ds_1.json" --output_dir "$dir/c_1"
[ "$(rates "$dir/c_1")" = "$(rates "$dir/c")" ] || fail "a warm-up of one step: $(rates "$dir/c_1")"
expect 0 'optimizer replaces "optimizer"' "${json_train[@]}" --output_dir "$dir/d" --optimizer lamb --betas 0.9 0.98 --dry_run
expect 0 'the schedule of the flags replaces "scheduler"' "${json_train[@]}" --output_dir "$dir/d" --use_lr_scheduler --dry_run
json '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 2e-4}}}'
expect 0 "saved" "${json_train[@]}" --output_dir "$dir/e"
json '{"train_batch_size": 8, "optimizer": {"type": "LANS", "params": {"lr": 2e-4}}}'
expect 0 "fp32, lans" "${json_train[@]}" --output_dir "$dir/f" --dry_run
json '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-4, "adam_w_mode": false}}}'
expect 0 "fp32, adam" "${json_train[@]}" --output_dir "$dir/f" --dry_run
grep -q "fp32, adam$" "$dir/err" || fail "decay in the gradient: $(cat "$dir/err")"
# DeepSpeed's own Lamb: the script's and the file's are the same update, by whole steps; and its bounds count
json '{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"lr": 1e-3}}}'
expect 0 "fp32, ds_fused_lamb" "${json_train[@]}" --output_dir "$dir/lamb_file"
expect 0 "optimizer replaces" "${json_train[@]}" --output_dir "$dir/lamb_flag" --optimizer ds_fused_lamb --learning_rate 1e-3
cmp "$dir/lamb_file/ckpt_6/model.safetensors" "$dir/lamb_flag/ckpt_6/model.safetensors" || fail "two ways to DeepSpeed's Lamb"
expect 0 "saved" "${json_train[@]}" --output_dir "$dir/lamb_exp" --optimizer nvlamb_exp --use_ds_lamb_bias_correction \
    --learning_rate 1e-3
cmp "$dir/lamb_file/ckpt_6/model.safetensors" "$dir/lamb_exp/ckpt_6/model.safetensors" || fail "the script's copy of it"
json '{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"lr": 1e-3, "max_coeff": 0.3}}}'
expect 0 "saved" "${json_train[@]}" --output_dir "$dir/lamb_bound"
cmp -s "$dir/lamb_file/ckpt_6/model.safetensors" "$dir/lamb_bound/ckpt_6/model.safetensors" && fail "max_coeff changed nothing"
[ "$(rates "$dir/e")" = "0.0002 0.0002 0.0002 0.0002 0.0002 0.0002 " ] || fail "without a scheduler: $(rates "$dir/e")"

# keys that contradict each other, unknown keys, wrong values, keys that are not there yet
# comments, as DeepSpeed reads them; "auto" is as if it were not given; what decides on memory is told
json '{ // of a line
  "train_batch_size": 16, # another
  "train_micro_batch_size_per_gpu": "auto", /* of
  several */ "bf16": {"enabled": "auto"}, "gradient_clipping": 1.0, "wall_clock_breakdown": "auto",
  "tensorboard": {"enabled": false, "job_name": "a // b # c /* d"}, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
  "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"}}}'
expect 0 'kiln ignores these keys: train_micro_batch_size_per_gpu, enabled, wall_clock_breakdown, lr' "${train[@]}" \
    --output_dir "$dir/auto" --dry_run
grep -q 'kiln does not do "zero_optimization.offload_optimizer.device"' "$dir/err" ||
    fail "offloading is passed over: $(cat "$dir/err")"
! grep -q 'kiln does not do "zero_optimization.offload_param.device"' "$dir/err" || fail "what is off is no loss"

refused() # CODE TEXT JSON
{
    json "$3"
    expect "$1" "$2" "${train[@]}" --output_dir "$dir/none" --optimizer nvlamb --dry_run
}
refused 65 '"train_batch_size" 16 is not "train_micro_batch_size_per_gpu" 4 times' \
    '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3}'
refused 65 '"train_batch_size" 18 is not' '{"train_batch_size": 18, "train_micro_batch_size_per_gpu": 4}'
refused 65 '"train_batch_size" 2 is less than one sequence for each micro-batch of one rank' \
    '{"train_batch_size": 2, "gradient_accumulation_steps": 4}'
refused 65 'has no batch size' '{"gradient_accumulation_steps": 4}'
refused 65 '"bf16" and "fp16" are both enabled' '{"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}}'
refused 65 'unknown key "gradient_cliping"' '{"train_batch_size": 8, "gradient_cliping": 1.0}'
refused 65 'unknown key "zero_optimization.stages"' '{"train_batch_size": 8, "zero_optimization": {"stages": 1}}'
refused 65 '"zero_optimization.stage" is 4' '{"train_batch_size": 8, "zero_optimization": {"stage": 4}}'
refused 65 '"train_batch_size" is 0' '{"train_batch_size": 0}'
refused 65 'has no batch size: give "train_batch_size" and "train_micro_batch_size_per_gpu" as numbers instead of "auto"' \
    '{"train_batch_size": "auto"}'
refused 69 '"zero_optimization.stage" 3 is not supported' '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}'
refused 65 '"train_batch_size" must be a whole number' '{"train_batch_size": "eight"}'
refused 65 'ds.json is not valid JSON' '{"train_batch_size": 8 /* and no end }'
refused 65 '"fp16" must be an object' '{"train_batch_size": 8, "fp16": true}'
refused 65 '"tensorboard.job_name" are longer than 1023 bytes' \
    '{"train_batch_size": 8, "tensorboard": {"enabled": true, "output_path": "'"$(printf 'x%.0s' {1..1020})"'", "job_name": "long"}}'
refused 65 '"job_name" must be a string' '{"train_batch_size": 8, "tensorboard": {"enabled": true, "job_name": 5}}'
refused 65 '"steps_per_print" is 0, but must be at least 1' '{"train_batch_size": 8, "steps_per_print": 0}'
refused 65 'ds.json' '{"train_batch_size": 8,, "bf16": {"enabled": true}}'
refused 65 '"warmup_type" is "cosine"' \
    '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cosine"}}}'
refused 65 '"total_num_steps" belongs to WarmupDecayLR' \
    '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {}}}'
refused 69 'scheduler OneCycle is not supported yet' '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {}}}'
refused 69 '"curriculum_learning" is not supported yet' '{"train_batch_size": 8, "curriculum_learning": {"enabled": true}}'
refused 65 'a "hysteresis" of 0' '{"train_batch_size": 8, "fp16": {"enabled": true, "hysteresis": 0}}'
refused 65 '"min_loss_scale" 8 is above the first scale, 4' '{"train_batch_size": 8, "fp16": {"initial_scale_power": 2, "min_loss_scale": 8}}'
refused 64 'the cpu does not compute in fp16; --autocast' '{"train_batch_size": 8, "fp16": {"enabled": true}}'
json '{"train_batch_size": 8, "optimizer": {"type": "OneBitLamb", "params": {}}}'
expect 69 'optimizer OneBitLamb is not supported yet' "${json_train[@]}" --output_dir "$dir/none" --dry_run
json '{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"max_coeff": 0.3, "min_coeff": 0.4}}}'
expect 65 '"min_coeff" is 0.4 and "max_coeff" is 0.3' "${json_train[@]}" --output_dir "$dir/none" --dry_run
json '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"max_coeff": 0.3}}}'
expect 65 'belong to the optimizer Lamb' "${json_train[@]}" --output_dir "$dir/none" --dry_run
json '{"train_batch_size": 8, "optimizer": {"type": "Madam", "params": {}}}'
expect 65 'optimizer Madam is not an optimizer' "${json_train[@]}" --output_dir "$dir/none" --dry_run
json '{"train_batch_size": 8}'
expect 64 'so --optimizer must choose one' "${json_train[@]}" --output_dir "$dir/none" --dry_run
expect 0 "M parameters" "${train[@]}" --output_dir "$dir/none" --optimizer fused_adamw --profile pt-full --profile_steps 2,3 \
    --dry_run

# every key of the documents' files, BERT-5B's first one with its scheduler
json '{"steps_per_print": 4, "train_batch_size": 16, "train_micro_batch_size_per_gpu": 8, "tensorboard": {"enabled": false,
  "output_path": "t", "job_name": "j"}, "bf16": {"enabled": true}, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2,
  "overlap_comm": false, "reduce_scatter": false, "contiguous_gradients": false, "reduce_bucket_size": 150000000,
  "max_group_size": 1310822400}, "zero_allow_untested_optimizer": true, "scheduler": {"type": "WarmupDecayLR", "params":
  {"warmup_min_lr": 0, "warmup_max_lr": 1e-4, "warmup_num_steps": 10000, "total_num_steps": 2000000, "warmup_type": "linear"}},
  "timers": {"throughput": {"enabled": true, "synchronized": false}}}'
expect 0 '"zero_optimization.max_group_size" has no meaning here' "${train[@]}" --output_dir "$dir/none" --optimizer nvlamb \
    --checkpoint_activations --dry_run

# TensorLogger by the flags of the script: a file for each of the first three micro-batches
expect 0 "writing the tensors of 3 micro-batches from step 1 on to $dir/tensors" "${train[@]}" --use_lr_scheduler --optimizer nvlamb \
    --output_dir "$dir/logged" --steps_this_run 2 --log_model_inputs --log_fwd_activations --log_bwd_grads \
    --tensor_logger_max_iterations 3 --tensor_logger_path "$dir/tensors"
[ "$(ls "$dir/tensors" | wc -l)" = 3 ] || fail "files of tensors: $(ls "$dir/tensors")"
"$kiln" inspect "$dir/tensors/tensor_logger_rank_0_step_1_micro_0.safetensors" >"$dir/names"
for name in model_inputs/input_ids fwd_act/model.bert.encoder.layer.1.attention.self bwd_grad_in/model.bert.encoder.layer.0; do
    grep -q "$name" "$dir/names" || fail "$name is not in the log of tensors"
done
expect 0 "no tensors are logged: set --tensor_logger_max_iterations" "${train[@]}" --use_lr_scheduler --optimizer nvlamb \
    --output_dir "$dir/not_logged" --steps_this_run 1 --log_fwd_activations
[ ! -e "$dir/not_logged/tensor_logger" ] || fail "tensors were logged"

# flags: of the other script, of the launcher, and what is not there yet
expect 64 "--train_batch_size belongs to runs without --deepspeed" "${train[@]}" --output_dir "$dir/none" \
    --train_batch_size 8
expect 64 "--autocast belongs to runs without --deepspeed" "${train[@]}" --output_dir "$dir/none" --autocast
expect 64 "--deepspeed_config belongs to runs with --deepspeed" "$kiln" pretrain --input_dir x --config_file x.json \
    --output_dir x --deepspeed_config "$dir/ds.json"
expect 64 "--deepspeed needs --deepspeed_config" "$kiln" pretrain --input_dir x --config_file x.json --output_dir x --deepspeed
expect 64 "--use_ds_lamb_bias_correction needs --optimizer nvlamb_exp" "${train[@]}" --output_dir "$dir/none" --use_ds_lamb_bias_correction
expect 64 "--constant_proportion needs --use_lr_scheduler" "${train[@]}" --output_dir "$dir/none" --optimizer lamb \
    --constant_proportion 0.5
expect 64 "sum to more than 1" "${train[@]}" --output_dir "$dir/none" --optimizer lamb --use_lr_scheduler \
    --constant_proportion 0.9 --warmup_proportion 0.2
expect 64 "--profile is 'xyz', but must be true or false, yes or no, 1 or 0, or one of pt|pt-full|hltv" "${train[@]}" \
    --profile=xyz
[ ! -e "$dir/none" ] || fail "something refused was written"
echo "test_deepspeed: what the file says is done, or named"
