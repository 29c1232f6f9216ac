#!/usr/bin/env bash
# kiln glue on small tables in the forms in which GLUE's tasks are published: runs of kiln classify for each task and seed, a
# table and JSON with the means, settings for one task or all, resumption, and errors that name file and line.
. "$(dirname "$0")/begin.sh"
make_store
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 3 --eval_steps 0 --disable_progress_bar 2>/dev/null

# Texts whose label one word decides; STS-B's score is 5 for the same word, else 0.5.
awk -v dir="$dir/data" 'BEGIN {
    system("mkdir -p " dir "/CoLA " dir "/SST-2 " dir "/MRPC " dir "/RTE " dir "/STS-B")
    n = split("king stone people light water \"day", w, " "); s = 5
    print "sentence\tlabel" >dir "/SST-2/train.tsv"; print "sentence\tlabel" >dir "/SST-2/dev.tsv"
    print "\357\273\277Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r" >dir "/MRPC/glue_train.tsv"
    print "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String" >dir "/MRPC/glue_dev.tsv"
    print "index\tsentence1\tsentence2\tlabel" >dir "/RTE/train.tsv"
    print "index\tsentence1\tsentence2\tlabel" >dir "/RTE/dev.tsv"
    for (p = 0; p < 160; p++) {
        for (t = 1; t <= 2; t++) {
            s = (s * 16807) % 2147483647; kind[t] = s % 2
            s = (s * 16807) % 2147483647; text[t] = (kind[t] ? "city" : "river") " " w[1 + s % n] " " w[1 + (s + p) % n]
        }
        same = kind[1] == kind[2]; part = p < 120 ? "train" : "dev"
        cola = p < 120 ? "in_domain_train" : p < 140 ? "in_domain_dev" : "out_of_domain_dev"
        print "gj04\t" kind[1] "\t*\t" text[1] >dir "/CoLA/" cola ".tsv"
        print text[1] "\t" kind[1] >dir "/SST-2/" part ".tsv"
        print kind[1] "\t1\t2\t" text[1] "\t" text[2] "\r" >dir "/MRPC/glue_" part ".tsv"
        print p "\t" text[1] "\t" text[2] "\t" (kind[1] ? "entailment" : "not_entailment") >dir "/RTE/" part ".tsv"
        score = kind[1] ? "4.500" : "0.5"
        print "main\tx\t2012\t" p "\t" score "\t" text[1] "\t" text[2] "\tmore\tcolumns" >dir "/STS-B/sts-" part ".csv"
    }
}'
glue() { "$kiln" glue --model "$dir/run/ckpt_3" --data_dir "$dir/data" "$@"; }
quick=(max_seq_length=16 train_batch_size=8 learning_rate=3e-3 num_train_epochs=2 disable_progress_bar)

expect 0 '--learning_rate=5e-5 --num_train_epochs=3 --train_batch_size=32' glue --output_dir "$dir/dry" --tasks sst-2 --dry_run
[ ! -e "$dir/dry" ] || fail "a dry run wrote something"
glue --output_dir "$dir/scores" --seeds 2 --seed 7 "${quick[@]}" cola.num_train_epochs=6 >"$dir/table" 2>"$dir/log" ||
    fail "$(tail -3 "$dir/log")"
for row in 'CoLA *MCC' 'SST-2 *accuracy' 'MRPC *F1' 'RTE *accuracy' 'STS-B *Spearman' 'mean *of five'; do
    grep -qE "^$row +[0-9.]+$" "$dir/table" || fail "no row $row: $(cat "$dir/table")"
done
# the numbers of the series, in percent, and their mean
mean_in() { tr -d ' \n' <"$dir/scores/$1/seeds.json" | sed "s/.*\"$2\":{\"values\":\[\([^]]*\)\].*/\1/" |
    awk -F, '{ for (i = 1; i <= NF; i++) s += $i; if (NF != 2) exit 1; printf "%.2f", 100 * s / NF }'; }
all=
for pair in CoLA:matthews_correlation SST-2:accuracy MRPC:f1 RTE:accuracy STS-B:spearmanr; do
    value=$(mean_in "${pair%:*}" "${pair#*:}")
    all="$all $value"
    [ "$(awk -v t="${pair%:*}" '$1 == t { v = $3 } END { print v }' "$dir/table")" = "$value" ] ||
        fail "$pair is $value: $(tail -6 "$dir/table")"
done
awk -v all="$all" -v m="$(awk '$1 == "mean" { v = $NF } END { print v }' "$dir/table")" 'BEGIN {
    n = split(all, a, " "); for (i in a) s += a[i]; exit !(n == 5 && s / n - m < .011 && m - s / n < .011) }' ||
        fail "the mean of $all"
