# The large models of the documents, with their depth and wiring but few columns, trained by LANS from the documents' JSON of
# DeepSpeed in fp32 and without dropout, on the 24 sequences of golden/shards_padded.hdf5 in their order.  Sourced with $kiln and
# $dir set: by test_lans.sh, and by golden/make_lans_losses.py, which computes the same with torch.
lans_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lans_models=(1.2b 1.2b_pre_ln 1.5b 5b)

# lans_config MODEL: two columns to a head, four times as many in the feed-forward
lans_config()
{
    awk -v pre_ln="$([ "$1" = 1.2b_pre_ln ] && echo 1)" '
        { line[NR] = $0 }
        /"num_attention_heads"/ { gsub(/[^0-9]/, ""); heads = $0 }
        END {
            for (i = 1; i <= NR; i++) {
                sub(/"hidden_size": [0-9]+/, "\"hidden_size\": " 2 * heads, line[i])
                sub(/"intermediate_size": [0-9]+/, "\"intermediate_size\": " 8 * heads, line[i])
                sub(/_dropout_prob": 0.1/, "_dropout_prob\": 0.0", line[i])
                sub(/"initializer_range": 0.02/, "\"initializer_range\": 0.1", line[i])
                sub(/"max_position_embeddings": 512/, "\"max_position_embeddings\": 32", line[i])
                sub(/"vocab_size": 512035/, "\"vocab_size\": 40", line[i])
                sub(/ *"vocab_size": 30522,/, "", line[i])
                if (pre_ln) sub(/^{/, "{\n  \"layer_norm_large_model\": true,", line[i])
                print line[i]
            }
        }' "$lans_root/configs/bert_${1%_pre_ln}.json"
}

# make_lans_inputs: vocabulary, samples, the models' JSON and DeepSpeed's
make_lans_inputs()
{
    local model
    mkdir -p "$dir/shards"
    cp "$lans_root/tests/golden/shards_padded.hdf5" "$dir/shards/training.hdf5"
    printf '%s\n' '[PAD]' '[CLS]' '[SEP]' '[MASK]' '[UNK]' w{5..39} >"$dir/vocab.txt"
    for model in "${lans_models[@]}"; do
        lans_config "$model" >"$dir/$model.json"
    done
    sed -e 's/"train_batch_size": 12288/"train_batch_size": 8/' -e 's/_per_gpu": 16/_per_gpu": 4/' \
        -e '/"bf16"/,/}/s/true/false/' -e "s|\./results|$dir/results|" \
        "$lans_root/scripts/deepspeed_config_bert_1.5b.json" >"$dir/ds.json"
}

# lans_train MODEL OUT flags...: ten steps, in which the rate rises, stays and falls
lans_train()
{
    local model=$1 out=$2
    shift 2
    "$kiln" pretrain --disable_progress_bar --optimizer=lans --use_lr_scheduler --do_train --bert_model=bert-base-uncased \
        --config_file="$dir/$model.json" --output_dir="$dir/$out" --seed=12439 --input_dir="$dir/shards" \
        --vocab_file="$dir/vocab.txt" --max_seq_length 32 --max_predictions_per_seq=6 --max_steps=10 --steps_this_run=-1 \
        --num_steps_per_checkpoint=0 --learning_rate=0.015 --warmup_proportion=0.25 --constant_proportion=0.25 \
        --scheduler_degree=1.0 --log_freq=1 --eval_steps 0 --disable_random_sampler --deepspeed \
        --deepspeed_config="$dir/ds.json" "$@"
}

# lans_losses OUT: the loss of each step
lans_losses() { sed -n 's/.*"event":"step".*"loss":\([^,]*\).*/\1/p' "$dir/$1/log.jsonl"; }
