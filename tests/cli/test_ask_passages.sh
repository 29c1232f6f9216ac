#!/usr/bin/env bash
# kiln ask over files and folders: the passages that fit a question are found by words, by vectors or in an index of kiln search, and
# answers name files and characters.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests
"$tests/test_api" unpack "$dir"
"$tests/test_sentence_dirs" unpack "$dir"
ask() { "$kiln" ask --model "$dir/question_answering" "$@" 2>"$dir/log"; }
says() { grep -F "$1" "$dir/log" >/dev/null || fail "not '$1', but: $(cat "$dir/log")"; }

# all of the passages, put together again, are the text
for _ in $(seq 40); do
    echo 'A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab. éé'
done >"$dir/text"
places() { grep -oE '"text":"[^"]*"|"(start|end)_char":[0-9]+' "$dir/json"; }
ask --json --top_k 5 --context "$dir/text" 'had a man?' >"$dir/json"
places >"$dir/whole"
ask --json --top_k 5 --context "$dir/text" --passages 100000 'had a man?' >"$dir/json"
places | cmp - "$dir/whole" || fail "the passages together are another text"
grep -E '"passages":\{"read":([0-9]+),"of":\1,"by":"all"\}\}$' "$dir/json" >/dev/null || fail "not all: $(cat "$dir/json")"

# few are chosen: the file is the one that has the words
mkdir "$dir/folder" "$dir/folder/more"
printf '\néé abab abab, abab.\n' >"$dir/folder/a.txt"
printf 'mmm nnn' >"$dir/folder/more/b.txt"
head -c 100 /dev/zero >"$dir/folder/zeros"
files() { grep -oE '"file":"[^"]*"' "$dir/json" | sort -u | sed 's/.*folder.//' | tr '\n' ' '; }
for case in 'abab a.txt"' 'mmm more/b.txt"'; do
    ask --json --context "$dir/folder" --passages 1 --top_k 3 "${case% *}" >"$dir/json"
    [ "$(files)" = "${case#* } " ] || fail "$case: $(cat "$dir/json")"
    grep -F '"passages":{"read":1,"of":3,"by":"words"}' "$dir/json" >/dev/null || fail "another choice: $(cat "$dir/json")"
done
says '1 files of folders are left out, the first since'
says 'of 3 passages of the files, the 1 are read that fit a question best by their words (BM25)'
ask abab --contexts "$dir/folder/a.txt" "$dir/folder/more" >"$dir/out"
grep -E "^0\.[0-9]{4}  [^[]+  \[$dir/folder/(a|more/b).txt, characters [0-9]+ to [0-9]+\]\$" "$dir/out" >/dev/null || fail "prints: $(cat "$dir/out")"
says 'all 3 passages are read'
ask --json --top_k 20 abab --contexts "$dir/folder/a.txt" "$dir/folder/more" >"$dir/json"
read -r start end answer < <(grep -oE '"text":"[^"]*","probability":[0-9.e-]+,"start_char":[0-9]+,"end_char":[0-9]+,"file":"[^"]*a.txt"' "$dir/json" |
    head -n 1 | sed -E 's/"text":"([^"]*)".*"start_char":([0-9]+),"end_char":([0-9]+),.*/\2 \3 \1/')
text=$(cat "$dir/folder/a.txt")
[ "$(LC_ALL=C.UTF-8; echo "${text:start:end-start}")" = "$answer" ] || fail "no '$answer' at $start to $end"

# by vectors: of the passages, or of an index
retriever=(--retriever "$dir/mean" --passages 1 --json)
ask "${retriever[@]}" --context "$dir/folder" 'mmm nnn' >"$dir/json"
[ "$(files)" = 'more/b.txt" ' ] || fail "another passage: $(cat "$dir/json")"
grep -F '"by":"vectors"' "$dir/json" >/dev/null || fail "another choice: $(cat "$dir/json")"
"$kiln" search --model "$dir/mean" --index "$dir/notes" --add --input "$dir/folder" 2>/dev/null
ask "${retriever[@]}" --index "$dir/notes" 'mmm nnn' >"$dir/json"
[ "$(files)" = 'more/b.txt" ' ] || fail "another passage of the index: $(cat "$dir/json")"
"$kiln" search --model "$dir/mean" --index "$dir/lines" --add 'mmm nnn' 'abab' 2>/dev/null
ask --retriever "$dir/mean" --passages 1 --index "$dir/lines" 'abab' >"$dir/out"
grep -E '  \[text 1, characters [0-9] to [0-9]\]$' "$dir/out" >/dev/null || fail "prints: $(cat "$dir/out")"
printf 'mmm?\nabab?\n' | ask --context "$dir/folder" --json >"$dir/json"
[ "$(grep -c '^{"question":"' "$dir/json")" = 2 ] || fail "not two questions: $(cat "$dir/json")"

qa=("$kiln" ask --model "$dir/question_answering")
expect 64 'contradict each other' "${qa[@]}" x --context "$dir/text" --contexts "$dir/folder"
expect 64 'give --retriever DIR' "${qa[@]}" x --index "$dir/notes"
expect 64 'give --context, --contexts or --index' "${qa[@]}" x --passages 3
expect 65 'has vectors of another model' "${qa[@]}" x --index "$dir/notes" --retriever "$dir/max"
rm "$dir/folder/a.txt" "$dir/folder/more/b.txt"
expect 65 'the files hold no text' "${qa[@]}" x --context "$dir/folder"
