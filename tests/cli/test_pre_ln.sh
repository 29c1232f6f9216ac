#!/usr/bin/env bash
# A model with pre-LN layers ("layer_norm_large_model") and more rows of embeddings than its vocabulary has pieces, as a user
# meets it: trained, resumed and recomputed to the bit, exported, fine-tuned, and not taken for a post-LN one.
. "$(dirname "$0")/begin.sh"
make_store
make_questions
n_words=$(wc -l <"$dir/vocab.txt")

# config ROWS WIRING FILE
config()
{
    cat >"$dir/$3" <<JSON
{"vocab_size": $1, "layer_norm_large_model": $2, "gated_layers": [], "hidden_size": 64, "num_hidden_layers": 5,
 "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 64}
JSON
}
config 300 true pre.json
config 300 false post.json
config $((n_words - 1)) true small.json

# pretrain OUT flags...
pretrain()
{
    local out=$1
    shift
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/pre.json" --output_dir "$dir/$out" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 16 --gradient_accumulation_steps 2 --max_steps 20 \
        --learning_rate 1e-3 --eval_steps 0 --disable_progress_bar "$@"
}

for precision in "" --autocast --fp8; do
    name=run${precision#--}
    expect 0 \
        "300 rows for it: the other $((300 - n_words)) rows are trained too, but never predicted" \
        pretrain "$name" $precision
    pretrain "$name-halves" $precision --steps_this_run 9 2>/dev/null
    pretrain "$name-halves" $precision --resume_from_checkpoint 2>"$dir/log"
    grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
    pretrain "$name-again" $precision --checkpoint_activations 2>/dev/null
    for file in model.safetensors optimizer.safetensors config.json; do
        cmp "$dir/$name/ckpt_20/$file" "$dir/$name-halves/ckpt_20/$file" || fail "$file: resumed to another model"
        cmp "$dir/$name/ckpt_20/$file" "$dir/$name-again/ckpt_20/$file" || fail "$file: recomputed to another model"
    done
done
model=$dir/run/ckpt_20
sed "s/true/false/" "$dir/pre.json" | cmp - "$dir/post.json"
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/post.json" --output_dir "$dir/post" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 16 --gradient_accumulation_steps 2 --max_steps 20 \
    --learning_rate 1e-3 --eval_steps 0 2>/dev/null
cmp -s "$model/model.safetensors" "$dir/post/ckpt_20/model.safetensors" && fail "the wiring changes nothing"

# Gated layers change nothing: the cases of the original's test, 1 layer and 2, 2 and 4, 3 and 10.  of NAME LAYERS GATED MODEL
losses_of()
{
    sed "s/\"num_hidden_layers\": 5/\"num_hidden_layers\": $2/; s/\"gated_layers\": \[\]/\"gated_layers\": $3/" "$dir/pre.json" >"$dir/$1.json"
    pretrain "$1" --config_file "$dir/$1.json" --log_freq 1 "${@:4}" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
    grep -o '"step":[0-9]*\|"loss":[^,]*' "$dir/$1/log.jsonl" >"$dir/$1.losses"
}
while read -r layers all gated numbers; do
    losses_of "start$layers" "$layers" '[]' --max_steps 1
    losses_of "dense$layers" "$layers" '[]' --init_checkpoint "$dir/start$layers/ckpt_1" --max_steps 10
    "$kiln" export --model "$dir/start$layers/ckpt_1" --output_dir "$dir/renamed$layers" >/dev/null 2>&1
    rm "$dir/renamed$layers/kiln.sha256"
    i=$layers
    for number in $numbers; do # the last one first, since numbers grow
        i=$((i - 1))
        LC_ALL=C sed -i "s/encoder\.layer\.$i\./encoder.layer.$number./g" "$dir/renamed$layers/model.safetensors"
    done
    sed -i "s/\"num_hidden_layers\": $layers/\"gated_layers\": $gated, \"num_hidden_layers\": $all/" "$dir/renamed$layers/config.json"
    losses_of "gated$layers" "$all" "$gated" --init_checkpoint "$dir/renamed$layers" --max_steps 10
    [ "$(grep -c loss "$dir/gated$layers.losses")" = 10 ] || fail "losses: $(cat "$dir/gated$layers.losses")"
    cmp "$dir/dense$layers.losses" "$dir/gated$layers.losses" || fail "$all layers with $gated gated are not $layers layers"
    expect 0 '' "$kiln" export --model "$dir/gated$layers/ckpt_10" --output_dir "$dir/exported$layers"
    tr -d ' \n' <"$dir/exported$layers/config.json" | grep -F "\"num_hidden_layers\":$all," | grep -F "\"gated_layers\":$gated" >/dev/null ||
        fail "the list: $(cat "$dir/exported$layers/config.json")"
    # files of the original have weights of gated layers too
    "$kiln" export --model "$dir/start$layers/ckpt_1" --output_dir "$dir/whole$layers" >/dev/null 2>&1
    rm "$dir/whole$layers/kiln.sha256"
    sed -i "s/\"num_hidden_layers\": $layers/\"gated_layers\": [$((layers - 1))], \"num_hidden_layers\": $layers/" "$dir/whole$layers/config.json"
    [ "$layers" = 1 ] || expect 0 the "$kiln" fill --model "$dir/whole$layers" --top_k 300 "the king [MASK] the city"
done <<'END'
1 2 [1] 0
2 4 [1,2] 3 0
3 10 [1,2,3,4,5,6,8] 9 7 0
END

# what it is, is in its files and told
expect 0 '"layer_norm_large_model": true' "$kiln" inspect --json "$model"
expect 0 'F32  [300, 64]' "$kiln" inspect "$model"
expect 65 '"layer_norm_large_model" is true there and false here' \
    pretrain run --config_file "$dir/post.json" --resume_from_checkpoint --max_steps 30
expect 65 "but the vocabulary has $n_words pieces" pretrain none --config_file "$dir/small.json"
expect 0 "$n_words  of 300 rows of embeddings" "$kiln" export --model "$model" --output_dir "$dir/exported"
grep -q '"model_type": "bert_pre_ln"' "$dir/exported/config.json" || fail "what knows no pre-LN layers would not see them"
expect 0 "the" "$kiln" fill --model "$model" --top_k 300 "the king [MASK] the city"
mv "$dir/out" "$dir/filled"
expect 0 "the" "$kiln" fill --model "$dir/exported" --top_k 300 "the king [MASK] the city"
cmp "$dir/out" "$dir/filled" || fail "the export answers otherwise"
sed -i -z 's/,[^,]*"layer_norm_large_model": true//' "$dir/exported/config.json"
rm "$dir/exported/kiln.sha256"
expect 65 '"model_type" is "bert_pre_ln", but must be "bert"' "$kiln" fill --model "$dir/exported" "the [MASK]"

# weights start a model with other rows behind the same words
config "$n_words" true words.json
expect 0 "weights of" pretrain rows --config_file "$dir/words.json" --init_checkpoint "$model" --max_steps 2
expect 0 "F32  [$n_words, 64]" "$kiln" inspect "$dir/rows/ckpt_2"
expect 0 "weights of" pretrain rows2 --init_checkpoint "$dir/rows/ckpt_2" --max_steps 2
expect 0 "F32  [300, 64]" "$kiln" inspect "$dir/rows2/ckpt_2"

# question answering
squad()
{
    local out=$1
    shift
    "$kiln" squad --init_checkpoint "$model" --config_file "$dir/pre.json" --output_dir "$dir/$out" \
        --train_file "$dir/questions.json" --max_seq_length 48 --doc_stride 16 --max_query_length 16 --train_batch_size 16 \
        --learning_rate 2e-3 --num_train_epochs 16 --disable-progress-bar --do_train "$@"
}
squad squad --do_predict --predict_file "$dir/questions.json" --do_eval 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
awk '/^exact_match/ { found = 1; exit !($2 + 0 > 80) } END { if (!found) exit 1 }' "$dir/log" ||
    fail "the rule was not learnt: $(grep exact_match "$dir/log")"
"$kiln" ask --model "$dir/squad/model" --context "$dir/corpus.txt" "in the" >"$dir/answer" 2>/dev/null
grep -Eq '^0\.[0-9]+  .+  \[bytes [0-9]+ to [0-9]+\]$' "$dir/answer" || fail "no answer: $(cat "$dir/answer")"
echo "test_pre_ln: trained, resumed, recomputed, exported and fine-tuned"
