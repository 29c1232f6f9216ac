#!/usr/bin/env bash
# Vectors of texts as a user trains them: from pairs without scores by in-batch negatives, and from pairs with scores by CoSENT;
# the same loss and the same model whatever micro-batches and ranks the batch is cut into, after kill -9 too; kiln embed reads the
# model with its pooling.
. "$(dirname "$0")/begin.sh"
make_store
make_model

# Pairs say the same with other words around it; scores are the part of words that two sentences share.
awk -v dir="$dir" 'BEGIN {
    n = split("king stone people light water day night men city river house great", w, " ")
    s = 7
    print "anchor,positive" >dir "/pairs.csv"
    for (i = 0; i < 240; i++) {
        s = (s * 16807) % 2147483647; a = 1 + s % n
        s = (s * 16807) % 2147483647; b = 1 + s % n
        s = (s * 16807) % 2147483647; c = 1 + s % n
        print "the " w[a] " and the " w[b] "," w[b] " of the " w[a] >dir "/pairs.csv"
        printf "{\"sentence1\": \"the %s and the %s\", \"sentence2\": \"the %s of %s\", \"score\": %.1f}\n", w[a], w[b], i % 2 ? w[a] : w[c],
            i % 3 ? w[b] : w[c], ((i % 2 || w[a] == w[c]) + (i % 3 > 0 || w[b] == w[c])) / 2 >dir "/scored.jsonl"
    }
}'

embed_command()
{
    local out=$1 file=$2
    shift 2
    command=("$kiln" embed-train --init_checkpoint "$model" --output_dir "$dir/$out" --train_file "$dir/$file" --text_column_name
        "${texts[0]}" --text_pair_column_name "${texts[1]}" --max_seq_length 16 --train_batch_size 24 --learning_rate 2e-3 --num_train_epochs 4
        --log_freq 1 --disable-progress-bar --do_train "$@")
}
# losses NAME: of the steps of a run
losses() { sed -nE 's/.*"event":"step".*"step_loss":([0-9.e-]+).*/\1/p' "$dir/$1/log.jsonl"; }
# near A B: two runs have the same losses, within the rounding of sums
near()
{
    paste <(losses "$1") <(losses "$2") | awk -v n="$(losses "$1" | wc -l)" '{ d = $1 - $2; if (NF != 2 || d > 1e-4 * (1 + $1) || -d > 1e-4 * (1 + $1)) bad = 1 }
        END { exit !(NR == n && NR > 5 && !bad) }' || fail "the losses of $1 and $2 differ: $(paste <(losses "$1") <(losses "$2"))"
}

texts=(anchor positive)
embed_command whole pairs.csv
expect 0 "loss: in-batch negatives, cosines times 20" "${command[@]}"
awk -v first="$(losses whole | head -1)" -v last="$(losses whole | tail -1)" 'BEGIN { exit !(last < 0.7 * first) }' ||
    fail "nothing was learnt: $(losses whole)"
for cut in 2 6; do
    embed_command cut$cut pairs.csv --gradient_accumulation_steps $cut
    expect 0 "" "${command[@]}"
    near whole cut$cut
done
# killed after a checkpoint, and resumed: the same model
embed_command killed pairs.csv --num_steps_per_checkpoint 10
start_held "${command[@]}"
stop_held KILL "$dir/killed"
embed_command killed pairs.csv --num_steps_per_checkpoint 10 --resume_from_checkpoint
expect 0 "resumed from" "${command[@]}"
cmp "$dir/whole/model/model.safetensors" "$dir/killed/model/model.safetensors" || fail "resumed to another model"

# it is a model of sentence-transformers
grep -q '"BertModel"' "$dir/whole/model/config.json" || fail "another class"
for file in modules.json 1_Pooling/config.json sentence_bert_config.json config_sentence_transformers.json; do
    [ -s "$dir/whole/model/$file" ] || fail "no $file"
done
expect 0 "pooling mean, at most 16 tokens" "$kiln" embed --model "$dir/whole/model" "the king" "of the king"
embed_command first pairs.csv --pooling cls --num_train_epochs 1
expect 0 "" "${command[@]}"
expect 0 "pooling cls, at most 16 tokens" "$kiln" embed --model "$dir/first/model" "the king"

# scores: cosines come into their order, and a second run compares alike
texts=(sentence1 sentence2)
embed_command scored scored.jsonl --predict_file "$dir/scored.jsonl" --do_eval
expect 0 "loss: CoSENT, cosines times 20" "${command[@]}"
cp "$dir/err" "$dir/log"
awk '{ for (i = 1; i < NF; i++) if ($i == "spearmanr" && $(i + 1) + 0 > 0.8) found = 1 } END { exit !found }' "$dir/log" || fail "$(tail -3 "$dir/log")"
embed_command scored_cut scored.jsonl --gradient_accumulation_steps 4
expect 0 "" "${command[@]}"
near scored scored_cut
expect 0 "spearmanr" "$kiln" embed-train --init_checkpoint "$dir/scored/model" --output_dir "$dir/again" --do_eval --predict_file \
    "$dir/scored.jsonl" --max_seq_length 16
cmp "$dir/scored/predictions.jsonl" "$dir/again/predictions.jsonl" || fail "the saved model compares otherwise"

# what is wrong is said
texts=(anchor positive)
embed_command none pairs.csv --loss cosent
expect 65 "has no column of scores, which --loss cosent compares" "${command[@]}"
embed_command none pairs.csv --eval_file "$dir/pairs.csv"
expect 64 "eval_file has no loss of its own here" "${command[@]}"
sed 's/"score": [0-9.]*/"score": "much"/' "$dir/scored.jsonl" >"$dir/much.jsonl"
texts=(sentence1 sentence2)
embed_command none much.jsonl
expect 65 "much.jsonl line 1: the score of a pair must be a number, but is much" "${command[@]}"
printf 'text,label\na,1\n' >"$dir/one.csv"
expect 65 "has no column for the second texts of pairs" "$kiln" embed-train --init_checkpoint "$model" --output_dir "$dir/none" \
    --do_train --train_file "$dir/one.csv" --max_seq_length 16
echo "test_embed_train: learnt, cut, resumed and refused as it should"

# two ranks, with half of the pairs each: the same losses
. "$(dirname "$0")/ranks.sh"
need_mpirun
texts=(anchor positive)
embed_command ranks pairs.csv --train_batch_size 12 --gradient_accumulation_steps 2
expect 0 "" "${mpi[@]}" -n 2 "${command[@]}"
near whole ranks
