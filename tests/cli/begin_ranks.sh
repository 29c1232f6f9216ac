# The beginning of a test over ranks; sourced with $1, the program: sets $kiln, $dir, a directory that goes when the test ends,
# and $mpi, makes a store in it, and skips without MPI.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/ranks.sh"
need_mpirun
make_store
