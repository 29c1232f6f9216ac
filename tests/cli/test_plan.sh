#!/usr/bin/env bash
# `kiln plan`: on one device the bytes that `kiln pretrain --dry-run` plans, ZeRO's stages and what was published beside it, and
# what is refused.  The documents' large models are announced, and train at small widths.
. "$(dirname "$0")/begin.sh"
tests=$(cd "$(dirname "$0")" && pwd)
configs=$tests/../../configs
rates=(--products_tflops 0.2 --copy_gb_s 30 --memory_gb 1000)
plan() { "$kiln" plan "$@"; }

# value KEY N: of the N-th line with this key in the JSON that was printed
value() { awk -v key="\"$1\":" -v n="$2" '$1 == key && --n == 0 { gsub(/[",]/, ""); print $2 }' "$dir/out"; }

# same NAME KEY [KEY]: the bytes of the keys, in MiB, are those that a run announces
same()
{
    local announced bytes=0 key
    announced=$(sed -nE "s/.*[ =]$1 ([0-9.]+).*/\1/p" <<<"$memory")
    for key in "${@:2}"; do
        bytes=$((bytes + $(value "$key" 1)))
    done
    [ "$(awk -v b="$bytes" 'BEGIN { printf "%.1f", b / 1048576 }')" = "$announced" ] ||
        fail "$config: $1 are $announced MiB in a run, and $bytes bytes in its plan"
}

# one device, as a run plans it
for flags in "" "--autocast" "--autocast --checkpoint_activations --optimizer adamw"; do
    for config in bert_mini bert_1.5b bert_5b; do
        # shellcheck disable=SC2086 # words
        expect 0 "memory: " "$kiln" pretrain --input_dir none --output_dir none --config_file "$configs/$config.json" \
            --train_batch_size 24 --gradient_accumulation_steps 3 --max_seq_length 128 --dry-run $flags
        memory=$(grep '^memory: ' "$dir/err")
        # shellcheck disable=SC2086
        expect 0 '"world": 1' plan --config "$configs/$config.json" --device cpu "${rates[@]}" --train_batch_size 24 \
            --micro_batch_size 8 \
            --json $flags
        same weights working_bytes master_bytes
        same gradients gradient_bytes
        same moments optimizer_bytes
        same activations activation_bytes
        same saving host_bytes
        same batches batch_bytes
        same libraries library_bytes
        total=$(awk -v a="$(value device_bytes 1)" -v b="$(value host_bytes 1)" -v c="$(value batch_bytes 1)" \
            'BEGIN { printf "= %.1f MiB", (a + b + c) / 1048576 }')
        [[ $memory == *"$total" ]] || fail "$config: $memory, but the plan says $total"
    done
done

# the table of document 002: without ZeRO its model does not fit, with it it does; what was published has its source
expect 0 "302.5 sequences/s, ZeRO-1 [document 002" plan --config "$configs/bert_1.5b.json" --world 8 --zero 1 --device gaudi1 \
    --autocast \
    --optimizer lans --global_batch_size 12288
grep -qE '^fits into 29.80 +no +yes +yes$' "$dir/out" || fail "who fits: $(cat "$dir/out")"
grep -qE '^weights, the copy that products read +2.85 +2.85 +2.85$' "$dir/out" || fail "the working copy: $(cat "$dir/out")"
grep -qE '^weights, fp32 +5.70 +0.72 +0.72$' "$dir/out" || fail "the master: $(cat "$dir/out")"
grep -q "^ *128 .*scaling 82.7 %, ZeRO-1" "$dir/out" || fail "no row of 128: $(cat "$dir/out")"
grep -q "^published: Figure 3: without ZeRO out of memory" "$dir/out" || fail "no figure 3"
[ "$(grep -cE '^ +(1|8|16|32|64|128) ' "$dir/out")" -eq 6 ] || fail "six numbers of devices: $(cat "$dir/out")"
expect 0 '"devices": 128' plan --config "$configs/bert_1.5b.json" --world 8 --zero 1 --device gaudi1 --autocast --optimizer lans \
    --global_batch_size 12288 --json
