# The beginning of a test; sourced with $1, the program: sets $kiln, and $dir, a directory that is removed when the test ends.
# So are the file system mounted at $mounted and the process $server_pid, where a test sets them.
set -euo pipefail
kiln=$(realpath "$1")
dir=$(mktemp -d)
mounted=
server_pid=
trap '[ -z "$server_pid" ] || kill "$server_pid"; [ -z "$mounted" ] || umount "$mounted"; rm -rf "$dir"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
export OMP_NUM_THREADS=1 # small steps: a second thread would only wait
