#!/usr/bin/env bash
# Builds one preset (CMakePresets.json), runs its tests, and says what was skipped and why; the counts are in
# BUILD/results.xml.  Most tests of kernels take turns (tools/pick_tests.sh): KILN_TESTS=all runs all, KILN_TESTS=sample
# only a part of the others in the builds asan and portable. KILN_REQUIRE=cuda,h5py turns skips for lack of these
# features into failures (tools/sum_tests.sh lists them). KILN_NVCC_WHEELS=1 fetches nvcc for the preset ci if there is none
# (tools/install_nvcc.sh). usage: tools/test.sh ci|asan|tsan|portable [ctest arguments]
#        tools/test.sh check ROOM        the tests of one room, in the build of ci
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?a preset: ci, asan, tsan or portable}
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
asan) # the plan does not include a sanitizer's memory
    left_out='^test_memory$'
    ! $sampled || one_in=(10 4)
    ;;
portable) # a slow test of what is not another here
    left_out='^test_bert_gradients$'
    ! $sampled || one_in=(10 6)
    ;;
tsan) # what has threads: prefetch, the pass over text, the pool of the cpu table, sessions over one model
    target=(test_api test_corpus_pass test_data_prefetch test_gemm test_ops_cpu checkop)
    select=(-R '^(test_api|test_corpus_pass|test_data_prefetch|test_gemm|test_ops_cpu|checkop_cpu_(fp32|bf16))$')
    one_in=(1 1)
    ;;
esac
[ ! -d ../shared ] || tools/install_deps.sh xz-utils # unpacks the data of the developers
rm -f "$build/results.xml"
cmake --preset "$preset" "${settings[@]}" >/dev/null
turns=$(tools/pick_tests.sh "$build" "${one_in[@]}")
left_out+=${turns:+${left_out:+|}$turns}
[ -z "$left_out" ] || select+=(-E "$left_out")
if $sampled && [[ $preset =~ ^(asan|portable)$ ]]; then # only the programs of the tests that run
    mapfile -t target < <(ctest --test-dir "$build" -N "${select[@]}" | sed -nE 's/^ *Test +#[0-9]+: (checkop|test_[a-z0-9_]+).*/\1/p' | sort -u |
        while read -r name; do ! compgen -G "tests/*/$name.c" >/dev/null || echo "$name"; done)
    target+=(test_support)
fi
cmake --build "$build" --target "${target[@]}"
status=0
ctest --test-dir "$build" --output-on-failure --test-output-size-passed 100000 --output-junit results.xml -j "$(nproc)" \
    "${select[@]}" "${@:2}" || status=$?
echo
tools/sum_tests.sh "$build/results.xml" || status=1
exit "$status"
