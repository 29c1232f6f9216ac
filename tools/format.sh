#!/usr/bin/env bash
# clang-format over every C file of the tree with the given options: -i, or --dry-run --Werror.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | xargs -0 clang-format "$@"
