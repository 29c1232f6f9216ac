#!/usr/bin/env bash
# Builds one preset (CMakePresets.json) and runs its tests; the counts are in BUILD/results.xml.
# KILN_NVCC_WHEELS=1 fetches nvcc for the preset ci where there is none (tools/install_nvcc.sh).
# usage: tools/test.sh ci|asan|tsan|portable [ctest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?a preset: ci, asan, tsan or portable}
build=build-$preset
target=(all)
select=()
settings=()
case $preset in
ci)
    build=build
    if [ "${KILN_NVCC_WHEELS:-0}" = 1 ]; then
        tools/install_nvcc.sh "$build/nvcc"
    fi
    if [ -x "$build/nvcc/bin/nvcc" ]; then
        settings=("-DCMAKE_CUDA_COMPILER=$PWD/$build/nvcc/bin/nvcc")
    fi
    ;;
asan) select=(-E '^test_memory$') ;; # a sanitizer's own memory is in no plan
tsan) # what has threads: prefetch, the pool of the cpu table, sessions over one model
    target=(test_api test_data_prefetch test_gemm test_ops_cpu checkop)
    select=(-R '^(test_api|test_data_prefetch|test_gemm|test_ops_cpu|checkop_cpu_(fp32|bf16))$')
    ;;
esac
tools/install_deps.sh xz-utils # unpacks the data that some tests look for beside the checkout
rm -f "$build/results.xml"
cmake --preset "$preset" "${settings[@]}" >/dev/null
cmake --build "$build" --target "${target[@]}"
ctest --test-dir "$build" --output-on-failure --output-junit results.xml -j "$(nproc)" "${select[@]}" "${@:2}"
