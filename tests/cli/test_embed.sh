#!/usr/bin/env bash
# kiln embed on directories of sentence-transformers, as a user drives it: what was chosen is said, flags overrule it, what
# kiln cannot do is refused by name; and no command takes a model with a weight that is not finite.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests

"$tests/test_sentence_dirs" unpack "$dir"
embed() { "$kiln" embed --model "$dir/$1" "${@:2}"; }
said() { # CASE TEXT FLAGS...: the line about the vectors
    embed "$1" "${@:3}" 'a mad dog' >"$dir/vector" 2>"$dir/log"
    grep -qF "vectors: $2 (" "$dir/log" || fail "$1 ${*:3} says: $(cat "$dir/log")"
}
said mean 'pooling mean, normalised, at most 12 tokens'
said cls 'pooling cls, normalised, at most 30 tokens'
said max 'pooling max, at most 40 tokens'
said prompts 'pooling mean, normalised, at most 40 tokens, prompt "big: ", which is not pooled'
said dense 'pooling cls, dense to 6, normalised, at most 40 tokens'
said many 'pooling weightedmean + lasttoken + mean_sqrt_len_tokens, dense to 5, at most 40 tokens, lower case'
said prompts 'pooling mean, normalised, at most 40 tokens' --no_prompt
said prompts 'pooling mean, normalised, at most 40 tokens, prompt "cab ", which is not pooled' --prompt_name passage
said mean 'pooling max, at most 5 tokens' --pooling max --no_normalize --max_seq_length 5
said max 'pooling max, normalised, at most 40 tokens' --normalize
mv "$dir/mean/modules.json" "$dir/mean/aside"
said mean 'pooling mean, at most 40 tokens'
said mean 'pooling mean, normalised, at most 40 tokens' --normalize
grep -q 'no modules.json' "$dir/log" || fail "nothing about modules.json: $(cat "$dir/log")"
mv "$dir/mean/aside" "$dir/mean/modules.json"

# A special token that a text spells is told once, unless it is read as one; other brackets are not.
embed mean 'a [MASK] dog' 'a [SEP] dog' >"$dir/vector" 2>"$dir/log"
[ "$(grep -c 'a text has \[MASK\], which is read as text' "$dir/log")" = 1 ] || fail "no warning: $(cat "$dir/log")"
[ "$(grep -c 'which is read as text' "$dir/log")" = 1 ] || fail "two warnings: $(cat "$dir/log")"
for line in "--parse_special_tokens a[MASK]" "a[MARK]"; do
    embed mean $line >"$dir/vector" 2>"$dir/log"
    ! grep -q 'which is read as text' "$dir/log" || fail "$line: $(cat "$dir/log")"
done

# Matryoshka vectors: the first numbers, by the model's file or by a flag, behind all modules; scaled again if asked for.
said prompts 'pooling mean, normalised, the first 5 numbers, at most 40 tokens' --no_prompt --truncate_dim 5
said prompts 'pooling mean, normalised, the first 5 numbers, normalised, at most 40 tokens' --no_prompt --truncate_dim 5 \
    --normalize
said prompts 'pooling mean, the first 5 numbers, at most 40 tokens' --no_prompt --truncate_dim 5 --no_normalize
numbers() { tr -d '[]' <"$dir/vector" | tr ',' '\n' | wc -l; }
sed -i 's/{/{"truncate_dim": 7,/' "$dir/prompts/config_sentence_transformers.json"
said prompts 'pooling mean, normalised, the first 7 numbers, at most 40 tokens' --no_prompt
[ "$(numbers)" -eq 7 ] || fail "$(numbers) numbers, not 7"
said prompts 'pooling mean, normalised, the first 900 numbers, at most 40 tokens' --no_prompt --truncate_dim 900
[ "$(numbers)" -eq 16 ] || fail "$(numbers) numbers, not all"
sed -i 's/"truncate_dim": 7/"truncate_dim": null/' "$dir/prompts/config_sentence_transformers.json"
said prompts 'pooling mean, normalised, at most 40 tokens' --no_prompt
sed -i 's/"truncate_dim": null/"truncate_dim": 0/' "$dir/prompts/config_sentence_transformers.json"
expect 65 '"truncate_dim" is 0, but must be at least 1' "$kiln" embed --model "$dir/prompts" cab
sed -i 's/"truncate_dim": 0,//' "$dir/prompts/config_sentence_transformers.json"

