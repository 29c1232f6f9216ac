#!/usr/bin/env bash
# Command lines of run_pretraining.py and run_squad.py run as they stand: what has no meaning here says so, what asks for
# another computation is refused, and recomputing activations changes no bit of a checkpoint.
. "$(dirname "$0")/begin.sh"
make_store

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
[ "$(grep -c 'memory: [0-9.]* GiB, at most [0-9.]* GiB ([0-9.]* % of [0-9.]* GiB)' "$dir/err")" = 4 ] ||
    fail "--log_memory_usage: three steps and the end: $(grep memory "$dir/err")"
grep -q '"memory usage": "[0-9.]* GiB, at most' "$dir/run/dllogger.json" || fail "no memory usage in dllogger's summary"
awk -F'"memory_bytes":|,"memory_peak_bytes":|,"memory_limit_bytes":' 'NF > 3 { n++; if (!($2 > 1e6 && $3 + 0 >= $2 && $4 + 0 > $2)) bad++ }
    END { exit n != 4 || bad > 0 }' "$dir/run/log.jsonl" || fail "memory in log.jsonl: $(grep memory_bytes "$dir/run/log.jsonl")"
expect 0 "saved" "$kiln" pretrain "${reference[@]}" --log_memory_usage False --output_dir="$dir/unmeasured"
! grep -q memory_bytes "$dir/unmeasured/log.jsonl" || fail "--log_memory_usage False logged it"
expect 64 "computes in bf16" "$kiln" pretrain "${reference[@]}" --fp16
for flag in --fp16 --amp; do
    expect 64 "the cpu does not compute in fp16; --autocast" "$kiln" squad --init_checkpoint "$dir/run/ckpt_3" \
        --output_dir "$dir/answers" --do_train --train_file "$dir/none.json" --autocast $flag
    expect 0 "the cpu rounds matrices and activations to fp16" "$kiln" squad --init_checkpoint "$dir/run/ckpt_3" \
        --output_dir "$dir/answers" --do_predict --predict_file "$dir/none.json" --autocast $flag --dry_run --max_seq_length 32
done
expect 0 "cpu" "$kiln" pretrain "${reference[@]}" --dry_run --device cuda --no_cuda # the later one wins

# each flag of the scripts is known by its own name, and takes a value or none as it did there: what follows it is read
scripts() # SCRIPT: flags, those with a value as NAME=VALUE
{
    case $1 in
    pretrain) echo bert_model=x init_checkpoint=x max_seq_length=9 max_predictions_per_seq=9 train_batch_size=9 \
        learning_rate=1 num_train_epochs=3.0 max_steps=9.0 warmup_proportion=0.1 local_rank=-1 seed=1 \
        gradient_accumulation_steps=1 fp16 amp loss_scale=0.0 init_loss_scale=1048576 log_freq=1.0 checkpoint_activations \
        resume_from_checkpoint resume_step=-1 num_steps_per_checkpoint=9 skip_checkpoint phase2 phase1_end_step=9 do_train \
        allreduce_post_accumulation allreduce_post_accumulation_fp16 json-summary=x use_env disable_progress_bar \
        steps_this_run=-1 no_cuda use_habana use_hpu hpu autocast use_fused_lamb use_lazy_mode=True \
        enable_packed_data_mode=False use_zero_optimizer=False profile=False profile_steps=0 tensorboard_logdir=x \
        use-hpu-graphs=False use_torch_compile compiled_autograd no_compiled_autograd log_memory_usage=x \
        enable-tensorboard-logging hmp hmp_bf16=x hmp_fp32=x hmp_opt_level=O1 hmp_verbose avg_seq_per_pack=1.2 use_jit_trace \
        deepspeed deepspeed_config=x deepscale deepscale_config=x deepspeed_mpi optimizer=nvlamb use_lr_scheduler \
        scheduler_degree=1.0 constant_proportion=0.0 use_ds_lamb_bias_correction disable_random_sampler run_loss_in_fp32 \
        allow_loss_in_bit16 checkpoint_activations_interval=1 num_nodes=1 num_gpus=1 hostfile=x master_addr=x master_port=1 \
        no_python no_local_rank ;;
    squad) echo bert_model=x train_file=x predict_file=x max_seq_length=384 doc_stride=128 max_query_length=64 do_train \
        do_predict train_batch_size=32 predict_batch_size=8 learning_rate=5e-5 num_train_epochs=3.0 max_steps=-1.0 \
        warmup_proportion=0.1 n_best_size=20 max_answer_length=30 verbose_logging no_cuda seed=42 \
        gradient_accumulation_steps=1 do_lower_case local_rank=-1 fp16 amp loss_scale=0 version_2_with_negative \
        null_score_diff_threshold=0.0 log_freq=50 json-summary=x eval_script=x do_eval use_env skip_checkpoint \
        disable-progress-bar skip_cache cache_dir=x use_habana use_hpu hpu use_hpu_graphs autocast use_lazy_mode=True \
        use_fused_adam throughput_warmup_steps=0 profile=False profile_steps=0 tensorboard_logdir=x use_torch_compile \
        compiled_autograd enable-tensorboard-logging log_memory_usage=x config_file=x vocab_file=x init_checkpoint=x ;;
    esac
}
for script in pretrain squad; do
    for flag in $(scripts $script); do
        words=(--"${flag%%=*}")
        [ "$flag" = "${flag%%=*}" ] || words+=("${flag#*=}")
        expect 64 "unknown flag --next" "$kiln" $script "${words[@]}" --next
        ! grep -q "stands for" "$dir/err" || fail "$script: --${flag%%=*} was taken for another flag: $(cat "$dir/err")"
    done
done
expect 64 "unknown flag --next" "$kiln" pretrain --use_hpu_graphs --next # a value that is missing takes no other flag
expect 64 "needs a value, not the flag --phase2" "$kiln" pretrain --output_dir --phase2
expect 64 "--profile is 'abc', but must be true or false" "$kiln" pretrain --profile=abc
expect 64 "--enable_packed_data_mode is 'nan', but must be true or false" "$kiln" pretrain --enable_packed_data_mode=nan
expect 64 "--output_dir is empty" "$kiln" pretrain --input_dir x --config_file x --output_dir=
expect 64 "--init_checkpoint is empty" "$kiln" pretrain --init_checkpoint "" # a variable that is not set is no wish to start anew
expect 0 "cpu" "$kiln" pretrain "${reference[@]}" --dry_run --tensorboard_logdir ""
expect 0 "--use_habana, --use_hpu" "$kiln" pretrain --help all
expect 64 "clipped at their global norm" "$kiln" squad --per_param_grad_clipping

flags=(--input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --train_batch_size 8 --learning_rate 1e-3 --eval_steps 0 --max_steps 3)
expect 0 "MiB" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/all"
expect 0 "MiB" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/few" --checkpoint_activations
for name in model optimizer; do
    cmp "$dir/all/ckpt_3/$name.safetensors" "$dir/few/ckpt_3/$name.safetensors" || fail "other bits in $name"
done
