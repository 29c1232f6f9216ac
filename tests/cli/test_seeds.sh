#!/usr/bin/env bash
# `--seeds K`: K whole runs, the same as those runs alone, and a table whose means and deviations are those of awk; a series that
# was killed goes on with what is missing; wrong flags and foreign results get a sentence.
. "$(dirname "$0")/begin.sh"
make_store

# Texts whose label can be learnt, but not from so few, so that seeds differ.
awk -v dir="$dir" 'BEGIN {
    n = split("king stone people light water day night men city river", w, " ")
    s = 11
    print "sentence,label" >dir "/texts.csv"
    for (p = 0; p < 64; p++) {
        text = ""
        for (i = 1; i <= 5; i++) { s = (s * 16807) % 2147483647; k = 1 + s % n; text = text (i > 1 ? " " : "") w[k]
            print w[k] "\t" (k % 3 ? "O" : "B-X") >dir "/words.conll" }
        print "" >dir "/words.conll"
        print text "," (k % 2 ? "odd" : "even") >dir "/texts.csv"
    }
}'
make_model
make_questions

tune_command()
{
    local command_name=$1 out=$2 data=$3
    shift 3
    command=("$kiln" "$command_name" --init_checkpoint "$model" --output_dir "$dir/$out" --do_train
        --train_file "$dir/$data" --predict_file "$dir/$data" --do_predict --do_eval --max_seq_length 48
        --train_batch_size 16 --learning_rate 3e-3 --max_steps 24 --log_freq 1 --disable-progress-bar "$@")
}

# Checks the table in $dir/table, of the runs in $1, against the scores that their logs have.
check_table()
{
    local out=$1 metric=$2 seeds values
    seeds=$(awk '$1 ~ /^[0-9]+$/ { print $1 }' "$dir/table")
    values=$(for seed in $seeds; do
        sed -n "s/.*\"event\": *\"score\".*\"$metric\": *\([0-9.e+-]*\).*/\1/p" "$dir/$out/seed_$seed/log.jsonl" | tail -1
    done)
    [ "$(echo "$values" | wc -l)" -eq "$(echo "$seeds" | wc -l)" ] || fail "scores are missing: $values"
    local column
    column=$(awk -v m="$metric" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == m) print i }' "$dir/table")
    [ -n "$column" ] || fail "no column $metric: $(cat "$dir/table")"
    echo "$values" | awk '{ v[NR] = $1; s += $1 } END { m = s / NR; for (i = 1; i <= NR; i++) q += (v[i] - m) ^ 2
        for (i = 1; i <= NR; i++) printf "%.4f\n", v[i]
        printf "%.4f\n%.4f\n", m, sqrt(q / (NR - 1)) }' >"$dir/wanted"
    awk -v c="$column" 'NR > 1 { print $c }' "$dir/table" >"$dir/got"
    cmp -s "$dir/wanted" "$dir/got" || fail "$metric: $(cat "$dir/table"), but by hand: $(cat "$dir/wanted")"
}

tune_command classify series texts.csv --seed 7 --seeds 3
"${command[@]}" >"$dir/table" 2>"$dir/log" || fail "$(cat "$dir/log")"
check_table series accuracy
[ "$(tail -1 "$dir/got")" != 0.0000 ] || fail "all seeds score the same: $(cat "$dir/table")"
grep -q '"deviation"' "$dir/series/seeds.json" || fail "no seeds.json"
grep -q '^mean ' "$dir/table" && grep -q '^deviation ' "$dir/table" || fail "$(cat "$dir/table")"
grep -q '"seed": *8' "$dir/series/seed_8/log.jsonl" || fail "the run's log does not say its seed"

# a run of the series is the run alone
tune_command classify alone texts.csv --seed 8
"${command[@]}" 2>/dev/null
cmp "$dir/alone/model/model.safetensors" "$dir/series/seed_8/model/model.safetensors" || fail "another model"
cmp "$dir/alone/predictions.jsonl" "$dir/series/seed_8/predictions.jsonl" || fail "other predictions"

