# Functions for tests that run `kiln pretrain` as ranks of mpirun; sourced after expect.sh and corpus.sh, with $kiln and $dir set.

# need_mpirun: skips without MPI, and sets $mpi, the launcher.
need_mpirun()
{
    [ -e "$(dirname "$kiln")/libkiln_mpi.so" ] ||
        skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
    command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # MPI leaks a little, which is not ours
    mpi=(mpirun --oversubscribe --mca orte_base_help_aggregate 0)
}

# as_ranks N command...: sets the array `command` to run it as N ranks; 1: without a launcher.
as_ranks()
{
    local n=$1
    shift
    command=("$@")
    [ "$n" -eq 1 ] || command=("${patient[@]}" "${mpi[@]}" -n "$n" "${command[@]}")
}

# runs: the array `command` succeeds; its output is in $dir/out and $dir/err.
runs()
{
    "${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" || fail "exit code $?: ${command[*]} ($(cat "$dir/out" "$dir/err"))"
}

same_weights() { "$kiln" inspect --diff "$dir/$1" "$dir/$2" >"$dir/out" 2>&1 || fail "$1 and $2 differ: $(cat "$dir/out")"; }

steps=(--max_steps 6) # of all runs

# pretrain_command N OUT flag...: sets the array `command`, a run as N ranks into $dir/OUT; N 1: without a launcher.  pretrain
# runs it.
pretrain_command()
{
    local n=$1 out=$2
    shift 2
    as_ranks "$n" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --max_seq_length 32 --max_predictions_per_seq 5 "${steps[@]}" --learning_rate 1e-3 \
        --num_steps_per_checkpoint 3 --keep_checkpoints 0 --eval_steps 6 --disable_progress_bar "$@"
}
pretrain()
{
    pretrain_command "$@"
    runs
}

# goes_on FROM N STAGE flag...: N ranks, at that stage of ZeRO, go on from ckpt_3 of the run FROM and end with the weights of the
# run "one".
goes_on()
{
    local from=$1 n=$2 stage=$3
    shift 3
    mkdir "$dir/on-$n"
    cp -r "$dir/$from/ckpt_3" "$dir/on-$n"
    pretrain "$n" "on-$n" "$@" --resume_from_checkpoint --zero_stage "$stage"
    grep -q "^resumed from .*ckpt_3" "$dir/err" || fail "$n ranks did not resume: $(cat "$dir/err")"
    same_weights one/ckpt_6 "on-$n/ckpt_6"
}
