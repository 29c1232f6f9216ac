#!/usr/bin/env bash
# Labels of words as a user meets them: a pre-trained model learns which words are names, from CoNLL columns and from JSON
# lines; it goes on after kill -9 to the bit, reads long sentences in parts, and says what is wrong when something is.
. "$(dirname "$0")/begin.sh"
make_store

# Sentences in which places have one word or two, in columns and as JSON lines.
awk -v dir="$dir" 'BEGIN {
    n = split("king stone people light water day night men", w, " ")
    s = 7
    for (p = 0; p < 200; p++) {
        words = labels = ""; count = 0
        s = (s * 16807) % 2147483647; at = 1 + s % 6
        for (i = 1; i <= 6; i++) {
            s = (s * 16807) % 2147483647
            if (i != at) { add(w[1 + s % n], "O"); continue }
            add(s % 3 == 0 ? "city" : "great", "B-PLACE")
            if (s % 3 != 0) add(s % 3 == 1 ? "river" : "house", "I-PLACE")
        }
        print "" >dir "/names.conll"
        printf "{\"tokens\": [%s], \"ner_tags\": [%s]}\n", words, labels >dir "/names.json"
    }
}
function add(word, label) {
    print word " x " label >dir "/names.conll"
    words = words (count > 0 ? ", " : "") "\"" word "\""; labels = labels (count++ > 0 ? ", " : "") "\"" label "\""
}'

make_model

tag_command()
{
    local out=$1 file=$2
    shift 2
    command=("$kiln" tag --init_checkpoint "$model" --output_dir "$dir/$out" --train_file "$dir/$file"
        --max_seq_length 32 --train_batch_size 16 --gradient_accumulation_steps 2 --learning_rate 2e-3 --num_train_epochs 4
        --log_freq 50 --disable-progress-bar --do_train "$@")
}
tag_command whole names.conll --validation_file "$dir/names.conll" --do_eval
learns f1 0.95
grep -q "3 labels: B-PLACE, I-PLACE, O" "$dir/log" || fail "other labels: $(cat "$dir/log")"
grep -q '<tr><td>PLACE</td><td class="n">' "$dir/whole/report.html" || fail "the page has no score of the type"
grep -q BertForTokenClassification "$dir/whole/model/config.json" || fail "another class"
grep -q '"2": "O"' "$dir/whole/model/config.json" || fail "no id2label"
diff <(awk '{ print $1 }' "$dir/names.conll") <(awk '{ print $1 }' "$dir/whole/predictions.conll") >/dev/null ||
    fail "not the words of the file"
grep -Eq "^city	B-PLACE	B-PLACE$" "$dir/whole/predictions.conll" || fail "$(head "$dir/whole/predictions.conll")"

expect 64 "whole already has a fine-tuned model; add --overwrite_output_dir" "${command[@]}"
expect 64 "whole already has predictions" "${command[@]}" --skip_checkpoint

# the same sentences as JSON lines make the same model
tag_command json names.json --predict_file "$dir/names.json" --do_eval
learns f1 0.95
cmp "$dir/whole/model/model.safetensors" "$dir/json/model/model.safetensors" || fail "JSON lines train another model"
cmp "$dir/whole/predictions.conll" "$dir/json/predictions.conll" || fail "JSON lines are predicted otherwise"

# killed after a checkpoint, and gone on: the same model
tag_command killed names.conll --num_steps_per_checkpoint 10 --log_freq 1
start_held "${command[@]}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
tag_command killed names.conll --num_steps_per_checkpoint 10 --resume_from_checkpoint
"${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
cmp "$dir/whole/model/model.safetensors" "$dir/killed/model/model.safetensors" || fail "resumed to another model"

# words without labels; one long sentence, read in parts, has a label for every word
awk 'NF { print $1 }' "$dir/names.conll" >"$dir/words.conll"
expect 0 "and are split" "$kiln" tag --init_checkpoint "$dir/whole/model" --output_dir "$dir/again" --do_predict \
    --predict_file "$dir/words.conll" --max_seq_length 32
diff "$dir/words.conll" <(awk 'NF { print $1 }' "$dir/again/predictions.conll") >/dev/null || fail "words are missing"
[ "$(awk 'NF == 2' "$dir/again/predictions.conll" | wc -l)" -eq "$(wc -l <"$dir/words.conll")" ] || fail "labels are missing"
expect 65 "words.conll line 1: there is no label after the word" "$kiln" tag --init_checkpoint "$dir/whole/model" \
    --output_dir "$dir/again" --do_eval \
    --predict_file "$dir/words.conll" --max_seq_length 32

# a word with a line end or a tab stays in its row, and CoNLL-U is read as it is published
printf '{"tokens": ["a\\nb", "c\\td", "\\r"], "tags": ["O", "O", "O"]}\n' >"$dir/breaks.json"
expect 0 "words in tokens, labels in tags; the first is" "$kiln" tag --init_checkpoint "$dir/whole/model" \
    --output_dir "$dir/breaks" \
    --do_predict --predict_file "$dir/breaks.json" --max_seq_length 32
[ "$(grep -c . "$dir/breaks/predictions.conll")" -eq 3 ] && grep -q '^a\\nb	O	' "$dir/breaks/predictions.conll" ||
    fail "rows are broken: $(cat "$dir/breaks/predictions.conll")"
printf '# text = a cité\n1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_\n2\tcité\tcité\tNOUN\t_\t_\t0\troot\t_\t_\n' |
    iconv -f UTF-8 -t LATIN1 >"$dir/u.conllu"
