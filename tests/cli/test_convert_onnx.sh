#!/usr/bin/env bash
# The ONNX files of kiln convert in onnx.checker and onnxruntime (tools/check_onnx.py): every head, both wirings of layers,
# weights in the file and beside it, with the Python that KILN_PYTHON names.
. "$(dirname "$0")/begin.sh"
here=$(cd "$(dirname "$0")" && pwd)
need_python onnx onnx onnxruntime numpy safetensors
"$(dirname "$kiln")/tests/test_api" unpack "$dir/from"
make_store
cat >"$dir/pre.json" <<JSON
{"layer_norm_large_model": true, "gated_layers": [], "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
 "intermediate_size": 128, "max_position_embeddings": 64, "vocab_size": 300, "initializer_range": 0.3}
JSON
for wiring in pre config; do
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/$wiring.json" --output_dir "$dir/from/$wiring" \
        --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 16 --max_steps 20 --learning_rate 1e-3 --eval_steps 0 \
        --disable_progress_bar \
        >/dev/null 2>&1 || fail "no model $wiring"
done
cd "$dir"

# check MODEL OUT flags...
check()
{
    expect 0 "opset 17" "$kiln" convert --format onnx --model "$1" --output_dir "$2" --logits "$2.safetensors" "${@:3}"
    "$python" "$here/../../tools/check_onnx.py" "$2/model.onnx" "$2.safetensors"
}
for model in from/*; do
    check "$model" "$(basename "$model")"
done
check from/pre beside --max_shard_size 1000
[ -s beside/model.onnx.data ] || fail "the weights are not beside"
check from/config masked --task masked_lm
check from/config encoder --task encoder

# A check that hears nothing is none: the logits of another model of the same shapes.
! "$python" "$here/../../tools/check_onnx.py" pretraining/model.onnx bf16_shards.safetensors >out 2>&1 ||
    fail "other logits pass: $(cat out)"
echo "test_convert_onnx: onnxruntime gives the same logits"
