#!/usr/bin/env bash
# KILN_ISA chooses the instruction set of the kernels, and the libraries of products follow it. A set that does not exist, or that the
# processor lacks, is refused by every command that computes.
. "$(dirname "$0")/begin.sh"
unset KILN_ISA ONEDNN_MAX_CPU_ISA OPENBLAS_CORETYPE

doctor() { KILN_ISA=$1 "$kiln" doctor --dry_run; }

expect 64 "KILN_ISA is 'avx3', but must be one of baseline" doctor avx3
expect 64 "KILN_ISA is 'AVX2', but must be one of" env KILN_ISA=AVX2 "$kiln" bench --model tiny --dry_run
expect 0 "kernels for baseline" doctor baseline
expect 0 "kernels for $("$kiln" doctor --dry_run | sed -n 's/.*kernels for //p')" doctor ""

# flags of /proc/cpuinfo and the set that needs them last
while read -r isa flag one_dnn open_blas; do
    if ! grep -qw "$flag" /proc/cpuinfo; then
        expect 69 "KILN_ISA is '$isa', but this processor has at most" doctor "$isa"
        continue
    fi
    expect 0 "kernels for $isa" doctor "$isa"
    ! grep -q 'oneDNN [0-9]' "$dir/out" || grep -qE "oneDNN .*[(]$one_dnn[)]: on" "$dir/out" || fail "oneDNN is not limited to $isa"
    ! grep -q 'OpenBLAS.*DYNAMIC_ARCH' "$dir/out" || grep -q "OpenBLAS.* $open_blas " "$dir/out" || fail "OpenBLAS is not limited to $isa"
done <<'END'
avx2 avx2 AVX2 Haswell
avx512 avx512bw AVX-512.* SkylakeX
avx512bf16 avx512_bf16 AVX-512.bf16 Cooperlake
END

# The library's own variable goes first, and kiln says what it chose.
if grep -qw avx2 /proc/cpuinfo && "$kiln" doctor --dry_run | grep 'OpenBLAS.*DYNAMIC_ARCH' >/dev/null; then
    expect 0 " Nehalem " env KILN_ISA=avx2 OPENBLAS_CORETYPE=Nehalem "$kiln" doctor --dry_run
fi
