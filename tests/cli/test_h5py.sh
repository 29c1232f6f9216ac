#!/usr/bin/env bash
# HDF5 shards between kiln and h5py, both ways: tests/golden/check_h5py.py, with the Python that KILN_PYTHON names.
. "$(dirname "$0")/begin.sh"
need_hdf5
need_python h5py h5py
export OMP_NUM_THREADS=1
make_store
"$python" "$(dirname "$0")/../golden/check_h5py.py" "$kiln" "$dir"
