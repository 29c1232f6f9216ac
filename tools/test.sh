#!/usr/bin/env bash
# Builds one preset (CMakePresets.json) and runs its tests; the counts are in BUILD/results.xml.
# usage: tools/test.sh ci|asan|tsan|portable [ctest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?a preset: ci, asan, tsan or portable}
build=build-$preset
target=(all)
select=()
case $preset in
ci) build=build ;;
asan) select=(-E '^test_memory$') ;; # a sanitizer's own memory is in no plan
tsan) # what has threads: prefetch, the pool of the cpu table, sessions over one model
    target=(test_api test_data_prefetch test_gemm test_ops_cpu checkop)
    select=(-R '^(test_api|test_data_prefetch|test_gemm|test_ops_cpu|checkop_cpu_(fp32|bf16))$')
    ;;
esac
tools/install_deps.sh xz-utils # unpacks the data that some tests look for beside the checkout
rm -f "$build/results.xml"
cmake --preset "$preset" >/dev/null
cmake --build "$build" --target "${target[@]}"
ctest --test-dir "$build" --output-on-failure --output-junit results.xml -j "$(nproc)" "${select[@]}" "${@:2}"
