#!/usr/bin/env bash
# `kiln pretrain-gpt --data-path W1 PREFIX1 W2 PREFIX2` blends sets by weight: each is asked for its share of the samples of each
# part and 0.5 % more, a killed run goes on with the same bits, the run is that of all sets and their weights, and a set that
# cannot take part is one sentence.
. "$(dirname "$0")/begin.sh"

mkdir "$dir/bpe" "$dir/cache" "$dir/else"
for set in a b; do
    for i in $(seq 300); do
        [ "$set" = a ] && echo "{\"text\": \"The king number $i went to the city, and the queen number $((i * 7 % 100)) came.\"}" ||
            echo "{\"text\": \"$((i * 13 % 100)) sheep and $i goats ate grass in the garden of the old house.\"}"
    done >"$dir/$set.jsonl"
done
"$kiln" vocab --input "$dir/a.jsonl" "$dir/b.jsonl" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 300 >/dev/null 2>&1
prepare=("$kiln" prepare --format gpt --vocab_file "$dir/bpe/vocab.json" --merge_file "$dir/bpe/merges.txt" --append_eod)
for set in a b; do
    "${prepare[@]}" --input "$dir/$set.jsonl" --output_prefix "$dir/$set" >/dev/null 2>&1
done
head -n 10 "$dir/b.jsonl" >"$dir/short.jsonl"
"${prepare[@]}" --input "$dir/short.jsonl" --output_prefix "$dir/short" >/dev/null 2>&1

# blend NAME WORDS... [-- FLAGS...]
blend()
{
    local name=$1 words=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    command=("$kiln" pretrain-gpt --num-layers 1 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32
        --micro-batch-size 2 --data-path "${words[@]}" --split 8,1,1 --vocab-file "$dir/bpe/vocab.json" --merge-file "$dir/bpe/merges.txt"
        --global-batch-size 8 --train-samples 1000 --lr 1e-2 --log-interval 1 --eval-iters 2 --eval-interval 50 --seed 42
        --log_memory_usage --save "$dir/$name" --save-interval 40 --load "$dir/$name" "${@:2}")
    "${command[@]}" >"$dir/out" 2>"$dir/err"
}
sets=(0.7 "$dir/a_text_document" 0.3 "$dir/b_text_document")
same()
{
    local file
    for file in model.safetensors optimizer.safetensors trainer_state.json; do
        cmp "$dir/$1/ckpt_125/$file" "$dir/$2/ckpt_125/$file" || fail "$file of $1 and $2 differs"
    done
}

# 1,000 samples of training, (125 / 50 + 1) * 16 of validation, 16 of the test: ceil(n * weight * 1.005) of each set
blend whole "${sets[@]}" -- --data-cache-path "$dir/cache" || fail "$(cat "$dir/err")"
ls "$dir/cache" | sed 's/_indexmap_/ /; s/ns_32sl_42s_/ /' | awk '$3 == "doc_idx.npy" { print $1, $2 }' >"$dir/wanted"
cat >"$dir/golden" <<END
a_text_document_test 12
a_text_document_train 704
a_text_document_valid 34
b_text_document_test 5
b_text_document_train 302
b_text_document_valid 15
END
diff "$dir/golden" "$dir/wanted" || fail "the samples that sets were asked for"
grep -q "data: $dir/a_text_document: .* 0.7 of the samples" "$dir/err" || fail "no share of a set: $(cat "$dir/err")"
grep -q 'iteration      125/     125 | consumed samples:         1000' "$dir/out" || fail "the last step: $(tail -n 3 "$dir/out")"
grep -q 'for test data' "$dir/out" || fail "no test of both sets"
blend cached 70 "$dir/a_text_document" 30 "$dir/b_text_document" -- --data-cache-path "$dir/cache" --save "$dir/cached" || fail "$(cat "$dir/err")"
[ "$(grep -c 'the order of the .* samples is that of' "$dir/err")" -eq 6 ] || fail "six orders were not read: $(cat "$dir/err")"
same whole cached

# kill -9, and the same command again
blend killed "${sets[@]}" -- --dry-run || fail "$(cat "$dir/err")"
start_held "${command[@]/--dry-run/--disable_progress_bar}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
blend killed "${sets[@]}" && grep -q 'resumed from' "$dir/err" || fail "nothing was resumed: $(cat "$dir/err")"
same whole killed

# the run is that of its sets, their weights and their places
for words in "0.6 $dir/a_text_document 0.4 $dir/b_text_document" "0.7 $dir/b_text_document 0.3 $dir/a_text_document" "$dir/a_text_document" \
    "0.7 $dir/a_text_document 0.3 $dir/a_text_document"; do
    blend whole $words && fail "resumed with $words"
    grep -q 'was trained on other data' "$dir/err" || fail "$words: $(cat "$dir/err")"
done
blend keyed "${sets[@]}" -- --megatron_order false || fail "$(cat "$dir/err")"
cmp -s "$dir/whole/ckpt_125/model.safetensors" "$dir/keyed/ckpt_125/model.safetensors" && fail "two orders gave one model"
blend keyed_cut "${sets[@]}" -- --megatron_order false --exit-interval 60 && blend keyed_cut "${sets[@]}" -- --megatron_order false ||
    fail "$(cat "$dir/err")"
same keyed keyed_cut
blend one 3 "$dir/a_text_document" && blend alone "$dir/a_text_document" || fail "$(cat "$dir/err")"
same one alone

# what cannot be blended
refused()
{
    local code=$1 text=$2
    shift 2
    blend refused "$@" && fail "not refused: $*"
    expect "$code" "$text" "${command[@]}"
    [ ! -e "$dir/refused" ] || fail "refused, and written: $*"
}
refused 64 '--data-path has 3 words' 0.3 a b
refused 64 "the weight of $dir/b_text_document must be a number above 0, not '0'" 0.7 "$dir/a_text_document" 0 "$dir/b_text_document"
refused 64 "the weight of b must be a number above 0, not 'x'" 1 a x b
refused 65 "$dir/none has no store" 0.7 "$dir/a_text_document" 0.3 "$dir/none"
refused 65 "$dir/short_text_document has no held-out documents: the split 97,2,1 of its 10 documents" 0.7 "$dir/a_text_document" 0.3 \
    "$dir/short_text_document" -- --split 97,2,1
cp "$dir"/b_text_document.* "$dir/else"
for file in "$dir"/else/*; do mv "$file" "${file/b_text/a_text}"; done
refused 64 'have the same name' 0.7 "$dir/a_text_document" 0.3 "$dir/else/a_text_document" -- --data-cache-path "$dir/cache"
