#!/usr/bin/env bash
# The scripts under the names of the documents: what each says with --dry-run in an empty folder, where it writes nothing, what
# it refuses, and those that kiln can carry out, carried out.
. "$(dirname "$0")/begin.sh"
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
. "$(dirname "$0")/server.sh"
export KILN=$kiln
unset "${!HL_@}" DATA_DIR LOG_FILE VOCAB_FILE N_SHARDS KILN_MIRROR
mkdir "$dir/empty"
cd "$dir/empty"

# says TEXT...: the command that ran last printed these too
says()
{
    local text
    for text in "$@"; do grep -F -- "$text" "$dir/out" >/dev/null || fail "not told: $text ($(cat "$dir/out"))"; done
}

# every script, in an empty folder
expect 0 "fetch squad --output_dir data --dry-run" "$scripts/squad_download.sh" --dry-run
says "-> data/squad/v1.1/train-v1.1.json" "-> data/squad/v2.0/evaluate-v2.0.py"
expect 0 "missing: data/download/wikicorpus_en/wikicorpus_en.xml.bz2" "$scripts/create_datasets_from_start.sh" --dry-run
says "fetch wikipedia --output_dir data/download" "--max_seq_length 128\\,512 --max_predictions_per_seq 20\\,80" \
    "uncased_L-24_H-1024_A-16/vocab.txt: Google's vocabulary"
expect 0 "missing: data/download/bookscorpus: BooksCorpus" "$scripts/create_datasets_from_start.sh" wiki_books --dry-run
says "--reference_names --dataset books_wiki_en_corpus"
expect 0 "kiln launch --num_ranks=8 kiln pretrain --disable_progress_bar" "$scripts/run_bert_1.5b_8x.sh" --dry-run
says "--optimizer=lans" "--config_file=$scripts/bert_1.5b_config.json" "--max_steps=155000 --steps_this_run=-1" \
    "--num_steps_per_checkpoint=200" "--output_dir=./results/bert_1.5b/checkpoints" \
    "missing: /data/pytorch/bert_pretraining/hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/books_wiki_en_corpus"
expect 0 "kiln launch --hostfile=$scripts/hostsfile --num_nodes=4 --num_gpus=8 kiln pretrain" "$scripts/run_bert_1.5b_32x.sh" \
    --dry-run
! grep -F "missing: $scripts/hostsfile" "$dir/out" || fail "the hosts are four"
expect 0 "it has 4 hosts, and HL_NUM_NODES is 16" "$scripts/run_bert_5b_128x.sh" --dry-run
says "--checkpoint_activations" "--max_steps=75000" "--deepspeed_config=$scripts/deepspeed_config_bert_5b.json"
expect 0 "ds_config.json would be" "$scripts/run_bloom13b.sh" --dry-run
says "launch --num_ranks=8 kiln pretrain-gpt --deepspeed --tensor-model-parallel-size 4 --pipeline-model-parallel-size 1" \
    "missing: /data/bigscience/oscar-en/meg-gpt2_text_document.bin" "out/bloom13b/ds_z0_nl40_hs_gb1024_mb1_D2_T4_P1_GPUs8_20" \
    "--no-bias-dropout-fusion --no-masked-softmax-fusion --no-bias-gelu-fusion --bf16 --rampup-batch-size 16 16 5_000_000 --save"
HL_HOSTSFILE=$scripts/hostsfile HL_NUM_NODES=1 HL_PP=2 HL_TP=4 HL_DP=1 expect 0 "_mb1_D1_T4_P2_GPUs8" "$scripts/run_bloom13b.sh" --dry-run
says "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"
HL_TP=1 HL_NGPU_PER_NODE=1 HL_SAVE=0 HL_RAMPUP_BS=0 HL_CKP_ACT=1 HL_KILL_SWITCH=off \
    expect 0 "--kill-switch-path off --bf16 --checkpoint-activations --deepspeed-activation-checkpointing" "$scripts/run_bloom13b.sh" --dry-run
