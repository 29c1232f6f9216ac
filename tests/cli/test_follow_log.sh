#!/usr/bin/env bash
# The log of document 002: its script runs as one process, with the model's depth but few columns, and a reader (follow_log.awk)
# follows what it prints line by line; the records of dllogger's file are those lines; DeepSpeed's event files lie where the
# JSON says.  The reader itself notices each line that is missing, misplaced, or has other fields.
set -euo pipefail
kiln=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tests=$(cd "$(dirname "$0")" && pwd)
. "$tests/expect.sh"
. "$tests/lans.sh"
need_hdf5
export OMP_NUM_THREADS=1
unset "${!HL_@}" LOG_FILE TOPOLOGY
make_lans_inputs
sed -i 's/"max_position_embeddings": 32/"max_position_embeddings": 128/' "$dir/1.5b.json"
sed -i 's/"steps_per_print": 48/"steps_per_print": 4/' "$dir/ds.json"
KILN=$kiln HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 HL_MODEL_CONFIG=$dir/1.5b.json HL_DS_CONFIG=$dir/ds.json DATA_DIR=$dir/shards \
    HL_RESULTS_DIR=$dir/results HL_RUN_STEPS=20 HL_NUM_STEPS_PER_CP=10 \
    bash "$lans_root/scripts/run_bert_1.5b_8x.sh" >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"

follow() { awk -v cards=1 -v saves="10 20" -f "$tests/follow_log.awk" "$1"; }
follow "$dir/log" || fail "of this log: $(cut -c1-200 "$dir/log")"
grep -q "^LOG_FILE   = $dir/results/deepspeed-bert_1.5b-1-p1-20..-..-.._..-..\.log$" "$dir/log" || fail "the name of LOG_FILE"

# changed COMMAND...: the reader notices what the command does to the log
changed()
{
    "$@" "$dir/log" >"$dir/changed"
    ! cmp -s "$dir/log" "$dir/changed" || fail "nothing was changed: $*"
    ! follow "$dir/changed" >/dev/null || fail "not noticed: $*"
}
for line in 'optimizer=lans' '^Distributed' 'init_distributed' '^Using LANS' '^Using Poly' 'PARAMETER Config' 'PARAMETER SEED' \
    'PARAMETER train_start' 'PARAMETER batch_size' 'PARAMETER learning_rate' 'average_loss' 'log_dist' 'CurrSamplesPerSec' \
    '_save_zero_checkpoint' 'Checkpoint 10 is ready' 'Checkpoint 20 is ready' 'checkpoint_step : 20' 'Iteration: 20  final_loss' \
    'e2e_train_time' '^LOG_FILE' '^TOPOLOGY' '^Pretraining phase1' 'card(s)' '^average dps'; do
    changed sed "/$line/d"
done
for change in 's/average_loss/mean_loss/' 's/\(average_loss : [^ ]*\)  \(step_loss : [^ ]*\)/\2  \1/' 's/  step_loss : [^ ]*//' \
    's/total_steps.: 155000.0/total_steps'"'"': 155000/' 's/, skipped=0//' 's/ is ready now!/ is ready/' \
    's/Checkpoint 20/Checkpoint 30/' \
    's/\(average dps: \)/\11/' 's/second:/second: /' 's/^1 card/8 card/' 's/raw_train_time/train_time/' 's/device=cpu, //' \
    's/^DLL \(....-..-..\) /DLL \1T/' 's/\(e2e_train_time : [^ ]*\)  \(.*\)  raw/\2  \1  raw/'; do
    changed sed "$change"
done
changed sed -n -e '/^Using LANS/!p' -e '$a Using LANS' # a line of the beginning at the end

