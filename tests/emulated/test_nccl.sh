#!/usr/bin/env bash
# Steps of two processes on the emulator, over the fake NCCL library.  usage: test_nccl.sh KILN TEST_EMULATED_NCCL LIBRARY
set -euo pipefail
kiln=$1 check=$2 library=$3
. "$(dirname "$0")/../cli/expect.sh"

[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
command -v mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
out=$(timeout -k 5 60 mpirun --oversubscribe -n 2 "$check" "$library" </dev/null 2>&1) || fail "$out"
[ "$(grep -c '^as expected$' <<<"$out")" -eq 2 ] || fail "$out"
