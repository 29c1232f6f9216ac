#!/usr/bin/env bash
# Classification as a user meets it: a pre-trained model learns to tell texts apart, from CSV, TSV and JSON lines, one label,
# several or numbers; it goes on after kill -9 to the bit, is fine-tuned further with the labels it has, and says what is
# wrong when something is.
. "$(dirname "$0")/begin.sh"
make_store

# Texts in which one word says what they are; the second table has the same as pairs whose label is whether both have it.
awk -v dir="$dir" 'BEGIN {
    n_kinds = split("city river house", kinds, " ")
    n = split("king stone people light water day night men", w, " ")
    print "id,sentence,label" >dir "/one.csv"; print "sentence1\tsentence2\tlabel" >dir "/pairs.tsv"
    s = 7
    for (p = 0; p < 240; p++) {
        for (t = 1; t <= 2; t++) {
            s = (s * 16807) % 2147483647; kind[t] = 1 + s % n_kinds
            s = (s * 16807) % 2147483647; at = 1 + s % 6
            text[t] = ""
            for (i = 1; i <= 6; i++) {
                s = (s * 16807) % 2147483647
                text[t] = text[t] (i > 1 ? " " : "") (i == at ? kinds[kind[t]] : w[1 + s % n])
            }
        }
        print "row" p ",\"" text[1] ", ok\"," kinds[kind[1]] >dir "/one.csv"
        print text[1] "\t" text[2] "\t" (kind[1] == 1) + 0 >dir "/pairs.tsv"
        printf "{\"text\": \"%s %s\", \"labels\": [\"%s\"%s]}\n", text[1], text[2], kinds[kind[1]],
            kind[1] == kind[2] ? "" : ", \"" kinds[kind[2]] "\"" >dir "/many.jsonl"
        printf "{\"text\": \"%s\", \"label\": %.1f}\n", text[1], kind[1] - 1.5 >dir "/numbers.json"
    }
}'

make_model

classify_command()
{
    local out=$1 table=$2
    shift 2
    command=("$kiln" classify --init_checkpoint "$model" --output_dir "$dir/$out" --train_file "$dir/$table"
        --max_seq_length 32 --train_batch_size 16 --gradient_accumulation_steps 2 --learning_rate 2e-3 --num_train_epochs 8
        --log_freq 50 --disable-progress-bar --do_train "$@")
}

classify_command whole one.csv --validation_file "$dir/one.csv" --do_eval
learns accuracy 0.95
grep -q "3 labels: city, house, river" "$dir/log" || fail "other labels: $(cat "$dir/log")"
sed -n '$p' "$dir/log" | grep "matthews_correlation" >/dev/null || fail "no metrics: $(tail -1 "$dir/log")"
[ "$(wc -l <"$dir/whole/predictions.jsonl")" -eq 240 ] || fail "not every text has a prediction"
grep -Eq '^\{"id":"row0","label":"[a-z]+","scores":\{"city":[0-9.e-]+,"house":[0-9.e-]+,"river":[0-9.e-]+\}\}$' \
    "$dir/whole/predictions.jsonl" || fail "$(head -1 "$dir/whole/predictions.jsonl")"
grep -q '"1": "house"' "$dir/whole/model/config.json" || fail "no id2label"
grep -q '"river": 2' "$dir/whole/model/config.json" || fail "no label2id"
grep -q '"problem_type": "single_label_classification"' "$dir/whole/model/config.json" || fail "no problem_type"
grep -q BertForSequenceClassification "$dir/whole/model/config.json" || fail "another class"
grep -q '"event": *"score"' "$dir/whole/log.jsonl" || fail "no score in the log"
for part in '<h2>Confusion matrix</h2>' '<tr><td>river</td><td class="n">' '<tr><td>macro average</td>' \
    '<tr><th>accuracy</th>' 'kiln </span><span>classify' 'training data</th><td>240 texts'; do
    grep -q "$part" "$dir/whole/report.html" || fail "the page has no $part"
done
sed '2,9s/,[a-z]*$/,house/' "$dir/one.csv" >"$dir/wrong.csv"
"$kiln" classify --init_checkpoint "$dir/whole/model" --output_dir "$dir/wrong" --max_seq_length 32 --do_eval --validation_file "$dir/wrong.csv" \
    2>"$dir/err" || fail "$(cat "$dir/err")"
grep -q '<h2>Texts with a wrong label</h2>' "$dir/wrong/report.html" || fail "the page does not list texts with a wrong label"

classify_command pairs pairs.tsv --predict_file "$dir/pairs.tsv" --do_eval
learns f1 0.9
classify_command many many.jsonl --predict_file "$dir/many.jsonl" --do_eval
learns f1_micro 0.9
grep -q '"label":\["[a-z]*","[a-z]*"\]' "$dir/many/predictions.jsonl" || fail "never two labels"
classify_command numbers numbers.json --predict_file "$dir/numbers.json" --do_eval --autocast
learns pearson 0.9
grep -q '<tr><th>pearson</th><td>[01]' "$dir/numbers/report.html" || fail "the page has no correlation"
grep -q '"problem_type": "regression"' "$dir/numbers/model/config.json" || fail "no regression"

# what is finished is not replaced without a word
sum=$(cksum <"$dir/whole/model/model.safetensors")
classify_command whole one.csv --max_steps 1
expect 64 "whole already has a fine-tuned model; add --overwrite_output_dir" "${command[@]}"
classify_command whole one.csv --max_steps 1 --dry_run
expect 64 "already has a fine-tuned model" "${command[@]}"
classify_command whole one.csv --max_steps 1 --skip_checkpoint --predict_file "$dir/one.csv" --do_predict
expect 64 "already has predictions" "${command[@]}"
[ "$sum" = "$(cksum <"$dir/whole/model/model.safetensors")" ] || fail "a refused run changed the model"
cp -r "$dir/whole" "$dir/replaced"
classify_command replaced one.csv --max_steps 2 --num_steps_per_checkpoint 1 --overwrite_output_dir
expect 0 "saved" "${command[@]}"
[ "$sum" != "$(cksum <"$dir/replaced/model/model.safetensors")" ] && [ ! -e "$dir/replaced/predictions.jsonl" ] ||
    fail "the old run is still there"
