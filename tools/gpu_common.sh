# shellcheck shell=bash
# Functions of tools/gpu_check.sh, gpu_bench.sh and gpu_carry.sh; sourced in the root of the checkout.
gpu_programs="checkop gpu_tests"

# build_for_gpu DIR: without the CPU libraries that a GPU machine may lack.
build_for_gpu()
{
    local missing=() tool
    for tool in cmake ninja pkg-config; do
        command -v $tool >/dev/null || missing+=("$tool")
    done
    command -v nvcc >/dev/null || [ -x "${CUDACXX:-/usr/local/cuda/bin/nvcc}" ] || missing+=(nvcc)
    ! command -v pkg-config >/dev/null || pkg-config --exists jansson libutf8proc || missing+=("libjansson-dev, libutf8proc-dev")
    if [ ${#missing[@]} -gt 0 ]; then
        echo "nothing can be built here without ${missing[*]}: tools/gpu_carry.sh, where they are (tools/install_deps.sh," \
            "tools/install_nvcc.sh), makes build-carry/, which runs here" >&2
        return 1
    fi
    # shellcheck disable=SC2086 # names of targets
    cmake -S . -B "$1" -G Ninja -DKILN_CUDA=ON -DKILN_STATIC=ON -DKILN_ONEDNN=OFF -DKILN_BLAS=OFF -DKILN_HDF5=OFF \
        -DKILN_CURL=OFF -DKILN_ARCHIVE=OFF -DKILN_MICROHTTPD=OFF -DKILN_PCRE2=OFF -DKILN_MPI=OFF -DKILN_EMULATE_CUDA=OFF \
        -DCMAKE_C_FLAGS="-ffunction-sections -fdata-sections" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--gc-sections "${@:2}" &&
        cmake --build "$1" --target kiln_program kiln_cuda $gpu_programs
}

# Sets $build, which is built if it does not exist, and $work, which is removed at the end.
open_gpu_build()
{
    build=${BUILD:-build-carry}
    [ -n "${BUILD:-}" ] || [ -x build-carry/kiln ] || build=build-gpu
    [ -x "$build/kiln" ] || build_for_gpu "$build" || exit 1
    kiln=$build/kiln
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
}

# Ends the script with the reason if this build finds no such device: otherwise every step would report the
# same.
need_device()
{
    "$kiln" bench --model tiny --device "$1" --dry-run >/dev/null 2>"$work/none" && return
    cat "$work/none" >&2
    echo "nothing can be tried here: docs/howto/first_gpu_hour.md says what helps" >&2
    exit 1
}

# The rest of BUDGET seconds for the whole script, if it is set.
seconds_left() { echo $((${BUDGET:-1000000} - SECONDS)); }

# limited SECONDS COMMAND...: a program or an exported function; 124 or 137 if it was not done by then.
limited()
{
    local left seconds=$1
    left=$(seconds_left)
    [ "$left" -gt 0 ] || { echo "BUDGET=$BUDGET seconds are spent" >&2 && return 124; }
    timeout -k 5 $((seconds < left ? seconds : left)) bash -euo pipefail -c '"$@"' "$2" "${@:2}" </dev/null
}

ran_out() { [ "$1" = 124 ] || [ "$1" = 137 ]; }

# Describes this machine in a few lines.
machine()
{
    "$kiln" doctor --dry-run 2>&1 | grep -A 3 '^cuda'
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv,noheader 2>/dev/null || true
    date -u +%Y-%m-%d
}
