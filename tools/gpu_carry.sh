#!/usr/bin/env bash
# With nvcc, makes build-carry/: kiln, libkiln_cuda.so, checkop and the GPU tests, stripped, for a GPU machine
# with only its driver, glibc, libstdc++ and CUDA's libcublasLt, which kiln finds in the toolkit or in a
# Python wheel.  tools/gpu_check.sh and tools/gpu_bench.sh take it from there (docs/howto/first_gpu_hour.md).
#
#   tools/gpu_carry.sh                  compiles in build-gpu/
#   tools/gpu_carry.sh --check FILE...  checks what these files need, and their size: fails if they need more
#   tools/gpu_carry.sh --size DIR       checks the size alone, of the same files of another build
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/gpu_common.sh
most_mib=20 # more takes longer to copy than the first step on the GPU
carried="kiln libkiln_cuda.so $(printf 'tests/%s ' $gpu_programs)"
newest_glibc=2.34 # of systems since 2021

# A file's libraries, and the newest version of glibc that it needs.
check_file()
{
    local needed glibc
    needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    if grep -vE '^(lib(c|m)\.so\.6|ld-linux-x86-64\.so\.2|libgcc_s\.so\.1|libstdc\+\+\.so\.6|libcublasLt\.so\.[0-9]+)$' <<<"$needed"; then
        echo "gpu_carry: $1 needs more than a bare machine has" >&2
        return 1
    fi
    glibc=$(readelf -V "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -V | tail -n 1)
    if [ "$(printf '%s\n%s\n' "$glibc" $newest_glibc | sort -V | tail -n 1)" != $newest_glibc ]; then
        echo "gpu_carry: $1 needs glibc $glibc" >&2
        return 1
    fi
    if readelf -d "$1" | grep -E 'R(UN)?PATH' >&2; then
        echo "gpu_carry: $1 looks for libraries where this machine has them" >&2
        return 1
    fi
    echo "$1: $(du -k "$1" | cut -f 1) KiB, glibc $glibc, $(tr '\n' ' ' <<<"$needed")"
}

check_size()
{
    local kib
    kib=$(du -kc "$@" | tail -n 1 | cut -f 1)
    echo "$((kib / 1024)) MiB in $# files"
    [ "$kib" -le $((most_mib * 1024)) ] || { echo "gpu_carry: more than $most_mib MiB" >&2 && return 1; }
}

check_files()
{
    local file
    for file in "$@"; do check_file "$file" || return 1; done
    check_size "$@"
}

# strip_all FROM TO
strip_all()
{
    local file
    mkdir -p "$2/tests"
    for file in $carried; do
        strip -o "$2/$file" "$1/$file"
    done
}

case ${1:-} in
--check)
    check_files "${@:2}"
    exit
    ;;
--size)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    strip_all "$2" "$work"
    check_size $(printf "$work/%s " $carried)
    exit
    ;;
esac
build_for_gpu build-gpu >/dev/null
rm -rf build-carry
strip_all build-gpu build-carry
check_files $(printf 'build-carry/%s ' $carried)
