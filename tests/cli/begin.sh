# The beginning of a test; sourced with $1, the program: sets $kiln, and $dir, a directory that goes when the test ends.
set -euo pipefail
kiln=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
export OMP_NUM_THREADS=1 # small steps: a second thread would only wait
