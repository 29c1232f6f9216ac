#!/usr/bin/env bash
# kiln export and kiln embed as a user drives them: a trained checkpoint becomes a directory that computes the same, and
# vectors of texts come out in order, of length 1 if asked for, and the same but for rounding whatever stands beside them.
. "$(dirname "$0")/begin.sh"

# expect_match CODE PATTERN COMMAND...: of kiln; exit code and a pattern in the output or the error
expect_match() {
    local code=0 out
    out=$("$kiln" "${@:3}" </dev/null 2>&1) || code=$?
    [ "$code" = "$1" ] || fail "${*:3}: exit code $code, not $1: $out"
    grep -qE -e "$2" <<<"$out" || fail "${*:3}: no '$2' in: $out"
}

make_store
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 16 --max_steps 20 --learning_rate 1e-3 --disable_progress_bar \
    >/dev/null 2>&1
model=$dir/run/ckpt_20

expect_match 0 'would write .*BertForPreTraining' export --model "$model" --output_dir "$dir/out" --dry_run
[ ! -e "$dir/out" ] || fail "a dry run wrote something"
expect_match 0 'ignored +2  bert.pooler.*BertForMaskedLM has none' export --model "$model" --output_dir "$dir/mlm" \
    --task masked_lm
expect_match 0 'BertModel, .* 39 tensors' export --model "$model" --output_dir "$dir/encoder" --task encoder
expect_match 0 'wrote' export --model "$model" --output_dir "$dir/out"
expect_match 0 'wrote' export --model "$model" --output_dir "$dir/out/" --max_shard_size 50e3
[ ! -e "$dir/out/model.safetensors" ] && [ -e "$dir/out/model.safetensors.index.json" ] || fail "not in shards"
[ -z "$(find "$dir" -name '*.kiln-*')" ] || fail "something is left behind"
expect_match 65 'lacks 2 of the 2 tensors of qa_outputs' export --model "$model" --output_dir "$dir/qa" --task question_answering
expect_match 64 'not part of a model' export --model "$model" --output_dir "$dir"
expect_match 0 'newest checkpoint is .*/ckpt_20' export --model "$dir/run" --output_dir "$dir/x" --dry_run
expect_match 64 'task' export --model "$model" --output_dir "$dir/x" --task spelling
[ ! -e "$dir/qa" ] && [ ! -e "$dir/x" ] || fail "a failed export left something"

# The same answers from the checkpoint, the shards and the smaller class.
text='the king [MASK] to the old [MASK] and river'
"$kiln" fill --model "$model" "$text" >"$dir/a" 2>/dev/null
for other in out mlm; do
    "$kiln" fill --model "$dir/$other" "$text" >"$dir/b" 2>/dev/null
    cmp "$dir/a" "$dir/b" || fail "fill differs after the export to $other"
done
rm "$dir/mlm/vocab.txt" # tokenizer.json has it too
"$kiln" fill --model "$dir/mlm" "$text" 2>/dev/null | cmp - "$dir/a" || fail "fill differs without vocab.txt"
expect_match 65 'cls.predictions' fill --model "$dir/encoder" "$text"
printf '\n' >>"$model/vocab.txt"
expect_match 65 'vocab.txt' embed --model "$model" "a damaged checkpoint"

# Vectors: a line each, in order, of length 1, independent of the batch; arguments and lines are the same.
printf '%s\n' 'the king' '' "$(yes 'old stone city' | head -60 | tr '\n' ' ')" 'the king' 'river light' >"$dir/texts"
"$kiln" embed --model "$dir/encoder" --normalize <"$dir/texts" >"$dir/vectors" 2>"$dir/log"
grep -q '1 texts were longer than the 64 tokens' "$dir/log" || fail "no warning of a long text: $(cat "$dir/log")"
awk -F'[][,]' '{ s = 0; for (i = 2; i < NF; i++) s += $i * $i; n[NR] = NF - 2; if (s < 0.9999 || s > 1.0001) bad = 1 }
    END { for (i = 1; i <= NR; i++) if (n[i] != 64) bad = 1; exit bad || NR != 5 }' "$dir/vectors" || fail "vectors"
same_numbers <(sed -n 1p "$dir/vectors") <(sed -n 4p "$dir/vectors") || fail "the same text, two vectors"
[ "$(sed -n 1p "$dir/vectors")" != "$(sed -n 5p "$dir/vectors")" ] || fail "two texts, the same vector"
"$kiln" embed --model "$dir/encoder" --normalize 'river light' >"$dir/one" 2>/dev/null
same_numbers "$dir/one" <(sed -n 5p "$dir/vectors") || fail "a vector depends on its neighbours"
[ "$("$kiln" embed --model "$dir/mlm" --pooling cls --no_normalize 'the king' 2>/dev/null)" != "$(sed -n 1p "$dir/vectors")" ] ||
    fail "pooling does nothing"
"$kiln" embed --model "$dir/encoder" </dev/null 2>/dev/null | cmp - /dev/null || fail "vectors of nothing"
for _ in $(seq 300); do cat "$dir/texts"; done | "$kiln" embed --model "$dir/encoder" --normalize 2>/dev/null >"$dir/many"
same_numbers "$dir/many" <(for _ in $(seq 300); do cat "$dir/vectors"; done) || fail "1,500 texts differ from five"
expect_match 0 'M parameters' embed --model "$dir/encoder" --dry_run
expect_match 64 'pooling' embed --model "$dir/encoder" --pooling median
expect_match 65 'is not a directory' embed --model "$dir/nothing" 'the king'
