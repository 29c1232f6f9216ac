#!/usr/bin/env bash
# HDF5 shards between kiln and h5py, both ways: tests/golden/check_h5py.py, with the Python that KILN_PYTHON names.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python=${KILN_PYTHON:-}
if [ -z "$python" ] || ! "$python" -c 'import h5py' 2>/dev/null; then
    echo "skipped: KILN_PYTHON names no Python with h5py"
    exit 77
fi
if "$kiln" doctor --dry_run | grep -q '^hdf5 *not built in'; then
    echo "skipped: this build has no HDF5"
    exit 77
fi
. "$(dirname "$0")/corpus.sh"
export OMP_NUM_THREADS=1
make_store
"$python" "$(dirname "$0")/../golden/check_h5py.py" "$kiln" "$dir"
