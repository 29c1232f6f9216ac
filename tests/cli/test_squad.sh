#!/usr/bin/env bash
# Question answering as a user meets it: a pre-trained model is fine-tuned on questions with a rule to learn, learns it,
# goes on after kill -9 to the bit, answers with `kiln ask`, and says what is wrong when something is.
. "$(dirname "$0")/begin.sh"
make_store
make_questions

make_model

squad_command()
{
    local out=$1
    shift
    command=("$kiln" squad --init_checkpoint "$model" --output_dir "$dir/$out" --train_file "$dir/questions.json"
        --max_seq_length 48 --doc_stride 16 --max_query_length 16 --train_batch_size 16 --gradient_accumulation_steps 2
        --learning_rate 2e-3 --num_train_epochs 16 --log_freq 50 --disable-progress-bar --do_train "$@")
}

# learns the rule, and its own score is the score of `kiln score`
squad_command whole --do_predict --predict_file "$dir/questions.json" --do_eval
"${command[@]}" 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
grep -q '<h2>Questions</h2>' "$dir/whole/report.html" && grep -q '<tr><th>exact match</th>' "$dir/whole/report.html" ||
    fail "the page has no score"
awk '/^exact_match/ { found = 1; exit !($2 + 0 > 80) } END { if (!found) exit 1 }' "$dir/log" ||
    fail "the rule was not learnt: $(grep exact_match "$dir/log")"
"$kiln" score "$dir/questions.json" "$dir/whole/predictions.json" >"$dir/score"
grep -q "$(sed -n 's/^exact_match \([0-9]*\).*/"exact_match": \1/p' "$dir/log")" "$dir/score" ||
    fail "two scores: $(cat "$dir/score") and $(grep exact_match "$dir/log")"
"$kiln" ask --model "$dir/whole/model" --context "$dir/corpus.txt" "in the" >"$dir/answer" 2>/dev/null
grep -Eq '^0\.[0-9]+  .+  \[bytes [0-9]+ to [0-9]+\]$' "$dir/answer" || fail "no answer: $(cat "$dir/answer")"

# scores that an --eval_script prints among other things are found, and of two the last
mkdir "$dir/bin"
printf '#!/bin/sh\ncat "%s"\n' "$dir/printed" >"$dir/bin/python3" # which runs an --eval_script
chmod +x "$dir/bin/python3"
# scored SAYS LINES...
scored()
{
    printf '%s\n' "${@:2}" >"$dir/printed"
    expect 0 "$1" env PATH="$dir/bin:$PATH" "$kiln" squad --init_checkpoint "$dir/whole/model" --output_dir "$dir/scored" \
        --do_predict \
        --predict_file "$dir/questions.json" --max_seq_length 48 --do_eval --eval_script any.py --overwrite_output_dir
}
two=('{"exact_match": 1, "f1": 2}' 'the {set} of {"a": [1]} {' '{"all": {"exact": 12.5, "f1": 34.75, "total": {"exact": 5, "f1": 6}}} }')
scored "printed 2 objects with scores: the last one counts" "${two[@]}"
grep -q '"F1": *34.75' "$dir/scored/log.jsonl" || fail "the score is lost: $(tail -n 1 "$dir/scored/log.jsonl")"
scored 'printed no "exact_match" and "f1"' '{"exact_match": "1", "f1": 2}' '{"f1": 3}' '{'

expect 64 "whole already has a fine-tuned model; add --overwrite_output_dir" "${command[@]}"
expect 64 "whole already has predictions" "${command[@]}" --skip_checkpoint

# killed after a checkpoint, and gone on: the same model
squad_command killed --num_steps_per_checkpoint 10 --log_freq 1
start_held "${command[@]}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
squad_command killed --num_steps_per_checkpoint 10 --resume_from_checkpoint
"${command[@]}" 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
cmp "$dir/whole/model/model.safetensors" "$dir/killed/model/model.safetensors" || fail "resumed to another model"
for saved in "$dir"/killed/ckpt_* "$dir/killed/model"; do
    grep -q '"do_lower_case": true' "$saved/tokenizer_config.json" || fail "$saved forgot that its model is uncased"
done