# the recipe as it is planned: 13 billion parameters with the words of one rank, and its steps
HL_UNIV_CP=1 expect 0 " --bf16 --universal-checkpoint --rampup-batch-size 16 16 5_000_000" "$scripts/run_bloom13b.sh" --dry-run
HL_TP=1 HL_NGPU_PER_NODE=1 "$scripts/run_bloom13b.sh" --dry-run -- --dry-run >"$dir/line"
expect 0 "vocabulary 50304: 12853.63 M parameters, bf16, adamw" eval "$(grep ' pretrain-gpt ' "$dir/line")"
grep -q "work: phase 1, 311541 steps" "$dir/err" || fail "other steps: $(cat "$dir/err")"
for type in '--position-embedding-type alibi' --position-embedding-type=alibi; do # as 004.md makes a BLOOM
    HL_TP=1 HL_NGPU_PER_NODE=1 "$scripts/run_bloom13b.sh" --dry-run -- --dry-run $type --embed-layernorm >"$dir/line"
    expect 0 "model: BLOOM" eval "$(grep ' pretrain-gpt ' "$dir/line")"
done
for script in "$scripts"/{create_datasets_from_start,run_bert_1.5b_8x,run_bloom13b}.sh; do
    expect 64 "usage: $(basename "$script")" "$script" --now
done
[ -z "$(ls -A)" ] || fail "a dry run wrote $(ls -A)"
n=$(ls "$scripts"/{create,squad,run}_*.sh | grep -vc run_bert.sh)
[ "$n" -eq 6 ] || fail "$n scripts, and 6 are tried here"

# the variables of the documents
mkdir data
export HL_DATA_DIR_ROOT=$dir/root HL_RESULTS_DIR=$dir/results HL_NUM_STEPS_PER_CP=7 HL_RUN_STEPS=3 HL_MODEL_CONFIG=m.json
expect 0 "--input_dir=$dir/root/hdf5_lower" "$scripts/run_bert_1.5b_32x.sh" --dry-run
says "--output_dir=$dir/results/checkpoints" --num_steps_per_checkpoint=7 --steps_this_run=3 --eval_steps=0 "missing: m.json: the model"
HL_EVAL_STEPS=2 expect 0 --eval_steps=2 "$scripts/run_bert_1.5b_32x.sh" --dry-run
DATA_DIR=data HL_CHECKPOINTS_DIR=c HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 HL_DS_CONFIG=$scripts/hostsfile \
    expect 0 "--input_dir=data" "$scripts/run_bert_1.5b_32x.sh" --dry-run
says "--output_dir=c" "--deepspeed_config=$scripts/hostsfile"
DATA_DIR=data HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 expect 65 "missing: m.json" "$scripts/run_bert_1.5b_32x.sh"
HL_NUM_NODES=two expect 64 "HL_NUM_NODES is 'two'" "$scripts/run_bert_1.5b_32x.sh"
HL_PP=3 expect 64 "no multiple of HL_TP 4 x HL_PP 3" "$scripts/run_bloom13b.sh"
HL_TP=1 HL_MICRO_BATCH=4 expect 64 "grow by 16, no multiple of HL_MICRO_BATCH 4 x 8 ranks" "$scripts/run_bloom13b.sh"
HL_HIDDEN_SIZE=100 expect 64 "HL_HIDDEN_SIZE 100 is no multiple of 32" "$scripts/run_bloom13b.sh"
HL_TP=3 HL_NGPU_PER_NODE=6 expect 64 "32 attention heads are no multiple of HL_TP 3" "$scripts/run_bloom13b.sh"
KILN=/nowhere/kiln expect 65 "missing: /nowhere/kiln: the program" "$scripts/squad_download.sh"
unset "${!HL_@}"
rmdir data

