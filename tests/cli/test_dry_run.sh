#!/usr/bin/env bash
# Every command: its help, and --dry-run, spelt either way, which writes nothing at all.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
work=$(mktemp -d)
trap 'rm -rf "$dir" "$work"' EXIT
. "$(dirname "$0")/corpus.sh"
. "$(dirname "$0")/expect.sh"
export OMP_NUM_THREADS=1 HOME=$work XDG_CACHE_HOME=$work

make_store
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 2 --eval_steps 0 --disable_progress_bar 2>/dev/null
printf 'anchor,positive\nthe king,of the king\nthe city,a city\n' >"$dir/pairs.csv"
cat >"$dir/squad.json" <<JSON
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the king went to the city . the river came in .",
 "qas": [{"id": "a", "question": "the king went ?", "answers": [{"text": "city", "answer_start": 21}]}]}]}]}
JSON
echo '{"a": "city"}' >"$dir/predictions.json"
mkdir -p "$dir/glue/SST-2"
printf 'sentence\tlabel\nthe king went\t1\nthe river came\t0\n' | tee "$dir/glue/SST-2/train.tsv" >"$dir/glue/SST-2/dev.tsv"
printf 'king B-PER\ncity O\n' >"$dir/names.conll"
printf 'text,label\nthe king went,1\nthe river came,0\n' >"$dir/texts.csv"
printf 'h1 slots=2\nh2 slots=2\n' >"$dir/hosts"
cd "$work"

# silent COMMAND...: ends with 0, and neither the inputs nor the working directory change
state() { find "$dir" "$work" ! -path "$dir/out" ! -path "$dir/err" ! -path "$dir" -printf '%p %s %T@\n' | sort; }
silent()
{
    local before
    before=$(state)
    expect 0 "" "$kiln" "$@"
    [ "$before" = "$(state)" ] || fail "$* changed something: $(diff <(echo "$before") <(state))"
}
model=$dir/run/ckpt_2
declare -A words=(
    [fetch]="squad google wikipedia oscar --output_dir new"
    [vocab]="--input $dir/corpus.txt --vocab_file new/vocab.txt"
    [train]="$dir/corpus.txt --output_dir new"
    [tokenize]="--vocab_file $dir/vocab.txt"
    [prepare]="--input $dir/corpus.txt --vocab_file $dir/vocab.txt --output_dir new"
    [pack]="--input_dir none --output_dir new"
    [pretrain]="--input_dir $dir/store --config_file $dir/config.json --output_dir new --max_seq_length 32 --json-summary new.json
        --migration_log new.log --enable-tensorboard-logging --profile --tensorboard_logdir traces"
    [report]="$dir/run"
    [fill]="--model $model"
    [squad]="--init_checkpoint $model --output_dir new --max_seq_length 32 --max_query_length 8 --doc_stride 8 --do_train
        --train_file $dir/squad.json --do_predict --predict_file $dir/squad.json --json-summary new.json"
    [classify]="--init_checkpoint $model --output_dir new --max_seq_length 32 --do_train --train_file $dir/texts.csv --do_predict
        --predict_file $dir/texts.csv --json-summary new.json"
    [tag]="--init_checkpoint $model --output_dir new --max_seq_length 32 --do_train --train_file $dir/names.conll --do_predict
        --predict_file $dir/names.conll --json-summary new.json"
    [ask]="--model $model"
    [generate]="--model $model"
    [eval]="--model $model --input none"
    [ngram]="--train $dir/corpus.txt --vocab_file $dir/vocab.txt --input none"
    [score]="$dir/squad.json $dir/predictions.json"
    [embed-train]="--init_checkpoint $model --output_dir new --max_seq_length 32 --do_train --train_file $dir/pairs.csv --text_column anchor
        --text_pair_column_name positive --do_predict --predict_file $dir/pairs.csv"
    [embed]="--model $model"
    [search]="--model $model --index none"
    [rerank]="" # needs a classifier: tests/cli/test_label_texts.sh
    [serve]="--model $model"
    [blimp]="--model $model --input none"
    [glue]="--model $model --data_dir $dir/glue --tasks sst-2 --output_dir new"
    [pretrain-gpt]="--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --max-position-embeddings 8
        --micro-batch-size 2 --train-iters 3 --lr 1e-3 --data-path none --vocab-file none.json --output_dir new"
    [finetune-gpt]="" # tests/cli/test_finetune_gpt.sh has a decoder
    [export]="--model $model --output_dir new"
    [convert]="--model $model --output_dir new --format pt --logits new.safetensors"
    [inspect]="$model"
    [doctor]=""
    [bench]="--model tiny --migration_log new.log"
    [launch]="--num_ranks 2 kiln pretrain --input_dir none --config_file none.json --output_dir new"
    [netcheck]="--hostfile $dir/hosts"
    [plan]="--config $dir/config.json --device cpu --max_seq_length 32"
    [launch]="--num_ranks 2 -- pretrain --input_dir none --config_file none --output_dir new"
    [netcheck]="--hostfile $dir/hosts"
)
printf "%s slots=1\n" localhost 127.0.0.1 >"$dir/hosts"
n=0
for command in $("$kiln" help | awk '/^  [a-z]/ { print $1 }'); do
    [ -n "${words[$command]+known}" ] || fail "kiln $command is not tried here"
    # what a dry run of these commands reads must have their head
    case $command in ask | generate | eval | finetune-gpt | rerank) continue ;; esac
    # shellcheck disable=SC2086 # words
    silent $command ${words[$command]} --dry-run </dev/null
    # shellcheck disable=SC2086
    silent $command --dry_run ${words[$command]} </dev/null
    expect 0 "usage: kiln $command [flags]" "$kiln" $command --help
    ! grep -nE ' $|.{101}' "$dir/out" || fail "kiln $command --help is not laid out"
    [ "$(grep -c '^  --' "$dir/out")" -le 40 ] || fail "kiln $command --help has too many flags to be read"
    expect 0 "usage: kiln $command [flags]" "$kiln" help $command all
    ! grep -nE ' $|.{101}' "$dir/out" || fail "kiln help $command all is not laid out"
    n=$((n + 1))