# other questions are not what the checkpoint was trained on
{ cat "$dir/questions.json"; echo; } >"$dir/others.json"
squad_command killed --num_steps_per_checkpoint 10 --resume_from_checkpoint --train_file "$dir/others.json"
expect 65 "was trained on other data" "${command[@]}"
expect 0 "was trained on other data" "${command[@]}" --allow_other_data

# answering alone is timed too
expect 0 "profile: wrote" "$kiln" squad --init_checkpoint "$dir/whole/model" --output_dir "$dir/timed" --do_predict \
    --predict_file "$dir/questions.json" --max_seq_length 48 --profile --profile_steps 1:2
grep -q '"logits"' "$dir/timed/profile/trace_1_2.json" || fail "the trace lacks what was timed"
grep -q '"attention"' "$dir/timed/profile/trace_1_2.json" || fail "the trace lacks ops"

# in fp16 the cpu answers the same with other numbers
answers=("$kiln" squad --init_checkpoint "$dir/whole/model" --do_predict --predict_file "$dir/questions.json" --max_seq_length 48)
expect 0 "fp32" "${answers[@]}" --output_dir "$dir/fp32"
expect 0 "rounds matrices and activations to fp16" "${answers[@]}" --output_dir "$dir/fp16" --autocast --fp16
grep -q "M parameters, fp16" "$dir/err" || fail "the precision is not told: $(cat "$dir/err")"
cmp -s "$dir/fp32/nbest_predictions.json" "$dir/fp16/nbest_predictions.json" && fail "nothing was rounded"
n=$(diff "$dir/fp32/predictions.json" "$dir/fp16/predictions.json" | grep -c '^<' || true)
[ "$n" -le 2 ] || fail "$n of 200 answers are others in fp16"

# a checkpoint of pre-training answers with a random head, the same for a seed, and says what is new and what is unused
random=("$kiln" squad --init_checkpoint "$model" --do_predict --predict_file "$dir/questions.json" --max_seq_length 48)
expect 0 "the predictions are random" "${random[@]}" --output_dir "$dir/random"
for line in "new         2  qa_outputs.*: not in the files" \
    "qa_outputs.weight [2, 64]: drawn from the seed, normal with a deviation of 0.02" \
    "qa_outputs.bias [2]: zeros" "ignored     5  cls.predictions.*: BertForQuestionAnswering has none"; do
    grep -qF "$line" "$dir/err" || fail "the table lacks '$line': $(cat "$dir/err")"
done
expect 0 "" "${random[@]}" --output_dir "$dir/random_again"
expect 0 "" "${random[@]}" --output_dir "$dir/random_other" --seed 7
cmp "$dir/random/nbest_predictions.json" "$dir/random_again/nbest_predictions.json" || fail "one seed, two heads"
cmp -s "$dir/random/nbest_predictions.json" "$dir/random_other/nbest_predictions.json" &&
    fail "the head is not drawn from the seed"

# what is wrong is said
expect 64 "nothing to do" "$kiln" squad --init_checkpoint "$model" --output_dir "$dir/none"
expect 64 "--do_predict needs --predict_file" "$kiln" squad --init_checkpoint "$model" --output_dir "$dir/none" --do_predict
expect 64 "positions" "$kiln" squad --init_checkpoint "$model" --output_dir "$dir/none" --do_predict \
    --predict_file "$dir/questions.json"
sed 's/^city$/cities/' "$dir/vocab.txt" >"$dir/other.txt"
expect 65 "is not the vocabulary of" "$kiln" squad --init_checkpoint "$model" --output_dir "$dir/none" --do_train \
    --train_file "$dir/questions.json" --vocab_file "$dir/other.txt" --max_seq_length 48
echo '{"data": [{"paragraphs": [{"context": 3}]}]}' >"$dir/bad.json"
expect 65 "bad.json" "$kiln" squad --init_checkpoint "$model" --output_dir "$dir/none" --do_train \
    --train_file "$dir/bad.json" --max_seq_length 48
expect 65 "qa_outputs" "$kiln" ask --model "$model" --context "$dir/corpus.txt" "in the"
: >"$dir/empty.txt"
expect 65 "no words" "$kiln" ask --model "$dir/whole/model" --context "$dir/empty.txt" "in the"
echo "test_squad: learnt, resumed and refused as it should"
