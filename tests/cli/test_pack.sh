#!/usr/bin/env bash
# `kiln pack`, with the flags of pack_pretraining_data_pytorch.py: nothing is lost, the metadata is whole, training and
# kiln itself read what it writes, and what cannot be packed is told.
. "$(dirname "$0")/begin.sh"
need_hdf5
make_store

"$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --holdout_fraction 0.1 --format hdf5 --max_seq_length 48 --max_predictions_per_seq 8 \
    --short_seq_prob 0.9 --dupe_factor 40 --n_shards 3 --output_dir "$dir/padded" 2>/dev/null
in=$dir/padded/training
pack() { "$kiln" pack --input_dir "$in" --max_sequence_length 48 --max_predictions_per_sequence 8 "$@"; }
value() { sed -n "s/.*\"$1\": *\([0-9.-]*\).*/\1/p" "$2"; } # KEY FILE

expect 0 "3 files, " pack --output_dir "$dir/packed" --seed 42 --train_batch_size 8 --local_rank -1 --disable_progress_bar
grep -q "sequences a pack" "$dir/err" || fail "the efficiency is not told: $(cat "$dir/err")"
meta=$dir/packed_metadata.json
for key in avg_seq_per_sample compression_ratio expected_speed_up new_number_of_samples number_of_sequences_dropped \
    number_of_strategies_utilized original_number_of_samples packing_efficiency padding_tokens_original_dataset \
    padding_tokens_packed_dataset theoretical_speed_up top_8_strategies; do
    grep -q "\"$key\"" "$meta" || fail "no $key in the metadata: $(cat "$meta")"
done
n=$(sed -n "s/.*: 3 files, \([0-9]*\) sequences$/\1/p" "$dir/err")
[ "$(value original_number_of_samples "$meta")" -eq "$n" ] || fail "$n sequences, but $(cat "$meta")"
[ "$(value number_of_sequences_dropped "$meta")" -eq 0 ] || fail "sequences were dropped"
packs=$(value new_number_of_samples "$meta") sequences=$(value original_number_of_samples "$meta")
awk -v a="$(value avg_seq_per_sample "$meta")" -v n="$sequences" -v p="$packs" \
    'BEGIN { exit !(a > 1.2 && (a - n / p)^2 < 1e-9) }' ||
    fail "sequences a pack: $(cat "$meta")"
# rows go to files of 4480, and those that are left to one of their own
[ "$(find "$dir/packed" -name 'mixed_strategies_part_*.hdf5' | wc -l)" -eq $(((packs + 4479) / 4480)) ] ||
    fail "files: $(ls "$dir/packed")"
[ "$packs" -gt 4480 ] || fail "one file only"
expect 0 '"layout": "packed"' "$kiln" inspect --json "$dir/packed/mixed_strategies_part_0.hdf5"
[ -z "$(find "$dir/packed" -name '.pack*')" ] || fail "the temporary directory remains"

# the same again, and training on it
expect 0 "sequences a pack" pack --output_dir "$dir/again/"
cmp "$dir/packed/mixed_strategies_part_0.hdf5" "$dir/again/mixed_strategies_part_0.hdf5" || fail "other bytes"
cmp "$meta" "$dir/again_metadata.json" || fail "other metadata"
expect 0 "vocabulary: $dir/packed/vocab.txt" "$kiln" pretrain --dry_run --input_dir "$dir/packed" \
    --config_file "$dir/config.json" \
    --output_dir "$dir/run" --max_seq_length 48
cmp "$dir/vocab.txt" "$dir/packed/vocab.txt" || fail "another vocabulary"
expect 0 "packed data: $(awk -v n="$sequences" -v p="$packs" 'BEGIN { printf "%.4g", n / p }') sequences per pack" "$kiln" \
    pretrain \
    --input_dir "$dir/packed" --vocab_file "$dir/vocab.txt" --config_file "$dir/config.json" --output_dir "$dir/run" \
    --max_seq_length 48 --train_batch_size 8 --max_steps 3 --eval_steps 0
# an epoch of packs has the tokens of an epoch of rows
[ "$(value padding_tokens_original_dataset "$meta")" \
    -eq $((sequences * 48 - packs * 48 + $(value padding_tokens_packed_dataset "$meta"))) ] ||
    fail "tokens were lost: $(cat "$meta")"
# two in a pack at most, and one
expect 0 "sequences a pack" pack --output_dir "$dir/two" --max_sequences_per_pack 2
[ "$(value new_number_of_samples "$dir/two_metadata.json")" -ge "$packs" ] || fail "fewer packs of two than of three"
expect 0 ": 1 sequences a pack" pack --output_dir "$dir/one" --max_sequences_per_pack 1

# what cannot be
expect 64 "--overwrite" pack --output_dir "$dir/packed"
expect 0 "sequences a pack" pack --output_dir "$dir/packed" --overwrite --seed 7
cmp -s "$dir/packed/mixed_strategies_part_0.hdf5" "$dir/again/mixed_strategies_part_0.hdf5" && fail "--seed changes nothing"
expect 64 "are both" pack --output_dir "$dir/padded/training/." --overwrite
expect 64 "between 1 and 3" pack --output_dir "$dir/no" --max_sequences_per_pack 4
expect 65 "but --max_sequence_length is 20" "$kiln" pack --input_dir "$in" --output_dir "$dir/no" --max_sequence_length 20 \
    --max_predictions_per_sequence 8
