#!/usr/bin/env bash
# Ranks that are processes of mpirun: what tests/dist/test_comm.c and test_ranks.c check of threads; and a rank that is killed,
# stopped or late, which the others name and survive, soon.  usage: test_mpi.sh KILN TEST_COMM TEST_PARTS TEST_RANKS
set -euo pipefail
kiln=$1 test_comm=$2 test_parts=$3 test_ranks=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../cli/expect.sh"

[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"

# several ranks on each core; MPI leaks a little, which is not ours
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# run N command...: as N ranks; runs that begin at once would meet in a directory of mpirun's.
sigkill=0
run() { TMPDIR=$(mktemp -d -p "$dir") "${patient[@]}" mpirun --oversubscribe --mca orte_base_help_aggregate 0 --mca odls_base_sigkill_timeout "$sigkill" -n "$@" </dev/null; }

# all_expected N command...: each of N ranks finds what it expects.
all_expected()
{
    local n=$1
    run "$@" >"$dir/out" 2>"$dir/err" || true
    [ "$(grep -c '^as expected$' "$dir/out")" -eq "$n" ] || fail "$*: $(cat "$dir/out" "$dir/err")"
}

for n in 3 4; do
    all_expected "$n" "$test_comm"
done
for program in "$test_comm" "$test_parts"; do
    KILN_COMM_WINDOW=0 all_expected 4 "$program"
    # as two nodes of two ranks each, and as one of three and one of one
    KILN_COMM_WINDOW=3 all_expected 4 "$program"
    KILN_COMM_WINDOW=2 all_expected 4 "$program"
done
all_expected 8 "$test_parts"
KILN_COMM_WINDOW=0 all_expected 2 "$test_comm"
grep -q 'KILN_COMM_WINDOW is 0; ranks of one node exchange messages instead' "$dir/err" || fail "nobody says that the memory is not shared"

# try_case PROGRAM NAME N DEADLINE WINDOW: by ranks of which so many share memory, a case that ends with an error, which is a world of its own.
try_case()
{
    local program=$1 name=$2 n=$3 left=$3 files=$dir/$2.$5
    mkdir "$files"
    [[ $name != *killed && $name != *stopped && $name != *silent ]] || left=$((n - 1))
    [[ $name != *killed ]] || sigkill=3 # seconds until mpirun ends the others too
    [ "$4" = 0 ] || export KILN_COMM_TIMEOUT=$4
    case $name in *silent | busy) export KILN_COMM_SILENCE=2 ;; esac
    KILN_COMM_WINDOW=$5 run "$n" "$program" "$name" "$files" >"$files.out" 2>"$files.err" || true
    # mpirun continues a stopped rank in the end
    if [ "$(grep -c '^as expected$' "$files.out")" -lt "$left" ]; then
        cat "$files.out" "$files.err" >"$files.failed"
    fi
}

# a rank that is not heard from the beginning, as behind a firewall, is not lost: the first one says that nobody would find it
try_unheard()
{
    mkdir "$dir/unheard"
    KILN_COMM_SILENCE=2 run 1 "$test_comm" busy "$dir/unheard" : -n 1 env KILN_COMM_SILENCE=0 "$test_comm" busy "$dir/unheard" : \
        -n 2 "$test_comm" busy "$dir/unheard" >"$dir/unheard.out" 2>"$dir/unheard.err" || true
    if [ "$(grep -c '^as expected$' "$dir/unheard.out")" != 4 ] || ! grep -q "heartbeats of 1 of 4 ranks, such as rank 1 on " "$dir/unheard.err"; then
        cat "$dir/unheard.out" "$dir/unheard.err" >"$dir/unheard.failed"
    fi
}
try_unheard &

# they mostly wait, so three at a time
n_begun=0
while read -r program name n deadline; do
    for window in 4 0; do
        case $name.$window in
        *killed.0 | busy.0) continue ;;                                     # only seen by the memory that ranks share
        other_bounds.0 | max_dtype.0 | worst.0 | device.0) continue ;; # told in a meeting, as in_a_sum
        esac
        try_case "$program" "$name" "$n" "$deadline" "$window" &
        n_begun=$((n_begun + 1))
        [ $((n_begun % 3)) -ne 0 ] || wait
    done
done < <(for program in "$test_comm" "$test_parts"; do "$program" --list | sed "s|^|$program |"; done)
wait
! compgen -G "$dir/*.failed" >/dev/null || fail "$(tail -n +1 "$dir"/*.failed)"
[ "$n_begun" -gt 20 ] || fail "only $n_begun cases"

for n in 2 4; do # the 4 as two nodes
    KILN_COMM_WINDOW=2 run "$n" "$test_ranks" "wide, bf16, lamb" >"$dir/out" 2>"$dir/err" || fail "steps of $n ranks: $(cat "$dir/out" "$dir/err")"
    [ "$(grep -c 'the same bits' "$dir/out")" -eq "$n" ] || fail "steps of $n ranks: $(cat "$dir/out")"
done
echo "test_mpi: ranks that are processes give the bits of ranks that are threads, and no error leaves one waiting"
