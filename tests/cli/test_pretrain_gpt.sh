#!/usr/bin/env bash
# `kiln pretrain-gpt` takes the flags of Megatron-DeepSpeed's pretrain_gpt.py: batches grow and rates follow samples, lines of the
# log, validations and checkpoints are the script's, a run that ended early or was killed goes on with the same bits, the model is
# the recipe's, ranks share a batch, and what the script's parser refuses is one sentence.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests

# from lines of JSON to a store, as the document does, with GPT-2's form of files
make_gpt_store

base=(--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 2
    --data-path "$dir/meg_text_document" --data-impl mmap --split 949,50,1 --vocab-file "$dir/bpe/vocab.json"
    --merge-file "$dir/bpe/merges.txt" --optimizer adam --adam-beta1 0.9 --adam-beta2 0.999 --adam-eps 1e-8 --clip-grad 1.0
    --weight-decay 0.1 --seed 42 --no-bias-dropout-fusion --no-bias-gelu-fusion --no-masked-softmax-fusion)
samples=(--global-batch-size 8 --train-samples 2_00 --rampup-batch-size 2 2 2_4 --lr 1e-2 --min-lr 1e-3 --lr-decay-style cosine
    --lr-decay-samples 160 --lr-warmup-samples 16 --log-interval 5 --eval-iters 2 --eval-interval 10)

