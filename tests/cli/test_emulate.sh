#!/usr/bin/env bash
# `kiln pretrain --emulate_world`: one process takes the memory of one rank of many, or of a mesh, to the planned byte, and counts
# the bytes that the plan announces; it saves nothing and says so; and what it is not for is refused.
. "$(dirname "$0")/begin.sh"
make_store

flags=(--input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5 --max_steps 4
    --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar --train_batch_size 8 --gradient_accumulation_steps 2)
# emulate OUT FLAG...: into $dir/OUT; its log is $dir/OUT.err
emulate()
{
    "$kiln" pretrain "${flags[@]}" --output_dir "$dir/$1" "${@:2}" 2>"$dir/$1.err" || fail "exit code $?: $(cat "$dir/$1.err")"
}
# number KEY OUT: of the event at the end
number() { grep '"event":"emulation"' "$dir/$2/log.jsonl" | grep -o "\"$1\":[0-9.]*" | cut -d: -f2; }

for stage in 0 1 2; do
    for rank in 0 3; do
        out=stage$stage.$rank
        emulate $out --emulate_world 4 --distributed_emulation_rank $rank --zero_stage $stage
        [ "$(number rank $out)" = "$rank" ] && [ "$(number world $out)" = 4 ] ||
            fail "the event: $(tail -n 1 "$dir/$out/log.jsonl")"
        for what in reduced gathered; do
            [ -n "$(number plan_${what}_bytes $out)" ] &&
                [ "$(number ${what}_bytes_a_step $out)" = "$(number plan_${what}_bytes $out)" ] ||
                fail "stage $stage: $what: $(cat "$dir/$out.err")"
        done
        grep -q "^warning: emulation: this is rank $rank of 4, .*meaningless, and no checkpoint is written" "$dir/$out.err" ||
            fail "no warning: $(cat "$dir/$out.err")"
        grep -q "^emulation: memory of rank $rank of 4, ZeRO stage $stage: .*kiln plan --world 4" "$dir/$out.err" ||
            fail "no memory: $(cat "$dir/$out.err")"
        grep \
            -q '^emulation: a step of 2 micro-batches takes [0-9.]* s on this rank; with the exchange between 4 ranks' "$dir/$out.err" || fail "no time: $(cat "$dir/$out.err")"
        ! compgen -G "$dir/$out/*ckpt*" >/dev/null || fail "a checkpoint was written: $(ls "$dir/$out")"
    done
done
[ "$(number gathered_bytes_a_step stage0.0)" = 0.0 ] || fail "stage 0 gathers"
# a sum of n bytes that 4 ranks all have sends 3/4 of them twice, at 0.8 of 10 Gb/s
awk \
    "BEGIN { e = $(number plan_reduced_bytes stage0.0) * 1.5 / 1e9; d = $(number exchange_seconds stage0.0) / e; exit !(d > 0.999 && d < 1.001) }" ||
    fail "the exchange: $(cat "$dir/stage0.0.err")"
# what the others have, this one has not
[ "$(number planned_bytes stage1.0)" -lt "$(number planned_bytes stage0.0)" ] || fail "stage 1 takes as much as stage 0"
[ "$(number planned_bytes stage2.0)" -lt "$(number planned_bytes stage1.0)" ] || fail "stage 2 takes as much as stage 1"

# a rank of a mesh, with its slice, its stage and its replica
mkdir "$dir/windows"
"$(dirname "$kiln")/tests/test_token_windows" write "$dir/windows" 200
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 4, "n_head": 4}' >"$dir/gpt2.json"
decoder=(--input_dir "$dir/windows" --vocab_file "$dir/windows/tokenizer.json" --config_file "$dir/gpt2.json" --max_seq_length 32
    --max_steps 3 --optimizer adamw --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar --train_batch_size 8
    --gradient_accumulation_steps 4 --zero_stage 1)
