#!/usr/bin/env bash
# BLOOM-13B with the settings of the Megatron-DeepSpeed document.  usage: scripts/run_bloom13b.sh [--dry-run] [-- FLAGS]
#
# FLAGS go to `kiln pretrain-gpt` behind the script's own; of a flag that is given twice the last counts.  The variables of the
# document:
#
#   HL_DATA_DIR_ROOT                                 the folder of meg-gpt2_text_document.{bin,idx}, gpt2-vocab.json, gpt2-merges.txt
#   HL_HOSTSFILE, HL_NUM_NODES, HL_NGPU_PER_NODE     where it runs: nodes x devices of each
#   HL_TP, HL_PP, HL_DP, HL_MICRO_BATCH              how it is cut; HL_DP is only part of the folder's name
#   HL_RESULTS_DIR, HL_CHECKPOINTS_DIR, HL_TENSORBOARD_DIR
#   HL_SAVE, HL_SAVE_INTERVAL, HL_EXIT_INTERVAL, HL_KILL_SWITCH, HL_LOG_INTERVAL
#   HL_CKP_ACT, HL_RAMPUP_BS, HL_UNIV_CP             on if they are 1
#   HL_NUM_LAYERS                                    layers of a smaller model; HL_HIDDEN_SIZE, which the document lacks, its width
#
# HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 HL_TP=1 HL_PP=1 is one process; more are started and watched by kiln launch.
set -euo pipefail
. "$(dirname "$0")/document_script.sh"
more=()
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=true ;;
    --)
        more=("${@:2}")
        break
        ;;
    *) usage "[--dry-run] [-- FLAGS]" ;;
    esac
    shift
done

data=${HL_DATA_DIR_ROOT:-/data/bigscience/oscar-en}
hostsfile=${HL_HOSTSFILE:-$here/hostsfile}
nodes=${HL_NUM_NODES:-1}
per_node=${HL_NGPU_PER_NODE:-8}
dp=${HL_DP:-2}
tp=${HL_TP:-4}
pp=${HL_PP:-1}
micro=${HL_MICRO_BATCH:-1}
layers=${HL_NUM_LAYERS:-40}
hidden=${HL_HIDDEN_SIZE:-5120}
batch=1024
heads=32
ramp=16
for variable in HL_NUM_NODES=$nodes HL_NGPU_PER_NODE=$per_node HL_DP=$dp HL_TP=$tp HL_PP=$pp HL_MICRO_BATCH=$micro HL_NUM_LAYERS=$layers \
    HL_HIDDEN_SIZE=$hidden; do
    whole "${variable%%=*}" "${variable#*=}"
done
devices=$((nodes * per_node))
# as the document: no width in the name, and the product of the variables, not the devices
name=ds_z0_nl${layers}_hs_gb${batch}_mb${micro}_D${dp}_T${tp}_P${pp}_GPUs$((dp * tp * pp))_$(date +%Y%m%d_%H%M)
results=${HL_RESULTS_DIR:-out/bloom13b/$name}
checkpoints=${HL_CHECKPOINTS_DIR:-$results/checkpoints}
tensorboard=${HL_TENSORBOARD_DIR:-$results/tensorboard}
log_interval=${HL_LOG_INTERVAL:-10}
rampup=${HL_RAMPUP_BS:-1}

# wrong TEXT: settings that contradict each other, whatever runs them
wrong()
{
    echo "$(basename "$0"): $*" >&2
    exit 64
}
[ $((devices % (tp * pp))) -eq 0 ] || wrong "$devices devices are no multiple of HL_TP $tp x HL_PP $pp"
[ $((layers % pp)) -eq 0 ] || wrong "$layers layers are no multiple of HL_PP $pp"
[ $((heads % tp)) -eq 0 ] || wrong "$heads attention heads are no multiple of HL_TP $tp"
[ $((hidden % heads)) -eq 0 ] || wrong "HL_HIDDEN_SIZE $hidden is no multiple of $heads attention heads"
data_parallel=$((devices / (tp * pp)))
[ $((batch % (micro * data_parallel))) -eq 0 ] ||
    wrong "the batch of $batch is no multiple of HL_MICRO_BATCH $micro x $data_parallel ranks"