# the reader knows the original's lines, which name their source files, hosts and devices; and those of the document itself
forms() { awk -v forms=1 -f "$tests/follow_log.awk" "$1" | uniq | tr '\n' ' '; }
cat >"$dir/original" <<'LOG'
[INFO] [launch.py:1:main] nnodes=1, num_local_procs=8, node_rank=0
Distributed training with backend=hccl, device=hpu, local_rank=7
[INFO] [comm.py:1:init_distributed] Initializing TorchBackend in DeepSpeed with backend hccl
Using LANS
DLL 2024-02-03 04:05:06.789 - PARAMETER SEED : 1 
DLL 2024-02-03 04:05:06.789 - Training Epoch: 0 Training Iteration: 10  average_loss : 11.5  step_loss : 11.25  learning_rate : 1.9e-06  average_training_time_step : 2.5  average_perf_per_step : 38.5 
[INFO] [logging.py:1:log_dist] [Rank 0] step=48, skipped=0, lr=[1e-06, 1e-06], mom=[(0.9, 0.999), (0.9, 0.999)]
[INFO] [engine.py:1:_save_zero_checkpoint] zero checkpoint saved run/checkpoints/20/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt
[INFO] [torch_checkpoint_engine.py:1:commit] [Torch] Checkpoint 20 is ready now!
DLL 2024-02-03 04:05:06.789 -  e2e_train_time : 20.5  training_sequences_per_second : 63.5  final_loss : 11.5  raw_train_time : 19.5
[INFO] [launch.py:1:main] Process 12345 exits successfully.
LOG_FILE   = /deepspeed-bert_1.5b-8-p1-2024-02-03_04-05.log
TOPOLOGY   = pretraining
Pretraining phase1 results
8 card(s) average sentences per second:308.0000
average dps: 38.5000
LOG
[ "$(forms "$dir/original")" = \
    "ranks backend optimizer SEED interval progress zero ready summary log_file topology results sentences dps " ] ||
    fail "of the original's lines only: $(forms "$dir/original")"
document=${KILN_SHARED:-$lans_root/../shared}/seeds/002.txt
if [ -r "$document" ]; then
    [ "$(forms "$document")" = \
        "command ranks backend optimizer schedule zero ready summary log_file topology results sentences dps " ] ||
        fail "of the document's lines only: $(forms "$document")"
    echo "the document's own lines are known"
else
    lack shared "the documents are not there (KILN_SHARED)"
fi

# the same records in dllogger's file: data with the same keys in the same order
json=$dir/results/dllogger.json
[ "$(grep -c '^DLLL {"timestamp": "[0-9.]*", "datetime": "[^"]*", "elapsedtime": "[0-9.]*", "type": "LOG", "step": ' "$json")" = \
    "$(grep -c '^DLL ' "$dir/log")" ] || fail "not as many records as lines"
number='[-+0-9.e]*'
rest="\"final_loss\": $number, \"raw_train_time\": $number"
rates="\"average_training_time_step\": $number, \"average_perf_per_step\": $number"
for record in '"PARAMETER", "data": {"Config": \["Namespace(.*)"\]}' '"PARAMETER", "data": {"SEED": 12439}' \
    '"PARAMETER", "data": {"train_start": true}' '"PARAMETER", "data": {"batch_size_per_pu": 4}' \
    '"PARAMETER", "data": {"learning_rate": 0.0015}' '"PARAMETER", "data": {"checkpoint_step": 20}' \
    "\[[0-9]*, 20\], \"data\": {\"average_loss\": $number, \"step_loss\": $number, \"learning_rate\": $number, $rates}" \
    "\[[0-9]*, 20\], \"data\": {\"final_loss\": $number, $rates}" \
    "\[\], \"data\": {\"e2e_train_time\": $number, \"training_sequences_per_second\": $number, $rest}"; do
    [ "$(grep -c "\"step\": $record}\$" "$json")" = 1 ] || fail "dllogger's file lacks: $record"
done

# DeepSpeed's scalars: a point for each step, by samples
events=$(echo "$dir"/results/bert_1.5b/tensorboard/bert_1.5b_lans_zero1_bf16/events.out.tfevents.*)
for tag in Train/Samples/train_loss Train/Samples/lr; do
    [ "$(grep -oa "$tag" "$events" | wc -l)" = 20 ] || fail "$tag: not 20 points"
done
! grep -qa 'loss_scale\|performance' "$events" || fail "scalars of others"
echo "test_follow_log: the log of 002, line by line"
