#!/usr/bin/env bash
# `kiln generate` and `kiln eval` with a decoder in slices on 2 and 4 ranks: the ids, likelihoods and guessed words of one process,
# in fp32; nearly so in bf16 and int8; less memory on a rank; what does not divide is one sentence, and the end of a rank that of all.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/ranks.sh"
need_mpirun
mkdir "$dir/store"
"$(dirname "$kiln")/tests/test_token_windows" write "$dir/store" 200
echo '{"model_type": "gpt2", "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}' >"$dir/gpt2.json"
echo '{"model_type": "bloom", "seq_length": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}' >"$dir/bloom.json"
for name in gpt2 bloom; do
    "$kiln" pretrain --input_dir "$dir/store" --vocab_file "$dir/store/tokenizer.json" --config_file "$dir/$name.json" \
        --output_dir "$dir/run-$name" --max_seq_length 32 --train_batch_size 8 --max_steps 3 --optimizer adamw \
        --learning_rate 1e-3 --num_steps_per_checkpoint 1 --keep_checkpoints 0 --eval_steps 0 --disable_progress_bar >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
    ln -s "run-$name/ckpt_2" "$dir/$name"
done
printf '%s\n' the 'and the house of the king' king 'of the' the >"$dir/prompts"
printf '%s\n' the "$(seq -s ' ' 99)" >"$dir/long"
for i in $(seq 12); do
    echo "{\"text\": \"and the king $i said to the queen that the house of number $((i * 7 % 5)) was the house of the king\"}"
done >"$dir/lines.jsonl"

# on N NAME COMMAND FLAG...: kiln COMMAND with the model NAME in N slices; its standard output goes to $dir/N
on()
{
    local n=$1 name=$2 what=$3
    shift 3
    as_ranks "$n" "$kiln" "$what" --model "$dir/$name" --tensor-model-parallel-size "$n" "$@"
    runs
    cp "$dir/out" "$dir/$n"
}
same() { cmp "$dir/1" "$dir/$1" || fail "$2 on $1 ranks: $(cat "$dir/$1") instead of $(cat "$dir/1")"; }

