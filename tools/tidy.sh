#!/usr/bin/env bash
# clang-tidy over every file of src/, each in its own process (version 14 mixes up va_lists between files), and once, however
# many programs and libraries it is compiled for.
# usage: tools/tidy.sh [FILE...], or tools/tidy.sh --sample N: the files that have changed (tools/turn.sh), and one in N of the others,
# which take turns
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset tidy >/dev/null
mkdir -p build-tidy/once
awk '/^{/ { entry = "" } { entry = entry (entry == "" ? "" : "\n") $0 } /^  "file"/ { file = $0 }
    /^}/ { if (!seen[file]++) { sub(/,$/, "", entry); out = out (out == "" ? "" : ",\n") entry } }
    END { print "[\n" out "\n]" }' build-tidy/compile_commands.json >build-tidy/once/compile_commands.json
if [ $# -gt 0 ] && [ "$1" != --sample ]; then
    files=("$@")
else
    # except those that need CUDA's headers, which Debian does not have
    mapfile -t files < <(find src -name '*.c' -exec grep -L 'cublasLt\.h\|cuda_runtime_api\.h\|cuda_algorithms\.h' {} + | sort)
fi

if [ "${1:-}" = --sample ]; then
    . tools/turn.sh
    changed=" $(tr '\n' ' ' <<<"$changed") "
    picked=()
    for file in "${files[@]}"; do
        if [[ $changed == *" $file "* ]] || [ $((($(cksum <<<"$file" | cut -d' ' -f1) + turn) % $2)) -eq 0 ]; then
            picked+=("$file")
        fi
    done
    echo "tidy: KILN_TURN=$turn: left out of this run: $((${#files[@]} - ${#picked[@]})) files that have not changed (make tidy reads all)"
    files=("${picked[@]}")
fi

check() {
    local model=(--extra-arg=-include --extra-arg="$PWD/tools/status_for_analyzer.h")
    [ "$1" = src/core/status.c ] && model=()
    clang-tidy -p build-tidy/once --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused "${model[@]}" "$1" 2>/dev/null
}
export -f check
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$0"'
echo "tidy: ${#files[@]} files are clean"