grep -q '"source": "document 002' "$dir/out" || fail "no source in JSON"
[ "$(value fits 1) $(value fits 2) $(value fits 3)" = "false true true" ] || fail "who fits, in JSON"

# BERT-5B alone and on 128: 6,282.4 M parameters of 18 bytes and their activations; a 128th of 12 bytes with ZeRO-2, and the
# gradients of the embedding, which wait for the whole backward (tests/task/test_world_plan.c has them counted)
expect 0 "6282.38 M parameters" plan --config "$configs/bert_5b.json" --world 128 --zero 2 --device gaudi1 --autocast \
    --optimizer lans \
    --global_batch_size 12288 --micro_batch_size 24 --checkpoint_activations --checkpoint_activations_interval 1
grep -qE '^weights, fp32 +23.40 +0.19 +0.19$' "$dir/out" || fail "the master: $(cat "$dir/out")"
grep -qE '^gradients, fp32 +23.40 +23.40 +5.36$' "$dir/out" || fail "gradients: $(cat "$dir/out")"
grep -qE '^fits into 29.80 +no +no +yes$' "$dir/out" || fail "who fits: $(cat "$dir/out")"
expect 71 "it fits with --world 64 --zero 2, or with --checkpoint_activations --world 16 --zero 2" plan \
    --config "$configs/bert_5b.json" \
    --device gaudi1 --autocast
grep -q "^fits into" "$dir/out" || fail "no table where it does not fit"
expect 71 "it does not fit even on 4096 devices with --zero 2 --checkpoint_activations;" plan --config "$configs/bert_5b.json" \
    --device gaudi1 --autocast --memory_gb 1 --dry-run
! grep -q "^time of a step" "$dir/out" || fail "a dry run predicts times"
cp "$configs/bert_5b.json" "$dir/"$'two\nlines'
expect 0 'two\x0alines: ' plan --config_file "$dir/"$'two\nlines' --device h100 --autocast --world 8 --zero 2
expect 0 "fits into" plan --config_file "$configs/bert_5b.json" --device h100 --autocast --world 8 --zero 2 --link_gb_s 100

# rates of this machine, measured, and what is planned in fp8 stands beside no figure of 16 bits
expect 0 "expected: " plan --config "$configs/bert_tiny.json" --device cpu --autocast
grep -qE '^forward and backward +[0-9.]*[1-9]' "$dir/out" || fail "no time: $(cat "$dir/out")"
expect 0 "1861 sequences/s" plan --config "$configs/bert_large.json" --autocast
expect 0 "h200" plan --config "$configs/bert_large.json" --fp8
! grep -q "1861 sequences/s" "$dir/out" || fail "another precision's figure"

# what is refused
tiny=(plan --config "$configs/bert_tiny.json")
expect 64 '--device: kiln does not know the device "tpu", only h200, h100, a100, gaudi1, cpu' "${tiny[@]}" --device tpu
expect 64 "--world is 0" "${tiny[@]}" --world 0
expect 69 "--zero 3 is not supported" "${tiny[@]}" --zero 3
expect 64 "--zero is 4" "${tiny[@]}" --zero 4
expect 64 "--config is missing" plan
expect 65 "none.json" plan --config "$dir/none.json"
expect 64 "give one of them" "${tiny[@]}" --train_batch_size 32 --global_batch_size 32
expect 64 "--global_batch_size 48 cannot be divided into micro-batches of 16 on 2 devices" "${tiny[@]}" --global_batch_size 48 \
    --world 2