# where data is made is where training looks for it; one dataset is not that place
for script in squad_download create_datasets_from_start; do
    HL_DATA_DIR_ROOT=root expect 0 "--output_dir root" "$scripts/$script.sh" --dry-run
    DATA_DIR=root expect 64 "give HL_DATA_DIR_ROOT, the folder of all data" "$scripts/$script.sh" --dry-run
done
HL_DATA_DIR_ROOT=root expect 0 "missing: root/hdf5_lower_case_1_seq_len_128" "$scripts/run_bert_1.5b_32x.sh" --dry-run
says "HL_DATA_DIR_ROOT=root $scripts/create_datasets_from_start.sh wiki_books makes them"

# one process: the command runs, its log is kept, and its end is the script's
cat >kiln <<'SH'
#!/bin/sh
echo "$1 ran with $# words"
echo "DLL 2026-01-01 00:00:00.000000 - Training Epoch: 0 Training Iteration: 10  average_loss : 9.5 average_perf_per_step : 100"
exit 75
SH
chmod +x kiln
mkdir data
KILN=$PWD/kiln DATA_DIR=data HL_NUM_NODES=1 HL_NGPU_PER_NODE=1 LOG_FILE=logs/a.log TOPOLOGY=mine \
    expect 75 "TOPOLOGY   = mine" "$scripts/run_bert_1.5b_8x.sh"
says "LOG_FILE   = logs/a.log" "pretrain ran with"
grep "pretrain ran with" logs/a.log >/dev/null || fail "no log"
# several: kiln launch runs it, and takes every word
KILN=$PWD/kiln DATA_DIR=data HL_NUM_NODES=1 HL_NGPU_PER_NODE=2 LOG_FILE=logs/b.log \
    expect 75 "launch ran with" "$scripts/run_bert_1.5b_8x.sh"
says "2 card(s) average sentences per second:100.0000" "average dps: 50.0000"
DATA_DIR=data HL_NUM_NODES=2 HL_NGPU_PER_NODE=2 "$scripts/run_bert_1.5b_32x.sh" --dry-run >line
line=$(grep " launch " line)
expect 0 "-n 4 -H 10.10.100.101:2,10.10.100.102:2" eval "${line/ launch / launch --dry-run --no_ssh_check --cores_per_host 8 }"
rm line
rm -r kiln logs results data

# a small model with the recipe of 13 billion parameters, on one process; the same command goes on from its checkpoint
mkdir gpt
for i in $(seq 150); do echo "{\"text\": \"The king number $i went to the city, and the queen came in from the garden.\"}"; done >gpt/lines.jsonl
"$kiln" vocab --input gpt/lines.jsonl --kind bpe --vocab_file gpt/gpt2-vocab.json --vocab_size 300 >/dev/null 2>&1
mv gpt/merges.txt gpt/gpt2-merges.txt
"$kiln" prepare --format gpt --input gpt/lines.jsonl --vocab_file gpt/gpt2-vocab.json --merge_file gpt/gpt2-merges.txt \
    --append_eod --output_prefix gpt/meg-gpt2 >/dev/null 2>&1
for steps in 2 4; do
    HL_DATA_DIR_ROOT=gpt HL_NGPU_PER_NODE=1 HL_TP=1 HL_PP=1 HL_NUM_LAYERS=1 HL_HIDDEN_SIZE=32 HL_RESULTS_DIR=small HL_LOG_INTERVAL=1 \
        HL_EXIT_INTERVAL=2 expect 0 " iteration        $steps/       4 | consumed samples:           $((16 * steps)) |" \
        "$scripts/run_bloom13b.sh" -- --seq-length 32 --max-position-embeddings 32 --train-samples 64 --lr-warmup-samples 16
    [ -d "small/checkpoints/ckpt_$steps" ] || fail "no checkpoint of step $steps: $(ls small/checkpoints)"
done
says "validation loss at the end of training for val data"
grep -q '"train_micro_batch_size_per_gpu": 1' small/ds_config.json || fail "$(cat small/ds_config.json)"
ls small/tensorboard/events.out.tfevents.* >/dev/null || fail "no event files"
rm -r gpt small

