#!/usr/bin/env bash
# Two ranks of mpirun that would begin with other weights, by one bit, in the files that each reads: the run ends before the first
# step. Ranks that are alike go on; they go back from spikes together, and end with the bits of a single process.
. "$(dirname "$0")/begin.sh"
[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] ||
    skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # MPI leaks a little, which is not ours
make_store

pretrain_command()
{
    local out=$1
    shift
    command=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out"
        --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --gradient_accumulation_steps 2 --max_steps 5
        --learning_rate 1e-3 --num_steps_per_checkpoint 3 --eval_steps 0 --disable_progress_bar "$@")
}
# each rank reads the model of its own directory
both()
{
    "${patient[@]}" mpirun --oversubscribe -n 1 -wdir "$dir/a" "${command[@]}" : -n 1 -wdir "$dir/$other" "${command[@]}" \
        </dev/null
}

pretrain_command first --max_steps 1
"${command[@]}" 2>"$dir/err" || fail "$(cat "$dir/err")"
"$kiln" export --model "$dir/first/ckpt_1" --output_dir "$dir/a/model" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
LC_ALL=C sed -i 's/kiln_crc32c[.]/else_crc32c./g' "$dir/a/model/model.safetensors" # as of a program that has no checksums
cp -r "$dir/a" "$dir/b"
file=$dir/b/model/model.safetensors
at=$(($(stat -c %s "$file") / 8 * 4 + 2)) # in the fraction of a number
byte=$(od -An -t u1 -j $at -N 1 "$file")
printf '%b' "\\0$(printf %o $((byte ^ 1)))" | dd of="$file" bs=1 seek=$at conv=notrunc 2>/dev/null
[ "$(cmp -l "$dir/a/model/model.safetensors" "$file" | wc -l)" -eq 1 ] || fail "more than a byte was flipped"

other=b
pretrain_command differ --init_checkpoint model
expect 65 "the weights that rank 0, rank 1 would start from differ from one another" both
[ -z "$(find "$dir/differ" -name 'ckpt_*')" ] || fail "a checkpoint was saved: $(ls "$dir/differ")"

other=a
spikes=(--global_batch_size 8 --reproducible_ranks 2 --max_steps 20 --spike_z 2.5 --spike_window 8 --spike_skip 1)
pretrain_command one "${spikes[@]}"
"${command[@]}" 2>"$dir/err" || fail "$(cat "$dir/err")"
told=$(grep -o "step [0-9]*: a spike.*" "$dir/err") || fail "no spike: $(cat "$dir/err")"
for stage in 1 2; do
    two=two-$stage
    pretrain_command $two "${spikes[@]}" --zero_stage $stage --replica_check_steps 3
    both >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/err")"
    [ "$(grep -o "step [0-9]*: a spike.*" "$dir/err")" = "$told" ] || fail "other spikes than $told: $(cat "$dir/err")"
    "$kiln" inspect --diff "$dir/one/ckpt_20" "$dir/$two/ckpt_20" >"$dir/out" 2>&1 ||
        fail "one and two ranks differ: $(cat "$dir/out")"
    cmp "$dir/one/ckpt_20/trainer_state.json" "$dir/$two/ckpt_20/trainer_state.json" || fail "they stand elsewhere"
done
