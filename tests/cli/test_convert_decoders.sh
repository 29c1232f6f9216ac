#!/usr/bin/env bash
# kiln convert of GPT-2 and BLOOM: every form is read back with the same weights, ends with the largest difference of the logits,
# and becomes the same Hugging Face directory again; a file that says something else is refused.
. "$(dirname "$0")/begin.sh"
unpack_golden decoders
unpack_golden imports
cd "$dir"

# convert FORMAT MODEL OUT flags...
convert()
{
    expect 0 "read back: all weights are the same, bit by bit" "$kiln" convert --to "$1" --model "$2" --output_dir "$3" "${@:4}"
    grep -q '^largest difference of logits before and after: ' out || fail "$2 as $1: $(cat out)"
}

# the_same A B: both directories have the same weights.
the_same()
{
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$2 has other weights than $1"
}

for model in gpt2 gpt2_exact bloom bloom_half; do
    convert huggingface $model $model.hf
    convert gguf $model $model.gguf
    grep -q 'after: 0 (lm 0 of' out || fail "$model in GGUF: $(cat out)"
    grep -q 'only the tanh form' err && tanh=1 || tanh=0
    [ $tanh = $([ $model = gpt2_exact ] && echo 1 || echo 0) ] || fail "$model and the form of GELU: $(cat err)"
done

# GGUF in every type is within the bound of its type, and a model.
for type in f32 f16 bf16 q8_0; do
    convert gguf gpt2 typed --type $type
    expect 0 "GGUF" "$kiln" inspect typed/model.gguf
done
expect 0 "Q8_0" "$kiln" inspect typed/model.gguf
grep -q 'blk.2.ffn_down.weight' out || fail "$(cat out)"
# Rows without a piece are dropped: those of the other directories have some.
convert huggingface gpt2.gguf cut
convert gguf cut again/gpt2.gguf # the file says the name of its directory
cmp again/gpt2.gguf/model.gguf gpt2.gguf/model.gguf || fail "GGUF there and back"

# What cannot be.
expect 64 "--type bf16 needs --format gguf, not pt" "$kiln" convert --to pt --type bf16 --model gpt2 --output_dir x
expect 69 "kiln does not write models of the kind BERT in GGUF" "$kiln" convert --to gguf --model pretraining_bin --output_dir x
expect 69 "kiln does not write models of the kind GPT-2 for PyTorch's scripts" "$kiln" convert --to pt --model gpt2 --output_dir x
expect 0 "would write x" "$kiln" convert --to gguf --model gpt2 --output_dir x --dry_run
expect 74 "File too large" bash -c 'trap "" XFSZ; ulimit -f 8; exec "$@"' _ "$kiln" convert --model gpt2 --to gguf --output_dir x
[ ! -e x ] || fail "an error left something"

# A model that the type ruins: one weight of each block of Q8_0 is so large that the others become 0.
cp -r gpt2 ruined
at=$((8 + $(od -An -t u8 -N 8 ruined/model.safetensors)))
while read -r bytes name; do
    case $name in transformer.h.*.mlp.c_proj.weight)
        for row in 5 37 69; do # of 96, each of 24 weights
            for i in {1..24}; do printf '\0\0\172D'; done | # 1000
                dd of=ruined/model.safetensors bs=1 seek=$((at + row * 96)) conv=notrunc status=none
        done ;;
    esac
    at=$((at + bytes))
done < <("$kiln" inspect gpt2/model.safetensors | awk '$1 ~ /^F32$/ { print $(NF - 1), $NF }')
convert gguf ruined kept
expect 70 "computes other logits than the model it was made from: they may differ by" "$kiln" convert --to gguf --type q8_0 \
    --model ruined --output_dir lost
grep -q '^largest difference of logits before and after: ' out || fail "no difference: $(cat out)"

# All that does not fit is named, and the first once more.
cp -r gpt2 odd
LC_ALL=C sed -i 's/transformer.h.0.ln_1.bias/transformer.h.0.ln_9.bias/; s/transformer.h.2.ln_2.bias/transformer.h.7.ln_2.bias/; s/\[24,72\]/[72,24]/' \
    odd/model.safetensors
expect 65 "c_attn.weight has the shape [72, 24], but config.json needs [24, 72]: it is the transpose" "$kiln" convert --model odd \
    --output_dir x
for line in 'missing: transformer.h.0.ln_1.bias' 'missing: transformer.h.2.ln_2.bias' 'extra: transformer.h.0.ln_9.bias' \
    'extra: transformer.h.7.ln_2.bias' 'misshapen: odd: the tensor transformer.h.0.attn.c_attn.weight'; do
    grep -q "$line" err || fail "'$line' is not said: $(cat err)"
done

# A directory with something else is not replaced.
cp -r gpt2 other
expect 64 "not part of a model" "$kiln" convert --to gguf --model gpt2 --output_dir other
echo "test_convert_decoders: there and back"
