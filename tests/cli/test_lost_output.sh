#!/usr/bin/env bash
# What a command prints is written, or the command fails: standard output on a full disk or closed is exit code 74 with a
# message for every command that prints, and so is standard input that cannot be read.  A closed descriptor never becomes
# a file that is opened later.
. "$(dirname "$0")/begin.sh"
make_store

pretrain()
{
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 8 --learning_rate 1e-3 --max_steps 2 --eval_steps 0 --log_freq 1 "$@"
}

# A run without descriptors leaves what every run leaves.
pretrain --output_dir "$dir/open" >/dev/null 2>&1
pretrain --output_dir "$dir/none" <&- >&- 2>&- || fail "exit code $? of a run without descriptors"
pretrain --output_dir "$dir/closed" >&- 2>&- || fail "exit code $? of a run without output"
wc -l <"$dir/open/log.jsonl" >"$dir/n"
[ "$(wc -l <"$dir/closed/log.jsonl")" = "$(cat "$dir/n")" ] || fail "lines in log.jsonl that are no events"
grep -vq '^{.*}$' "$dir/closed/log.jsonl" && fail "messages in log.jsonl: $(grep -v '^{.*}$' "$dir/closed/log.jsonl")"

model=$dir/open/ckpt_2
cat >"$dir/questions.json" <<'JSON'
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the old king saw the river",
 "qas": [{"id": "q", "question": "who", "answers": [{"text": "king", "answer_start": 8}]}]}]}]}
JSON
"$kiln" squad --init_checkpoint "$model" --output_dir "$dir/qa" --train_file "$dir/questions.json" --max_seq_length 48 \
    --doc_stride 16 --max_query_length 16 --train_batch_size 1 --num_train_epochs 1 --do_train 2>"$dir/log" ||
    fail "squad: $(cat "$dir/log")"
echo '{"q": "king"}' >"$dir/predictions.json"

# lost WHERE command...: its standard output is WHERE, and it says that this was lost
lost()
{
    local where=$1
    shift
    local to='>/dev/full'
    [ "$where" = full ] || to='>&-'
    expect 74 'writing to standard output failed' bash -c "\"\$@\" $to" _ "$@"
}

places=closed
[ -c /dev/full ] && places="closed full"
for where in $places; do
    lost $where "$kiln" --help
    lost $where "$kiln" help
    lost $where "$kiln" --version
    lost $where "$kiln" fill --help
    lost $where "$kiln" doctor --dry-run
    lost $where "$kiln" inspect "$model"
    lost $where "$kiln" score "$dir/questions.json" "$dir/predictions.json"
    lost $where "$kiln" fill --model "$model" 'the [MASK]'
    lost $where "$kiln" embed --model "$model" 'the king'
    lost $where "$kiln" ask --model "$dir/qa/model" --context "$dir/corpus.txt" 'who'
    lost $where "$kiln" export --model "$model" --output_dir "$dir/exported"
    echo 'the [MASK]' >"$dir/lines"
    lost $where "$kiln" fill --model "$model" <"$dir/lines"
    lost $where "$kiln" embed --model "$model" <"$dir/lines"
    lost $where "$kiln" ask --model "$dir/qa/model" --context "$dir/corpus.txt" <"$dir/lines"
    lost $where "$kiln" tokenize --vocab_file "$dir/vocab.txt" <"$dir/lines"
done

# An error of the command's own keeps its code.
expect 65 'nothing.json' bash -c '"$@" >&-' _ "$kiln" score "$dir/nothing.json" "$dir/predictions.json"
# A command that loses its output ends, and does not read on.
[ ! -c /dev/full ] || expect 74 'standard output' "${patient[@]}" bash -c 'yes "the [MASK]" | "$@" >/dev/full' _ \
    "$kiln" fill --model "$model"

# Standard input that cannot be read is not an empty one.
for input in '<&-' '</'; do
    for command in tokenize fill embed ask; do
        case $command in
            tokenize) flags=(--vocab_file "$dir/vocab.txt") ;;
            ask) flags=(--model "$dir/qa/model" --context "$dir/corpus.txt") ;;
            *) flags=(--model "$model") ;;
        esac
        expect 74 'reading standard input failed' bash -c "\"\$@\" $input" _ "$kiln" $command "${flags[@]}"
    done
    expect 74 'reading standard input failed' bash -c "\"\$@\" $input" _ "$kiln" ask --model "$dir/qa/model" who
done