awk '$1 == "RTE" { v = $3 } END { exit !(v > 80) }' "$dir/table" || fail "one word decides RTE here: $(tail -6 "$dir/table")"
[ "$(wc -l <"$dir/scores/CoLA/dev.jsonl")" -eq 40 ] || fail "CoLA's development set has both files"
grep -qx '{"sentence1":"[^"]*","sentence2":"[^"]*","label":4.5}' <(sed 's/\\"//g' "$dir/scores/STS-B/train.jsonl") ||
    fail "$(head -2 "$dir/scores/STS-B/train.jsonl")"
grep -q '"n_seeds": 2' "$dir/scores/glue.json" || fail "$(cat "$dir/scores/glue.json")"
ls "$dir/scores/CoLA/seed_7/model" "$dir/scores/STS-B/seed_8/model" >/dev/null || fail "no model of each run"
grep -qE '"num_train_epochs": ?6' "$dir/scores/CoLA/seed_7/log.jsonl" ||
    fail "a setting of one task is not in its run"

# goes on with what is missing, and keeps the rest
expect 64 'add --resume_from_checkpoint' glue --output_dir "$dir/scores" --tasks rte --seeds 2 --seed 7 "${quick[@]}"
rm -r "$dir/scores/RTE/seed_8"
glue --output_dir "$dir/scores" --seeds 2 --seed 7 --resume_from_checkpoint "${quick[@]}" cola.num_train_epochs=6 >"$dir/again" \
    2>"$dir/log" ||
    fail "$(tail -3 "$dir/log")"
cmp "$dir/table" "$dir/again" || fail "resumed, the table differs"
[ "$(grep -c 'already has its result' "$dir/log")" -eq 9 ] || fail "not one run was made again: $(cat "$dir/log")"
expect 64 'is the result of other flags' glue --output_dir "$dir/scores" --tasks rte --seeds 2 --seed 7 \
    --resume_from_checkpoint max_steps=9
sed 's/city/stone/' -i "$dir/data/RTE/train.tsv"
expect 64 'train.jsonl was made from other data' glue --output_dir "$dir/scores" --tasks rte --resume_from_checkpoint

# a table without its line of names keeps its first row, one with such a line where there is none by design loses it
mkdir "$dir/names" && cp -r "$dir/data/RTE" "$dir/data/CoLA" "$dir/names"
sed -i 1d "$dir/names/RTE/train.tsv" "$dir/names/RTE/dev.tsv"
sed -i '1i source\tlabel\toriginal\tsentence' "$dir/names/CoLA/in_domain_train.tsv"
expect 0 "mean" glue --data_dir "$dir/names" --output_dir "$dir/named" --tasks rte,cola "${quick[@]}" max_steps=1
[ "$(cat "$dir"/named/*/train.jsonl | wc -l)" -eq 240 ] || fail "rows are missing: $(wc -l "$dir"/named/*/train.jsonl)"

# what is wrong
expect 64 'the tasks are cola, sst-2, mrpc, rte, sts-b' glue --output_dir "$dir/wrong" --tasks cola,qqp
expect 64 'has cola twice' glue --output_dir "$dir/wrong" --tasks cola,cola
expect 64 'unknown flag --max_stps' glue --output_dir "$dir/wrong" sts-b.max_stps=2
expect 64 'names no task' glue --output_dir "$dir/wrong" qqp.max_steps=2
expect 0 "seed is given twice: '42' is used, not '2'" glue --output_dir "$dir/wrong" --dry_run --tasks rte seed=2
bad() { # TEXT TASK FILE LINE: the error if the file has this line too
    echo -e "$4" >>"$dir/data/$3"
    expect 65 "$3 $1" glue --output_dir "$dir/wrong" --tasks "$2"
}
bad 'line 122: a label of SST-2 is 0|1, not 2' sst-2 SST-2/train.tsv 'the king\t2'
bad 'line 21: 2 columns are too few for CoLA' cola CoLA/in_domain_dev.tsv 'gj04\t1'
bad 'line 121: a label of STS-B is a number from 0 to 5, not 5.5' sts-b STS-B/sts-train.csv 'a\tb\tc\td\t5.5\tthe king\tthe city'
bad 'line 42: the text is empty' mrpc MRPC/glue_dev.tsv '1\t1\t2\tthe king\t'
bad 'line 122 is not UTF-8: byte 7 of the line is 0xff' rte RTE/train.tsv '1\tthe \xff\tthe king\tentailment'
rm "$dir/data/RTE/train.tsv"
expect 65 'RTE/train.tsv' glue --output_dir "$dir/wrong" --tasks rte
