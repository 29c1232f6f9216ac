#!/usr/bin/env bash
# Phase 1 of BERT-5B on 128 devices of 16 hosts, ZeRO 2 and bf16, as the documents start it.  Its
# variables are in run_bert.sh.  usage: scripts/run_bert_5b_128x.sh [--dry-run]
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
name=bert_5b
model_config=$folder/bert_5b_config.json
ds_config=$folder/deepspeed_config_bert_5b.json
results=./results/bert_5b_lans
num_nodes=16
max_steps=75000
steps_per_checkpoint=120
log_freq=1
more_flags=(--checkpoint_activations)
. "$folder/run_bert.sh"
