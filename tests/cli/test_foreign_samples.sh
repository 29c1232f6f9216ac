#!/usr/bin/env bash
# A run of Megatron-DeepSpeed's says how many samples its steps consumed.  A run that goes on from it must have batches that come to
# the same number, or the first step behind it would take samples twice, or leave some out.
. "$(dirname "$0")/begin.sh"
golden=$(dirname "$0")/../golden/megatron_runs.safetensors

# unpack CASE: the files "CASE/..." of the golden file, below $dir (its format: eight bytes of length, JSON, bytes at offsets)
unpack()
{
    local length name begin end
    length=$(od -An -t u8 -N 8 "$golden" | tr -d ' ')
    head -c $((8 + length)) "$golden" | tail -c "$length" |
        grep -oE "\"$1/[^\"]*\":\{[^}]*\"data_offsets\":\[[0-9]+,[0-9]+\]" |
        sed -E 's/^"([^"]*)".*\[([0-9]+),([0-9]+)\]$/\1 \2 \3/' >"$dir/entries"
    [ -s "$dir/entries" ] || fail "no $1 in $golden"
    while read -r name begin end; do
        mkdir -p "$dir/$(dirname "$name")"
        tail -c +$((8 + length + begin + 1)) "$golden" | head -c $((end - begin)) >"$dir/$name" || true # head closes the pipe
    done <"$dir/entries"
}

# Seven steps of four samples: two layers, 512 rows of words on two slices.
unpack gpt2
unpack grid
unpack universal
make_gpt_store 40 # for its lines
"$kiln" prepare --format gpt --input "$dir/lines.jsonl" --vocab_file "$dir/gpt2/tokenizer.json" --append_eod --output_prefix "$dir/own" \
    >/dev/null 2>&1
base=("$kiln" pretrain-gpt --num-layers 2 --hidden-size 8 --num-attention-heads 4 --seq-length 12 --max-position-embeddings 12
    --micro-batch-size 2 --lr 1e-3 --data-path "$dir/own_text_document" --vocab-file "$dir/gpt2/tokenizer.json"
    --split 949,50,1 --eval-iters 0 --ngram_tokens 0 --log-interval 1 --save-interval 9)
for from in "grid" "universal --universal-checkpoint"; do
    # shellcheck disable=SC2086 # a flag
    go_on() { "${base[@]}" --save "$dir/on" --load "$dir/"$from "$@"; }
    rm -rf "$dir/on"
    expect 64 "consumed 28 samples in its 7 steps, but the batches of this run's flags would have been 56 samples" \
        go_on --train-iters 9 --global-batch-size 8
    expect 64 "would have been 14 samples: give the batch sizes of that run" go_on --train-iters 9 --global-batch-size 2
    [ ! -e "$dir/on/ckpt_9" ] || fail "a run went on with other batches"
    expect 0 "iteration        8/       9 | consumed samples:           32 |" go_on --train-iters 9 --global-batch-size 4
    grep -q 'phase 1, 7 steps done' "$dir/err" || fail "$(cat "$dir/err")"
    # batches that grow count as large as they were
    rm -rf "$dir/on"
    expect 64 "would have been 40 samples" go_on --train-samples 44 --global-batch-size 8 --rampup-batch-size 4 4 16
    expect 0 "iteration        8/       9 | consumed samples:           36 |" \
        go_on --train-samples 44 --global-batch-size 8 --rampup-batch-size 4 4 28
done
echo "test_foreign_samples: batches are those of the run before"
