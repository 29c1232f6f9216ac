#!/usr/bin/env bash
# The bubble of a pipeline of two stages of one thread each, from the traces of both: 16 micro-batches, and the same interleaved, two
# chunks a stage.  The stages compute about equally: there are many layers, and few words.  The goal is the formula's (p - 1) / (chunks m + p - 1)
# within 5 %.  Other processes make what is traced meaningless: the load is printed.  What is counted by turns they disturb less.
#
# STEPS=10 traced steps behind 2; ROUNDS=3; LAYERS=16 HIDDEN=384 LENGTH=64; KILN names another build than that of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
kiln=${KILN:-build/kiln}
[ -n "${KILN:-}" ] || make --no-print-directory all >/dev/null
[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] && command -v mpirun >/dev/null ||
    { echo "bubble: left out, this build has no MPI, or there is no mpirun: install libopenmpi-dev and openmpi-bin"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
steps=${STEPS:-10} layers=${LAYERS:-16} hidden=${HIDDEN:-384} length=${LENGTH:-64}

. tests/cli/corpus.sh
make_gpt_store 4000

# bubble CHUNKS: of two stages
bubble()
{
    local chunks=$1 flags=()
    [ "$chunks" -eq 1 ] || flags=(--num-layers-per-virtual-pipeline-stage $((layers / 2 / chunks)))
    rm -rf "$dir/run"
    mpirun --bind-to none -n 2 "$kiln" pretrain-gpt --pipeline-model-parallel-size 2 --num-layers "$layers" --hidden-size "$hidden" \
        --num-attention-heads 8 --seq-length "$length" --max-position-embeddings "$length" --micro-batch-size 1 --global-batch-size 16 \
        --data-path "$dir/meg_text_document" --split 949,50,1 --vocab-file "$dir/bpe/vocab.json" --merge-file "$dir/bpe/merges.txt" \
        --train-iters $((steps + 3)) --lr 1e-4 --log-interval 100 --eval-interval 1000 --ngram_tokens 0 --output_dir "$dir/run" \
        --profile --profile_steps 3:$((steps + 2)) "${flags[@]}" </dev/null >"$dir/out" 2>"$dir/err" || { cat "$dir/err" >&2; return 1; }
    echo "2 stages, $chunks chunks, 16 micro-batches, load $(cut -d ' ' -f 1 /proc/loadavg):"
    python3 bench/count_bubble.py 16 "$chunks" "$dir/run/profile/trace_3_$((steps + 2)).json" \
        "$dir/run/profile/trace_3_$((steps + 2))_rank_1.json"
}

for _ in $(seq "${ROUNDS:-3}"); do
    bubble 1
    bubble 2
done