expect 0 "saved" "${command[@]}" # its checkpoints go too
expect 0 "resumed from" "${command[@]}" --resume_from_checkpoint # as kiln launch adds it

# killed after a checkpoint, and gone on: the same model, and the same predictions from it
classify_command killed one.csv --num_steps_per_checkpoint 10 --log_freq 1
start_held "${command[@]}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
classify_command killed one.csv --num_steps_per_checkpoint 10 --resume_from_checkpoint --predict_file "$dir/one.csv" --do_eval
learns accuracy 0.95
grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
cmp "$dir/whole/model/model.safetensors" "$dir/killed/model/model.safetensors" || fail "resumed to another model"
cmp "$dir/whole/predictions.jsonl" "$dir/killed/predictions.jsonl" || fail "other predictions"
grep -q '"2": "river"' "$dir"/killed/ckpt_*/config.json || fail "a checkpoint without its labels"

# prediction alone, of texts without labels, is that of the run that trained; a model's labels stay when it learns more
cut -d, -f1,2,3 "$dir/one.csv" | sed 's/,[a-z]*$//' >"$dir/unlabelled.csv"
expect 0 "predictions.jsonl" "$kiln" classify --init_checkpoint "$dir/whole/model" --output_dir "$dir/again" --do_predict \
    --predict_file "$dir/unlabelled.csv" --max_seq_length 32
same_numbers "$dir/whole/predictions.jsonl" "$dir/again/predictions.jsonl" || fail "the saved model predicts something else"
grep -E '^id|,(river|house)$' "$dir/one.csv" >"$dir/two.csv"
model=$dir/whole/model
classify_command further two.csv --max_steps 2 --predict_file "$dir/one.csv" --do_eval
expect 0 "accuracy" "${command[@]}"
! grep -q "a new classifier" "$dir/err" || fail "the labels of the model were lost"
expect 0 BertForSequenceClassification "$kiln" export --model "$dir/whole/model" --output_dir "$dir/exported"
cmp "$dir/whole/model/model.safetensors" "$dir/exported/model.safetensors" || fail "exported as something else"
cmp "$dir/whole/model/config.json" "$dir/exported/config.json" || fail "exported with another configuration"

# --dry_run touches nothing, and what is wrong is said
classify_command dry one.csv --dry_run
expect 0 "memory" "${command[@]}"
[ ! -e "$dir/dry" ] || fail "--dry_run wrote something"
sed 's/,city$/,town/' "$dir/one.csv" >"$dir/other.csv"
classify_command none other.csv
expect 65 "the model has no label town; the model's labels are city, house, river; the file's are house, river, town" \
    "${command[@]}"
model=$dir/pre/ckpt_5
expect 65 "classifier" "$kiln" classify --init_checkpoint "$model" --output_dir "$dir/none" --do_predict \
    --predict_file "$dir/one.csv" --max_seq_length 32
expect 64 "nothing to do" "$kiln" classify --init_checkpoint "$model" --output_dir "$dir/none"
printf '{"text": "a", "label": 0}\n{"text": null, "label": 1}\n' >"$dir/null.jsonl"
classify_command none null.jsonl
expect 65 'null.jsonl line 2: "text" is missing or null' "${command[@]}"
classify_command none unlabelled.csv
expect 65 "unlabelled.csv has no column for labels" "${command[@]}"
sed '5s/,[a-z]*$/,/' "$dir/one.csv" >"$dir/empty.csv"
classify_command none empty.csv
expect 65 "empty.csv line 5: there is no label" "${command[@]}"
printf 'sentence,label\ncaf\351,a\nthe sea,b\n' >"$dir/latin.csv"
classify_command latin latin.csv --max_steps 1 --skip_checkpoint
expect 65 "latin.csv line 2 is not UTF-8: byte 4 of the line is 0xe9; give its --encoding" "${command[@]}"
expect 0 "latin.csv: 2 texts" "${command[@]}" --encoding cp1252 --dry_run
expect 64 "which this machine does not know" "${command[@]}" --encoding latin-99 --dry_run
for end in '\r' '\n' '\r\n'; do # of old Macs, too
    printf "sentence,label${end}the man,a${end}\"the sea\",b${end}" >"$dir/ends.csv"
    classify_command none ends.csv --dry_run
    expect 0 "ends.csv: 2 texts" "${command[@]}"
done
printf 'the man went;no\nthe sea, the king;yes\nthe night;no\n' >"$dir/europe.csv"
classify_command none europe.csv --dry_run
expect 0 'europe.csv: 3 texts: text in column 1, label in column 2; the first is "the man went", label no' "${command[@]}"
classify_command none europe.csv --dry_run --label_column 1 --text_column 2
expect 0 'text in column 2, label in column 1' "${command[@]}"
classify_command none one.csv --text_column_name body
expect 65 "has no column body; it has id, sentence, label" "${command[@]}"
classify_command none numbers.json --problem_type multi_label_classification --text_column_name text --label_separator ab
expect 64 "--label_separator" "${command[@]}"
classify_command none one.csv --problem_type many
expect 64 "must be auto, single_label_classification" "${command[@]}"
classify_command none one.csv --max_seq_length 5
expect 0 "and are cut" "${command[@]}" --dry_run
echo "test_classify: learnt, resumed and refused as it should"
