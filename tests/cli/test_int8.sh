#!/usr/bin/env bash
# --dtype int8 of an encoder: vectors stay close, which is measured and said when the model is opened; a model whose outputs move
# too far is refused; and a processor without instructions for int8 computes in fp32 and says so.
. "$(dirname "$0")/begin.sh"
unset KILN_ISA ONEDNN_MAX_CPU_ISA
tests=$(dirname "$kiln")/tests

"$tests/test_sentence_dirs" unpack "$dir"
embed() { "$kiln" embed --model "$dir/mean" --dtype "$@" 'a mad dog' 'a cab'; }

if grep -qw avx2 /proc/cpuinfo; then
    KILN_ISA=avx2 expect 0 'int8: this processor has no instructions for it' embed int8
    cp "$dir/out" "$dir/fallen_back"
    KILN_ISA=avx2 embed fp32 2>/dev/null | cmp - "$dir/fallen_back" || fail "without instructions for int8 other bits than fp32"
fi
if ! "$tests/test_gemm_rows" | grep 'a library multiplies int8' >/dev/null; then
    skip int8 "no library of this build multiplies int8 by int8 on this processor"
fi

expect 0 'with the outputs in fp32, on 9 texts' embed int8
cp "$dir/out" "$dir/int8"
embed fp32 >"$dir/fp32" 2>/dev/null
! cmp -s "$dir/int8" "$dir/fp32" || fail "int8 has the bits of fp32"
paste -d' ' "$dir/int8" "$dir/fp32" | tr '[],' '   ' | awk '{
    xx = yy = xy = 0
    for (i = 1; i <= NF / 2; i++) { x = $i; y = $(i + NF / 2); xx += x * x; yy += y * y; xy += x * y }
    if (xy < 0.999 * sqrt(xx * yy)) { print "cosine " xy / sqrt(xx * yy); exit 1 }
}' || fail "the vectors in int8 are others"
expect 0 'M parameters' "$kiln" embed --model "$dir/mean" --dtype int8 --dry_run

# The other answers of encoders.
unpack_golden hf_dirs
unpack_golden classify
takes_int8() { expect 0 'with the outputs in fp32, on 9 texts' "$kiln" "$1" --dtype int8 --model "$dir/$2" "${@:3}"; }
takes_int8 classify single 'the king'
takes_int8 tag tokens 'the king of a dog'
takes_int8 rerank regression 'the king' 'a dog'
takes_int8 fill masked_lm 'the [MASK]'
echo 'the dog saw the king' >"$dir/context"
takes_int8 ask question_answering --context "$dir/context" 'the king'

# One activation of each token is so large that all others round to zero, and nothing reads it.
model=$dir/mean/model.safetensors
header=$((8 + $(od -An -tu8 -N8 "$model")))
place() # TENSOR: its first byte in the file
{
    local offset
    offset=$(head -c $header "$model" | grep -aoE "\"$1\":\\{[^}]*\\[[0-9]+,[0-9]+\\]\\}" | sed -E 's/.*\[([0-9]+),[0-9]+\]\}/\1/')
    echo $((header + offset))
}
put() { printf "$1" | dd of="$model" bs=1 seek="$2" conv=notrunc status=none; }
for layer in 0 1; do
    put '\x00\x40\x1c\x46' "$(place encoder.layer.$layer.intermediate.dense.bias)" # 10000
    first=$(place encoder.layer.$layer.output.dense.weight)
    for row in $(seq 0 15); do put '\0\0\0\0' $((first + row * 20 * 4)); done
done
expect 65 'in int8 its outputs have a cosine of' embed int8
expect 0 '' embed fp32
