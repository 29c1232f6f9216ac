#!/usr/bin/env bash
# What a run cannot write is named before the work: names that are empty, the root, too long, not a directory, and places that
# are missing or too small.
. "$(dirname "$0")/begin.sh"
make_store
long=$dir/$(printf 'a%.0s/' {1..480})

flags=(--config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --eval_steps 0
    --max_steps 4 --disable_progress_bar)
pretrain() { "$kiln" pretrain --input_dir "$dir/store" --output_dir "$dir/run" "${flags[@]}" "$@"; }
pretrain 2>/dev/null
cat >"$dir/questions.json" <<'JSON'
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the king came to the old city",
"qas": [{"id": "0", "question": "who came", "answers": [{"text": "king", "answer_start": 4}]}]}]}]}
JSON
squad()
{
    "$kiln" squad --init_checkpoint "$dir/run/ckpt_4" --output_dir "$dir/qa" --do_train --train_file "$dir/questions.json" \
        --max_steps 1 --train_batch_size 1 --max_seq_length 32 --skip_cache "$@"
}

for command in pretrain squad; do
    expect 64 "is empty" $command --output_dir ""
    expect 64 "--output_dir: / is the root" $command --output_dir /
    expect 64 "so that file names fit after it" $command --output_dir "$long"
    expect 74 "cannot create the directory" $command --output_dir "$dir/corpus.txt/below"
    grep -q "step 1/" "$dir/err" && fail "$command worked first"
    expect 74 "--json-summary: " $command --json-summary "$dir/vocab.txt/summary" --output_dir "$dir/other"
    expect 64 "--json-summary: $dir/store is a directory" $command --json-summary "$dir/store" --output_dir "$dir/other"
    expect 74 "--migration-log: " $command --migration-log "$dir/none/log" --output_dir "$dir/other"
    expect 74 "--tensorboard_logdir: " $command --profile true --profile_steps 1:1 --tensorboard_logdir "$dir/vocab.txt/t" \
        --output_dir "$dir/other"
    [ -z "$(compgen -G "$dir/other/ckpt_*")" ] || fail "$command worked first"
done

# in the output directory itself, which is not there yet
pretrain --output_dir "$dir/fresh/run" --json-summary "$dir/fresh/run/summary.json" 2>/dev/null >/dev/null ||
    fail "a summary in the output directory is refused"

# too small a place: two checkpoints of 1.4 MB and more are wanted
if mkdir "$dir/small" && mount -t tmpfs -o size=3m tmpfs "$dir/small" 2>/dev/null; then
    mounted=$dir/small
    expect 74 "bytes, but its file system has only" pretrain --output_dir "$dir/small/run" --num_steps_per_checkpoint 1
    [ ! -e "$dir/small/run" ] || fail "something is left"
    expect 0 "saved" pretrain --output_dir "$dir/small/run" --num_steps_per_checkpoint 0
else
    echo "a small disk was not tried: tmpfs cannot be mounted here"
fi
echo "test_outputs: all named in time"
