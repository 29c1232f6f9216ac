#!/usr/bin/env bash
# What `make test` runs: build with warnings as errors, then every test.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset ci >/dev/null
cmake --build build
ctest --test-dir build --output-on-failure -j 2