expect 64 "add --autocast" "${tiny[@]}" --device gaudi1
expect 64 "gaudi1 does not compute in fp16" "${tiny[@]}" --device gaudi1 --fp16
expect 64 "--products_tflops and --copy_gb_s need each other" "${tiny[@]}" --device cpu --copy_gb_s 10
expect 64 "--max_seq_length 1024 is more than the 512 positions" "${tiny[@]}" --max_seq_length 1024
expect 64 "is more than --max_seq_length 8" "${tiny[@]}" --max_seq_length 8

# a decoder on a mesh: a row for each stage, the bubble, and what cannot be
cat >"$dir/gpt.json" <<'END'
{"model_type": "gpt2", "vocab_size": 512, "n_positions": 128, "n_embd": 64, "n_layer": 8, "n_head": 4}
END
mesh=("$kiln" plan --config "$dir/gpt.json" --optimizer adam --max_seq_length 128 --micro_batch_size 1 --global_batch_size 16)
expect 0 "mesh: 2 slices x 4 stages of 1 chunks x 1 replicas = 8 devices" "${mesh[@]}" --mesh 2x4x1
[ "$(grep -cE '^ +[0-3] .*\|' "$dir/out")" = 4 ] || fail "no row for each stage: $(cat "$dir/out")"
grep -q '^bubble: 15.79 % of a step by turns counted, 15.79 %' "$dir/out" || fail "3 of 19 turns: $(cat "$dir/out")"
grep -q "left: MiB of a rank's memory; right: MB that a rank sends" "$dir/out" &&
    grep -E '^ +[0-3] .*\|' "$dir/out" | awk '$2 == 0 || $7 == 0 || $9 == 0 { bad = 1 } END { exit bad || NR != 4 }' ||
    fail "a small model is all zeros: $(cat "$dir/out")"
expect 0 "bubble: 8.57 % of a step" "${mesh[@]}" --mesh 1x4x1 --chunks 2
expect 64 "needs a multiple of 3 heads" "${mesh[@]}" --mesh 3x1x1
expect 0 "mesh: 2 slices" "${mesh[@]}" --mesh 2x1x1 --sequence-parallel
expect 64 "divides rows among the slices of a mesh" "${mesh[@]}" --sequence-parallel
expect 64 "must be three numbers" "${mesh[@]}" --mesh 4x2
expect 64 "cannot be divided into micro-batches of 1 on 3 devices" "${mesh[@]}" --mesh 1x1x3
expect 64 "give one of them" "${mesh[@]}" --mesh 1x2x1 --world 2
expect 64 "give one of them" "${mesh[@]}" --mesh 1x2x1 --search 2
expect 64 "give --mesh TPxPPxDP" "${mesh[@]}" --chunks 2
expect 71 "a rank of stage 0 needs" "${mesh[@]}" --mesh 1x2x1 --memory_gb 0.001
expect 64 "give --mesh TPxPPxDP" "${mesh[@]}" --schedule
expect 64 "give --mesh TPxPPxDP" "${mesh[@]}" --pp-partition-method uniform
expect 64 "is not uniform" "${mesh[@]}" --mesh 1x2x1 --pp-partition-method halves

# BERT is cut as decoders are, but for its rows
bert=("$kiln" plan --config "$configs/bert_mini.json" --micro_batch_size 1 --global_batch_size 16)
expect 0 "mesh: 2 slices x 2 stages of 1 chunks x 1 replicas = 4 devices" "${bert[@]}" --mesh 2x2x1
expect 0 "4 devices of h200, 16 sequences" "${bert[@]}" --search 4
expect 64 "a bert model cannot be sequence parallel" "${bert[@]}" --mesh 2x1x1 --sequence-parallel
expect 0 "plan on a mesh of so many" "$kiln" plan --help

