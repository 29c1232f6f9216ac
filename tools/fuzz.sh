#!/usr/bin/env bash
# Builds the fuzz targets with clang, ASan and UBSan and runs each from its committed corpus.
# usage: tools/fuzz.sh [SECONDS for each target [SEED]]
# With a SEED a run meets the inputs of the last run with it, so a failure in CI is one of the change; without, others.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset checked -DKILN_FUZZ_SECONDS="${1:-10}" -DKILN_FUZZ_SEED="${2:-0}" >/dev/null
mapfile -t targets < <(cd fuzz && ls fuzz_*.c | sed 's/\.c$//')
cmake --build build-checked --target "${targets[@]}"
rm -f build-checked/results.xml
ctest --test-dir build-checked --output-on-failure --output-junit results.xml -j "$(nproc)" -R '^fuzz_'
