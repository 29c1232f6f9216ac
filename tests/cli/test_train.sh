#!/usr/bin/env bash
# `kiln train`: one command makes a model of a folder of texts, of each kind; a run that was stopped continues, one that is killed in any
# of its steps ends with the same bytes, a finished one only says its results, and another text, other flags, too little text, another
# run's or a user's directory are refused with nothing lost.
. "$(dirname "$0")/begin.sh"
mkdir "$dir/texts"
make_store # for its corpus.txt
split -n l/3 --additional-suffix=.txt "$dir/corpus.txt" "$dir/texts/part_"

# killed KIND: the same choices, killed at calls on the output in each step, until a start ends; the bytes are those of $dir/KIND
killed()
{
    local n steps='' status file
    mkdir "$dir/cut"
    tr -d '\n' <"$dir/$1/train.json" | sed 's/"done": *{[^}]*}/"done": {}/' >"$dir/cut/train.json"
    for n in 7 64 250 30 1000000; do
        status=0
        at_call "kill $n" "$dir/cut/" "$kiln" train "$dir/texts" --kind "$1" --output_dir "$dir/cut" --hours 0.2 >"$dir/log" 2>&1 || status=$?
        [ $status -eq 0 ] || [ $status -eq 137 ] || fail "killed at call $n: $(tail -3 "$dir/log")"
        steps+="$(sed -n 's/^== kiln \([a-z]*\).*/\1/p' "$dir/log" | tail -1) "
        [ $status -ne 0 ] || break
    done
    echo "$1: killed in, and ended in: $steps"
    for file in $(cd "$dir/$1" && find data model ckpt_* -type f ! -name run.json ! -name '.*'); do
        cmp "$dir/$1/$file" "$dir/cut/$file" || fail "$file of $1 differs after kills"
    done
    rm -r "$dir/cut"
}

for kind in gpt bert; do
    expect 0 "held-out text: " "$kiln" train "$dir/texts" --kind $kind --output_dir "$dir/$kind" --hours 0.2
    grep -q 'it ends by steps' "$dir/err" || fail "no fixed number of steps: $(cat "$dir/err")"
    for step in vocab prepare pretrain export; do
        grep -q "^== kiln $step " "$dir/err" || fail "kiln $step is not printed: $(cat "$dir/err")"
    done
    [ "$(grep -cE '^(text|machine|vocabulary|model|training|to expect): ' "$dir/err")" -ge 6 ] || fail "not six lines: $(cat "$dir/err")"
    grep -q '"event":"sample"' "$dir/$kind/log.jsonl" || fail "no samples of $kind"
    grep -q 'Samples while it learns' "$dir/$kind/report.html" || fail "no samples on the page of $kind"
    cp -r "$dir/$kind" "$dir/kept"
    expect 0 "held-out text: " "$kiln" train "$dir/texts" --kind $kind --output_dir "$dir/$kind" --hours 0.2
    ! grep '^== ' "$dir/err" || fail "a finished run begins again"
    diff -r "$dir/kept" "$dir/$kind" || fail "a finished run changes files"
    rm -r "$dir/kept"
    killed $kind
done
expect 0 '' "$kiln" generate --model "$dir/gpt/model" --prompt 'the king' --max_new_tokens 4
expect 0 '' "$kiln" fill --model "$dir/bert/model" 'the old [MASK] .'

# whose stores have their tokenizer beside them
expect 0 "vocabulary: $dir/gpt/data/tokenizer.json" "$kiln" pretrain --input_dir "$dir/gpt/data" --config_file "$dir/gpt/data/config.json" \
    --output_dir "$dir/bare" --max_seq_length 32 --train_batch_size 2 --max_steps 1 --eval_steps 0

# the commands that it prints are those that a user can type
sed -n 's/^== kiln vocab //p' "$dir/err" >"$dir/line"
expect 0 '== kiln pretrain' "$kiln" train "$dir/texts" --output_dir "$dir/dry" --dry-run
[ ! -e "$dir/dry" ] || fail "a dry run writes"

# a run that is stopped in training continues: its log, of 8 KiB, is held after some of its steps
room=5000 start_held "$kiln" train "$dir/texts" --output_dir "$dir/stopped" --hours 0.01 --prompts 'the king'
await "$pid" test -e "$dir/stopped/train.json"
expect 74 'is in use by another run' "$kiln" train "$dir/texts" --output_dir "$dir/stopped" --hours 0.01 --prompts 'the king'
stop_held TERM "$dir/stopped" grep -qs loss "$dir/stopped/log.jsonl"
[ "$status" -eq 75 ] || fail "exit code $status after SIGTERM"
expect 0 "held-out text: " "$kiln" train "$dir/texts" --output_dir "$dir/stopped" --hours 0.01 --prompts 'the king'
! grep '^== kiln vocab' "$dir/err" || fail "the vocabulary is made again"

expect 64 'has a model of other flags' "$kiln" train "$dir/texts" --output_dir "$dir/gpt" --hours 3
echo 'one more line.' >>"$dir/texts/part_aa.txt"
expect 64 'has a model of another text' "$kiln" train "$dir/texts" --output_dir "$dir/gpt" --hours 0.2
mkdir "$dir/none" "$dir/few"
expect 65 "has no files" "$kiln" train "$dir/none" --output_dir "$dir/new"
printf 'The king.\nThe queen.\nThe end.\n' >"$dir/few/a.txt"
expect 65 'needs at least some 15 pages' "$kiln" train "$dir/few" --output_dir "$dir/new"
[ ! -e "$dir/new" ] || fail "something was made of nothing"
expect 64 'is inside the input' "$kiln" train "$dir/texts" --output_dir "$dir/texts/model"

# a user's directory stays; and where nothing was trained, more text may be given
mkdir "$dir/mine" && echo x >"$dir/mine/notes"
expect 64 'has notes, which kiln train did not make' "$kiln" train "$dir/texts" --output_dir "$dir/mine"
expect 64 'train.json is not of kiln train' "$kiln" train "$dir/texts" --output_dir "$dir/gpt/data"
head -c 30000 "$kiln" >"$dir/few/picture"
for kind in gpt bert; do
    expect 65 'give more text' "$kiln" train "$dir/few" --kind $kind --output_dir "$dir/few_$kind"
done
cp "$dir/corpus.txt" "$dir/few"
expect 0 'it begins anew' "$kiln" train "$dir/few" --output_dir "$dir/few_gpt" --hours 0.002
expect 64 'no text' "$kiln" train --output_dir "$dir/new"
expect 64 'which keeps all bytes' "$kiln" train "$dir/texts" --output_dir "$dir/new" --do_lower_case