# its first run done, killed in its second, and gone on: the same table and models
tune_command classify killed texts.csv --seed 7 --seeds 1
"${command[@]}" >/dev/null 2>&1
tune_command classify killed texts.csv --seed 7 --seeds 3 --num_steps_per_checkpoint 2 --resume_from_checkpoint
start_held "${command[@]}"
stop_held KILL "$dir/killed/seed_8"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
"${command[@]}" >"$dir/table2" 2>"$dir/log" || fail "$(cat "$dir/log")"
cmp "$dir/table" "$dir/table2" || fail "another table: $(cat "$dir/table2")"
cmp "$dir/series/seeds.json" "$dir/killed/seeds.json" || fail "another seeds.json"
grep -q "resumed from .*/seed_8/" "$dir/log" || fail "seed 8 was not resumed: $(cat "$dir/log")"
grep -q "seed 7: already has its result" "$dir/log" || fail "the first seed runs again: $(cat "$dir/log")"
cmp "$dir/series/seed_8/model/model.safetensors" "$dir/killed/seed_8/model/model.safetensors" || fail "another model of seed 8"

# more seeds of the same series, and one whose flags differ
tune_command classify series texts.csv --seed 7 --seeds 4 --resume_from_checkpoint
"${command[@]}" >"$dir/table" 2>"$dir/log" || fail "$(cat "$dir/log")"
[ "$(grep -c "already has its result" "$dir/log")" -eq 3 ] || fail "$(cat "$dir/log")"
check_table series accuracy
expect 64 "is the result of other flags" "${command[@]}" --learning_rate 2e-3
tune_command classify series texts.csv --seed 7 --seeds 3
expect 64 "add --resume_from_checkpoint" "${command[@]}"

# one run has no deviation; told to, it is made again
tune_command classify single texts.csv --seeds 1 --eval_file "$dir/texts.csv"
"${command[@]}" >"$dir/table" 2>"$dir/log" || fail "$(cat "$dir/log")"
expect 64 "--overwrite_output_dir to replace it" "${command[@]}"
cp "$dir/single/seeds.json" "$dir/before.json"
expect 0 "saved" "${command[@]}" --overwrite_output_dir
cmp "$dir/before.json" "$dir/single/seeds.json" || fail "made again, the scores differ"
grep -Eq '^deviation +-' "$dir/table" || fail "$(cat "$dir/table")"
grep -q "heldout_loss" "$dir/table" || fail "no held-out loss: $(cat "$dir/table")"
grep -q '"deviation": null' "$dir/single/seeds.json" || fail "a deviation of one run"

tune_command tag tagged words.conll --seeds 2
"${command[@]}" >"$dir/table" 2>"$dir/log" || fail "$(cat "$dir/log")"
check_table tagged accuracy
tune_command squad asked questions.json --seeds 2 --skip_cache --max_query_length 24
"${command[@]}" >"$dir/table" 2>"$dir/log" || fail "$(cat "$dir/log")"
check_table asked F1
check_table asked exact_match

# a plan, and wrong flags
tune_command classify dry texts.csv
expect 0 "--seeds 5: this many such runs" "${command[@]}" --seeds 5 --dry_run
[ ! -e "$dir/dry" ] || fail "--dry_run made a directory"
expect 64 "--seeds" "${command[@]}" --seeds 0
expect 64 "go beyond 2147483647" "${command[@]}" --seeds 2 --seed 2147483647
expect 64 "leave out --skip_checkpoint" "${command[@]}" --seeds 2 --skip_checkpoint
expect 64 "--seeds compares the scores of runs" "$kiln" classify --init_checkpoint "$model" --output_dir "$dir/dry" \
    --do_train --train_file "$dir/texts.csv" --seeds 2
tune_command squad dry questions.json
