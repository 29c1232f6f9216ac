#!/usr/bin/env bash
# The memory that `kiln pretrain` announces is the memory it takes, within 5 %, for BERT-base in bf16,
# and for small models, in fp32 and fp8 too, of which libraries and threads are a larger part; and of each of several ranks, at
# every stage of ZeRO.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
make_store
configs=$(dirname "$0")/../../configs
launch=()

# within_plan MODEL flags...
within_plan()
{
    local model=$1
    shift
    "${launch[@]}" "$kiln" pretrain --input_dir "$dir/store" --config_file "$configs/bert_$model.json" --output_dir "$dir/out" \
        --max_seq_length 128 \
        --max_predictions_per_seq 20 --train_batch_size 8 --max_steps 2 --learning_rate 1e-4 --eval_steps 0 \
        --skip_checkpoint --disable_progress_bar "$@" 2>"$dir/log" </dev/null
    grep '^memory:' "$dir/log"
    awk '/^memory: peak/ { found = 1; ratio = $3 / $6; exit !(ratio > 0.95 && ratio < 1.05) } END { if (!found) exit 1 }' \
        "$dir/log" || { echo "test_memory: $model $*: not within 5 % of the plan" >&2; exit 1; }
}

within_plan base --autocast
within_plan small --fp8
for threads in 1 2; do
    OMP_NUM_THREADS=$threads within_plan tiny
    OMP_NUM_THREADS=$threads within_plan mini
done
OMP_NUM_THREADS=4 within_plan mini # tiny's products have work for three threads only
within_plan mini --train_batch_size 64
# pre-LN layers hand on two tensors, and keep both where they are recomputed
sed 's/"model_type"/"layer_norm_large_model": true, "model_type"/' "$configs/bert_mini.json" >"$dir/bert_pre_ln.json"
grep -q layer_norm_large_model "$dir/bert_pre_ln.json"
configs=$dir
within_plan pre_ln --train_batch_size 64
within_plan pre_ln --train_batch_size 64 --checkpoint_activations

if [ ! -e "$(dirname "$kiln")/libkiln_mpi.so" ] || ! command -v mpirun >/dev/null; then
    lack mpi "memory of ranks: this build has no MPI, or there is no mpirun; install libopenmpi-dev and openmpi-bin"
    exit
fi
. "$(dirname "$0")/ranks.sh"
need_mpirun
configs=$(dirname "$0")/../../configs
for ranks in 2 4; do
    launch=("${patient[@]}" "${mpi[@]}" -n $ranks)
    for stage in 0 1 2; do
        within_plan small --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 4 --max_steps 1 --zero_stage $stage
    done
done
