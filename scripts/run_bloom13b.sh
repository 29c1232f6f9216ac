#!/usr/bin/env bash
# BLOOM-13B with the settings of the Megatron-DeepSpeed document.  kiln does not run its ranks yet: this checks and prints the settings, says
# which parts are missing, and ends with 69.  usage: scripts/run_bloom13b.sh [--dry-run]
#
# The variables of the document: HL_DATA_DIR_ROOT, HL_HOSTSFILE, HL_NUM_NODES, HL_NGPU_PER_NODE, HL_DP, HL_TP, HL_PP,
# HL_MICRO_BATCH, HL_RESULTS_DIR, HL_CHECKPOINTS_DIR, HL_TENSORBOARD_DIR, HL_SAVE, HL_SAVE_INTERVAL, HL_EXIT_INTERVAL,
# HL_LOG_INTERVAL, HL_CKP_ACT, HL_RAMPUP_BS, HL_UNIV_CP, HL_KILL_SWITCH.
set -euo pipefail
. "$(dirname "$0")/document_script.sh"
case ${1:-} in
"") ;;
--dry-run) dry_run=true ;;
*) usage "[--dry-run]" ;;
esac

data=${HL_DATA_DIR_ROOT:-/data/bigscience/oscar-en}
hostsfile=${HL_HOSTSFILE:-$here/hostsfile}
nodes=${HL_NUM_NODES:-1}
per_node=${HL_NGPU_PER_NODE:-8}
dp=${HL_DP:-2} # only part of the folder's name: the devices left by HL_TP and HL_PP count
tp=${HL_TP:-4}
pp=${HL_PP:-1}
micro=${HL_MICRO_BATCH:-1}
whole HL_NUM_NODES "$nodes"
whole HL_NGPU_PER_NODE "$per_node"
whole HL_DP "$dp"
whole HL_TP "$tp"
whole HL_PP "$pp"
whole HL_MICRO_BATCH "$micro"
batch=1024
layers=40
heads=32
devices=$((nodes * per_node))
results=${HL_RESULTS_DIR:-out/bloom13b/ds_z0_nl${layers}_hs5120_gb${batch}_mb${micro}_D${dp}_T${tp}_P${pp}_GPUs$devices}
checkpoints=${HL_CHECKPOINTS_DIR:-$results/checkpoints}
tensorboard=${HL_TENSORBOARD_DIR:-$results/tensorboard}
log_interval=${HL_LOG_INTERVAL:-10}

# wrong TEXT: settings that contradict each other, whatever runs them
wrong()
{
    echo "$(basename "$0"): $*" >&2
    exit 64
}
[ $((devices % (tp * pp))) -eq 0 ] || wrong "$devices devices are no multiple of HL_TP $tp x HL_PP $pp"
[ $((layers % pp)) -eq 0 ] || wrong "$layers layers are no multiple of HL_PP $pp"
[ $((heads % tp)) -eq 0 ] || wrong "$heads attention heads are no multiple of HL_TP $tp"
data_parallel=$((devices / (tp * pp)))
[ $((batch % (micro * data_parallel))) -eq 0 ] ||
    wrong "the batch of $batch is no multiple of HL_MICRO_BATCH $micro x $data_parallel ranks"
[ "$data_parallel" -eq "$dp" ] ||
    echo "HL_DP is $dp, but $devices devices by HL_TP $tp and HL_PP $pp leave $data_parallel, which counts"

ds_config=$results/ds_config.json
command=(pretrain_gpt.py --tensor-model-parallel-size "$tp" --pipeline-model-parallel-size "$pp" --num-layers $layers
    --hidden-size 5120 --num-attention-heads $heads --seq-length 2048 --max-position-embeddings 2048
    --micro-batch-size "$micro" --global-batch-size $batch --train-samples 300_000_000 --optimizer adam --adam-beta1 0.9
    --adam-beta2 0.999 --adam-eps 1e-8 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-decay-samples 126_953_125
    --lr-warmup-samples 216_320 --clip-grad 1.0 --weight-decay 1e-1 --seed 42 --bf16 --log-interval "$log_interval"
    --eval-iters 5 --eval-interval 100 --exit-interval "${HL_EXIT_INTERVAL:-0}" --data-impl mmap --split 949,50,1
    --data-path "$data/meg-gpt2_text_document" --vocab-file "$data/gpt2-vocab.json" --merge-file "$data/gpt2-merges.txt"
    --tensorboard-dir "$tensorboard" --zero-stage 0 --deepspeed --deepspeed_config "$ds_config")
[ "${HL_RAMPUP_BS:-1}" -ne 1 ] || command+=(--rampup-batch-size 16 16 5_000_000)
[ "${HL_CKP_ACT:-0}" -eq 0 ] || command+=(--checkpoint-activations --deepspeed-activation-checkpointing)
[ "${HL_SAVE:-1}" -eq 0 ] || command+=(--save "$checkpoints" --load "$checkpoints" --save-interval "${HL_SAVE_INTERVAL:-2000}")
[ "${HL_UNIV_CP:-0}" -eq 0 ] || command+=(--universal-checkpoint)
[ -z "${HL_KILL_SWITCH:-}" ] || command+=(--kill-switch-path "$HL_KILL_SWITCH")

echo "$ds_config would be:"
cat <<JSON
{
  "train_batch_size": $batch,
  "train_micro_batch_size_per_gpu": $micro,
  "steps_per_print": $log_interval,
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 0},
  "bf16": {"enabled": true},
  "fp16": {"enabled": false},
  "wall_clock_breakdown": false
}
JSON
echo "the command of the document:"
show "${command[@]}"

for suffix in bin idx; do
    need "$data/meg-gpt2_text_document.$suffix" "OSCAR as tokens; \`$kiln fetch oscar\` has the text, and HL_DATA_DIR_ROOT names the folder"
done
need "$data/gpt2-vocab.json" "the vocabulary of GPT-2"
need "$data/gpt2-merges.txt" "the merges of GPT-2"
[ "$nodes" -le 1 ] || need "$hostsfile" "the hosts, by HL_HOSTSFILE"
later "the flags of pretrain_gpt.py; docs/howto/train_a_decoder.md has what there is"
[ $((tp * pp)) -eq 1 ] || later "layers in parts (HL_TP $tp) and in stages (HL_PP $pp) on several devices: each rank of kiln has a whole model"
tell
