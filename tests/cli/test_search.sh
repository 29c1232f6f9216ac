#!/usr/bin/env bash
# kiln search: an index finds its own texts, has the vectors of kiln embed, knows its model, and is whole after a kill at any call;
# files are found by their passages.
. "$(dirname "$0")/begin.sh"
"$(dirname "$kiln")/tests/test_sentence_dirs" unpack "$dir"
notes=("$kiln" search --model "$dir/mean" --index "$dir/ix/notes")
search() { "${notes[@]}" "$@" 2>"$dir/log"; }
mkdir "$dir/ix"

search --add 'a mad dog' 'big cab' && printf 'a bag\nbad food' | search --add
grep -F 'notes: 2 texts more, 4 in all' "$dir/log" >/dev/null || fail "says: $(cat "$dir/log")"
search --top_k 3 'big cab' >"$dir/found"
[ "$(head -n 1 "$dir/found")" = '1.0000	1	big cab' ] || fail "another first text: $(cat "$dir/found")"
sort -s -t '	' -k 1,1gr "$dir/found" | cmp - "$dir/found" && [ "$(wc -l <"$dir/found")" = 3 ] || fail "not the best three: $(cat "$dir/found")"
printf 'big cab\na bag\n' | search --top_k 1 --json >"$dir/json"
grep -E '^\{"query":"a bag","hits":\[\{"index":2,"score":(1.0|0.99999[0-9]*|1.0000[0-9]*),"text":"a bag"\}\]\}$' "$dir/json" >/dev/null ||
    fail "other JSON: $(cat "$dir/json")"
[ "$(search --top_k 100 x | wc -l)" = 4 ] || fail "not all texts"
"$kiln" embed --model "$dir/mean" --output "$dir/v.npy" 'a mad dog' 'big cab' 'a bag' 'bad food' 2>/dev/null
numbers() { tail -c +129 "$1" | od -An -v -t f4 -w4 | tr -d ' '; }
same_numbers <(numbers "$dir/v.npy") <(numbers "$dir/ix/notes") || fail "other vectors than those of kiln embed"

expect 65 'has vectors of another model: ' "$kiln" search --model "$dir/max" --index "$dir/ix/notes" cab
expect 65 'has vectors of another model: ' "$kiln" search --model "$dir/max" --index "$dir/ix/notes" --add cab
expect 65 'not by "pooling cls, normalised, at most 12 tokens"' "${notes[@]}" --pooling cls cab
expect 65 'there is no index' "$kiln" search --model "$dir/mean" --index "$dir/none" cab
expect 65 'v.npy is no index of texts' "$kiln" search --model "$dir/mean" --index "$dir/v.npy" --add cab
printf '{"text": "my own"}\n' >"$dir/mine.jsonl"
expect 65 'mine.jsonl does not begin with the model of an index' "$kiln" search --model "$dir/mean" --index "$dir/mine" --add cab
[ "$(cat "$dir/mine.jsonl")" = '{"text": "my own"}' ] || fail "a file of the user was written"
expect 64 'needs --index' "$kiln" search --model "$dir/mean" cab
expect 0 'parameters' "${notes[@]}" --dry_run
sed -i '3d' "$dir/ix/notes.jsonl"
expect 65 'notes.jsonl ends after 4 lines' "${notes[@]}" cab

# a kill at each call on the files: the texts are there all or not at all, and the index goes on
n_kills=0
for base in new grown; do
    rm -rf "$dir/ix" "$dir/base"
    mkdir "$dir/ix"
    [ "$base" = new ] || search --add 'a mad dog' 'big cab'
    cp -r "$dir/ix" "$dir/base"
    for n in $(seq 30); do
        rm -rf "$dir/ix" && cp -r "$dir/base" "$dir/ix"
        at_call "kill $n" "$dir/ix/" search --add 'a bag' 'bad food' && [ ! -e "$dir/mark" ] && break
        n_kills=$((n_kills + 1))
        search --add 'cab' || fail "$base, kill $n ($(cat "$dir/mark")): $(cat "$dir/log")"
        search --top_k 9 --json 'cab' >"$dir/json" || fail "$base, kill $n ($(cat "$dir/mark")): $(cat "$dir/log")"
        texts=$(grep -oE '"(index|text)":("[a-z ]+"|[0-9]+)' "$dir/json" | paste -sd ' \n' | sort | cut -d '"' -f 6 | paste -sd,)
        case $base:$texts in
        new:cab | new:a\ bag,bad\ food,cab | grown:a\ mad\ dog,big\ cab,cab | grown:a\ mad\ dog,big\ cab,a\ bag,bad\ food,cab) ;;
        *) fail "$base, kill $n ($(cat "$dir/mark")): $texts" ;;
        esac
        grep -E '"hits":\[\{"index":[0-9]+,"score":(1.0|0.99999[0-9]*|1.0000[0-9]*),"text":"cab"\}' "$dir/json" >/dev/null ||
            fail "$base, kill $n: the vectors are not those of the texts: $(cat "$dir/json")"
    done
done
[ "$n_kills" -ge 8 ] && [ "$n" -lt 30 ] || fail "$n_kills kills, the last loop ended at $n"

# files and folders, in passages with their places
mkdir "$dir/folder"
printf '\nééé. A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab.\n' >"$dir/folder/a.txt"
printf 'a bag' >"$dir/folder/b.md"
head -c 200 /dev/zero >"$dir/folder/zeros"
rm -rf "$dir/ix" && mkdir "$dir/ix"
search --add --input "$dir/folder"
grep -F '1 files of folders are left out, the first since' "$dir/log" >/dev/null || fail "says: $(cat "$dir/log")"
search --top_k 1 'a bag' >"$dir/found"
[ "$(cat "$dir/found")" = "1.0000	$dir/folder/b.md:0	a bag" ] || fail "another passage: $(cat "$dir/found")"
search --top_k 100 --json 'a bag' >"$dir/json"
grep -oE '"text":"[^"]*","file":"[^"]*a.txt","start":[0-9]+' "$dir/json" | sed -E 's/"text":"([^"]*)".*:([0-9]+)$/\2 \1/' >"$dir/places"
text=$(cat "$dir/folder/a.txt" && echo .)
while read -r at passage; do
    [ "$(LC_ALL=C.UTF-8; echo "${text:at:${#passage}}")" = "$passage" ] || fail "no '$passage' at $at"
done <"$dir/places"
[ "$(wc -l <"$dir/places")" -gt 3 ] || fail "few passages: $(cat "$dir/places")"
expect 64 '--input gives files to --add' "${notes[@]}" --input "$dir/folder"
