#!/usr/bin/env bash
# HDF5 shards as a user meets them: `kiln prepare --format hdf5`, the same bytes again, training on what it wrote, padded
# and packed, from one file and from several, stopped and gone on to the same bits; a damaged file or a killed reader ends
# the run with a message and a checkpoint; the command line of the replaced script, which knows no vocabulary.
. "$(dirname "$0")/begin.sh"
need_hdf5
make_store

prepare() { "$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --holdout_fraction 0.1 --format hdf5 --max_seq_length 48 --max_predictions_per_seq 8 "$@"; }

# what is written, and that it is written again
expect 0 "training/*.hdf5: 3 files" prepare --output_dir "$dir/padded" --n_shards 3
prepare --output_dir "$dir/again" --n_shards 3 2>/dev/null
diff -r -x .lock "$dir/padded" "$dir/again" || fail "the same text gives other files"
prepare --output_dir "$dir/one" --n_shards 1 --dupe_factor 2 2>/dev/null
expect 0 "packs" prepare --output_dir "$dir/packed" --n_shards 2 --packed
for file in padded/training/kiln_training_2.hdf5 padded/test/kiln_test_0.hdf5 padded/vocab.txt packed/training_metadata.json \
    padded/tokenizer_config.json; do
    [ -s "$dir/$file" ] || fail "$file is missing"
done
[ -z "$(find "$dir/padded" -name '*.kiln-*')" ] || fail "the temporary store remains"
mkdir "$dir/padded/.prepare.kiln-0123456789abcdef.tmp" "$dir/padded/prepare.tmp" # a dead run's, and a user's
expect 0 "removing $dir/padded/.prepare.kiln-0123456789abcdef.tmp" prepare --output_dir "$dir/padded" --n_shards 3 --overwrite
[ ! -e "$dir/padded/.prepare.kiln-0123456789abcdef.tmp" ] || fail "what a dead run left remains"
rmdir "$dir/padded/prepare.tmp" || fail "a user's directory is gone"
expect 64 "--overwrite" prepare --output_dir "$dir/padded"
expect 64 "--overwrite" prepare --output_dir "$dir/padded" --dry_run
expect 0 "1 files" prepare --output_dir "$dir/again" --n_shards 1 --overwrite
[ -e "$dir/again/training/kiln_training_1.hdf5" ] && fail "--overwrite left an old file"
expect 0 '"layout": "packed"' "$kiln" inspect --json "$dir/packed/training/kiln_training_0.hdf5"
expect 64 "max_predictions_per_seq" prepare --output_dir "$dir/no" --max_predictions_per_seq 60
(
    trap '' XFSZ
    ulimit -f 4
    expect 74 "full" prepare --output_dir "$dir/full"
    [ -z "$(ls "$dir/full")" ] || fail "a full disk left $(ls "$dir/full")"
)

pretrain_command()
{
    local in=$1 out=$2
    shift 2
    command=("$kiln" pretrain --input_dir "$dir/$in" --config_file "$dir/config.json" --output_dir "$dir/$out" \
        --train_batch_size 32 --gradient_accumulation_steps 4 --max_steps 40 --learning_rate 1e-3 \
        --num_steps_per_checkpoint 10 --keep_checkpoints 0 --eval_steps 20 --eval_samples 64 --disable_progress_bar "$@")
}
pretrain() { pretrain_command "$@" && "${command[@]}"; }
same()
{
    for file in model.safetensors optimizer.safetensors vocab.txt trainer_state.json; do
        cmp "$dir/$1/ckpt_$3/$file" "$dir/$2/ckpt_$3/$file" || fail "$file of step $3 differs between $1 and $2"
    done
}

# stopped and gone on, over the ends of files and epochs
for form in padded packed one; do
    expect 0 "saved" pretrain $form/training run-$form --eval_input_dir "$dir/store"
    grep -q "held-out" "$dir/err" || fail "nothing was measured: $(cat "$dir/err")"
    pretrain_command $form/training cut-$form --eval_input_dir "$dir/$form/test" --log_freq 1
    start_held "${command[@]}"
    stop_held KILL "$dir/cut-$form"
    [ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
    pretrain $form/training cut-$form --resume_from_checkpoint >/dev/null 2>&1
    same run-$form cut-$form 40
done
# files of the same names, sizes and numbers of records are other data if a byte is another
cp -r "$dir/padded" "$dir/changed"
shard=$dir/changed/training/kiln_training_1.hdf5
printf '\1' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") - 5)) conv=notrunc 2>/dev/null
cmp -s "$shard" "$dir/padded/training/kiln_training_1.hdf5" && fail "the same byte"
expect 65 "was trained on other data" pretrain changed/training run-padded --resume_from_checkpoint
expect 0 "instead of --gradient_accumulation_steps 4" pretrain packed/training dry --dry_run
expect 64 "--enable_packed_data_mode is False" pretrain packed/training dry --dry_run --enable_packed_data_mode False
expect 0 "not packed" pretrain padded/training dry --dry_run --enable_packed_data_mode True
expect 0 "--max_seq_length 64 has no effect" pretrain padded/training dry --dry_run --max_seq_length 64

# what `kiln prepare` made, as a whole: its training shards, measured on its test shards, as with the two given apart
expect 0 "saved" pretrain padded run-whole
grep -q "held-out" "$dir/err" || fail "nothing was measured: $(cat "$dir/err")"
cmp "$dir/run-whole/ckpt_40/model.safetensors" "$dir/run-padded/ckpt_40/model.safetensors" || fail "other training shards"
expect 0 "saved" pretrain padded/training run-training
grep -q "held-out" "$dir/err" || fail "padded/test was not found beside padded/training: $(cat "$dir/err")"
expect 0 "saved" pretrain padded/training run-apart --eval_input_dir "$dir/padded"
grep -q "held-out" "$dir/err" || fail "padded/test was not found in padded: $(cat "$dir/err")"
mkdir "$dir/empty"
expect 65 "with training/ and test/" pretrain empty run-empty

# the reader is killed: the run ends with a message, what it has learnt is saved, and it goes on from there
pretrain_command padded/training killed --max_steps 100000 --num_steps_per_checkpoint 0 --eval_steps 0
"${command[@]}" >/dev/null 2>"$dir/err" &
pid=$!
await $pid grep -qs '"step":5,' "$dir/killed/log.jsonl"
reader=$(cat /proc/$pid/task/*/children)
kill -KILL $reader || fail "there is no process that reads: '$reader'"
wait $pid && status=0 || status=$?
[ "$status" -eq 74 ] || fail "a killed reader gave exit code $status: $(tail -n 3 "$dir/err")"
grep -q "ended by signal 9" "$dir/err" || fail "no reason: $(tail -n 3 "$dir/err")"
ls "$dir/killed" | grep ckpt_ >/dev/null || fail "what the run had learnt is lost"

# a file that is damaged behind its head
mkdir "$dir/bad"
cp "$dir/padded/training/"*.hdf5 "$dir/bad"
truncate -s 12000 "$dir/bad/kiln_training_1.hdf5"
expect 65 "kiln_training_1.hdf5" pretrain bad bad-run --vocab_file "$dir/vocab.txt"

# as the replaced script is called: no vocabulary anywhere, which can be given later
mkdir -p "$dir/alone/bare"
cp "$dir/padded/training/"*.hdf5 "$dir/alone/bare"
expect 64 "vocab_file" pretrain alone/bare bare-run
sed "s/{/{\"vocab_size\": $(wc -l <"$dir/vocab.txt"), /" "$dir/config.json" >"$dir/sized.json"
expect 0 "no vocab.txt" pretrain alone/bare bare-run --config_file "$dir/sized.json" --steps_this_run 20
expect 0 "resumed" pretrain alone/bare bare-run --resume_from_checkpoint --vocab_file "$dir/vocab.txt"
cmp "$dir/bare-run/ckpt_40/model.safetensors" "$dir/run-padded/ckpt_40/model.safetensors" ||
    fail "training without a vocabulary differs"
expect 0 "" "$kiln" fill --model "$dir/bare-run/ckpt_40" "the [MASK] saw the city"
echo "test_shards: done"
