#!/usr/bin/env bash
# `kiln pretrain` and `kiln squad` as several ranks of mpirun: 1, 2 and 4 of them, with and without shared moments, train the same
# weights; what some save, others go on with; one rank's error ends all; SIGTERM to one saves all.
. "$(dirname "$0")/begin_ranks.sh"

# the same global batch in the same micro-batches, in blocks for 4 ranks
all=(--global_batch_size 16 --gradient_accumulation_steps 8 --reproducible_ranks 4)
pretrain 1 one "${all[@]}"
pretrain 2 two "${all[@]}"
grep -q "^ranks: 2 over MPI" "$dir/err" || fail "the ranks are not announced: $(cat "$dir/err")"
grep -q "^threads: 1 of each rank" "$dir/err" || fail "the threads are not announced: $(cat "$dir/err")"
grep -q '"micro_batch_size":2,.*"ranks":2' "$dir/two/log.jsonl" ||
    grep -q '"ranks":2.*"micro_batch_size":2,' "$dir/two/log.jsonl" ||
    fail "the log: $(head -1 "$dir/two/log.jsonl")"
[ "$(grep -c '^phase 1 6/6' "$dir/err")" -eq 1 ] || fail "a line of each rank: $(cat "$dir/err")"
grep -q "^memory: peak .* on the rank with the most" "$dir/err" || fail "no peak of all ranks: $(cat "$dir/err")"
[ -e "$dir/two/ckpt_6/optimizer-00002-of-00002.safetensors" ] || fail "rank 1 has not saved its slices"
said=$(sed -nE 's/^saved .*ckpt_6: ([0-9.]+ MiB),.*/\1/p' "$dir/err")
there=$(cat "$dir"/two/ckpt_6/* | wc -c | awk '{ printf "%.1f MiB", $1 / 1048576 }')
[ "$said" = "$there" ] || fail "a checkpoint of two ranks has $there, and '$said' is said"
pretrain 4 four "${all[@]}" --use_zero_optimizer True
for out in two four; do
    same_weights one/ckpt_6 $out/ckpt_6
    for key in step_loss grad_norm; do
        wanted=$(grep -o "\"$key\":[^,]*" "$dir/one/log.jsonl") got=$(grep -o "\"$key\":[^,]*" "$dir/$out/log.jsonl")
        [ "$wanted" = "$got" ] || fail "$key of $out: $got, not $wanted"
    done
done

# without blocks the sums are others: what was compared is not equal anyway
pretrain 1 plain --global_batch_size 16 --gradient_accumulation_steps 8
"$kiln" inspect --diff "$dir/one/ckpt_6" "$dir/plain/ckpt_6" >/dev/null 2>&1 && fail "blocks change nothing"

# the batch of a rank: two ranks of 8 in 4 are 16 in 8; and bf16
pretrain 2 each --train_batch_size 8 --gradient_accumulation_steps 4 --reproducible_ranks 4
same_weights one/ckpt_6 each/ckpt_6
pretrain 1 one-bf16 "${all[@]}" --autocast
pretrain 2 two-bf16 "${all[@]}" --autocast --zero_stage 1
same_weights one-bf16/ckpt_6 two-bf16/ckpt_6

# what 2 and 4 ranks saved, 1 and 4 go on with, and a single process that read it has all moments
goes_on four 1 0 "${all[@]}"
goes_on two 4 1 "${all[@]}"
cmp "$dir/one/ckpt_6/optimizer.safetensors" "$dir/on-1/ckpt_6/optimizer.safetensors" || fail "the moments differ"

# DeepSpeed's JSON: the batch is of all ranks, and the stage is taken
echo \
    '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}, "gradient_clipping": 1.0}' \
    >"$dir/ds.json"
pretrain 2 json --deepspeed --deepspeed_config "$dir/ds.json" --optimizer lamb --reproducible_ranks 4
grep -q "a step has 16 sequences in 8 micro-batches, of all ranks together; each has a shard of the moments" "$dir/err" ||
    fail "the JSON says otherwise: $(cat "$dir/err")"

# questions: the ranks train, and the first one answers
make_questions
for n in 1 2; do
    command=("$kiln" squad --init_checkpoint "$dir/one/ckpt_6" --output_dir "$dir/qa-$n" --train_file "$dir/questions.json"
        --predict_file "$dir/questions.json" --do_train --do_predict --do_eval --skip_cache --max_seq_length 48 --doc_stride 16
        --max_query_length 16 --max_steps 14 --learning_rate 1e-3 --num_steps_per_checkpoint 5 "${all[@]}")
    [ $n -eq 1 ] || command=("${patient[@]}" "${mpi[@]}" -n $n "${command[@]}" --zero_stage 1)
    expect 0 "exact_match" "${command[@]}"
done
[ "$(grep -c exact_match "$dir/err")" -eq 1 ] || fail "each rank has scored: $(cat "$dir/err")"
cmp "$dir/qa-1/nbest_predictions.json" "$dir/qa-2/nbest_predictions.json" || fail "2 ranks answer otherwise"
same_weights qa-1/model qa-2/model
same_weights qa-1/ckpt_10 qa-2/ckpt_10

# a head that nobody trains is the same on all ranks, which one rank warns of
expect 0 "the predictions are random" "${patient[@]}" "${mpi[@]}" -n 2 "$kiln" squad --init_checkpoint "$dir/one/ckpt_6" \
    --output_dir "$dir/random" --do_predict --predict_file "$dir/questions.json" --max_seq_length 48
[ "$(grep -c "the predictions are random" "$dir/err")" -eq 1 ] || fail "each rank has warned: $(cat "$dir/err")"

# one rank's error ends all, and is said once
pretrain_command 1 broken "${all[@]}"
expect 65 "kiln: error: rank 1 of 2: --input_dir $dir/none does not exist" "${patient[@]}" "${mpi[@]}" -n 1 "${command[@]}" \
    : -n 1 "${command[@]}" --input_dir "$dir/none"
[ "$(grep -c 'kiln: error' "$dir/err")" -eq 1 ] || fail "the error of each rank: $(cat "$dir/err")"
pretrain_command 2 refused --global_batch_size 16
expect 64 "each of 2 ranks needs at least one" "${command[@]}"
pretrain_command 1 refused --reproducible_ranks 6
expect 64 "must be a power of two" "${command[@]}"
pretrain_command 1 refused --reproducible_ranks 2 --fp8
expect 64 "cannot be combined with --fp8" "${command[@]}"
[ ! -e "$dir/refused" ] || fail "a refused run wrote something"

# SIGTERM to one rank: all save the same step, and the run goes on from it
pretrain_command 1 stopped "${all[@]}" --num_steps_per_checkpoint 0 --max_steps 100000 --eval_steps 0
"${patient[@]}" "${mpi[@]}" -n 1 "${command[@]}" : -n 1 bash -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" "${command[@]}" \
    </dev/null >"$dir/out" 2>"$dir/err" &
await $! grep -qs '"event":"step".*"step":3,' "$dir/stopped/log.jsonl"
kill -TERM "$(cat "$dir/pid")"
status=0
wait $! || status=$?
[ $status -eq 75 ] || fail "SIGTERM gave exit code $status: $(cat "$dir/err")"
step=$(sed -n 's/.*stopped by a signal after step \([0-9]*\);.*/\1/p' "$dir/err")
[ -e "$dir/stopped/ckpt_$step/manifest.json" ] || fail "there is no ckpt_$step: $(ls "$dir/stopped")"
pretrain 2 stopped "${all[@]}" --num_steps_per_checkpoint 0 --max_steps 100000 --eval_steps 0 --steps_this_run $((step + 2)) \
    --resume_from_checkpoint
grep -q "^resumed from .*ckpt_$step" "$dir/err" || fail "not resumed: $(cat "$dir/err")"
echo "test_several_ranks: 1, 2 and 4 ranks are one run"
