#!/usr/bin/env bash
# kiln convert of a deep and narrow model that four ranks saved in slices: into other programs' forms and for other ranks, with less
# memory of its own than a fifth of the model (`ulimit -d` counts no mapped files), and with the same weights.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/ranks.sh"
need_mpirun
limit=36000 # KiB: kiln has 12 MB of its own, and lists of tensors need 100 kB for each file of 136
if ! (ulimit -d "$limit" && "$kiln" --version >/dev/null 2>&1); then
    skip addresses "a sanitizer needs more memory than a process without it"
fi

make_gpt_store
as_ranks 4 "$kiln" pretrain-gpt --num-layers 32 --hidden-size 320 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 \
    --micro-batch-size 1 --global-batch-size 2 --train-iters 1 --lr 1e-3 --eval-iters 0 --save "$dir/mesh" --save-interval 1 --ngram_tokens 0 \
    --data-path "$dir/meg_text_document" --vocab-file "$dir/bpe/vocab.json" --merge-file "$dir/bpe/merges.txt" \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2
runs
[ "$(cat "$dir"/mesh/ckpt_1/model-*-of-00004.safetensors | wc -c)" -gt $((5 * 30 * 1000 * 1000)) ] || fail "the model is too small"

# convert MODEL OUT FLAG...: within the limit
convert()
{
    expect 0 "read back: all weights are the same, bit by bit" \
        bash -c 'ulimit -d "$1" && exec "${@:2}"' _ "$limit" "$kiln" convert --compare_logits false --model "$dir/$1" --output_dir "$dir/$2" "${@:3}"
}

convert mesh/ckpt_1 gguf/named --to gguf # the file says the name of its directory
convert mesh/ckpt_1 hf
convert hf of_hf/named --to gguf
cmp "$dir/gguf/named/model.gguf" "$dir/of_hf/named/model.gguf" || fail "Hugging Face's has other weights"
rm -r "$dir/hf" "$dir/of_hf"
convert mesh/ckpt_1 ranks --to megatron_deepspeed --tp 4 --pp 2 --step 1
convert ranks fewer --to megatron_deepspeed --tp 1 --step 1
convert fewer of_fewer/named --to gguf
cmp "$dir/gguf/named/model.gguf" "$dir/of_fewer/named/model.gguf" || fail "Megatron's has other weights"

# The model as a whole does not fit: the logits are not computed.
expect 71 'memory' bash -c 'ulimit -d "$1" && exec "${@:2}"' _ "$limit" "$kiln" convert --to gguf --model "$dir/fewer" --output_dir "$dir/of_fewer/named"
echo "test_convert_mesh: two tensors at a time"
