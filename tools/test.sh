#!/usr/bin/env bash
# Builds one preset (CMakePresets.json), runs its tests, and says what was skipped and why; the counts are in
# BUILD/results.xml.  Most tests of kernels take turns (tools/pick_tests.sh): KILN_TESTS=all runs all, KILN_TESTS=sample
# only a part of the others in the build checked. A failed test runs once more alone (tools/flaky.sh). KILN_REQUIRE=cuda,h5py turns skips for lack of these
# features into failures (tools/sum_tests.sh lists them). KILN_NVCC_WHEELS=1 fetches nvcc for the preset ci if there is none
# (tools/install_nvcc.sh). usage: tools/test.sh ci|checked|asan|tsan|portable [ctest arguments]
#        tools/test.sh check ROOM        the tests of one room, in the build of ci
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?a preset: ci, checked, asan, tsan or portable}
for feature in $(tr , ' ' <<<"${KILN_REQUIRE:-}"); do
    tools/sum_tests.sh --features | grep -xF -e "$feature" >/dev/null || {
        echo "KILN_REQUIRE names no feature of the tests: '$feature'; there are $(tools/sum_tests.sh --features | tr '\n' ' ')" >&2
        exit 64
    }
done
build=build-$preset
target=(all)
select=()
settings=()
left_out=   # a regex of tests that never run in this build
one_in=(10 1) # of the tests of kernels, and of the others
sampled=false
[ "${KILN_TESTS:-}" != sample ] || sampled=true
case $preset in
check)
    room=${2:?a room: $(ls -d tests/*/ | tr -d / | sed s/tests//  | tr '\n' ' ')}
    preset=ci
    build=build
    target=("check_$room")
    select=(-L "^$room\$")
    one_in=(1 1)
    set -- check
    ;;
ci)
    build=build
    if [ "${KILN_NVCC_WHEELS:-0}" = 1 ]; then
        tools/install_nvcc.sh "$build/nvcc"
    fi
    if [ -x "$build/nvcc/bin/nvcc" ]; then
        settings=("-DCMAKE_CUDA_COMPILER=$PWD/$build/nvcc/bin/nvcc")
    fi
    ;;
checked)
    settings=(-DKILN_FUZZ_SECONDS=3 -DKILN_FUZZ_SEED=1) # a failure is one of the change; `make fuzz` has other inputs in each run
    # what is about the tree or gcc, a library that other programs open, a plan without a sanitizer's memory, slow tests of what is not another here
    left_out='^(test_(ci|house|abi|install|python|shared_library|train_own|memory|bert_gradients))$'
    ! $sampled || one_in=(10 4)
    ;;
asan)
    left_out='^test_memory$'
    ;;
portable)
    left_out='^test_bert_gradients$'
    ;;
tsan) # what has threads: prefetch, the pass over text, the pool of the cpu table, ranks, sessions over one model, the server
    target=(test_api test_api_generator test_api_run test_comm test_comm_parts test_corpus_pass test_data_prefetch test_gemm test_http test_http_gate test_ops_cpu test_text_engine test_encoder_calls test_generation_calls checkop)
    select=(-R '^(test_api|test_api_generator|test_api_run|test_comm|test_comm_parts|test_corpus_pass|test_data_prefetch|test_gemm|test_http|test_http_gate|test_ops_cpu|test_text_engine|test_encoder_calls|test_generation_calls|checkop_cpu_(fp32|bf16))$')
    one_in=(1 1)
    ;;
esac
[ ! -d ../shared ] || tools/install_deps.sh xz-utils # unpacks the data of the developers
rm -f "$build/results.xml"
cmake --preset "$preset" "${settings[@]}" >/dev/null
turns=$(tools/pick_tests.sh "$build" "${one_in[@]}")
left_out+=${turns:+${left_out:+|}$turns}
[ -z "$left_out" ] || select+=(-E "$left_out")
if $sampled && [ "$preset" = checked ]; then # only the programs of the tests that run
    mapfile -t target < <(ctest --test-dir "$build" -N "${select[@]}" | sed -nE 's/^ *Test +#[0-9]+: (checkop|test_[a-z0-9_]+|fuzz_[a-z0-9_]+).*/\1/p' | sort -u |
        while read -r name; do ! compgen -G "tests/*/$name.c" >/dev/null && [ ! -e "fuzz/$name.c" ] || echo "$name"; done |
        grep -v '^test_cuda_') # gpu_tests has these
    target+=(test_support)
fi
cmake --build "$build" --target "${target[@]}"
status=0
ctest --test-dir "$build" --output-on-failure --test-output-size-passed 100000 --output-junit results.xml -j "$(nproc)" \
    "${select[@]}" "${@:2}" || tools/flaky.sh "$build" "$(date +%F)" || status=$?
echo
tools/sum_tests.sh "$build/results.xml" || status=1
exit "$status"
