#!/usr/bin/env bash
# kiln convert as a user drives it: every form of a model that kiln reads becomes the same Hugging Face directory and ckpt_N.pt,
# each read back with the same bits and logits; what cannot be done leaves nothing.  test_convert_torch has other programs read
# what is written; here it is held by their checksums.
. "$(dirname "$0")/begin.sh"
golden=$(cd "$(dirname "$0")/../golden" && pwd)
unpack_golden imports
"$(dirname "$kiln")/tests/test_api" unpack "$dir/from"
cd "$dir"

# convert FORMAT MODEL OUT flags...
convert()
{
    expect 0 "read back: all weights are the same, bit by bit" "$kiln" convert --format "$1" --model "$2" --output_dir "$3" \
        "${@:4}"
    grep -q '^largest difference of logits before and after: 0 (' out || fail "$2 as $1: $(cat out)"
}

# The same bytes from every form, and back.
for model in pretraining_safetensors pretraining_bin pretraining_ckpt/ckpt_20.pt pretraining_states \
    pretraining_tf/bert_model.ckpt; do
    convert huggingface "$model" a_huggingface
    convert pt "$model" a_pt --step 20
    if [ ! -d first_pt ]; then
        for format in huggingface pt; do
            cp -r a_$format first_$format
        done
    fi
    for format in huggingface pt; do
        diff -r a_$format first_$format || fail "$model becomes another $format"
    done
done
[ "$(cd a_pt && echo *)" = \
    "bert_config.json ckpt_20.pt kiln.sha256 special_tokens_map.json tokenizer.json tokenizer_config.json vocab.txt" ] ||
    fail "$(ls a_pt)"
"$kiln" export --model a_pt/ckpt_20.pt --output_dir back >/dev/null 2>&1
diff -r a_huggingface back || fail "the way there and back"
"$kiln" export --model pretraining_bin --output_dir exported >/dev/null 2>&1
diff -r a_huggingface exported || fail "kiln export writes something else"
expect 0 "bert.pooler.dense_act.weight" "$kiln" inspect a_pt/ckpt_20.pt

# Every head, in every form: byte for byte the files that PyTorch has read (tests/golden/make_conversions.sh).
for model in from/*; do
    convert huggingface "$model" "heads"
    convert pt "$model" "pt/${model#*/}"
done
sha256sum --check --strict --quiet "$golden/conversions.sha256" || fail "these are not the files that PyTorch has read;" \
    "if they are meant to be others, let them read them: tests/golden/make_conversions.sh"
diff <(find pt -type f ! -name kiln.sha256 | LC_ALL=C sort) \
    <(sed 's/^[^ ]*  //' "$golden/conversions.sha256" | LC_ALL=C sort) ||
    fail "other files than those"

# An older model is replaced, its other files too.
convert huggingface pretraining_bin shards --max_shard_size 4000
[ -e shards/model.safetensors.index.json ] || fail "no shards"
convert huggingface pretraining_bin shards
diff -r shards first_huggingface || fail "a shard is left"
convert huggingface pretraining_bin encoder --task encoder

# The tokens and logits for other programs.
convert huggingface pretraining_bin a_huggingface --logits logits.safetensors
expect 0 "F32" "$kiln" inspect logits.safetensors
for name in ids types lengths mlm nsp hidden pooled; do
    grep -q " $name\$" out || fail "logits lack $name: $(cat out)"
done

# A configuration that is not beside the weights.
mkdir alone
cp pretraining_ckpt/ckpt_20.pt alone/
expect 65 "no config.json or bert_config.json beside alone/ckpt_20.pt" "$kiln" convert --model alone/ckpt_20.pt --format pt \
    --output_dir x
convert pt alone/ckpt_20.pt a_pt --step 20 --config_file pretraining_ckpt/bert_config.json --vocab_file pretraining_ckpt/vocab.txt
diff -r a_pt first_pt || fail "a configuration from elsewhere"

# What cannot be done.
expect 0 "ckpt_N.pt" "$kiln" convert --help
expect 0 "would write" "$kiln" convert --model pretraining_bin --format pt --output_dir x --dry-run
expect 64 "--format" "$kiln" convert --model pretraining_bin --format tflite --output_dir x
expect 64 "--model" "$kiln" convert --output_dir x
expect 64 "which the export would replace" "$kiln" convert --model a_huggingface --output_dir a_huggingface
expect 64 "which the export would replace" "$kiln" convert --model a_pt/ckpt_20.pt --format pt --step 20 --output_dir a_pt
expect 64 "is a file of the --model" "$kiln" convert --model pretraining_bin --logits pretraining_bin/pytorch_model.bin \
    --output_dir x
expect 64 "is a file of the --model" "$kiln" convert --model pretraining_ckpt/ckpt_20.pt --logits pretraining_ckpt/ckpt_20.pt \
    --output_dir x --dry_run
expect 69 "optimum-cli export onnx --model x" "$kiln" convert --model pretraining_bin --format onnx --output_dir x
expect 64 "not part of a model in PyTorch's form" "$kiln" convert --model pretraining_bin --format pt --step 21 --output_dir a_pt
expect 64 "not part of a model" "$kiln" convert --model pretraining_bin --output_dir a_pt
expect 64 "--step" "$kiln" convert --model pretraining_bin --format pt --step -3 --output_dir x
expect 65 "lacks 2 of the 2 tensors of qa_outputs.*" "$kiln" convert --model pretraining_bin \
    --task question_answering --output_dir x
expect 65 "nothing.pt" "$kiln" convert --model nothing.pt --output_dir x
cp -r a_huggingface a_onnx
rm a_onnx/model.safetensors
echo graph >a_onnx/model.onnx
expect 65 "a_onnx/model.onnx is a graph of ONNX, which kiln does not read" "$kiln" convert --model a_onnx --output_dir x
head -c 20000 pretraining_ckpt/ckpt_20.pt >pretraining_ckpt/cut.pt
expect 65 "damaged archive, or cut short" "$kiln" convert --model pretraining_ckpt/cut.pt --output_dir x
expect 74 "/dev/full" "$kiln" convert --model pretraining_bin --output_dir y --logits /dev/full
[ ! -e x ] || fail "an error left something"

# A disk that takes 8 KiB a file: nothing is left, and what was there stays.
for format in huggingface pt; do
    expect 74 "File too large" bash -c 'trap "" XFSZ; ulimit -f 8; exec "$@"' _ "$kiln" convert --model pretraining_bin \
        --format $format --output_dir x
    [ ! -e x ] || fail "$format: half a model"
done
expect 74 "File too large" bash -c 'trap "" XFSZ; ulimit -f 8; exec "$@"' _ "$kiln" convert --model pretraining_bin \
    --format pt --step 20 --output_dir first_pt
diff -r a_pt first_pt || fail "a failed conversion changed the older model"
[ -z "$(find . -name '*.kiln-*')" ] || fail "left behind: $(find . -name '*.kiln-*')"
echo "test_convert: the same in every form"
