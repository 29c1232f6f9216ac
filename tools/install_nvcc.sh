#!/usr/bin/env bash
# Puts nvcc, the CUDA runtime and cuBLAS into DIR from PyPI's wheels (0.8 GB), for machines without it, so
# that every run of CI compiles and links the CUDA library. Does nothing if there is an nvcc. Without a
# network it says so, and kiln is built without CUDA. usage: tools/install_nvcc.sh DIR
set -euo pipefail
dir=${1:?a directory}
[ -x "$dir/bin/nvcc" ] && exit 0
{ command -v nvcc || [ -x "${CUDACXX:-/usr/local/cuda/bin/nvcc}" ]; } >/dev/null && exit 0

# of one release of CUDA, 13.0
wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96
    nvidia-cuda-cccl==13.0.85 nvidia-cublas==13.1.0.3)
"$(dirname "$0")/install_deps.sh" python3-pip
rm -rf "$dir.new"
export PIP_ROOT_USER_ACTION=ignore # it goes into a directory of its own
if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$dir.new" "${wheels[@]}"; then
    rm -rf "$dir.new"
    echo "warning: nvcc could not be fetched; kiln is built without CUDA" >&2
    exit 0
fi
cuda=$dir.new/nvidia/cu13
for library in "$cuda"/lib/lib*.so.*; do # wheels have no names to link by
    ln -s "$(basename "$library")" "${library%%.so.*}.so"
done
ln -s lib "$cuda/lib64"
mkdir -p "$(dirname "$dir")"
rm -rf "$dir"
mv "$cuda" "$dir"
rm -rf "$dir.new"