# the ids of one process, by the largest logit and by chance, with prompts of several lengths beside each other
for case in gpt2:1 gpt2:2 gpt2:4 bloom:1 bloom:4; do
    name=${case%:*} n=${case#*:}
    on "$n" "$name" generate --prompt_file "$dir/prompts" --max_new_tokens 12 --ids --batch_size 3 --temperature 0
    cp "$dir/$n" "$dir/$name-greedy-$n"
    cmp "$dir/$name-greedy-1" "$dir/$name-greedy-$n" || fail "$name on $n ranks: other ids"
    [ "$case" != gpt2:4 ] || continue
    on "$n" "$name" generate --prompt_file "$dir/prompts" --max_new_tokens 12 --batch_size 2 --seed 7 --stop king
    cp "$dir/$n" "$dir/$name-drawn-$n"
    cmp "$dir/$name-drawn-1" "$dir/$name-drawn-$n" || fail "$name on $n ranks: other text"
done
[ "$(wc -l <"$dir/gpt2-greedy-4")" = 5 ] || fail "not five lines: $(cat "$dir/gpt2-greedy-4")"

# standard input, of which launchers give the first rank all; the same from a launcher of kiln's own
"$kiln" generate --model "$dir/gpt2" --max_new_tokens 5 --seed 3 <"$dir/prompts" >"$dir/1" 2>/dev/null
as_ranks 2 "$kiln" generate --model "$dir/gpt2" --max_new_tokens 5 --seed 3 --tensor-model-parallel-size 2
"${command[@]}" <"$dir/prompts" >"$dir/2" 2>"$dir/err" || fail "$(cat "$dir/err")"
same 2 'standard input'

# likelihoods, in the digits that JSON has, and last words
number() { grep -o "\"$1\": *[-0-9.e]*" "$dir/$2" | tail -n 1 | sed 's/.*: *//'; }
near() { awk -v a="$(number "$1" 1)" -v b="$(number "$1" "$2")" -v by="$3" 'BEGIN { d = a / b - 1; exit !(d < by && -d < by) }' ||
    fail "$1 on $2 ranks: $(cat "$dir/$2") instead of $(cat "$dir/1")"; }
for n in 1 4; do
    on $n gpt2 eval --input "$dir/lines.jsonl" --context 16 --stride 8 --json
    [ $n = 1 ] || near perplexity $n 1e-6
done
cp "$dir/1" "$dir/fp32"
for n in 1 2; do
    on $n bloom eval --input "$dir/lines.jsonl" --last_word --json
done
near perplexity 2 1e-6
[ "$(number accuracy 1)" = "$(number accuracy 2)" ] || fail "other words are guessed: $(cat "$dir/2") instead of $(cat "$dir/1")"
for dtype in bf16 int8; do
    on 2 gpt2 eval --input "$dir/lines.jsonl" --context 16 --stride 8 --json --dtype $dtype
    cp "$dir/fp32" "$dir/1"
    near perplexity 2 1e-1
done
on 2 bloom generate --prompt the --max_new_tokens 5 --dtype int8

# a rank's memory
bytes() { "$kiln" generate --model "$dir/gpt2" --dry_run --tensor-model-parallel-size "$1" |
    grep -o '[0-9.]* M parameters' | cut -d ' ' -f 1; }
awk -v whole="$(bytes 1)" -v half="$(bytes 2)" 'BEGIN { exit !(half < 0.6 * whole) }' || fail "half of $(bytes 1) M is $(bytes 2) M"

# refused, in one sentence
refused()
{
    local n=$1 text=$2
    shift 2
    as_ranks "$n" "$kiln" "$@"
    "${command[@]}" </dev/null >"$dir/out" 2>"$dir/err" && fail "accepted: $*"
    [ "$(grep -cF -- "$text" "$dir/err")" = 1 ] || fail "'$text' is not once in: $(cat "$dir/err")"
}
refused 1 'needs 2 ranks, but 1 was started' generate --model "$dir/gpt2" --prompt the --tensor-model-parallel-size 2
refused 2 'needs 4 ranks, but 2 were started' eval --model "$dir/gpt2" --input "$dir/lines.jsonl" --tensor-model-parallel-size 4
refused 3 'needs a multiple of 3 heads' generate --model "$dir/gpt2" --prompt the --tensor-model-parallel-size 3
refused 2 'prompt 2 has' generate --model "$dir/gpt2" --prompt_file "$dir/long" --max_new_tokens 5 --tensor-model-parallel-size 2
refused 2 'none: No such file' eval --model "$dir/gpt2" --input "$dir/none" --tensor-model-parallel-size 2

# ranks that read other models, or other texts
mkdir "$dir/a" "$dir/b"
cp -r "$dir/run-gpt2/ckpt_2" "$dir/a/model"
cp -r "$dir/run-gpt2/ckpt_1" "$dir/b/model"
cp "$dir/lines.jsonl" "$dir/a/lines.jsonl"
tac "$dir/lines.jsonl" >"$dir/b/lines.jsonl"
# apart TEXT COMMAND FLAG...: each of two ranks reads its own directory
apart()
{
    local text=$1
    shift
    command=("$kiln" "$@" --tensor-model-parallel-size 2)
    ! "${patient[@]}" mpirun --oversubscribe -n 1 -wdir "$dir/a" "${command[@]}" : -n 1 -wdir "$dir/b" "${command[@]}" \
        </dev/null >"$dir/out" 2>"$dir/err" || fail "accepted: $*"
    grep -qF -- "$text" "$dir/err" || fail "'$text' is not in: $(cat "$dir/err")"
}
apart 'the weights that rank 0, rank 1 would start from differ' generate --model model --prompt the --max_new_tokens 2
rm -r "$dir/b/model" && cp -r "$dir/a/model" "$dir/b/model"
apart 'the hash of the texts of --input is' eval --model model --input lines.jsonl

# a rank that is killed while all wait for a prompt
mkfifo "$dir/ask"
as_ranks 2 "$kiln" generate --model "$dir/gpt2" --max_new_tokens 3 --tensor-model-parallel-size 2
"${command[@]}" <"$dir/ask" >"$dir/told" 2>"$dir/err" &
launcher=$!
exec 4>"$dir/ask"
echo the >&4
await "$launcher" has_lines 1 "$dir/told"
[ "$(wc -l <"$dir/told")" = 1 ] || fail "no answer before the next line: $(cat "$dir/told" "$dir/err")"
# time: they wait for a line until then
kill -9 "$(pgrep -n -f "model $dir/gpt2 --max_new_tokens 3")" || fail "no rank to kill"
status=0
wait "$launcher" || status=$?
[ "$status" != 0 ] && [ "$status" != 124 ] || fail "the others went on without a rank, or waited for it: exit code $status"
exec 4>&-
