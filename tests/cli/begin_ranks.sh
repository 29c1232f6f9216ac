# The beginning of a test over ranks; sourced with $1, the program: sets $kiln, $dir, a directory that goes when the test ends, and $mpi,
# makes a store in it, and skips without MPI.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
. "$(dirname "$0")/ranks.sh"
need_mpirun
make_store
