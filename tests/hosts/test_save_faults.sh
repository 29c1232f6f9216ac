#!/usr/bin/env bash
# Two ranks of mpirun that save, and the n-th system call of one rank's saves fails, finds the disk full, or is its last one: no step that
# was said to be saved is lost, and the run that is resumed ends with the bytes of the undisturbed one.
# usage: test_save_faults.sh KILN SAVE_FAULTS_LIBRARY [KIND.RANK.N...]: those cases; without any, all kinds, ranks and n = 1, 2, 3 ... until
# a run makes fewer calls. FIRST=N begins at another n, EVERY=N leaves some out, RANKS and KINDS choose. `make test-kills` has all.
set -euo pipefail
kiln=$(realpath "$1") faults=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$here/../cli/expect.sh"
. "$here/../cli/corpus.sh"
[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
type -P mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:verify_asan_link_order=0 # MPI leaks a little, which is not ours
make_store

# the second save removes the first one
steps=4
run() # run OUT FAULT [flag...]
{
    local out=$1 fault=$2
    shift 2
    TMPDIR=$dir "${patient[@]}" mpirun --oversubscribe --mca odls_base_sigkill_timeout 0 -n 2 \
        env ${fault:+LD_PRELOAD="$faults" SAVE_FAULTS="$fault"} "$kiln" pretrain \
        --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out" --max_seq_length 32 --max_predictions_per_seq 5 \
        --train_batch_size 4 --max_steps $steps --learning_rate 1e-3 --num_steps_per_checkpoint 2 --keep_checkpoints 1 --eval_steps 0 \
        --log_freq 1 --disable_progress_bar "$@" </dev/null >"$dir/$out.out" 2>"$dir/$out.err"
}
last_saved() { awk '/"event":"saved"/ { match($0, /"global_step":[0-9]+/); step = substr($0, RSTART + 14, RLENGTH - 14) } END { print step + 0 }' "$1"; }
whole_again() # whole_again OUT WHAT: its last checkpoint has the bytes of the undisturbed run's
{
    diff -rq -x run.json "$dir/whole/ckpt_$steps" "$dir/$1/ckpt_$steps" >"$dir/diff" 2>&1 || fail "$2: other files: $(cat "$dir/diff")"
}

run whole "" || fail "the undisturbed run: $(cat "$dir/whole.err")"
n_tried=0 n_resumed=0
# try KIND RANK N: returns 1 if the run makes fewer calls
try()
{
    local what="$1 at call $3 of rank $2" code=0 saved begun
    rm -rf "$dir/tried" "$dir/mark" "$dir/log"
    run tried "$1 $3 $2 $dir/tried $dir/mark" || code=$?
    [ -e "$dir/mark" ] || { [ $code = 0 ] || fail "$what: exit code $code without it: $(cat "$dir/tried.err")"; return 1; }
    what="$what ($(cat "$dir/mark"))"
    [ $code != 124 ] || fail "$what: it did not end: $(cat "$dir/tried.err")"
    case $1 in
    kill | torn) [ $code != 0 ] || fail "$what: a rank was killed, and the exit code is 0" ;;
    esac
    n_tried=$((n_tried + 1))
    saved=0
    [ ! -e "$dir/tried/log.jsonl" ] || saved=$(last_saved "$dir/tried/log.jsonl")
    [ $code != 0 ] || [ "$saved" = $steps ] || fail "$what: exit code 0, and $saved steps are saved"
    if [ "$saved" != $steps ]; then
        n_resumed=$((n_resumed + 1))
        run tried "" --resume_from_checkpoint || fail "$what: it cannot be resumed: $(cat "$dir/tried.err")"
        begun=$(sed -n 's|^resumed from .*/ckpt_\([0-9]*\): .*|\1|p' "$dir/tried.err")
        [ "${begun:-0}" -ge "$saved" ] || fail "$what: step $saved was said to be saved, and it went on from ${begun:-0}"
    fi
    whole_again tried "$what"
    [ -z "$(find "$dir/tried" -name '*.tmp')" ] || [ "$saved" = $steps ] || fail "$what: unfinished files stay: $(ls -A "$dir/tried")"
}

for case in "$@"; do
    IFS=. read -r kind rank n <<<"$case"
    try "$kind" "$rank" "$n" || fail "$case: the run makes fewer calls"
done
if [ $# = 0 ]; then
    for rank in ${RANKS:-0 1}; do
        for kind in ${KINDS:-kill torn error full}; do
            n=${FIRST:-1}
            while try $kind $rank $n; do n=$((n + ${EVERY:-1})); done
            echo "rank $rank, $kind: calls ${FIRST:-1} to $((n - ${EVERY:-1}))"
            [ "$n" -gt 5 ] || fail "rank $rank makes only $n calls"
        done
    done
fi
echo "test_save_faults: $n_tried faults of a save by two ranks, $n_resumed of them resumed; no saved step was lost, and all end with the bytes of the undisturbed run"