# the data of both phases, of what WikiExtractor wrote and of books, with a vocabulary of their own
datasets()
{
    make_store
    mkdir -p data/extracted/wikicorpus_en/AA data/download/bookscorpus
    {
        echo '<doc id="1" url="u" title="t">'
        printf 't\n\n'
        head -n 300 "$dir/corpus.txt" | sed '/^$/d'
        echo '</doc>'
    } >data/extracted/wikicorpus_en/AA/wiki_00
    tail -n 300 "$dir/corpus.txt" >data/download/bookscorpus/book.txt
    cp "$dir/vocab.txt" vocab.txt
    (cd data && VOCAB_FILE=../vocab.txt N_SHARDS=2 expect 0 "" bash "$scripts/create_datasets_from_start.sh" wiki_books)
    for phase in seq_len_128_max_pred_20 seq_len_512_max_pred_80; do
        data=data/hdf5_lower_case_1_${phase}_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/books_wiki_en_corpus
        [ "$(ls $data/books_wiki_en_corpus_training_[01].hdf5 | wc -l)" -eq 2 ] ||
            fail "$phase has other files than two: $(find $data)"
        expect 0 "" "$kiln" pretrain --input_dir $data --config_file "$scripts/../configs/bert_tiny.json" --output_dir run \
            --max_steps 1 --dry-run \
            --enable_packed_data_mode False --max_seq_length "$(cut -d _ -f 3 <<<"$phase")" --train_batch_size 1
    done
    (cd data && VOCAB_FILE=../vocab.txt expect 0 "books_wiki_en_corpus is there" \
        bash "$scripts/create_datasets_from_start.sh" wiki_books)
    # the text has few words: a small one
    VOCAB_FILE=own.txt N_SHARDS=1 expect 0 "own.txt --do_lower_case" "$scripts/create_datasets_from_start.sh"
    [ -s own.txt ] || fail "no vocabulary was made"
}
if "$kiln" doctor --dry_run | grep '^hdf5 *not built in' >/dev/null; then
    lack hdf5 "the datasets of both phases were not made; install libhdf5-dev, and build without KILN_HDF5=OFF"
else
    datasets
fi

# SQuAD from a mirror on this machine
need_curl
start_server
for name in train-v1.1 dev-v1.1 train-v2.0 dev-v2.0; do
    publish https://rajpurkar.github.io/SQuAD-explorer/dataset/$name.json "{\"version\": \"$name\"}"
    printf '%s  %s.json\n' "$(printf '{"version": "%s"}' $name | md5sum | cut -d ' ' -f 1)" $name
done >sums
for bundle in 0xbcd57bee090b421c982906709c8c27e1=evaluate-v1.1.py 0x6b567e1cf2e041ec80d7098f031c5c9e=evaluate-v2.0.py; do
    publish "https://worksheets.codalab.org/rest/bundles/${bundle%=*}/contents/blob/" "# ${bundle#*=}"
    printf '%s  %s\n' "$(printf '# %s' "${bundle#*=}" | md5sum | cut -d ' ' -f 1)" "${bundle#*=}"
done >>sums
mkdir squad
(cd squad && KILN_MIRROR=$server expect 65 "it should have 30288272" bash "$scripts/squad_download.sh")
(cd squad && KILN_MIRROR=$server/~cut expect 0 "evaluate-v2.0.py: downloaded, its checksum is right" bash "$scripts/squad_download.sh" --sums ../sums)
[ "$(cat squad/v1.1/evaluate-v1.1.py)" = "# evaluate-v1.1.py" ] || fail "not where the documents have it: $(find squad)"
KILN_MIRROR=http://127.0.0.1:1 HL_DATA_DIR_ROOT=other expect 69 "put them there" "$scripts/squad_download.sh"
echo "test_scripts: six scripts under the documents' names"