# the turns of stages
expect 0 "stage 1: F0 B0 F1 B1 F2 B2 F3 B3" "${mesh[@]}" --mesh 1x2x1 --global_batch_size 4 --schedule
[ "$(cat "$dir/out")" = "stage 0: F0 F1 B0 F2 B1 F3 B2 B3
stage 1: F0 B0 F1 B1 F2 B2 F3 B3" ] || fail "another schedule: $(cat "$dir/out")"
expect 64 "runs 4 micro-batches at a time" "${mesh[@]}" --mesh 1x4x1 --chunks 2 --global_batch_size 6 --schedule

# the parts of a predicted step are all of it; without times nothing is predicted
expect 0 "expected: " "${mesh[@]}" --mesh 2x2x2
grep -qE '^step +[0-9.]+ +100.0 %$' "$dir/out" || fail "no step: $(cat "$dir/out")"
awk '/^time of a step/ { on = 1; next } on && /^step / { exit !(s - $2 < 3e-4 && $2 - s < 3e-4) } on { s += $(NF - 2) }' "$dir/out" ||
    fail "the parts are not the step: $(cat "$dir/out")"
expect 0 '"predicted_seconds"' "${mesh[@]}" --mesh 2x2x2 --json
! command -v python3 >/dev/null || python3 -m json.tool "$dir/out" >/dev/null || fail "no JSON: $(cat "$dir/out")"
expect 0 "bubble: " "${mesh[@]}" --mesh 2x2x2 --dry_run
! grep -q "predicted)" "$dir/out" || fail "a dry run predicts times"

# what was published of BLOOM-176B (384 A100: 105 s, 150 TFLOP/s with what is recomputed), with its ratio
echo '{"model_type": "bloom", "vocab_size": 250880, "hidden_size": 14336, "n_layer": 70, "n_head": 112}' >"$dir/bloom.json"
bloom=("$kiln" plan --config "$dir/bloom.json" --device a100 --autocast --optimizer adamw --zero 1 --max_seq_length 2048
    --micro_batch_size 2 --global_batch_size 2048 --checkpoint_activations --checkpoint_activations_interval 1
    --pp-partition-method 'type:transformer|embedding')
expect 0 "published: 105 s a step (predicted / published = " "${bloom[@]}" --mesh 4x12x8
awk '/^step / { s = $2 } /predicted \/ published = / { sub(/.*published = /, ""); r = $0 + 0 } /^expected: / { t = $0 }
    END { sub(/.*model, /, "", t)
        f = 96 * 2048 * 2048 * 70 * 14336 ^ 2 * (1 + 2048 / (6 * 14336) + 250880 / (16 * 70 * 14336)) / (s * 384e12)
        exit !(r - s / 105 < 0.01 && s / 105 - r < 0.01 && f - (t + 0) < 0.1 && (t + 0) - f < 0.1) }' "$dir/out" ||
    fail "another ratio, or other TFLOP/s: $(cat "$dir/out")"
expect 0 "bubble" "${bloom[@]}" --mesh 8x6x8
! grep -q "^published" "$dir/out" || fail "another mesh's figure"

# all meshes of 8 devices: none is lost, the fastest come first, and --mesh predicts the same of them
expect 0 "8 devices of h200, 16 sequences" "${mesh[@]}" --search 8
awk '/^8 devices/ { sub(/.*: /, ""); all = $1 } /do not divide|need more|remain/ { n += $1 }
    $9 == "%" { wrong = wrong || $10 < last; last = $10; rows++ }
    END { exit !(all > 50 && n == all && rows == 10 && !wrong) }' "$dir/out" ||
    fail "meshes are lost, or out of order: $(cat "$dir/out")"
expect 0 '"tried": ' "${mesh[@]}" --search 8 --json
best=$(awk '$1 == "\"step\":" { print $2; exit }' "$dir/out")
read -r tp pp dp < <(tr -d ' \n' <"$dir/out" | sed -E 's/.*"best":\[\{[^[]*"mesh":\[([0-9]+),([0-9]+),([0-9]+)\].*/\1 \2 \3\n/')
chunks=$(value chunks 1) size=$(value micro_batch_size 1) zero=$(value zero 1)
expect 0 "\"step\": $best" "${mesh[@]}" --mesh "${tp}x${pp}x$dp" --zero "$zero" --chunks "$chunks" --micro_batch_size "$size" --json
# of the choices of ZeRO and recomputation those that let more fit are counted; a run has its time, cost and bytes
expect 0 "of these fit " "${mesh[@]}" --search 8 --train_tokens 1e9 --cost_per_hour 2
fit=$(sed -n 's/^of these fit //p; s/^only with --checkpoint_activations: //p' "$dir/out" | sed 's/ with --zero [012],\{0,1\}//g' | tr ' \n' '++')
awk -v fit="$(($fit 0))" '/ remain, / { exit fit != $1 }' "$dir/out" || fail "choices are not all: $(cat "$dir/out")"
grep -q 'a run over 1e+09 tokens (predicted): 488282 steps, .* device hours on 8 devices, .* kWh at most .*, cost [0-9.]*$' "$dir/out" &&
    grep -q '^on disk: .* GB a checkpoint, .* GB an exported model, 2 GB the store of the tokens$' "$dir/out" || fail "$(cat "$dir/out")"
expect 0 '"checkpoint_bytes": ' "${mesh[@]}" --mesh 1x1x2 --train_tokens 1e9 --json
# a model's own length, its name, and errors in the order of what is missing
expect 0 "sequences of 128 tokens, 127 predicted" "$kiln" plan --config "$dir/gpt.json" --dry_run
expect 0 "6658.40 M parameters" "$kiln" plan --config 7b --dry_run --autocast --device h200 --zero 2 --world 8 --micro_batch_size 1
expect 64 "no configuration of this name" "$kiln" plan --config 7bb --search 32
expect 64 "give --train_tokens" "${mesh[@]}" --mesh 1x1x2 --cost_per_hour 2
expect 71 "no mesh of 8 devices holds the model" "${mesh[@]}" --search 8 --memory_gb 0.001
expect 64 "no mesh of 11 devices divides the model and 16 sequences" "${mesh[@]}" --search 11
expect 64 "give --global_batch_size" "$kiln" plan --config "$dir/gpt.json" --search 8

# the documents' large models, under their names: announced first, and trained at a small width
make_store
n=0
for announced in "bert_1.2b: 40 layers x 1536, 16 heads, feed-forward 6144, vocabulary 30522: 1185.69 M" \
    "bert_1.5b: 48 layers x 1600, pre-LN, 25 heads, feed-forward 6400, vocabulary 30522: 1530.38 M" \
    "bert_5b: 63 layers x 2560, pre-LN, 40 heads, feed-forward 10240, vocabulary 512035: 6282.38 M"; do
    name=${announced%%:*}
    expect 0 "model: $name.json:${announced#*:} parameters, bf16, lans" "$kiln" pretrain --input_dir none --output_dir none \
        --config_file "$configs/$name.json" --autocast --optimizer lans --train_batch_size 16 --dry-run
    grep -A2 '^model: ' "$dir/err" | tail -1 | grep '^memory: weights ' >/dev/null || fail "bytes are not announced: $(cat "$dir/err")"
    sed -E 's/("hidden_size": )[0-9]+/\132/; s/("num_attention_heads": )[0-9]+/\12/; s/("intermediate_size": )[0-9]+/\164/
        s/("vocab_size": )[0-9]+/\1300/' "$configs/$name.json" >"$dir/$name.json"
    expect 0 "saved" "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/$name.json" --output_dir "$dir/$name" \
        --autocast \
        --optimizer lans --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 --gradient_accumulation_steps 2 \
        --max_steps 3 \
        --checkpoint_activations --eval_steps 0 --disable_progress_bar
    grep -m 1 'layers x' "$dir/err" | grep "^model: $name.json: ${announced#*: }" >/dev/null && fail "$name is not small"
    [ -s "$dir/$name/ckpt_3/model.safetensors" ] || fail "$name did not train"
    n=$((n + 1))
done
echo "test_plan: plans are the bytes of runs; $n large models train small"