# The same numbers by another way: a prompt is text before the text.
embed cls --prompt_name query 'cab' >"$dir/a" 2>/dev/null
embed cls 'a man: cab' 2>/dev/null | cmp - "$dir/a" || fail "a prompt is not text before the text"
embed cls --prompt 'a man: ' 'cab' 2>/dev/null | cmp - "$dir/a" || fail "--prompt"
embed cls --pooling lasttoken 'cab' 2>/dev/null | cmp -s - "$dir/a" && fail "--pooling changes nothing"
embed mean 'a man and a dog, in a big cage' 'cab' >/dev/null 2>"$dir/log"
grep -q '1 texts were longer than the 12 tokens' "$dir/log" || fail "no warning of a long text: $(cat "$dir/log")"

expect 0 'modules.json and the files it names: copy them' "$kiln" export --model "$dir/cls" --output_dir "$dir/plain"
"$kiln" export --model "$dir/plain" --output_dir "$dir/again" 2>&1 | grep 'modules.json' >/dev/null && fail "a warning for nothing"
cp -r "$dir/cls/modules.json" "$dir/cls/1_Pooling" "$dir/cls/sentence_bert_config.json" "$dir/plain"
embed cls 'cab' >"$dir/a" 2>/dev/null
embed plain 'cab' 2>/dev/null | cmp - "$dir/a" || fail "an export with its modules makes other vectors"

expect 64 "called 'book'; it has 2: document, query" embed cls --prompt_name book cab
expect 64 'reads 2 to 40 tokens' embed cls --max_seq_length 41 cab
expect 65 'argument 2 line 1 is not UTF-8: byte 1 of the line is 0xff' embed cls cab $'\xff'
expect 64 'contradict' embed cls --normalize --no_normalize cab
expect 64 'give one' embed cls --prompt a --prompt_name query cab
expect 64 'give one' embed cls --no_prompt --prompt_name query cab
expect 64 'takes vectors of 48 numbers' embed many --pooling mean cab
sed -i 's/models.Pooling/models.WordWeights/' "$dir/cls/modules.json"
expect 65 'module 1 is sentence_transformers.models.WordWeights' embed cls cab
expect 65 'module 1 is sentence_transformers.models.WordWeights' embed cls --dry_run

# Vectors as a file of numpy: the same numbers, a row for each text.
embed mean cab 'a mad dog' 2>/dev/null | tr -d '[]' | tr ',' '\n' >"$dir/json"
embed mean --output "$dir/v.npy" cab 'a mad dog' 2>/dev/null
head -c 128 "$dir/v.npy" | grep -aF "'descr': '<f4', 'fortran_order': False, 'shape': (2, $(($(wc -l <"$dir/json") / 2))), }" >/dev/null ||
    fail "another header"
tail -c +129 "$dir/v.npy" | od -An -v -t f4 -w4 | tr -d ' ' | same_numbers - "$dir/json" || fail "other vectors in the file"
expect 64 'the name must end in .npy' embed mean --output "$dir/v.json" cab

# Neighbors of a word: complete words of the vocabulary, the nearest first, and the cosine is the same from either side.
embed mean --neighbors --top_k 1000 d c >"$dir/neighbors" 2>/dev/null
[ "$(head -n 1 "$dir/neighbors")" = 'word	neighbor	cosine' ] || fail "another header: $(head -n 1 "$dir/neighbors")"
awk -F '\t' '$1 == "d" { if (n++ && $3 > last) exit 1; last = $3 } $1 == $2 || $2 ~ /^##|^\[/ { exit 1 } END { exit n < 5 }' \
    "$dir/neighbors" || fail "other neighbors: $(cat "$dir/neighbors")"
[ "$(awk -F '\t' '($1 $2) ~ /^(dc|cd)$/ { print $3 }' "$dir/neighbors" | uniq -c | awk '{ print $1 }')" = 2 ] ||
    fail "two cosines of two words: $(cat "$dir/neighbors")"
echo d | embed mean --neighbors --json --top_k 1 >"$dir/json" 2>/dev/null
grep -E "^\{\"word\":\"d\",\"neighbors\":\[\{\"token\":\"$(awk -F '\t' 'NR == 2 { print $2 }' "$dir/neighbors")\",\"id\":[0-9]+,\"score\":[-0-9.e]+\}\]\}\$" \
    "$dir/json" >/dev/null || fail "other JSON: $(cat "$dir/json")"
expect 65 '"dog" is no single word of the vocabulary' embed mean --neighbors dog

# A weight that is not a number: an error of its own, and nothing on standard output.
"$tests/test_not_finite" spoil "$dir"
for command in fill embed; do
    expect 99 'encoder.layer.0.intermediate.dense.weight is not finite' "$kiln" "$command" --model "$dir/pretraining" \
        'a [MASK] dog'
    [ ! -s "$dir/out" ] || fail "$command printed something: $(cat "$dir/out")"
done
expect 99 'is not finite' "$kiln" export --model "$dir/pretraining" --output_dir "$dir/exported"
[ ! -e "$dir/exported" ] || fail "a model that is not finite was exported"
