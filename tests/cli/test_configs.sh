#!/usr/bin/env bash
# The models of configs/ are what their names say, and a configuration that asks for another model than kiln computes is
# refused by the name of the key.
. "$(dirname "$0")/begin.sh"
configs=$(dirname "$0")/../../configs

plan() { "$kiln" bench --config_file "$1" --dry_run --train_batch_size 1; }

# millions of parameters with 30,522 pieces, or as many rows as the file says: published counts of base and large
# (transformers' BertForPreTraining), and those of the replaced scripts' larger models less the rows that pad their
# vocabularies to a multiple of 8
published() # NAME
{
    case $1 in
    bert_base) echo 110.11 ;;
    bert_large) echo 336.23 ;;
    bert_1.2b) echo 1185.69 ;;
    bert_1.5b | post_ln_1.5b) echo 1530.38 ;;
    bert_5b) echo 6282.38 ;; # 512,035 rows
    post_ln_5b) echo 5049.23 ;;
    esac
}
for file in "$configs"/*.json; do
    name=$(basename "$file" .json)
    expect 0 "$(published "$name") M parameters" plan "$file"
    ! grep -q "unknown here" "$dir/err" || fail "$name has a key that nobody knows: $(cat "$dir/err")"
done
# the documents' models have their published vocabulary, so shards without one can be trained on; the others take the size of
# yours
[ "$(grep -l '"vocab_size": 30522' "$configs"/*.json | xargs -n 1 basename | tr '\n' ' ')" = \
    "bert_1.2b.json bert_1.5b.json bert_large.json " ] ||
    fail "published vocabularies: $(grep -l '"vocab_size"' "$configs"/*.json)"
# a name that a pre-LN model has elsewhere is not given to a post-LN one
[ "$(grep -l '"layer_norm_large_model": true' "$configs"/*.json | xargs -n 1 basename | tr '\n' ' ')" = \
    "bert_1.5b.json bert_5b.json " ] || fail "BERT-1.5B and 5B are pre-LN models, and no other is"

# refused KEY VALUE: the configuration that has this
refused()
{
    echo "{\"hidden_size\": 64, \"num_attention_heads\": 2, \"num_hidden_layers\": 1, \"$1\": $2}" >"$dir/config.json"
    expect 65 "\"$1\" is $2, but must be" plan "$dir/config.json"
}
echo '{"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1, "model_type": "electra"}' >"$dir/config.json"
expect 65 '"model_type" is "electra", but kiln knows only: bert, bert_pre_ln' plan "$dir/config.json"
refused model_type '"bert_pre_ln"' # without the wiring that it stands for
refused hidden_act '"relu"'
refused hidden_act '"gelu_new"'
refused position_embedding_type '"relative_key"'
refused gated_layers '[1]' # of a post-LN model
gated() { echo "{\"num_hidden_layers\": 3, \"hidden_size\": 64, \"num_attention_heads\": 2, \"layer_norm_large_model\": true, \"gated_layers\": $1}" >"$dir/config.json"; }
for list in '[0]' '[3]' '[1.5]' '["1"]' '1'; do
    gated "$list"
    expect 65 "\"gated_layers\" is $list, but must be a list of layers behind layer 0" plan "$dir/config.json"
done
refused is_decoder true
refused add_cross_attention true
refused tie_word_embeddings false
refused pruned_heads '{"0":[1]}'
refused quantization_config '{"bits":8}'

# what changes nothing is silent, what nobody knows is named
cat >"$dir/config.json" <<JSON
{"architectures": ["BertForPreTraining"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": null,
 "directionality": "bidi", "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_size": 64, "id2label": {"0": "a"},
 "is_decoder": false, "gated_layers": [], "layer_norm_large_model": false, "num_attention_heads": 2, "num_hidden_layers": 1,
 "output_all_encoded_layers": false, "pad_token_id": 0, "pooler_fc_size": 768, "position_embedding_type": null,
 "torch_dtype": "float32", "transformers_version": "4.36.1", "use_cache": true, "vocab_size": 30522}
JSON
expect 0 "M parameters" plan "$dir/config.json"
! grep -q "warning" "$dir/err" || fail "harmless keys: $(cat "$dir/err")"
echo '{"num_hidden_layer": 24, "hidden_size": 64, "num_attention_heads": 2, "layer_norm_epsilon": 1e-5}' >"$dir/config.json"
expect 0 'unknown here and ignored: "num_hidden_layer", "layer_norm_epsilon"' plan "$dir/config.json"
echo '{"model_type": "bert_pre_ln", "layer_norm_large_model": 1}' >"$dir/config.json"
expect 65 '"layer_norm_large_model" must be true or false' plan "$dir/config.json"
echo "test_configs: $(ls "$configs" | wc -l) configurations are what they are called"
