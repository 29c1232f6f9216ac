#!/usr/bin/env bash
# Token stores, shards and models that were damaged after they were made end a run with exit code 65, and nothing that was learnt
# from them is saved; a run goes on only with the data it began with, unless it is told otherwise.
. "$(dirname "$0")/begin.sh"
make_store

flags=(--config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8
    --learning_rate 1e-3 --eval_steps 2 --disable_progress_bar --num_steps_per_checkpoint 2)
pretrain()
{
    local store=$1 out=$2; shift 2; "$kiln" pretrain --input_dir "$dir/$store" --output_dir "$dir/$out" "${flags[@]}" "$@"
}

# copy NAME: the store again, as $dir/NAME
copy() { rm -rf "${dir:?}/$1" "$dir/out-$1"; cp -r "$dir/store" "$dir/$1"; }

# flip FILE OFFSET: turns the lowest bit of a byte
flip()
{
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# every file, first byte, middle and last: named, no checkpoint is left, and the same once more
for file in train.bin heldout.bin train.idx heldout.idx; do
    size=$(stat -c %s "$dir/store/$file")
    for at in 0 $((size / 2)) $((size - 1)); do
        copy damaged
        flip "$dir/damaged/$file" "$at"
        for again in 1 2; do
            expect 65 "${file%.*}" pretrain damaged out-damaged --max_steps 4
        done
        if grep -q "is damaged" "$dir/err"; then # indexes that cannot be are found when they are opened
            grep -q "$file is damaged: the CRC-32C of its bytes 0 to" "$dir/err" || fail "no place: $(cat "$dir/err")"
        fi
        [ -z "$(compgen -G "$dir/out-damaged/ckpt_*")" ] || fail "$file, byte $at: learnt from damaged data and saved"
        "$kiln" inspect "$dir/damaged/${file%.*}" >/dev/null 2>&1 && fail "inspect finds nothing"
    done
done

# a store of an earlier version has checksums of whole files only; and runs that save nothing check too
copy old
sed -i '/block/d; s/\("idx_crc32c": "[0-9a-f]*"\),/\1/' "$dir/old/train.json" "$dir/old/heldout.json"
expect 0 "checksums match" pretrain old out-old --max_steps 4
flip "$dir/old/train.bin" 99
expect 65 "train.bin is damaged: its CRC-32C is" pretrain old out-old-2 --max_steps 4 --skip_checkpoint

# what held is not read again by the run that goes on, and a file that was written to since is
pretrain store run --max_steps 8 --steps_this_run 4 2>"$dir/log"
grep -q "checksums match" "$dir/log" || fail "nothing was checked: $(cat "$dir/log")"
expect 0 "unchanged since" pretrain store run --max_steps 8 --steps_this_run 6 --resume_from_checkpoint
grep -q "checksums match" "$dir/err" && fail "read again"
cp "$dir/store/train.bin" "$dir/whole.bin"
flip "$dir/store/train.bin" 50
expect 65 "train.bin is damaged" pretrain store run --max_steps 8 --resume_from_checkpoint
[ -e "$dir/run/ckpt_6" ] && [ ! -e "$dir/run/ckpt_8" ] || fail "not the checkpoints of before: $(ls "$dir/run")"
cat "$dir/whole.bin" >"$dir/store/train.bin"

# other text with the same vocabulary: refused in the same phase, named where it is allowed, silent where nothing is known
head -n 300 "$dir/corpus.txt" >"$dir/other.txt"
"$kiln" prepare --input "$dir/other.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --holdout_fraction 0.1 --output_dir "$dir/other" 2>/dev/null
expect 65 "was trained on other data" pretrain other run --max_steps 8 --resume_from_checkpoint
expect 0 "was trained on other data" pretrain other run --max_steps 8 --resume_from_checkpoint --allow_other_data
expect 65 "was trained on other data" pretrain store run --max_steps 10 --resume_from_checkpoint
expect 0 "phase 2, 0 steps done" pretrain store run --max_steps 2 --resume_from_checkpoint --phase2 --phase1_end_step 8

# a model: a bit in a tensor, in its name, in the configuration, in the vocabulary is found by all commands that read models
"$kiln" export --model "$dir/run/ckpt_6" --output_dir "$dir/model" >/dev/null 2>&1
expect 0 "" "$kiln" fill --model "$dir/model" "the [MASK] stone"
cp "$dir/out" "$dir/before"
readers=("fill --model $dir/bad [MASK]" "embed --model $dir/bad king" "export --model $dir/bad --output_dir $dir/never"
    "convert --model $dir/bad --output_dir $dir/never" "inspect $dir/bad"
    "squad --init_checkpoint $dir/bad --output_dir $dir/never --do_train --train_file $dir/questions.json")
make_questions
# expect_match CODE PATTERN COMMAND...: the same as expect, with a pattern
expect_match() { expect "$1" "" "${@:3}"; grep -qE -- "$2" "$dir/out" "$dir/err" || fail "no '$2': ${*:3} ($(cat "$dir/err"))"; }
# expect_damaged FILE OFFSET PATTERN: what all say of the model with this bit turned
expect_damaged()
{
    local line
    rm -rf "$dir/bad"
    cp -r "$dir/model" "$dir/bad"
    flip "$dir/bad/$1" "$2"
    for line in "${readers[@]}"; do
        # shellcheck disable=SC2086
        expect_match 65 "$3" "$kiln" $line
    done
    [ ! -e "$dir/never" ] || fail "$1, byte $2: something was written"
}
place() { grep -abo -m 1 -e "$2" "$dir/model/$1" | head -n 1 | cut -d : -f 1; }
weights=$dir/model/model.safetensors
expect_damaged model.safetensors $(($(stat -c %s "$weights") / 2)) \
    "model.safetensors: the CRC-32C of tensor [a-z.0-9A-Z_]* is .* damaged"
expect_damaged model.safetensors $(($(stat -c %s "$weights") - 1)) "the CRC-32C of tensor cls.seq_relationship.bias is"
expect_damaged model.safetensors "$(place model.safetensors '"bert.pooler.dense.bias"')" ""
expect_damaged model.safetensors $(($(place model.safetensors '"bert.pooler.dense.bias"') + 2)) "but its metadata says nothing"
expect_damaged config.json $(($(place config.json '"num_attention_heads"') + 23)) \
    "config.json is not the file that kiln saved.* remove .*/bad/kiln.sha256"
expect_damaged vocab.txt $(($(stat -c %s "$dir/model/vocab.txt") - 2)) "vocab.txt is not the file that kiln saved"
expect_damaged kiln.sha256 3 "config.json is not the file that kiln saved|remove it: .*kiln.sha256"

# who changes a file removes the list; what another program saves again has no sums
sed -i 's/"layer_norm_eps": [^,]*/"layer_norm_eps": 1e-11/' "$dir/model/config.json"
expect 65 "changed on purpose, remove" "$kiln" embed --model "$dir/model" "the king"
cp -r "$dir/model" "$dir/saved_again"
rm "$dir/model/kiln.sha256"
expect 0 "" "$kiln" embed --model "$dir/model" "the king"
cp "$dir/run/ckpt_6/model.safetensors" "$dir/saved_again/"
expect 0 "" "$kiln" fill --model "$dir/saved_again" "the [MASK] stone"
cmp "$dir/out" "$dir/before" || fail "another model"
expect_match 0 "checksums  *there are none" "$kiln" inspect "$dir/saved_again"
expect_match 0 "checksums  *hold" "$kiln" inspect "$dir/model"

# shards: byte 28 of a node of chunks says which filters the chunk skips, and no checksum of HDF5 or zlib has it
(need_hdf5) >/dev/null || { lack hdf5 "damaged shards"; echo "test_damaged_data: all found"; exit 0; }
"$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines --format hdf5 \
    --one_sentence_per_line --max_seq_length 32 --max_predictions_per_seq 5 --output_dir "$dir/shards" >/dev/null 2>&1
shard=$(ls "$dir"/shards/training/*.hdf5)
expect 0 "padded" "$kiln" inspect "$shard"
found=0
for at in $(LC_ALL=C grep -abo -P 'TREE\x01' "$shard" | cut -d : -f 1); do
    flip "$shard" $((at + 28))
    if ! "$kiln" inspect "$shard" >"$dir/out" 2>"$dir/err"; then
        grep -q "do not match its checksum" "$dir/err" || fail "byte $at: $(cat "$dir/err")"
        found=$((found + 1))
        expect 65 "do not match its checksum: the file is damaged" pretrain shards out-shards --max_steps 40
    fi
    flip "$shard" $((at + 28))
done
[ "$found" -ge 3 ] || fail "$found damaged arrays of shards were found"
[ -z "$(compgen -G "$dir/out-shards/ckpt_*")" ] || fail "learnt from damaged shards and saved"
echo "test_damaged_data: all found"
