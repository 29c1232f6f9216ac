#!/usr/bin/env bash
# Two ranks of one thread each beside one process with two threads, on the same global batches: what messages, sums between ranks and
# waiting for the slower one cost.  Tokens a second, in turn, the median of REPEATS=5 runs, each the median of its steps.  The goal
# is a ratio of 0.95.  Every run has all the processors' work, so other processes make the figures meaningless: the load is printed.
#
# MODELS="mini base"; PER_RANK=8 sequences a micro-batch, one of each rank; STEPS=12; KILN names another build than that of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
needs_peers=no
. bench/common.sh
[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] && command -v mpirun >/dev/null ||
    { echo "ranks: left out, this build has no MPI, or there is no mpirun: install libopenmpi-dev and openmpi-bin"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
store=$work/weak_scaling_store
[ -s "$store/train.json" ] ||
    $kiln prepare --input "$text" --input_format lines --one_sentence_per_line --vocab_file "$work/vocab.txt" --do_lower_case \
        --output_dir "$store" 2>/dev/null

# rate RANKS MODEL flag...: tokens a second, the median of the steps behind the warm-up
rate()
{
    local n=$1 model=$2 start=()
    shift 2
    [ "$n" -eq 1 ] || start=(mpirun --oversubscribe --bind-to none -n "$n")
    rm -rf "$work/ranks"
    OMP_NUM_THREADS=$((2 / n)) "${start[@]}" "$kiln" pretrain --input_dir "$store" --config_file "configs/bert_$model.json" \
        --output_dir "$work/ranks" --max_seq_length 128 --global_batch_size $((2 * ${PER_RANK:-8})) --gradient_accumulation_steps 2 \
        --optimizer adamw --max_steps "${STEPS:-12}" --learning_rate 1e-4 --eval_steps 0 --skip_checkpoint --disable_progress_bar "$@" \
        </dev/null >/dev/null 2>"$work/err" || { cat "$work/err" >&2; return 1; }
    sed -n 's/.*"event":"step".*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$work/ranks/log.jsonl" | tail -n +3 | median
}

echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) cores"
row "pre-training step of ranks, tokens/s" "2 ranks" "2 threads" ratio
for model in ${MODELS:-mini base}; do
    for name in threads ranks balanced; do : >"$work/$name.txt"; done
    for _ in $(seq "${REPEATS:-5}"); do
        rate 1 "$model" >>"$work/threads.txt"
        rate 2 "$model" >>"$work/ranks.txt"
        rate 2 "$model" --balance_tokens >>"$work/balanced.txt"
    done
    one=$(median <"$work/threads.txt")
    row "BERT-$model s128 B$((2 * ${PER_RANK:-8})) fp32" "$(median <"$work/ranks.txt")" "$one"
    row "  with --balance_tokens" "$(median <"$work/balanced.txt")" "$one"
done
echo "load after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
