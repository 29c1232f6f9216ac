#!/usr/bin/env bash
# A file that another process cuts while it is read is an error with its name, exit code 74, and never a signal, nor zeros
# taken for text; what the end leaves behind goes with the next run.
. "$(dirname "$0")/begin.sh"
export OMP_NUM_THREADS=2
make_store
cd "$dir"

# is_reading PID FILE: whether the process has the file open
is_reading()
{
    ls -l /proc/"$1"/fd 2>/dev/null | grep "/$2\$" >/dev/null
}

# cut_while_reading FILE SIZE command...: stops the command once it has opened the file, cuts it, and lets it go on;
# $status is how it ended, log what it said.
cut_while_reading()
{
    local file=$1 size=$2
    shift 2
    "$@" >/dev/null 2>log &
    pid=$!
    await $pid is_reading $pid "$file"
    kill -STOP $pid
    truncate -s "$size" "$file"
    kill -CONT $pid
    wait $pid && status=0 || status=$?
    [ $status -eq 74 ] || fail "exit code $status: $* ($(cat log))"
    grep -q "^kiln: error: .*$file was cut" log || fail "no message: $* ($(cat log))"
}

line='the old king saw the river and the city of stone'
for size in 5000 -1; do
    for command in prepare vocab; do
        yes "$line" | head -c 60000000 >text || true
        flags=(--do_lower_case --input text)
        [ $command = vocab ] && flags+=(--vocab_file v.txt) || flags+=(--vocab_file vocab.txt --output_dir out)
        cut_while_reading text $size "$kiln" $command "${flags[@]}"
        [ ! -e v.txt ] && [ ! -e out/train.bin ] || fail "$command wrote something"
    done
done
echo "$line" >text
"$kiln" prepare --do_lower_case --input text --vocab_file vocab.txt --output_dir out 2>log || fail "$(cat log)"
[ -z "$(find . -name '*.kiln-*')" ] || fail "left behind: $(find . -name '*.kiln-*')"

# A token store, in the thread that makes batches.
"$kiln" pretrain --input_dir store --config_file config.json --output_dir run --max_seq_length 32 --eval_steps 0 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 1000000 --log_freq 1000000 --num_steps_per_checkpoint 1000000 \
    --learning_rate 1e-3 >/dev/null 2>log &
pid=$!
await $pid test -s run/log.jsonl
truncate -s 0 store/train.bin
wait $pid && status=0 || status=$?
[ $status -eq 74 ] || fail "exit code $status of training ($(cat log))"
grep -q 'store/train.bin was cut' log || fail "no message of training: $(cat log)"
