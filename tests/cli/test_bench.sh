#!/usr/bin/env bash
# `kiln bench` needs no files, and shows every op of a training step beside the ceilings of the same run.
. "$(dirname "$0")/begin.sh"

expect 0 "base: s128 B8 fp32 adamw: 110.11 M parameters" "$kiln" bench --dry-run
expect 0 "mini: s512 B2 bf16 lamb" "$kiln" bench --model mini --max_seq_length 512 --train_batch_size 2 --autocast \
    --optimizer lamb --dry-run
for precision in "" --autocast --fp8; do
    expect 0 "ceilings in this run" "$kiln" bench --model tiny --max_seq_length 32 --train_batch_size 4 --steps 1 $precision \
        --migration-log "$dir/log"
    grep -qF "ops by dtype and shape" "$dir/err" || fail "no ops by dtype and shape: $(cat "$dir/err")"
    grep -q "run        kiln bench, complete" "$dir/log" || fail "no migration log"
    for op in embed attention attention_backward linear_gelu linear_backward_weight cross_entropy squares norm_of adamw; do
        grep -qE "^$op +[0-9]+ +[0-9.]+ +[0-9.]+ %.* %$" "$dir/out" || fail "$op has no row: $(cat "$dir/out")"
    done
    # what the ops took is no more than the step
    awk '/^all ops/ { found = 1; bad = $5 <= 0 || $5 > 100.5 } END { exit !found || bad }' "$dir/out" ||
        fail "the ops are not the step: $(cat "$dir/out")"
    grep -qE "^step [0-9.]+ ms, [0-9]+ tokens/s; [0-9.]+ GFLOP of it useful: [0-9.]+ GF/s, [0-9]+ % of the products$" \
        "$dir/out" ||
        fail "no total: $(cat "$dir/out")"
done
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}' >"$dir/gpt2.json"
expect 64 "a gpt2 model is not computed in fp8" "$kiln" bench --config_file "$dir/gpt2.json" --max_seq_length 32 --fp8 --dry-run
if "$kiln" bench --device cuda --dry-run >"$dir/out" 2>"$dir/err"; then
    grep -q "^device     cuda: " "$dir/out" || fail "the GPU has no name"
else
    [ "$(wc -l <"$dir/err")" = 1 ] && grep -q "kiln: error: --device cuda: " "$dir/err" || fail "no sentence: $(cat "$dir/err")"
fi
# Answers are measured warm: thousands of small ones, whose median and slowest are told.
expect 0 "warm, nothing timed inside: median" "$kiln" bench --model tiny --task squad --max_seq_length 32 --train_batch_size 1 \
    --steps 2
grep -qE "^warm, .*: median [0-9.]+ ms, 99 % of [0-9]+ within [0-9.]+ ms, [0-9.]+ sequences/s$" "$dir/out" ||
    fail "$(cat "$dir/out")"
! grep -q "^adamw" "$dir/out" || fail "answers learn: $(cat "$dir/out")"

# What a GPU that is not here would take: rows of the same names, and the rates that tuned PyTorch was measured to have on an H200
expect 0 "Nothing here is measured" "$kiln" bench --predict h200 --model large --train_batch_size 256 --autocast --optimizer lamb
for row in linear_backward_weight attention lamb_direction lamb_apply "all ops"; do
    grep -qE "^$row +[0-9]+" "$dir/out" || fail "$row is not predicted: $(cat "$dir/out")"
done
# predicts WHAT LEAST MOST: sequences/s
predicts() { awk -v what="$1" -v least="$2" -v most="$3" '/^predicted, not measured/ && index($0, what) { rate = $(NF - 1) }
    END { exit !(rate >= least && rate <= most) }' "$dir/out" || fail "$1 is predicted otherwise: $(cat "$dir/out")"; }
predicts "forward and backward" 1850 1970
expect 0 "" "$kiln" bench --predict h200 --model large --task squad --train_batch_size 128 --max_seq_length 384 --autocast
predicts answers 1780 2180
expect 0 "of an H200's (datasheets)" "$kiln" bench --predict h100 --model large --train_batch_size 256 --autocast
predicts step 1500 1850
# decoders: every token is a label; measured there were 608 TFLOP/s in the layers of the 13B (PyTorch) and 49.5k tokens/s (llm.c)
expect 0 "gpt2-xl: s1024 B16 bf16 adamw: 1557.61 M parameters" "$kiln" bench --predict h200 --model gpt2-xl --max_seq_length 1024 \
    --train_batch_size 16 --autocast
[ "$(grep -c '^predicted' "$dir/out")" = 2 ] || fail "two sizes: $(cat "$dir/out")"
predicts step 40 55
expect 0 "gpt-13b: s2048 B4" "$kiln" bench --predict h200 --model gpt-13b --max_seq_length 2048 --train_batch_size 4 --autocast
awk '/^predicted.*forward and backward/ { for (i = 1; i < NF; i++) if ($(i + 1) == "useful") rate = $i } END { exit !(rate > 450 && rate < 700) }' \
    "$dir/out" || fail "the 13B: $(cat "$dir/out")"
expect 64 "--predict cpu: leave --predict out" "$kiln" bench --predict cpu --model tiny
expect 64 '--predict: kiln does not know the device "abacus", only h200' "$kiln" bench --predict abacus
expect 64 "is more than --max_seq_length 32" "$kiln" bench --model tiny --max_seq_length 32 --min_seq_length 64
expect 0 "tiny: s64 B4" "$kiln" bench --model tiny --max_seq_length 64 --min_seq_length 16 --train_batch_size 4 --steps 1
expect 64 "more than the 512 positions" "$kiln" bench --model tiny --max_seq_length 1024
expect 65 "cannot open" "$kiln" bench --config_file "$dir/none.json"
echo "test_bench: rows and totals are there"
