#!/usr/bin/env bash
# kiln convert of the files of Megatron-DeepSpeed: decoders become the files that those programs write, for any number of ranks,
# and come back with the same weights and logits.
. "$(dirname "$0")/begin.sh"
unpack_golden decoder_files
cd "$dir"

# convert FORMAT MODEL OUT flags...
convert()
{
    expect 0 "read back: all weights are the same, bit by bit" "$kiln" convert --to "$1" --model "$2" --output_dir "$3" "${@:4}"
    grep -q '^largest difference of logits before and after: ' out || fail "$2 as $1: $(cat out)"
}

# The head has more rows here, of padding, and a product of another size may sum in another order: only the rest has equal bits.
same_but_for_rounding()
{
    sed -n 's/^largest difference .* (lm \([^ ]*\) of \([^ ]*\), hidden \([^ ]*\) of .*)$/\1 \2 \3/p' out |
        awk '{ n++; ok = $2 > 0 && $1 <= 1e-5 * $2 && $3 == "0" } END { exit !(n == 1 && ok) }'
}

# Whatever the ranks.
for model in gpt2 bloom; do
    for tp in 1 2 4; do
        convert megatron_deepspeed $model ranks --tp $tp --step 7
        same_but_for_rounding || fail "$model for $tp ranks: $(cat out)"
        convert gguf ranks of/plain.gguf # the file says the name of its directory
        convert gguf $model plain.gguf
        cmp of/plain.gguf/model.gguf plain.gguf/model.gguf || fail "$model for $tp ranks has other weights"
    done
done
# As a pipeline of two stages, and without the comparison of logits, which needs the whole model in memory.
convert megatron_deepspeed gpt2_tp2 stages --tp 2 --pp 2 --step 7
[ "$(cd stages/global_step7 && echo mp_rank_*)" = "$(printf 'mp_rank_%02d_model_states.pt ' 0 1 2 3 | sed 's/ $//')" ] ||
    fail "mp_rank files: $(ls stages/global_step7)"
expect 0 "read back: all weights are the same, bit by bit" "$kiln" convert --to gguf --model stages --output_dir of_stages --compare_logits false
! grep -q 'difference of logits' out || fail "logits were compared"
convert gguf gpt2 plain.gguf
expect 0 'model.gguf  whole' "$kiln" inspect plain.gguf
for model in universal shards; do
    convert gguf $model of/plain.gguf
    cmp of/plain.gguf/model.gguf plain.gguf/model.gguf || fail "$model has other weights"
done
# kiln inspect --diff sees the parts of attention in the one tensor that each program keeps them in.
expect 0 "wrote whole" "$kiln" convert --model gpt2 --output_dir whole
"$kiln" convert --to megatron_deepspeed --tp 2 --model gpt2 --output_dir cut >/dev/null 2>&1
"$kiln" convert --to gguf --type q8_0 --model gpt2 --output_dir rounded >/dev/null 2>&1
expect 0 "different                       0" "$kiln" inspect --diff gpt2 whole
# their vocabularies have other rows, of padding
for model in plain.gguf cut; do
    expect 1 "different                       1" "$kiln" inspect --diff gpt2 "$model"
    grep -q '  weights: transformer.wte.weight  another shape' out || fail "$(cat out)"
done
expect 1 "first in weights: transformer.h.0.attn.key.weight" "$kiln" inspect --diff rounded cut
expect 0 "different                       0" "$kiln" inspect --diff --atol 0.1 rounded plain.gguf

expect 0 "differ by up to 0.25 (layers.1.input_layernorm.weight); they are averaged" "$kiln" convert --model gpt2_tp2 \
    --output_dir averaged
expect 0 "12 ranks" "$kiln" convert --model shards --output_dir from_shards
expect 0 "wrote averaged" "$kiln" convert --model gpt2_tp2/global_step7/layer_01-model_00-model_states.pt --output_dir averaged
expect 0 "12 ranks" "$kiln" convert --model shards/global_step7/mp_rank_00_model_states.pt --output_dir from_shards
mkdir alone
cp -r gpt2_tp2/global_step7 alone/
expect 65 "no config.json" "$kiln" convert --model alone/global_step7 --output_dir x
expect 0 "wrote averaged" "$kiln" convert --model alone/global_step7 --config_file gpt2/config.json --vocab_file gpt2/tokenizer.json \
    --output_dir averaged
expect 0 "wrote averaged" "$kiln" convert --model gpt2_tp2/global_step7 --output_dir averaged

# What no shape shows is compared with config.json: heads in all of these, the epsilon where the file has it.
for model in plain.gguf cut; do
    rm -rf unlike
    cp -r $model unlike
    rm -f unlike/kiln.sha256
    sed -i 's/"n_head": 4/"n_head": 2/' unlike/config.json
    expect 65 "is of a model of 4 heads, but config.json says 2" "$kiln" export --model unlike --output_dir x
done
convert gguf gpt2 unlike_eps
rm unlike_eps/kiln.sha256
sed -i 's/"layer_norm_epsilon": [^,}]*/"layer_norm_epsilon": 0.001/' unlike_eps/config.json
expect 65 "is of a model with the epsilon 1e-05, but config.json says 0.001" "$kiln" export --model unlike_eps --output_dir x

# llama.cpp needs 256 positions.
convert gguf gpt2 few
grep -q 'warning: this model has [0-9]* positions, but llama.cpp rounds a context up to 256' err || fail "few positions: $(cat err)"

# What cannot be.
expect 64 "--tp needs --format megatron_deepspeed" "$kiln" convert --to gguf --tp 2 --model gpt2 --output_dir x
expect 64 "--tp 3 does not divide the 4 heads" "$kiln" convert --to megatron_deepspeed --tp 3 --model gpt2 --output_dir x
expect 64 "--pp 3 does not divide the 2 layers" "$kiln" convert --to megatron_deepspeed --pp 3 --model gpt2 --output_dir x
expect 64 "--pp needs --format megatron_deepspeed" "$kiln" convert --to gguf --pp 2 --model gpt2 --output_dir x
expect 64 "--ranks needs --format deepspeed, not huggingface" "$kiln" convert --ranks 2 --model gpt2 --output_dir x
expect 64 "--step needs --format pt, deepspeed" "$kiln" convert --step 3 --model gpt2 --output_dir x
expect 64 "--input_dir needs --format pt or deepspeed" "$kiln" convert --input_dir . --model gpt2 --output_dir x
expect 64 "--optimizer needs --format pt, deepspeed or universal" "$kiln" convert --optimizer --model gpt2 --output_dir x
expect 64 "--input_dir lists the data that a run goes on with" "$kiln" convert --to pt --input_dir . --model gpt2 --output_dir x
expect 64 "--task masked_lm is not a class of gpt2, a GPT2LMHeadModel" "$kiln" convert --task masked_lm --model gpt2 --output_dir x
expect 64 "--task encoder is not a class of bloom, a BloomForCausalLM" "$kiln" export --task encoder --model bloom --output_dir x
expect 64 "--logits writes what --compare_logits false leaves out" "$kiln" convert --model gpt2 --output_dir x --logits y --compare_logits false
expect 64 "--type f16 needs --format gguf" "$kiln" convert --to universal --type f16 --model gpt2 --output_dir x
expect 64 "--to is 'llmc', but must be one of" "$kiln" convert --to llmc --model gpt2 --output_dir x
[ ! -e x ] || fail "an error left something"
echo "test_convert_decoder_files: there and back"
