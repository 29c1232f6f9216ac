#!/usr/bin/env bash
# ZeRO's second stage over ranks of mpirun: in blocks of one micro-batch the weights of one process, of stages 0 and 1; without
# blocks, the same in every run; what it saves, others go on with, and back; and what it refuses.
. "$(dirname "$0")/begin_ranks.sh"

# blocks of one micro-batch, one or two of each rank: the order of sums of all stages
each=(--global_batch_size 8 --gradient_accumulation_steps 4 --reproducible_ranks 4)
pretrain 1 one "${each[@]}"
pretrain 1 alone "${each[@]}" --zero_stage 2
pretrain 4 four "${each[@]}" --zero_stage 2 --replica_check_steps 3
grep -q "each has a shard of moments and gradients (ZeRO stage 2)" "$dir/err" || fail "not announced: $(cat "$dir/err")"
for out in alone four; do
    same_weights one/ckpt_6 $out/ckpt_6
done
for key in step_loss grad_norm; do
    wanted=$(grep -o "\"$key\":[^,]*" "$dir/one/log.jsonl") got=$(grep -o "\"$key\":[^,]*" "$dir/four/log.jsonl")
    [ "$wanted" = "$got" ] || fail "$key of 4 ranks: $got, not $wanted"
done

# from stage 2 on 4 ranks to one process and to 2 ranks, and back from one process
goes_on four 1 0 "${each[@]}"
goes_on four 2 2 "${each[@]}"
goes_on one 4 2 "${each[@]}"
cmp "$dir/one/ckpt_6/optimizer.safetensors" "$dir/on-1/ckpt_6/optimizer.safetensors" || fail "the moments differ"

# several micro-batches a rank, in bf16, by DeepSpeed's JSON: the same bits in each run
echo '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}, "gradient_clipping": 1.0,
    "bf16": {"enabled": true}}' >"$dir/ds.json"
split=(--deepspeed --deepspeed_config "$dir/ds.json" --optimizer lans)
pretrain 2 split "${split[@]}"
grep -q "each has a shard of moments and gradients (ZeRO stage 2)" "$dir/err" || fail "the JSON's stage: $(cat "$dir/err")"
pretrain 2 again "${split[@]}"
same_weights split/ckpt_6 again/ckpt_6

# questions, with layers that have no gradients
# and in bf16, where no rank has the master that the model is saved from
make_questions
for run in 1 2 "1 --autocast" "2 --autocast"; do
    read -r n precision <<<"$run"
    command=("$kiln" squad --init_checkpoint "$dir/one/ckpt_6" --output_dir "$dir/qa-$n$precision"
        --train_file "$dir/questions.json"
        --do_train --skip_cache --max_seq_length 48 --doc_stride 16 --max_query_length 16 --max_steps 4 --learning_rate 1e-3
        "${each[@]}" --zero_stage 2 --freeze embeddings,0 ${precision:+"$precision"})
    [ "$n" -eq 1 ] || command=("${patient[@]}" "${mpi[@]}" -n $n "${command[@]}")
    expect 0 "" "${command[@]}"
done
same_weights qa-1/model qa-2/model
same_weights qa-1--autocast/model qa-2--autocast/model

# what it refuses
pretrain_command 2 refused "${each[@]}" --gradient_accumulation_steps 8 --zero_stage 2
expect 64 "--reproducible_ranks 4 with --zero_stage 2 needs as many micro-batches on all ranks together, but there are 8" "${command[@]}"
pretrain_command 1 refused --zero_stage 3
expect 69 "ZeRO stage 3 is not supported" "${command[@]}"
pretrain_command 2 logged --zero_stage 2 --log_bwd_grads --tensor_logger_max_iterations 1
expect 64 "--log_bwd_grads with --zero_stage 2" "${command[@]}"
[ ! -e "$dir/refused" ] || fail "a refused run wrote something"
echo "test_zero_two: shared gradients have the weights of one process"