done
[ $n -eq 29 ] || fail "$n commands"
# what is not there yet is listed, and the rest is planned; what is there is checked as ever
expect 0 "missing: --train_file none.json" "$kiln" squad --init_checkpoint "$model" --output_dir new --max_seq_length 32 \
    --do_train \
    --train_file none.json --dry_run
grep -q "M parameters" "$dir/err" || fail "nothing was planned: $(cat "$dir/err")"
expect 64 "micro-batches" "$kiln" squad --init_checkpoint none --output_dir new --do_train --train_file none.json --dry_run \
    --train_batch_size 24 --gradient_accumulation_steps 7
expect 65 "none.json" "$kiln" squad --init_checkpoint "$model" --output_dir new --max_seq_length 32 --do_train \
    --train_file none.json
# batches are in the memory of a run: those of two steps, made ahead, in pre-training, and of one in fine-tuning
large=(--train_batch_size 128000000 --gradient_accumulation_steps 1000000 --dry_run)
expect 0 "the batches alone take" "$kiln" pretrain --input_dir none --output_dir new \
    --config_file "$dir/config.json" --max_seq_length 32 "${large[@]}"
expect 0 "the batches alone take" "$kiln" pretrain-gpt ${words[pretrain-gpt]} --global-batch-size 1000000000 --dry_run
for n_micro in 1 100000; do
    expect 0 "M parameters" "$kiln" squad --init_checkpoint "$model" --output_dir new --max_seq_length 32 --do_train \
        --train_file none.json --train_batch_size $((8 * n_micro)) --gradient_accumulation_steps $n_micro --dry_run
    sed -nE 's/.*memory ([0-9]+)[0-9.]* MiB.*/\1/p' "$dir/err" >"$dir/mib_$n_micro"
done
[ "$(cat "$dir/mib_100000")" -gt $(($(cat "$dir/mib_1") + 100)) ] || fail "batches of squad: $(cat "$dir"/mib_*) MiB"
expect 65 "qa_outputs" "$kiln" ask --model "$model" --dry_run
expect 65 "this model answers: fill, embed, blimp" "$kiln" generate --model "$model" --dry_run
expect 65 "this model answers: fill, embed, blimp" "$kiln" generate --model "$model" --prompt a
expect 0 "(fp32|bf16|fp16|int8," "$kiln" ask --help
expect 0 "refused: gradients" "$kiln" squad --help all
expect 0 "--learning_rate X" "$kiln" pretrain --help
! grep -qE -e '--emulate_world|ignored|one rank of many' "$dir/out" || fail "the usual help has unusual flags"
grep -q '^[0-9]* more flags: kiln help pretrain all$' "$dir/out" || fail "nothing names the other flags"
"$kiln" pretrain --help=all | cmp - <("$kiln" help pretrain all) || fail "two helps with all flags"
echo "test_dry_run: $n commands write nothing"
