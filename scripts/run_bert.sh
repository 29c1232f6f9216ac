# Pre-training of BERT-1.5B and 5B with the settings of the DeepSpeed scripts; sourced with name, model_config, ds_config,
# results, num_nodes, max_steps, steps_per_checkpoint, log_freq and more_flags set.  The variables of the documents:
#
#   HL_DATA_DIR_ROOT   the folder of all data, as create_datasets_from_start.sh makes it
#   DATA_DIR           the one dataset to read (by default the one of phase 1 in HL_DATA_DIR_ROOT)
#   HL_MODEL_CONFIG, HL_DS_CONFIG, HL_HOSTSFILE, HL_NUM_NODES, HL_NGPU_PER_NODE
#   HL_RESULTS_DIR, HL_CHECKPOINTS_DIR, LOG_FILE
#   HL_RUN_STEPS, HL_NUM_STEPS_PER_CP
#
# and kiln's own HL_EVAL_STEPS: the steps between evaluations on held-out text; the originals have none.
#
# HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 is one process; more are started, watched and started again by kiln launch.  TOPOLOGY is
# printed at the end.
. "$(dirname "${BASH_SOURCE[0]}")/document_script.sh"
case ${1:-} in
"") ;;
--dry-run) dry_run=true ;;
*) usage "[--dry-run]" ;;
esac

num_nodes=${HL_NUM_NODES:-$num_nodes}
per_node=${HL_NGPU_PER_NODE:-8}
hostsfile=${HL_HOSTSFILE:-$here/hostsfile}
whole HL_NUM_NODES "$num_nodes"
whole HL_NGPU_PER_NODE "$per_node"
results=${HL_RESULTS_DIR:-$results}
checkpoints=${HL_CHECKPOINTS_DIR:-$results/checkpoints}
data_root=${HL_DATA_DIR_ROOT:-/data/pytorch/bert_pretraining}
dataset=hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/books_wiki_en_corpus
data=${DATA_DIR:-$data_root/$dataset}
model_config=${HL_MODEL_CONFIG:-$model_config}
ds_config=${HL_DS_CONFIG:-$ds_config}
log_file=${LOG_FILE:-$results/deepspeed-$name-$((num_nodes * per_node))-p1-$(date +%Y-%m-%d_%H-%M).log}

training=(pretrain --disable_progress_bar --optimizer=lans --use_lr_scheduler --resume_from_checkpoint --do_train
    --bert_model=bert-base-uncased "--config_file=$model_config" "--json-summary=$results/dllogger.json"
    "--output_dir=$checkpoints" --seed=12439 "--input_dir=$data" --max_seq_length=128 --max_predictions_per_seq=20
    "--max_steps=$max_steps" "--steps_this_run=${HL_RUN_STEPS:--1}"
    "--num_steps_per_checkpoint=${HL_NUM_STEPS_PER_CP:-$steps_per_checkpoint}" --learning_rate=0.0015
    "--eval_steps=${HL_EVAL_STEPS:-0}" --warmup_proportion=0.05 --constant_proportion=0.25 --scheduler_degree=1.0 "--log_freq=$log_freq" "${more_flags[@]}"
    --deepspeed "--deepspeed_config=$ds_config")

command=("$kiln" "${training[@]}")
if [ "$num_nodes" -gt 1 ]; then
    command=("$kiln" launch "--hostfile=$hostsfile" "--num_nodes=$num_nodes" "--num_gpus=$per_node" kiln "${training[@]}")
elif [ "$per_node" -gt 1 ]; then
    command=("$kiln" launch "--num_ranks=$per_node" kiln "${training[@]}")
fi

need_kiln
makes="HL_DATA_DIR_ROOT=$data_root $here/create_datasets_from_start.sh wiki_books makes them"
need "$data" "the HDF5 files of phase 1; $makes, and DATA_DIR names other ones"
need "$model_config" "the model, by HL_MODEL_CONFIG"
need "$ds_config" "the settings of DeepSpeed, by HL_DS_CONFIG"
if [ "$num_nodes" -gt 1 ]; then
    need "$hostsfile" "the hosts, by HL_HOSTSFILE"
    hosts=$(awk 'NF' "$hostsfile" 2>/dev/null | wc -l)
    [ "$hosts" -ge "$num_nodes" ] || miss "$hostsfile: it has $hosts hosts, and HL_NUM_NODES is $num_nodes"
fi
! $dry_run || show "${command[@]}"
tell
mkdir -p "$results" "$(dirname "$log_file")"
status=0
run "${command[@]}" 2>&1 | tee "$log_file" || status=$?
echo "LOG_FILE   = $log_file"
echo "TOPOLOGY   = ${TOPOLOGY:-pretraining}"
awk -v cards=$((num_nodes * per_node)) '
    /^DLL .* Training Iteration: [0-9]+  average_loss : .* average_perf_per_step : / {
        sub(/.* average_perf_per_step : /, "")
        sum += $1
        n++
    }
    END {
        if (n > 0) {
            print "Pretraining phase1 results"
            printf "%d card(s) average sentences per second:%.4f\n", cards, sum / n # the line is of the whole run
            printf "average dps: %.4f\n", sum / n / cards
        }
    }' "$log_file"
exit "$status"
