#!/usr/bin/env bash
# No command writes over what it reads, under whatever name, nor where its next run would read it; and what cannot be
# written is said before the work.
. "$(dirname "$0")/begin.sh"
make_store
cd "$dir"
mkdir -p texts/sub elsewhere
cp corpus.txt texts/a.txt
cp corpus.txt texts/sub/b.txt
find . -type f ! -name before -exec sha256sum {} + >before
unchanged()
{
    sha256sum --quiet -c before || fail "an input was changed by: $*"
}

# vocab: the same path, another spelling, a link, a hard link, a file of an input directory
vocab=("$kiln" vocab --vocab_size 120 --do_lower_case)
ln -s texts/a.txt link
ln corpus.txt hard
ln -s texts linked
for output in corpus.txt ./texts/../corpus.txt hard; do
    expect 64 "write $output over the input corpus.txt" "${vocab[@]}" --input corpus.txt --vocab_file $output
done
for output in texts/a.txt link linked/sub/b.txt; do
    expect 64 "write $output over the input texts/" "${vocab[@]}" --input texts --vocab_file $output
    expect 64 "write $output over the input texts/" "${vocab[@]}" --input texts --vocab_file $output --dry-run
done
unchanged vocab
"${vocab[@]}" --input texts --vocab_file texts/v.txt 2>/dev/null || fail "a vocabulary beside its text"
expect 64 'write texts/v.txt over the input texts/v.txt' "${vocab[@]}" --input texts --vocab_file texts/v.txt
rm texts/v.txt

# prepare: the output directory is an input, or below one, also where it is not there yet or a link leads there
prepare=("$kiln" prepare --vocab_file vocab.txt --do_lower_case --input_format lines)
for output in texts texts/ ./texts texts/new texts/sub/new/deep linked linked/sub; do
    for flags in '' --dry-run '--format hdf5'; do
        expect 64 "--output_dir $output is inside the input texts" "${prepare[@]}" --input texts --output_dir $output $flags
    done
done
expect 64 "is inside the input linked" "${prepare[@]}" --input corpus.txt linked --output_dir texts/new
"${prepare[@]}" --input texts --output_dir stores 2>/dev/null || fail "stores beside the text"
ln -s ../stores texts/stores
expect 64 "--output_dir stores is inside the input texts/stores/" "${prepare[@]}" --input texts --output_dir stores --overwrite
rm texts/stores
expect 64 "over the input stores/train.json" "${prepare[@]}" --input stores/train.json --output_dir stores --overwrite
mkdir texts/.hidden
"${prepare[@]}" --input texts --output_dir texts/.hidden 2>/dev/null || fail "a hidden directory is not read"
cp corpus.txt elsewhere
"${prepare[@]}" --input elsewhere/corpus.txt --output_dir elsewhere 2>/dev/null || fail "stores beside a file"
rm -r texts/.hidden
unchanged prepare

# export and report
"$kiln" pretrain --input_dir store --config_file config.json --output_dir run --max_seq_length 32 --eval_steps 0 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 2 --learning_rate 1e-3 2>/dev/null
"$kiln" export --model run/ckpt_2 --output_dir model >/dev/null 2>&1
ln -s model to_model
for output in model ./model/ to_model; do
    expect 64 "--output_dir $output is the --model model" "$kiln" export --model model --output_dir $output --task encoder
done
cp run/log.jsonl log.before
expect 64 'is the log of a run' "$kiln" report run --output run/log.jsonl
ln run/log.jsonl log.link
expect 64 'is the log of a run' "$kiln" report run --output log.link
cmp run/log.jsonl log.before || fail "a log was overwritten"

# Before the work: it would fail here for want of input, too.
expect 74 'corpus.txt' "${vocab[@]}" --input texts --vocab_file corpus.txt/v.txt
expect 64 'is a directory' "${vocab[@]}" --input corpus.txt --vocab_file texts
expect 64 'is empty' "${vocab[@]}" --input corpus.txt --vocab_file ''
expect 64 'root of the file system' "${prepare[@]}" --input corpus.txt --output_dir //
expect 64 'is empty' "${prepare[@]}" --input corpus.txt --output_dir ''
expect 64 'exists and is not a directory' "${prepare[@]}" --input texts --output_dir corpus.txt
expect 64 'the limit is' "${prepare[@]}" --input texts --output_dir "$(printf 'd%.0s' $(seq 1000))"
expect 64 'root of the file system' "${prepare[@]}" --input corpus.txt --output_dir / --dry-run
expect 64 'not part of a model' "$kiln" export --model nothing --output_dir texts --dry-run
expect 64 'not part of a model' "$kiln" export --model nothing --output_dir texts
expect 64 'its own name' "$kiln" export --model nothing --output_dir .
expect 74 'no/such' "$kiln" report nothing --output no/such/report.html
expect 64 'the limit is 255' "$kiln" report nothing --output "$(printf 'd%.0s' $(seq 256))"
[ -z "$(find . -name '*.kiln-*')" ] || fail "left behind: $(find . -name '*.kiln-*')"