expect 65 "--max_predictions_per_sequence 2" "$kiln" pack --input_dir "$in" --output_dir "$dir/no" --max_sequence_length 48 \
    --max_predictions_per_sequence 2
expect 65 "is packed already" "$kiln" pack --input_dir "$dir/packed" --output_dir "$dir/no"
expect 65 "has no file named" "$kiln" pack --input_dir "$dir/store" --output_dir "$dir/no"
expect 65 "cannot read the directory" "$kiln" pack --input_dir "$dir/none" --output_dir "$dir/no"
[ -z "$(find "$dir/no" -type f ! -name .lock)" ] || fail "what failed left $(find "$dir/no" -type f)"
mkdir "$dir/damaged"
head -c 3000 "$in/kiln_training_1.hdf5" >"$dir/damaged/kiln_training_cut.hdf5"

cp "$in/kiln_training_0.hdf5" "$dir/damaged"
expect 65 "kiln_training_cut.hdf5" "$kiln" pack --input_dir "$dir/damaged" --output_dir "$dir/hurt"
before=$(find "$dir" ! -path "$dir/out" ! -path "$dir/err" -printf '%p %s %T@\n' | sort)
expect 0 "files, $sequences sequences" pack --output_dir "$dir/new" --dry_run
expect 0 "missing: --input_dir $dir/none" "$kiln" pack --input_dir "$dir/none" --output_dir "$dir/new" --dry-run
[ "$(find "$dir" ! -path "$dir/out" ! -path "$dir/err" ! -path "$dir" -printf '%p %s %T@\n' | sort)" = \
    "$(grep -v "^$dir " <<<"$before")" ] ||
    fail "a dry run wrote something"
# a dead run's directory goes, and no file of it is taken for a whole one
mkdir "$dir/new" "$dir/new/.pack.kiln-0123456789abcdef.tmp"
cp "$dir/packed/mixed_strategies_part_0.hdf5" "$dir/new/.pack.kiln-0123456789abcdef.tmp"
expect 0 "removing $dir/new/.pack.kiln-0123456789abcdef.tmp" pack --output_dir "$dir/new"
cmp "$dir/new/mixed_strategies_part_0.hdf5" "$dir/again/mixed_strategies_part_0.hdf5" || fail "other bytes beside what was left"

# Shards of others have no vocabulary: the run says so, goes on with its own, and whoever reads the model may be given one.
mkdir "$dir/bare" "$dir/bare/data"
cp "$dir/packed/mixed_strategies_part_0.hdf5" "$dir/bare/data"
n_words=$(wc -l <"$dir/vocab.txt")
sed "0,/{/s//{\"vocab_size\": $n_words,/" "$dir/config.json" >"$dir/sized.json"
train() { "$kiln" pretrain --input_dir "$dir/bare/data" --config_file "$dir/sized.json" --output_dir "$dir/bare/run" \
    --max_seq_length 48 \
    --train_batch_size 8 --eval_steps 0 "$@"; }
expect 0 "checkpoints will have an empty one" train --max_steps 1
[ ! -s "$dir/bare/run/ckpt_1/vocab.txt" ] || fail "a vocabulary from nowhere"
model=$dir/bare/run
expect 65 "it holds no pieces" "$kiln" fill --model "$model" "[MASK]"
expect 0 "" "$kiln" fill --model "$model" --vocab_file "$dir/vocab.txt" "the [MASK]"
expect 0 "" "$kiln" embed --model "$model" --vocab_file "$dir/vocab.txt" "the king"
expect 0 "wrote" "$kiln" export --model "$model" --vocab_file "$dir/vocab.txt" --output_dir "$dir/bare/exported"
expect 0 "" "$kiln" fill --model "$dir/bare/exported" "the [MASK]"
expect 0 "largest difference" "$kiln" convert --model "$model" --vocab_file "$dir/vocab.txt" --format pt \
    --output_dir "$dir/bare/pt"
printf 'text,label\nthe king,1\na god,0\n' >"$dir/bare/c.csv"
expect 0 "saved" "$kiln" classify --init_checkpoint "$model" --vocab_file "$dir/vocab.txt" --train_file "$dir/bare/c.csv" \
    --do_train \
    --max_steps 1 --max_seq_length 16 --output_dir "$dir/bare/classify"
expect 0 "" train --max_steps 2 --resume_from_checkpoint --vocab_file "$dir/vocab.txt"
expect 0 "vocabulary: $model/ckpt_2/vocab.txt" train --max_steps 3 --resume_from_checkpoint
cmp "$dir/vocab.txt" "$model/ckpt_3/vocab.txt" || fail "the vocabulary was lost on the way"
echo "test_pack: $sequences sequences in $packs packs"