[ "$rampup" != 1 ] || [ $((ramp % (micro * data_parallel))) -eq 0 ] ||
    wrong "batches begin with $ramp samples and grow by $ramp, no multiple of HL_MICRO_BATCH $micro x $data_parallel ranks: give HL_RAMPUP_BS=0, or other variables"
[ "$data_parallel" -eq "$dp" ] ||
    echo "HL_DP is $dp, but $devices devices by HL_TP $tp and HL_PP $pp leave $data_parallel, which counts"

ds_config=$results/ds_config.json
training=(pretrain-gpt --deepspeed --tensor-model-parallel-size "$tp" --pipeline-model-parallel-size "$pp" --num-layers "$layers"
    --hidden-size "$hidden" --ffn-hidden-size $((4 * hidden)) --num-attention-heads $heads --seq-length 2048
    --max-position-embeddings 2048 --micro-batch-size "$micro" --global-batch-size $batch --train-samples 300_000_000
    --log-interval "$log_interval" --eval-iters 5 --eval-interval 100 --data-path "$data/meg-gpt2_text_document" --data-impl mmap
    --split 949,50,1 --vocab-file "$data/gpt2-vocab.json" --merge-file "$data/gpt2-merges.txt" --optimizer adam --adam-beta1 0.9
    --adam-beta2 0.999 --adam-eps 1e-8 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-decay-samples 126_953_125
    --lr-warmup-samples 216_320 --clip-grad 1.0 --weight-decay 0.1 --tensorboard-dir "$tensorboard"
    --log-validation-ppl-to-tensorboard --log-batch-size-to-tensorboard --log-timers-to-tensorboard --load "$checkpoints"
    "--deepspeed_config=$ds_config" --zero-stage=0 --seed 42 --exit-interval "${HL_EXIT_INTERVAL:-0}" --no-bias-dropout-fusion
    --no-masked-softmax-fusion)
# the document's GPT-2 has the exact GELU; a BLOOM, which FLAGS may make of it, the tanh form
bloom='--position[-_]embedding[-_]type[= ]alibi '
[[ "${more[*]-} " =~ $bloom ]] || training+=(--no-bias-gelu-fusion)
[ -z "${HL_KILL_SWITCH:-}" ] || training+=(--kill-switch-path "$HL_KILL_SWITCH")
training+=(--bf16)
[ "${HL_UNIV_CP:-0}" != 1 ] || training+=(--universal-checkpoint)
[ "$rampup" != 1 ] || training+=(--rampup-batch-size $ramp $ramp 5_000_000)
[ "${HL_SAVE:-1}" != 1 ] || training+=(--save "$checkpoints" --save-interval "${HL_SAVE_INTERVAL:-2000}")
[ "${HL_CKP_ACT:-0}" != 1 ] || training+=(--checkpoint-activations --deepspeed-activation-checkpointing)
training+=(${more[@]+"${more[@]}"})

command=("$kiln" "${training[@]}")
if [ "$nodes" -gt 1 ]; then
    command=("$kiln" launch "--hostfile=$hostsfile" "--num_nodes=$nodes" "--num_gpus=$per_node" kiln "${training[@]}")
elif [ "$per_node" -gt 1 ]; then
    command=("$kiln" launch "--num_ranks=$per_node" kiln "${training[@]}")
fi

# settings: what DeepSpeed's file says
settings()
{
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
}

need_kiln
for suffix in bin idx; do
    need "$data/meg-gpt2_text_document.$suffix" "OSCAR as tokens; \`$kiln fetch oscar\` has the text, \`$kiln prepare --format gpt\` makes them, and HL_DATA_DIR_ROOT names the folder"
done
need "$data/gpt2-vocab.json" "the vocabulary of GPT-2"
need "$data/gpt2-merges.txt" "the merges of GPT-2"
[ "$nodes" -le 1 ] || need "$hostsfile" "the hosts, by HL_HOSTSFILE"
if $dry_run; then
    echo "$ds_config would be:"
    settings
    show "${command[@]}"
fi
tell
mkdir -p "$results" "$tensorboard"
settings >"$ds_config"
run "${command[@]}"
