#!/usr/bin/env bash
# Ranks that are processes of mpirun: what tests/dist/test_comm.c and test_ranks.c check of threads; and a rank that is killed,
# stopped or late, which the others name and survive, soon.  usage: test_mpi.sh KILN TEST_COMM TEST_RANKS
set -euo pipefail
kiln=$1 test_comm=$2 test_ranks=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../cli/expect.sh"

[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"

# several ranks on each core; MPI leaks a little, which is not ours
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 TMPDIR=$dir

# run N command...: as N ranks.
sigkill=0
run() { timeout -k 5 60 mpirun --oversubscribe --mca orte_base_help_aggregate 0 --mca odls_base_sigkill_timeout "$sigkill" -n "$@" </dev/null; }

# all_expected N command...: each of N ranks finds what it expects.
all_expected()
{
    local n=$1
    run "$@" >"$dir/out" 2>"$dir/err" || true
    [ "$(grep -c '^as expected$' "$dir/out")" -eq "$n" ] || fail "$*: $(cat "$dir/out" "$dir/err")"
}

for n in 2 3 4; do
    all_expected "$n" "$test_comm"
done

# each case that ends with an error is a world of its own; a stopped rank is continued by mpirun in the end
while read -r name n deadline; do
    start=$SECONDS left=$n
    mkdir "$dir/$name"
    case $name in killed | *stopped) left=$((n - 1)) sigkill=1 ;; *) sigkill=0 ;; esac
    export KILN_COMM_TIMEOUT=$deadline
    [ "$deadline" != 0 ] || unset KILN_COMM_TIMEOUT
    run "$n" "$test_comm" "$name" "$dir/$name" >"$dir/out" 2>"$dir/err" || true
    [ "$(grep -c '^as expected$' "$dir/out")" -ge "$left" ] || fail "$name: $(cat "$dir/out" "$dir/err")"
    [ $((SECONDS - start)) -lt 15 ] || fail "$name took $((SECONDS - start)) s"
done < <("$test_comm" --list)
unset KILN_COMM_TIMEOUT

for n in 2 4; do
    run "$n" "$test_ranks" "wide, bf16, lamb" >"$dir/out" 2>"$dir/err" || fail "steps of $n ranks: $(cat "$dir/out" "$dir/err")"
    [ "$(grep -c 'the same bits' "$dir/out")" -eq "$n" ] || fail "steps of $n ranks: $(cat "$dir/out")"
done
echo "test_mpi: ranks that are processes give the bits of ranks that are threads, and no error leaves one waiting"
