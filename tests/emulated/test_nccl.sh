#!/usr/bin/env bash
# Steps of two processes on the emulator, over the fake NCCL library.  usage: test_nccl.sh KILN TEST_EMULATED_NCCL LIBRARY FOLDER,
# which has the library of emulated kernels.
set -euo pipefail
kiln=$1 check=$2 library=$3 emulated=$4
. "$(dirname "$0")/../cli/expect.sh"

[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
out=$("${patient[@]}" mpirun --oversubscribe -n 2 "$check" "$library" </dev/null 2>&1) || fail "$out"
[ "$(grep -c '^as expected$' <<<"$out")" -eq 2 ] || fail "$out"

# The program: ranks of a run use NCCL, and one that does not come ends them.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../cli/corpus.sh"
make_store
mkdir "$dir/bin"
cp "$kiln" "$dir/bin/kiln"
cp "$(dirname "$kiln")/libkiln_mpi.so" "$emulated/libkiln_cuda.so" "$dir/bin"

# train DIRECTORY
train()
{
    KILN_NCCL_LIBRARY=$library "${patient[@]}" mpirun --oversubscribe -n 2 "$dir/bin/kiln" pretrain --device cuda --input_dir "$dir/store" \
        --config_file "$dir/config.json" --output_dir "$1" --max_seq_length 16 --max_predictions_per_seq 3 --train_batch_size 1 \
        --learning_rate 1e-3 --max_steps 1 --eval_steps 0 --disable_progress_bar </dev/null
}

expect 0 "2 ranks exchange memory of emulated cuda over NCCL 2.28.9" train "$dir/nccl"
KILN_COMM_TIMEOUT=6 FAKE_NCCL="hang;hang:AllReduce:1@1" \
    expect 70 "elements of fp32 over NCCL for ranks 0 to 1: one of them did not join" train "$dir/hung"
grep -q '"given up"' "$dir/hung/collectives_of_rank_0.json" || fail "nothing was recorded"
