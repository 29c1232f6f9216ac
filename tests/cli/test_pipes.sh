#!/usr/bin/env bash
# Pipes, devices and links where a file is expected: what is to be read is refused at once, never waited for; what is to be
# written goes into a pipe or a device, which stays, and a link leads to its target, which is replaced.
. "$(dirname "$0")/begin.sh"
make_store
mkfifo "$dir/pipe"
refused() { expect 65 'is not a regular file' "${patient[@]}" "$@"; }

run=("$kiln" pretrain --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --learning_rate 1e-3 --max_steps 2
    --eval_steps 0)
pretrain() { "${run[@]}" --input_dir "$dir/store" --config_file "$dir/config.json" "$@"; }
pretrain --output_dir "$dir/run" 2>"$dir/log" || fail "$(cat "$dir/log")"
model=$dir/run/ckpt_2

# Reading, by every command that reads.
refused "${run[@]}" --input_dir "$dir/store" --config_file "$dir/pipe" --output_dir "$dir/no"
refused "$kiln" score "$dir/pipe" "$dir/pipe"
refused "$kiln" tokenize --vocab_file "$dir/pipe"
refused "$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/pipe" --output_dir "$dir/no"
expect 65 'neither a file nor a directory' "${patient[@]}" "$kiln" vocab --input "$dir/pipe" --vocab_file "$dir/no"
refused "$kiln" report "$dir/pipe"
echo '{"version": "1.1", "data": []}' >"$dir/questions.json"
refused "$kiln" score "$dir/questions.json" "$dir/pipe"
for file in config.json model.safetensors vocab.txt tokenizer_config.json; do
    rm -rf "$dir/model"
    mkdir "$dir/model"
    cp "$model"/{config.json,model.safetensors,vocab.txt,tokenizer_config.json} "$dir/model"
    ln -sf "$dir/pipe" "$dir/model/$file"
    refused "$kiln" fill --model "$dir/model" 'the [MASK]'
    refused "$kiln" export --model "$dir/model" --output_dir "$dir/no"
done
for file in train.json train.idx train.bin vocab.txt; do
    rm -rf "$dir/damaged"
    cp -r "$dir/store" "$dir/damaged"
    rm "$dir/damaged/$file"
    mkfifo "$dir/damaged/$file"
    refused "${run[@]}" --input_dir "$dir/damaged" --config_file "$dir/config.json" --output_dir "$dir/no"
done
if "$kiln" doctor --dry-run | grep '^hdf5 .*not built in' >/dev/null; then
    echo "HDF5 is left out: not built in"
else
    mkdir "$dir/shards"
    mkfifo "$dir/shards/training_0.hdf5"
    refused "$kiln" inspect "$dir/shards/training_0.hdf5"
    refused "${run[@]}" --input_dir "$dir/shards" --config_file "$dir/config.json" --output_dir "$dir/no" \
        --vocab_file "$dir/vocab.txt"
fi

# The lock: neither a pipe nor what a link leads to.
mkdir "$dir/locked"
mkfifo "$dir/locked/.lock"
expect 74 'is not a regular file' "${patient[@]}" "${run[@]}" --input_dir "$dir/store" --config_file "$dir/config.json" \
    --output_dir "$dir/locked"
rm "$dir/locked/.lock"
echo precious >"$dir/precious"
ln -s "$dir/precious" "$dir/locked/.lock"
expect 74 '.lock' pretrain --output_dir "$dir/locked"
[ "$(cat "$dir/precious")" = precious ] || fail "a lock was written through a link: $(cat "$dir/precious")"

# Writing into a pipe that nobody reads is refused; with a reader, it gets everything.
vocab=("$kiln" vocab --input "$dir/corpus.txt" --vocab_size 120 --do_lower_case --vocab_file)
expect 74 'no process reads it' "${patient[@]}" "${vocab[@]}" "$dir/pipe"
expect 74 'no process reads it' "${patient[@]}" "$kiln" report "$dir/run" --output "$dir/pipe"
# read_pipe: what comes out of the pipe goes to $dir/got; the pipe has its reader when this returns.
read_pipe()
{
    exec 7<>"$dir/pipe"
    cat <"$dir/pipe" >"$dir/got" 7>&- &
    reader=$!
    await $reader test "/proc/$reader/fd/0" -ef "$dir/pipe"
}
# written command...: writes to the pipe, whose reader then comes to its end
written()
{
    read_pipe
    "${patient[@]}" "$@" >/dev/null 2>"$dir/log" 7>&- || fail "$*: $(cat "$dir/log")"
    exec 7>&-
    wait $reader
    [ -p "$dir/pipe" ] || fail "the pipe was replaced by: $*"
}
written "${vocab[@]}" "$dir/pipe"
cmp "$dir/got" "$dir/vocab.txt" || fail "vocab into a pipe"
written "$kiln" report "$dir/run" --output "$dir/pipe"
grep -q '</html>' "$dir/got" || fail "report into a pipe"
written "${run[@]}" --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/piped" \
    --json-summary "$dir/pipe"
grep -q '^DLLL ' "$dir/got" || fail "--json-summary into a pipe: $(head -c 300 "$dir/got")"
written "${run[@]}" --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/piped2" \
    --migration_log "$dir/pipe"
[ "$(grep -c 'migration log' "$dir/got")" = 1 ] || fail "--migration_log into a pipe: $(head -c 300 "$dir/got")"
"${vocab[@]}" /dev/stdout 2>/dev/null | cmp - "$dir/vocab.txt" || fail "vocab to /dev/stdout"

# A device stays one.  Only where this test may make its own: /dev/null itself is not put at risk.
if mknod "$dir/null" c 1 3 2>/dev/null && : 2>/dev/null >"$dir/null"; then
    "${vocab[@]}" "$dir/null" 2>/dev/null || fail "vocab into a device"
    "$kiln" report "$dir/run" --output "$dir/null" 2>/dev/null || fail "report into a device"
    pretrain --output_dir "$dir/null_run" --json-summary "$dir/null" --migration_log "$dir/null" >/dev/null 2>&1 ||
        fail "logs into a device"
    [ -c "$dir/null" ] || fail "a device was replaced"
else
    echo "devices are left out: mknod is not permitted here"
fi

# Links stay, and what they lead to is replaced.
mkdir "$dir/real"
ln -s real/vocab.txt "$dir/link.txt"
"${vocab[@]}" "$dir/link.txt" 2>/dev/null || fail "vocab through a link to nothing"
"${vocab[@]}" "$dir/link.txt" 2>/dev/null || fail "vocab through a link"
[ -L "$dir/link.txt" ] && cmp "$dir/real/vocab.txt" "$dir/vocab.txt" || fail "the link was replaced"
ln -s real/model "$dir/link"
mkdir "$dir/real/model"
"$kiln" export --model "$model" --output_dir "$dir/link" >/dev/null 2>&1 || fail "export through a link"
[ -L "$dir/link" ] && [ -e "$dir/real/model/config.json" ] || fail "the link was replaced"
[ -z "$(find "$dir" -name '*.kiln-*')" ] || fail "left behind: $(find "$dir" -name '*.kiln-*')"