expect 65 "u.conllu line 1 is not UTF-8: byte 15 of the line is 0xe9" "$kiln" tag --init_checkpoint "$model" \
    --output_dir "$dir/u" --do_train --train_file "$dir/u.conllu" --max_seq_length 32
expect 0 "words in column 2 (FORM), labels in column 4 (UPOS); the first is a, label DET" "$kiln" tag --dry_run \
    --encoding latin-1 \
    --init_checkpoint "$model" --output_dir "$dir/u" --do_train --train_file "$dir/u.conllu" --max_seq_length 32
expect 0 "2 labels: det, root" "$kiln" tag --dry_run --encoding latin-1 --label_column deprel \
    --init_checkpoint "$model" --output_dir "$dir/u" --do_train --train_file "$dir/u.conllu" --max_seq_length 32

# numbers in place of names: learnt, exported, and predicted the same again; words without one count nowhere
base=$model
awk 'BEGIN { split("city:1.5 river:-0.5 house:0.25 great:2", l, " "); for (i in l) { split(l[i], p, ":"); of[p[1]] = p[2] } }
    { if (NF) $3 = $1 in of ? of[$1] : NR % 7 ? "0.0" : "_"; print }' "$dir/names.conll" >"$dir/values.conll"
awk 'NF { words = words sep "\"" $1 "\""; labels = labels sep ($3 == "_" ? "null" : $3); sep = ", " }
    !NF { print "{\"tokens\": [" words "], \"labels\": [" labels "]}"; words = labels = sep = "" }' "$dir/values.conll" >"$dir/values.json"
tag_command values values.conll --num_train_epochs 8 --predict_file "$dir/values.conll" --do_eval
learns pearson 0.95
grep -q "a new classifier for regression: 1 labels: LABEL_0" "$dir/log" || fail "not numbers: $(cat "$dir/log")"
grep -q '"problem_type": "regression"' "$dir/values/model/config.json" || fail "no problem_type"
grep -q '"LABEL_0": 0' "$dir/values/model/config.json" || fail "other labels"
grep -Eq "^city	1.5	1\.[3-6]" "$dir/values/predictions.conll" || fail "$(grep city "$dir/values/predictions.conll" | head -3)"
expect 0 "mse 0.0" "$kiln" tag --init_checkpoint "$dir/values/model" --output_dir "$dir/values_again" --do_eval \
    --predict_file "$dir/values.json" --max_seq_length 32
diff <(cut -f 1,3- "$dir/values/predictions.conll" | sed 's/.*\t//') <(sed 's/.*\t//' "$dir/values_again/predictions.conll") >/dev/null ||
    fail "the saved model predicts otherwise"
tag_command values_json values.json --num_train_epochs 8
expect 0 "" "${command[@]}"
cmp "$dir/values/model/model.safetensors" "$dir/values_json/model/model.safetensors" || fail "JSON lines train another model"
sed 's/1\.5$/much/' "$dir/values.conll" >"$dir/much.conll"
tag_command none much.conll --problem_type regression
expect 65 "not one of the numbers of this regression: much" "${command[@]}"
tag_command none values.conll --problem_type multi_label_classification
expect 64 "words have one label or one number each" "${command[@]}"
model=$base

# what is wrong is said
tag_command none words.conll
expect 65 "words.conll line 1: there is no label after the word" "${command[@]}"
sed 's/B-PLACE/B-SPOT/' "$dir/names.conll" >"$dir/other.conll"
model=$dir/whole/model
tag_command none other.conll
expect 65 "the model has no label B-SPOT; the model's labels are B-PLACE, I-PLACE, O; the file's are" "${command[@]}"
expect 65 "the model has no label B-SPOT" "$kiln" tag --init_checkpoint "$model" --output_dir "$dir/none" --do_eval \
    --predict_file "$dir/other.conll" --max_seq_length 32
sed 's/"B-PLACE"/"LABEL_0"/; s/"I-PLACE"/"LABEL_1"/; s/"O"/"LABEL_2"/' -i.names "$model/config.json"
rm "$model/kiln.sha256"
awk 'NF { $3 = $3 == "O" ? 2 : $3 == "I-PLACE" } { print }' "$dir/names.conll" >"$dir/numbers.conll"
expect 0 "the model's labels are LABEL_0 to LABEL_2: label i of the file is LABEL_i" "$kiln" tag --init_checkpoint "$model" \
    --output_dir "$dir/numbers" --do_eval --predict_file "$dir/numbers.conll" --max_seq_length 32
grep -q "accuracy [01].9[0-9]*\|accuracy 1" "$dir/err" || fail "labels were not those of their numbers: $(tail -1 "$dir/err")"
mv "$model/config.json.names" "$model/config.json"
printf 'text,label\na,x\nb,y\n' >"$dir/texts.csv"
expect 65 "is a BertForTokenClassification" "$kiln" classify --init_checkpoint "$model" --output_dir "$dir/none" --do_train \
    --train_file "$dir/texts.csv" --max_seq_length 32
printf '{"tokens": ["a", "b"], "labels": ["O"]}\n' >"$dir/short.json"
tag_command none short.json
expect 65 "short.json line 1: words and labels" "${command[@]}"
: >"$dir/empty.conll"
tag_command none empty.conll
expect 65 "has no words" "${command[@]}"
echo "test_tag: learnt, resumed and refused as it should"
