#!/usr/bin/env bash
# `kiln pretrain-gpt --universal-checkpoint` goes on from a universal checkpoint of Megatron-DeepSpeed as the run that it was made of:
# with the same bits on one rank, and the same training on a mesh.  What does not fit is one sentence.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/ranks.sh"

make_gpt_store
base=(--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 2
    --data-path "$dir/meg_text_document" --split 949,50,1 --vocab-file "$dir/bpe/vocab.json" --merge-file "$dir/bpe/merges.txt"
    --clip-grad 1.0 --seed 42 --global-batch-size 16 --train-iters 8 --lr 1e-2 --log-interval 1 --eval-iters 0 --save-interval 4
    --ngram_tokens 0 --attention-dropout 0.1 --hidden-dropout 0.1)

# losses OUT: what the iterations behind the fourth printed
losses() { grep -E '^ iteration +[5-8]/' "$dir/out" | grep -oE '^ iteration +[0-9]+/|learning rate: [^|]*|lm loss: [^|]*|grad norm: [^|]*' >"$dir/$1.losses"; }

# train NAME FLAG...: one rank that saves into $dir/NAME
train()
{
    expect 0 '' "$kiln" pretrain-gpt "${base[@]}" --save "$dir/$1" "${@:2}"
    losses "$1"
}

train whole
expect 0 'moments and steps are the same, bit by bit' "$kiln" convert --model "$dir/whole/ckpt_4" --format universal --output_dir "$dir/universal"
[ "$(cat "$dir/universal/latest_universal")" = global_step4_universal ] || fail "$(ls "$dir/universal")"
cp -r "$dir/universal" "$dir/unlike"
rm -f "$dir/unlike/kiln.sha256"
sed -i 's/"n_head": 4/"n_head": 2/' "$dir/unlike/config.json"
expect 65 'is of a model of 4 heads, but config.json says 2' "$kiln" export --model "$dir/unlike" --output_dir "$dir/none"
train again --load "$dir/universal" --universal-checkpoint
grep -q 'resumed from .*/global_step4_universal: phase 1, 4 steps done' "$dir/err" || fail "$(cat "$dir/err")"
cmp "$dir/whole.losses" "$dir/again.losses" || fail "$(paste "$dir/whole.losses" "$dir/again.losses")"
same_weights whole/ckpt_8 again/ckpt_8

# its own folder, without a configuration or a tokenizer beside it; and the weights alone
mv "$dir/universal/global_step4_universal" "$dir/alone"
train lone --load "$dir/alone" --universal-checkpoint
cmp "$dir/whole.losses" "$dir/lone.losses" || fail "$(paste "$dir/whole.losses" "$dir/lone.losses")"
expect 0 '' "$kiln" pretrain-gpt "${base[@]}" --save "$dir/tuned" --load "$dir/alone" --finetune --train-iters 1
grep -q ' iteration        1/' "$dir/out" || fail "--finetune: $(cat "$dir/out")"

# what does not fit
refused() { expect "$1" "$2" "$kiln" pretrain-gpt "${base[@]}" --save "$dir/x" "${@:3}"; }
refused 64 '--universal-checkpoint needs --load' --universal-checkpoint
refused 66 'is no universal checkpoint' --universal-checkpoint --load "$dir/bpe"
refused 65 'num_attention_heads 4, but this run has 8' --universal-checkpoint --load "$dir/alone" --num-attention-heads 8
refused 65 'shape' --universal-checkpoint --load "$dir/alone" --hidden-size 64
rm "$dir/alone/zero/4.attention.dense.bias/exp_avg_sq.pt"
refused 65 'zero/4.attention.dense.bias/exp_avg_sq.pt is missing' --universal-checkpoint --load "$dir/alone"

need_mpirun
expect 0 '' "$kiln" convert --model "$dir/whole/ckpt_4" --format universal --output_dir "$dir/universal"
as_ranks 4 "$kiln" pretrain-gpt "${base[@]}" --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --save "$dir/mesh" \
    --load "$dir/universal" --universal-checkpoint
runs
losses mesh
paste <(grep -oE '[0-9.]+E[+-][0-9]+' "$dir/whole.losses") <(grep -oE '[0-9.]+E[+-][0-9]+' "$dir/mesh.losses") |
    awk '{ d = $1 - $2; if (NF != 2 || d > 2e-4 || d < -2e-4) exit 1; n++ } END { if (n < 8) exit 1 }' ||
    fail "$(paste "$dir/whole.losses" "$dir/mesh.losses")"
echo "test_universal_gpt: the same run"