# train NAME FLAGS...: with --save and --load as the recipe
train()
{
    local name=$1
    shift
    command=("$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --save "$dir/$name" --save-interval 10 --load "$dir/$name" "$@")
    "${command[@]}" >"$dir/out" 2>"$dir/err"
}

train whole --tensorboard-dir "$dir/events" --log-validation-ppl-to-tensorboard --log-batch-size-to-tensorboard \
    --log-timers-to-tensorboard || fail "$(cat "$dir/err")"
cp "$dir/out" "$dir/whole.out"
[ "$(ls "$dir/whole/index" | grep -cE '_(train|valid)_indexmap_.*_idx.npy$')" = 6 ] || fail "index files: $(ls "$dir/whole/index")"
grep -q "warning: --load $dir/whole has no checkpoint: starting from random weights" "$dir/err" || fail "no warning of --load"
# 2 2 4 4 6 6 8 8 ...: 29 steps; the line of step 5 shows the rate of step 6
grep -qE '^ iteration        5/      29 \| consumed samples:           12 \| consumed tokens:          384 \| elapsed time per iteration \(ms\): [0-9.]+ \| learning rate: 7\.500E-03 \| global batch size:     4 \| lm loss: [0-9.]+E\+00 \| loss scale: 0\.0 \| grad norm: [0-9.]+ \| num zeros: 0\.0 \| number of skipped iterations:   0 \| number of nan iterations:   0 \| samples per second: [0-9.]+ \| TFLOPs: [0-9.]+ \|$' \
    "$dir/out" || fail "the log's line: $(grep iteration "$dir/out")"
grep -q '  rampup_batch_size ............................... \[' "$dir/out" || fail "no list of arguments"
grep -qE '^ validation loss at iteration 20 \| lm loss value: [0-9.]+E\+00 \| lm loss PPL: [0-9.]+E\+0[01] \| $' "$dir/out" ||
    fail "no line of a validation"
grep -q 'tokens of the training text, lose [0-9.]* nats a token on 16 held-out samples' "$dir/err" &&
    grep -q '^iteration 10: 16 held-out samples: lm loss [0-9.]* (6-grams ' "$dir/err" || fail "no counts: $(cat "$dir/err")"
grep -oE '"event":"(ngram|evaluation)"' "$dir/whole/log.jsonl" | sed -n 1p | grep ngram >/dev/null || fail "an evaluation did not wait for the counts"
grep -q 'at the end of training for val data' "$dir/out" && ! grep -q 'for test data' "$dir/out" || fail "150 documents: 0 for the test"
grep -qE '^saving checkpoint at iteration      29 to ' "$dir/out" && grep -q '^Checkpoint Save GB: ' "$dir/out" || fail "no lines of checkpoints"
grep -q '"learning_rate":0.001,' "$dir/whole/log.jsonl" || fail "log.jsonl has no rate of a step"
awk -F '[: |]+' '/validation loss at/ { if (!n++) first = $(NF - 5); last = $(NF - 5) } END { exit !(last < first - 0.3) }' "$dir/out" ||
    fail "nothing was learnt: $(grep validation "$dir/out")"
[ "$(grep -ac 'lm-loss-validation/lm loss validation ppl vs tokens' "$dir"/events/*)" -gt 0 ] || fail "no event of a perplexity"

# the model of the recipe: GPT-2 with GELU by erf and padded words
for key in '"activation_function": "gelu"' '"vocab_size": 384' '"n_positions": 32' '"n_inner": 128'; do
    grep -qF "$key" "$dir/whole/ckpt_29/config.json" || fail "$key: $(cat "$dir/whole/ckpt_29/config.json")"
done
expect 0 '' "$kiln" generate --model "$dir/whole/ckpt_29" --prompt 'The king' --max_new_tokens 4

# a recipe is the flags that it prints; those of the command line take precedence
few() { "$kiln" pretrain-gpt --num-layers 1 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 \
    --micro-batch-size 4 --train-iters 12 --eval-iters 0 --data-path "$dir/meg_text_document" --vocab-file "$dir/bpe/vocab.json" \
    --merge-file "$dir/bpe/merges.txt" --save "$dir/$1" --save-interval 12 "${@:2}"; }
flags='--optimizer muon --lr 8e-3 --lr-decay-style linear --lr-warmup-fraction 0.06 --adam-beta2 0.98 --weight-decay 0.1 --attention-dropout 0 --hidden-dropout 0'
expect 0 "recipe modern: $flags" few modern --recipe modern
grep -q '"optimizer":"muon"' "$dir/modern/log.jsonl" || fail "it is not Muon: $(head -n 1 "$dir/modern/log.jsonl")"
few spelled $flags >/dev/null 2>&1
cmp "$dir/modern/ckpt_12/model.safetensors" "$dir/spelled/ckpt_12/model.safetensors" || fail "a recipe is not its flags"
expect 0 'the command line has its own --lr, --lr-warmup-iters' few own --recipe modern --lr 1e-3 --lr-warmup-iters 2
expect 64 'needs --lr' few none

# ends at an interval, a time, a file, or by kill -9: the rest has the same bits
same() { cmp "$dir/whole/ckpt_29/$2" "$dir/$1/ckpt_29/$2" || fail "$2 of $1 differs"; }
same_run() { same "$1" model.safetensors && same "$1" optimizer.safetensors && same "$1" trainer_state.json; }
for _ in 1 2 3; do train cut --exit-interval 13 || fail "$(cat "$dir/err")"; done
ls "$dir/cut" | grep ckpt_26 >/dev/null || fail "no checkpoint at the interval"
same_run cut
train timed --exit-duration-in-mins 1e-6 || fail "$(cat "$dir/err")"
[ -d "$dir/timed/ckpt_1" ] || fail "it did not end after the first step: $(ls "$dir/timed")"
train timed && same_run timed
touch "$dir/switch"
train none --kill-switch-path "$dir/switch" || fail "$(cat "$dir/err")"
grep -q 'the run does not begin' "$dir/err" && [ ! -e "$dir/none" ] || fail "the kill switch was not seen"
longer=(--train-samples 1000 --log_memory_usage --log-interval 1 --save-interval 40)
train long "${longer[@]}" || fail "$(cat "$dir/err")"
train killed "${longer[@]}" --dry-run
room=$((2 * $(getconf PAGESIZE))) start_held "${command[@]/--dry-run/--disable_progress_bar}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
train killed "${longer[@]}" && grep -q 'resumed from' "$dir/err" || fail "nothing was resumed: $(cat "$dir/err")"
for file in model.safetensors optimizer.safetensors trainer_state.json; do
    cmp "$dir/long/ckpt_129/$file" "$dir/killed/ckpt_129/$file" || fail "$file differs after kill -9"
done
expect 64 'already has checkpoints of a GPT2LMHeadModel; add --load' "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" \
    --save "$dir/whole" --save-interval 5
expect 65 'has another architecture than the flags: "n_layer" is ' "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" \
    --save "$dir/whole" --save-interval 5 --load "$dir/whole" --num-layers 5
grep -q ' there and 5 here$' "$dir/err" || fail "$(cat "$dir/err")"
expect 64 "and --load names $dir/cut: give --load $dir/whole" "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" \
    --save "$dir/whole" --save-interval 5 --load "$dir/cut"
expect 0 "resumed from $dir/whole/ckpt_29" "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --save "$dir/other" --save-interval 5 \
    --load "$dir/whole"
train tuned --finetune --load "$dir/whole" --exit-interval 1 || fail "$(cat "$dir/err")"

# a dry run counts the index files, which ranks share, and makes none
train dry --dry-run --train-samples 300_000 --lr-decay-samples 300_000 || fail "$(cat "$dir/err")"
grep -qE "order: 5\.9 MiB of index files in $dir/dry/index, mapped and shared by ranks; .* 2\.6 MiB" "$dir/err" ||
    fail "no plan of the index files: $(cat "$dir/err")"
[ ! -e "$dir/dry" ] || fail "a dry run wrote $(ls "$dir/dry")"

# iterations, DeepSpeed's JSON, bf16 and recomputation, BLOOM's form, another order
echo '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "steps_per_print": 5, "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 0}, "bf16": {"enabled": true}, "fp16": {"enabled": false}, "wall_clock_breakdown": false}' >"$dir/ds.json"
iterations=("${base[@]}" --global-batch-size 8 --train-iters 4 --lr 1e-3 --lr-warmup-iters 2 --log-interval 1 --eval-iters 0
    --output_dir "$dir/iterations")
expect 0 ' iteration        4/       4 | consumed samples:           32 |' "$kiln" pretrain-gpt "${iterations[@]}" --deepspeed \
    --deepspeed_config="$dir/ds.json" --bf16 --checkpoint-activations --deepspeed-activation-checkpointing --zero-stage=0
grep -q 'learning rate: 5.000E-04' "$dir/out" || fail "the warm-up in iterations"
[ ! -e "$dir/iterations/ckpt_4" ] || fail "saved without --save"
expect 64 '"bf16" is 1, but --bf16 is 0' "$kiln" pretrain-gpt "${iterations[@]}" --deepspeed --deepspeed_config "$dir/ds.json"
sgd=(--optimizer sgd --sgd-momentum 0.8 --lr 0.3 --min-lr 0.1)
train sgd "${sgd[@]}" || fail "$(cat "$dir/err")"
grep -q '"optimizer": *"sgd"' "$dir/sgd/ckpt_29/trainer_state.json" || fail "not sgd: $(cat "$dir/sgd/ckpt_29/trainer_state.json")"
awk -F '[: |]+' '/validation loss at/ { if (!n++) first = $(NF - 5); last = $(NF - 5) } END { exit !(last < first - 0.2) }' "$dir/out" ||
    fail "sgd learnt nothing: $(grep validation "$dir/out")"
train sgd_cut "${sgd[@]}" --exit-interval 11 && train sgd_cut "${sgd[@]}" || fail "$(cat "$dir/err")"
cmp "$dir/sgd/ckpt_29/optimizer.safetensors" "$dir/sgd_cut/ckpt_29/optimizer.safetensors" || fail "sgd resumed otherwise"

# the norm of all weights is that of the saved ones; rows of padded words have gradients of 0
norms=(--log-params-norm --log-num-zeros-in-grad --log-interval 1 --exit-interval 3 --tensorboard-dir "$dir/norm_events")
train norms "${norms[@]}" || fail "$(cat "$dir/err")"
weights=$dir/norms/ckpt_3/model.safetensors
norm=$(tail -c +$((9 + $(od -An -t u8 -N 8 "$weights"))) "$weights" | od -An -v -w4 -tf4 | awk '{ s += $1 * $1 } END { printf "%.3f", sqrt(s) }')
grep -qE "^ iteration        3/.* num zeros: [0-9]+\.0 \| params norm: $norm \| number of skipped" "$dir/out" || fail "the norm $norm: $(grep iteration "$dir/out")"
zeros=$(sed -nE 's/^ iteration        3.* num zeros: ([0-9]+)\.0 .*/\1/p' "$dir/out")
words=$(tr ',' '\n' <"$dir/bpe/vocab.json" | wc -l)
[ "$zeros" -ge $(((384 - words) * 32)) ] && [ "$zeros" -lt $(((384 - words) * 32 + 100)) ] || fail "$zeros zeros for $((384 - words)) padded rows of 32"
[ "$(grep -ac 'params-norm/params-norm vs tokens' "$dir"/norm_events/*)" -gt 0 ] || fail "no event of the norm"
grep -q '"weight_norm":' "$dir/norms/log.jsonl" && grep -q "\"zero_gradients\":" "$dir/norms/log.jsonl" || fail "log.jsonl has no norm"
bloom=(--position-embedding-type alibi --embed-layernorm)
expect 0 'model: BLOOM: 2 layers x 32' "$kiln" pretrain-gpt "${iterations[@]/--no-bias-gelu-fusion/--no-load-rng}" "${bloom[@]}" --megatron_order false --save "$dir/bloom" \
    --output_dir "$dir/bloom" --save-interval 4 --migration_log "$dir/migration"
grep -q "^run        kiln pretrain-gpt, " "$dir/migration" || fail "the migration log is of another command: $(head -n 3 "$dir/migration")"
# an order that needs no index has none, of the validation neither, whose samples begin again behind the last
expect 0 'validation loss at the end of training' "$kiln" pretrain-gpt "${iterations[@]/--no-bias-gelu-fusion/--no-load-rng}" "${bloom[@]}" \
    --megatron_order false --output_dir "$dir/keyed" --eval-iters 40 --data-cache-path "$dir/no_index"
[ ! -e "$dir/no_index" ] || fail "index files of an order that needs none: $(ls "$dir/no_index")"
expect 64 'BLOOM has the tanh form' "$kiln" pretrain-gpt "${iterations[@]}" "${bloom[@]}"
expect 64 'give both or none' "$kiln" pretrain-gpt "${iterations[@]}" --embed-layernorm

# what the parser refuses, a sentence each
refused()
{
    local code=$1 text=$2
    shift 2
    expect "$code" "$text" "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --output_dir "$dir/refused" "$@"
    [ ! -e "$dir/refused" ] || fail "refused, and written: $*"
}
refused 64 'is a mesh of 8 ranks, but 1 was started' --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2
refused 64 '--train-samples and --train-iters both' --train-iters 5
refused 64 '--num-layers-per-virtual-pipeline-stage needs several stages' --num-layers-per-virtual-pipeline-stage 1
refused 65 'meg_text_document has no training documents: the split 0,100,0 of its' --split 0,100,0
# limits in full, also of numbers that no double has
refused 64 '--seed is 2147483648, but must lie between 0 and 2147483647' --seed 2147483648
refused 64 '--exit-interval is 9223372036854775807, but must lie between 0 and 1000000000000' --exit-interval 9223372036854775807
refused 64 '--lr is 1e9, but must lie between 0 and 100' --lr 1e9
refused 64 '--adam-eps is 2, but must lie between 1e-30 and 1' --adam-eps 2
refused 64 '--megatron_order false needs no indexes' --train-samples 1000000000000
refused 64 '--lr-decay-iters cannot be combined with --train-samples' --lr-decay-iters 5
refused 64 '--max-position-embeddings 16 is less than --seq-length 32' --max-position-embeddings 16
refused 64 '--hidden-size 33 is not a multiple of --num-attention-heads 4' --hidden-size 33
refused 64 '--min-lr 0.1 is above --lr 0.01' --min-lr 0.1
refused 64 '--save needs --save-interval' --save "$dir/refused"
refused 64 '--bf16 and --fp16' --bf16 --fp16
refused 64 'all is fp32 already: leave out --fp32-residual-connection, or give --bf16' --fp32-residual-connection
refused 64 '--min-loss-scale 8 is above --initial-loss-scale 4' --min-loss-scale 8 --initial-loss-scale 4 --loss-scale-window 500 --hysteresis 3
refused 64 '--global-batch-size 7 is not a multiple of --micro-batch-size 2 times 1 rank' --global-batch-size 7
refused 64 'the start 3 is not a multiple of --micro-batch-size 2' --rampup-batch-size 3 1 24
refused 64 'the increment 3 is not a multiple' --rampup-batch-size 2 3 24
refused 64 'needs 3 numbers, START INCREMENT SAMPLES, not 2' --rampup-batch-size 2 2
refused 64 'is not a multiple of the increment, 4' --rampup-batch-size 2 4 24
refused 64 'must be shorter than its decay' --lr-warmup-samples 170
refused 64 '--train-samples 1 is less than one batch' --train-samples 1
refused 64 '--lr-decay-tokens is refused: give --lr-decay-samples' --lr-decay-tokens=5
refused 64 'add --checkpoint-activations' --deepspeed-activation-checkpointing
refused 65 "--data-path $dir/nothing is not the PREFIX" --data-path "$dir/nothing"
refused 65 "$dir/nothing.json" --vocab-file "$dir/nothing.json"
expect 64 'kiln pretrain-gpt needs --num-layers' "$kiln" pretrain-gpt --vocab-file a
expect 0 'work: phase 1, 29 steps' "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --output_dir "$dir/refused" --dry-run

# a residual stream in fp32: nearly the same losses, but not the same bits
loss_of() { sed -nE 's/.*validation loss at iteration 20 .* lm loss value: ([0-9.E+-]+) .*/\1/p' "$dir/out"; }
train narrow --bf16 && narrow=$(loss_of) || fail "$(cat "$dir/err")"
train stream --bf16 --fp32-residual-connection && stream=$(loss_of) || fail "$(cat "$dir/err")"
grep -q 'parameters, bf16, fp32 residual' "$dir/err" || fail "the log does not say what the stream is"
awk -v a="$narrow" -v b="$stream" 'BEGIN { exit !(a != b && a / b < 1.01 && b / a < 1.01) }' || fail "losses $narrow and $stream"

# a run that goes on names what it does otherwise; another network is refused
train part --exit-interval 10 || fail "$(cat "$dir/err")"
# again FLAGS...: a copy of it goes on
again()
{
    rm -rf "$dir/again"
    cp -r "$dir/part" "$dir/again"
    train again --exit-interval 12 "$@"
}
again && ! grep -q 'in the checkpoint and is' "$dir/err" || fail "nothing has changed: $(cat "$dir/err")"
while read -r flag value text; do
    again "$flag" "$value" || fail "$flag: $(cat "$dir/err")"
    grep -q "warning: $text in the checkpoint and is" "$dir/err" || fail "$flag is not named: $(cat "$dir/err")"
done <<'END'
--weight-decay 0.5 weight_decay was 0.1
--weight-decay 0 weight_decay was 0.1
--clip-grad 0.1 max_grad_norm was 1
--adam-beta1 0.8 adam_beta1 was 0.9
--adam-beta2 0.9 adam_beta2 was 0.999
--adam-eps 1e-6 adam_eps was 1e-08
--hidden-dropout 0.5 resid_pdrop was 0.1
--attention-dropout 0.2 attn_pdrop was 0.1
--lr-decay-style linear lr_decay_style was cosine
--min-lr 1e-4 min_lr was 0.001
--lr-warmup-samples 24 lr_warmup_samples was 16
--lr-decay-samples 190 lr_decay_samples was 160
END
again --layernorm-epsilon 1e-3 && fail "another epsilon"
grep -q '"layer_norm_epsilon" is 1e-05 there and 0.001 here' "$dir/err" || fail "$(cat "$dir/err")"
# the end of a line in a name makes no line of its own, nor in the lines that scripts read
train $'two\nlines' --exit-interval 2 || fail "$(cat "$dir/err")"
grep -q 'saved checkpoint at iteration.* to .*two.x0alines' "$dir/out" || fail "no save: $(cat "$dir/out")"
! grep -h '^lines' "$dir/out" "$dir/err" || fail "a name's end is a line"
# a store without .json is known by what it was
for end in bin idx; do cp "$dir/meg_text_document.$end" "$dir/bare.$end"; done
train bare --data-path "$dir/bare" --exit-interval 10 || fail "$(cat "$dir/err")"
touch "$dir/bare.bin"
train bare --data-path "$dir/bare" --exit-interval 12 || fail "$(cat "$dir/err")"
grep -q 'bare.bin was written or moved since this run began' "$dir/err" || fail "$(cat "$dir/err")"
at=$(($(stat -c %s "$dir/bare.bin") / 2))
head -c 40 "$dir/bare.bin" | dd of="$dir/bare.bin" bs=1 seek=$at conv=notrunc 2>/dev/null
mkdir "$dir/elsewhere" && cp "$dir"/bare.{bin,idx} "$dir/elsewhere"
for prefix in bare elsewhere/bare; do
    train bare --data-path "$dir/$prefix" --exit-interval 14 && fail "another store"
    grep -q 'was trained on other data' "$dir/err" || fail "$(cat "$dir/err")"
done

# ranks share each batch
. "$(dirname "$0")/ranks.sh"
need_mpirun
as_ranks 2 "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --micro-batch-size 1 --save "$dir/ranks" --save-interval 50
runs
grep -q 'data_parallel_size .............................. 2' "$dir/out" || fail "not two ranks: $(cat "$dir/out")"
same_numbers <(grep 'validation loss' "$dir/whole.out") <(grep 'validation loss' "$dir/out") || fail "two ranks validate otherwise: $(grep valid "$dir/out")"
norms_of() { sed -nE 's/.* (num zeros: .* params norm: [0-9.]+) .*/\1/p' "$1"; }
train one_rank "${norms[@]}" --bf16 && cp "$dir/out" "$dir/one_rank.out" || fail "$(cat "$dir/err")"
as_ranks 2 "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --micro-batch-size 1 --save "$dir/two_ranks" --save-interval 50 "${norms[@]}" --bf16
runs
[ "$(norms_of "$dir/out" | wc -l)" = 3 ] || fail "no norms of two ranks: $(cat "$dir/out")"
paste <(norms_of "$dir/one_rank.out") <(norms_of "$dir/out") | awk '{ if ($7 - $14 > 0.01 || $14 - $7 > 0.01 || $3 - $10 > 20 || $10 - $3 > 20) exit 1 }' ||
    fail "norms of two ranks: $(norms_of "$dir/one_rank.out") $(norms_of "$dir/out")"
as_ranks 2 "$kiln" pretrain-gpt "${base[@]}" "${samples[@]}" --save "$dir/more" --save-interval 50
"${command[@]}" >"$dir/out" 2>"$dir/err" && fail "a ramp that two ranks cannot share"
grep -q 'the start 2 is not a multiple of --micro-batch-size 2 times 2 ranks' "$dir/err" || fail "$(cat "$dir/err")"
