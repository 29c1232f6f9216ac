#!/usr/bin/env bash
# clang-tidy over every file of src/, each in its own process (version 14 mixes up va_lists between files).
# usage: tools/tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset tidy >/dev/null
if [ $# -gt 0 ]; then
    files=("$@")
else
    # except those that need CUDA's headers, which Debian does not have
    mapfile -t files < <(find src -name '*.c' -exec grep -L 'cublasLt\.h\|cuda_runtime_api\.h\|cuda_algorithms\.h' {} + | sort)
fi

check() {
    local model=(--extra-arg=-include --extra-arg="$PWD/tools/status_for_analyzer.h")
    [ "$1" = src/core/status.c ] && model=()
    clang-tidy -p build-tidy --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused "${model[@]}" "$1" 2>/dev/null
}
export -f check
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$0"'
echo "tidy: ${#files[@]} files are clean"
