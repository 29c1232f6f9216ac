#!/usr/bin/env bash
# clang-format over every C and CUDA file of the tree with the given options: -i, or --dry-run --Werror.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.hpp' | xargs -0 clang-format "$@"
