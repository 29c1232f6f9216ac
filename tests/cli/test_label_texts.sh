#!/usr/bin/env bash
# kiln classify and kiln tag with a model alone: texts of the command line or of standard input, pairs, labels of the caller, and
# JSON as the server answers; offsets are characters; and kiln fill with the words that are asked for.
. "$(dirname "$0")/begin.sh"
unpack_golden hf_dirs
unpack_golden classify
say() { "$kiln" "$1" --model "$dir/$2" "${@:3}" 2>>"$dir/log"; }

number='[01]\.[0-9]{4}'
say classify single 'the king' 'a mad dog' >"$dir/arguments"
printf 'the king\na mad dog\n' | say classify single >"$dir/lines"
cmp "$dir/arguments" "$dir/lines" || fail "lines are not labelled as arguments"
[ "$(grep -cE "^[^	]+	$number\$" "$dir/lines")" = 2 ] || fail "other labels: $(cat "$dir/lines")"
say classify single --json 'the king' >"$dir/json"
grep -E '^\[\{"score":[0-9.e-]+,"label":"[^"]+"\}(,\{"score":[0-9.e-]+,"label":"[^"]+"\})+\]$' "$dir/json" >/dev/null ||
    fail "other JSON: $(cat "$dir/json")"
say classify regression 'the king' >"$dir/lines"
grep -E '	-?[0-9]+\.[0-9]{4}$' "$dir/lines" >/dev/null || fail "no number: $(cat "$dir/lines")"

# a line is answered before the next one is written
mkfifo "$dir/to" "$dir/from"
say classify single <"$dir/to" >"$dir/from" &
exec 7>"$dir/to" 8<"$dir/from"
for text in 'the king' 'a mad dog'; do
    echo "$text" >&7
    read -r answer <&8
    grep -F "$answer" "$dir/arguments" >/dev/null || fail "'$text' has '$answer'"
done
exec 7>&- 8<&-
wait $!

# the second text of a pair counts
printf 'the king\tthe king\nthe king\ta mad dog\n' | say classify single --pairs --json >"$dir/pairs"
[ "$(sort -u "$dir/pairs" | wc -l)" = 2 ] || fail "a pair is read as a text: $(cat "$dir/pairs")"
expect 65 '--pairs: "the king" has no tab' "$kiln" classify --model "$dir/single" --pairs 'the king'

# labels of the caller: scores are those of the model's entailment
cp -r "$dir/single" "$dir/entailment"
sed -i 's/"yes"/"Entailment"/' "$dir/entailment/config.json"
say classify entailment --labels king,dog --json 'the king' >"$dir/json"
awk -F '[:,]' '{ exit !($2 + $6 > 0.99999 && $2 + $6 < 1.00001 && $2 >= $6) }' "$dir/json" || fail "no softmax: $(cat "$dir/json")"
say classify entailment --labels king,dog --multi_label --json 'the king' >"$dir/alone"
grep '"label":"dog"' "$dir/alone" >/dev/null || fail "no label: $(cat "$dir/alone")"
expect 64 'none of its labels is "entailment"' "$kiln" classify --model "$dir/single" --labels king,dog 'the king'
expect 64 "has no {} for the label" "$kiln" classify --model "$dir/entailment" --labels a --hypothesis_template x 'the king'

# entities with their places in characters
text='the ééé king'
say tag tokens --json "$text" 'a mad dog' >"$dir/json"
[ "$(wc -l <"$dir/json")" = 2 ] || fail "not a line for each text"
grep -E '^\[(\{"entity_group":"[^"]+","score":[0-9.e-]+,"word":"[^"]+","start":[0-9]+,"end":[0-9]+\},?)*\]$' "$dir/json" \
    >/dev/null || fail "other JSON: $(cat "$dir/json")"
say tag tokens --json --aggregation_strategy none "$text" >"$dir/json"
grep -E '"start":11,"end":12\}\]$' "$dir/json" >/dev/null || fail "places are not in characters: $(cat "$dir/json")"
say tag tokens "$text" >"$dir/lines"
[ "$(head -1 "$dir/lines")" = "$text" ] || fail "another text: $(cat "$dir/lines")"
# a text that is longer than the model reads: tag reads it in windows, of which it can have more; classify and rerank say how many they cut
long=$(printf 'the king %.0s' $(seq 100))
for stride in 1 8; do
    say tag tokens --json --aggregation_strategy none --stride "$stride" "$long" >"$dir/json_$stride"
    grep -E '"start":8[0-9][0-9],"end":[0-9]+\}\]$' "$dir/json_$stride" >/dev/null || fail "the end of a long text has no label"
done
cmp -s "$dir/json_1" "$dir/json_8" && fail "--stride changes nothing"
expect 64 'is not less than the' "$kiln" tag --model "$dir/tokens" --stride 65536 "$long"
expect 0 'warning: 1 texts were longer than the' "$kiln" classify --model "$dir/single" "$long" 'the king'
expect 0 'warning: 1 texts were longer than the' "$kiln" rerank --model "$dir/regression" 'the king' "$long" 'the king'
say tag tokens --dry_run | grep parameters >/dev/null || fail "no plan"

# files need a place for what is written
expect 64 "kiln classify needs --output_dir DIR" "$kiln" classify --model "$dir/single" --train_file x.csv --do_train
expect 64 "leave out --output_dir" "$kiln" tag --model "$dir/tokens" --output_dir "$dir/out_dir" "$text"

# words that are asked for, by their probability among all
say fill masked_lm --top_k 1000 --json 'the [MASK]' >"$dir/all"
mapfile -t words < <(grep -oE '"token":"[a-z]+"' "$dir/all" | cut -d '"' -f 4)
say fill masked_lm --targets "${words[1]},${words[3]},${words[1]}zzz" --json 'the [MASK]' >"$dir/asked"
[ "$(grep -o '"token":"' "$dir/asked" | wc -l)" -ge 2 ] || fail "not two words: $(cat "$dir/asked")"
for word in "${words[1]}" "${words[3]}"; do
    one=$(grep -o "\"token\":\"$word\",[^}]*" "$dir/asked")
    grep -F "$one" "$dir/all" >/dev/null || fail "another probability: $one"
done
grep -E 'zzz is no piece of the vocabulary; .* stands for it' "$dir/log" >/dev/null || fail "nothing about a word of several pieces"

# texts by how well they answer a query: the order of their scores, and the same from lines
say rerank regression 'the king' 'a mad dog' 'the king' 'a bad dog' >"$dir/ranked"
sort -s -t '	' -k 1,1gr "$dir/ranked" | cmp - "$dir/ranked" || fail "not sorted: $(cat "$dir/ranked")"
[ "$(cut -f 2 "$dir/ranked" | sort | tr '\n' ,)" = 'a bad dog,a mad dog,the king,' ] || fail "other texts: $(cat "$dir/ranked")"
printf 'a mad dog\nthe king\na bad dog\n' | say rerank regression 'the king' | cmp - "$dir/ranked" || fail "lines are ranked otherwise"
say rerank regression --json --top_n 1 'the king' 'a mad dog' >"$dir/json"
grep -E '^\[\{"index":0,"score":[0-9.e-]+,"text":"a mad dog"\}\]$' "$dir/json" >/dev/null || fail "other JSON: $(cat "$dir/json")"
say rerank regression --dry_run | grep parameters >/dev/null || fail "no plan"
expect 64 'it has 3 labels, and a reranker has one' "$kiln" rerank --model "$dir/single" 'the king' 'a mad dog'
