#!/usr/bin/env bash
# Phase 1 of BERT-1.5B on 8 devices of one host, ZeRO 1 and bf16, as the documents start it.  Its
# variables are in run_bert.sh.  usage: scripts/run_bert_1.5b_8x.sh [--dry-run]
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
name=bert_1.5b
model_config=$folder/bert_1.5b_config.json
ds_config=$folder/deepspeed_config_bert_1.5b.json
results=./results/bert_1.5b
num_nodes=1
max_steps=155000
steps_per_checkpoint=200
log_freq=10
more_flags=()
. "$folder/run_bert.sh"