# place TP PP WORLD RANK SLICE STAGE REPLICA
place()
{
    out=mesh$1x$2.$4
    "$kiln" pretrain "${decoder[@]}" --output_dir "$dir/$out" --tensor-model-parallel-size $1 --pipeline-model-parallel-size $2 \
        --emulate_world $3 --distributed_emulation_rank $4 2>"$dir/$out.err" || fail "exit code $?: $(cat "$dir/$out.err")"
    got="$(number slice $out) $(number stage $out) $(number replica $out)"
    [ "$got" = "$5 $6 $7" ] || fail "rank $4 of $1x$2 in $3 is $got"
    for kind in slice_bytes stage_bytes reduced_bytes gathered_bytes; do
        awk "BEGIN { exit $(number plan_$kind $out) != $(number ${kind}_a_step $out) }" ||
            fail "$kind of rank $4 of $1x$2: $(cat "$dir/$out.err")"
    done
}
place 4 1 8 5 1 0 1
place 2 2 8 6 0 1 1
place 2 4 8 2 0 1 0
place 2 2 4 0 0 0 0
number slice_bytes_a_step mesh4x1.5 | grep -v '^0.0$' >/dev/null || fail "slices send nothing: $(cat "$dir/mesh4x1.5.err")"
[ "$(number stage_bytes_a_step mesh4x1.5)" = 0.0 ] || fail "one stage sends: $(cat "$dir/mesh4x1.5.err")"
number bubble mesh2x2.6 | grep '^0.25' >/dev/null || fail "the bubble of 2 stages and 4 micro-batches: $(cat "$dir/mesh2x2.6.err")"

# refused, by name: what needs checkpoints or others, a run that is there, ranks that are none
refuse() { expect 64 "$1" "$kiln" pretrain "${flags[@]}" --output_dir "$dir/refused" "${@:2}"; }
refuse 'early_stopping_patience needs checkpoints' --emulate_world 4 --eval_steps 1 --early_stopping_patience 1
refuse 'replica_check_steps needs other ranks' --emulate_world 4 --replica_check_steps 1
refuse 'emulate_links: kiln does not know the device "abacus"' --emulate_world 4 --emulate_links abacus
sed 's/{/{"vocab_size": 4096, /' "$dir/gpt2.json" >"$dir/padded.json"
expect 64 'rank 1 of --emulate_world has none of the' "$kiln" pretrain "${decoder[@]}" --config_file "$dir/padded.json" \
    --output_dir "$dir/refused" --tensor-model-parallel-size 2 --emulate_world 2 --distributed_emulation_rank 1
echo '{"model_type": "olmo2", "max_position_embeddings": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48}' >"$dir/olmo2.json"
expect 64 'a model of type olmo2 cannot be tensor parallel: leave out the tensor-parallel size; pipeline stages and ZeRO' "$kiln" \
    pretrain "${decoder[@]}" --config_file "$dir/olmo2.json" --output_dir "$dir/refused" --tensor-model-parallel-size 2 --emulate_world 2
refuse 'needs --emulate_world N' --distributed_emulation_rank 0
refuse 'is not one of the ranks 0 to 3' --emulate_world 4 --distributed_emulation_rank 4
"$kiln" pretrain "${flags[@]}" --output_dir "$dir/whole" 2>/dev/null || fail "a run alone"
expect 64 'has checkpoints of a real run' "$kiln" pretrain "${flags[@]}" --output_dir "$dir/whole" --resume_from_checkpoint \
    --emulate_world 4

. "$(dirname "$0")/ranks.sh"
need_mpirun
code=0
"${patient[@]}" "${mpi[@]}" -n 2 "$kiln" pretrain "${flags[@]}" --output_dir "$dir/refused" --emulate_world 4 >"$dir/out" 2>&1 \
    </dev/null || code=$?
[ "$code" -ne 0 ] && grep -q 'runs one process, but 2 were started' "$dir/out" ||
    fail "under mpirun: exit code $code: $(cat "$dir/out")"

# the memory that 4 real ranks plan, kind by kind
"${patient[@]}" "${mpi[@]}" -n 4 "$kiln" pretrain "${flags[@]}" --output_dir "$dir/real" --zero_stage 1 --skip_checkpoint \
    >"$dir/out" 2>&1 </dev/null || fail "4 ranks: $(cat "$dir/out")"
wanted=$(grep '^memory: weights' "$dir/out") got=$(grep '^memory: weights' "$dir/stage1.0.err")
[ -n "$wanted" ] && [ "$wanted" = "$got" ] || fail "planned: $got, and of 4 real ranks: $wanted"
"${patient[@]}" "${mpi[@]}" -n 4 "$kiln" pretrain "${decoder[@]}" --output_dir "$dir/real-mesh" --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 --skip_checkpoint >"$dir/out" 2>&1 </dev/null || fail "a mesh of 4 ranks: $(cat "$dir/out")"
wanted=$(grep '^memory: weights' "$dir/out") got=$(grep '^memory: weights' "$dir/mesh2x2.0.err")
[ -n "$wanted" ] && [ "$wanted" = "$got" ] || fail "planned: $got, and of a real mesh: $wanted"
