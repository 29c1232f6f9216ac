#!/usr/bin/env bash
# What most desktops, laptops and older servers see: kiln and its peers with AVX2 alone, on any processor that has it. Part of `make bench`;
# the variables of the other benchmarks select rows, and SHAPES those of training. llama.cpp chooses its instructions when it is compiled:
# LLAMA_PYTHON names an interpreter whose llama-cpp-python was built with CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON".
set -euo pipefail
cd "$(dirname "$0")/.."
grep -qw avx2 /proc/cpuinfo || { echo "this processor has no AVX2" && exit 0; }
export KILN_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2
export DTYPES=${DTYPES:-fp32} LENGTHS=${LENGTHS:-256}
echo "with AVX2 alone:"
SHAPES=${SHAPES:-124m} bench/decoder.sh
bench/vectors.sh
DTYPES="$DTYPES int8" bench/generation.sh
