#!/usr/bin/env bash
# `kiln pretrain --profile`: the flags as the replaced scripts have them, and a trace that keeps the rules
# (tools/check_trace.py, where there is a python3; tests/watch/test_profile.c checks them in any case).
. "$(dirname "$0")/begin.sh"
make_store
pretrain=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32
    --max_predictions_per_seq 5 --train_batch_size 8 --gradient_accumulation_steps 2 --max_steps 4
    --num_steps_per_checkpoint 1 --eval_steps 2 --disable_progress_bar)

expect 0 "linear_backward_weight" "${pretrain[@]}" --output_dir "$dir/a" --profile True --profile_steps 3:6
trace=$dir/a/profile/trace_3_6.json
[ -s "$trace" ] || fail "no trace"
grep -q '"copy batch"' "$trace" && fail "nothing is copied to the cpu"
for name in micro-step\ 3 micro-step\ 6 batch forward backward optimizer evaluation save attention lamb_direction lamb_apply; do
    grep -q "\"name\":\"$name\"" "$trace" || fail "$name is not in the trace"
done
if command -v python3 >/dev/null; then
    python3 "$(dirname "$0")/../../tools/check_trace.py" "$trace"
    sed 's/"dur":/"dur":-/' "$trace" >"$dir/bad.json"
    python3 "$(dirname "$0")/../../tools/check_trace.py" "$dir/bad.json" 2>/dev/null && fail "negative times were accepted"
    sed 's/"cat":"op"\(.*\)"name":"tanh"/"cat":"copy"\1"name":"copy batch"/' "$trace" >"$dir/bad.json"
    python3 "$(dirname "$0")/../../tools/check_trace.py" "$dir/bad.json" 2>/dev/null && fail "a copy on the cpu was accepted"
fi

# a flag alone; another directory; one micro-step; profiling changes nothing
expect 0 "profile: wrote" "${pretrain[@]}" --output_dir "$dir/b" --tensorboard_logdir "$dir/traces" --profile --profile_steps 2
[ -s "$dir/traces/trace_2_2.json" ] || fail "no trace in --tensorboard_logdir"
# "False" is false here
expect 0 "saved" "${pretrain[@]}" --output_dir "$dir/c" --profile False --profile_steps 1:2
[ ! -e "$dir/c/profile" ] || fail "--profile False profiled"
cmp "$dir/a/ckpt_4/model.safetensors" "$dir/c/ckpt_4/model.safetensors" || fail "profiling changed the weights"

expect 64 "--profile_steps is '4:2'" "${pretrain[@]}" --output_dir "$dir/d" --profile --profile_steps 4:2
expect 0 "nothing was profiled" "${pretrain[@]}" --output_dir "$dir/d" --profile --profile_steps 40:50

# which kernel served what; waiting after every op changes nothing either
expect 0 "ops by dtype and shape" "${pretrain[@]}" --output_dir "$dir/e" --migration-log "$dir/migration.log" --sync_ops \
    --profile --profile_steps 2
cmp "$dir/a/ckpt_4/model.safetensors" "$dir/e/ckpt_4/model.safetensors" || fail "watching ops changed the weights"
for line in "run        kiln pretrain, complete" "\[cpu_match\]: lamb_direction(fp32 \[" "\[cpu_match\]: attention(fp32 \[" \
    "    \[context\]: 8 calls of "; do
    grep -q "$line" "$dir/migration.log" || fail "'$line' is not in the migration log"
done
awk \
    'NR > 1 && /^\[/ && !/^\[[-0-9]* [:0-9]*\] (src\/[a-z_\/]*\.c:[0-9]+|before any layer)$/ { bad++; print } END { exit bad > 0 }' \
    "$dir/migration.log" || fail "an entry without its place in the source"
grep -q "\] src/nn/block_post.c:[0-9]*$" "$dir/migration.log" || fail "no entry of a layer"
grep -q "calls of .*, first in layer 0" "$dir/migration.log" || fail "no layer is named"

# as the toolkit is asked for its log: a level in the environment, a file with the number of the process
mkdir "$dir/here"
(cd "$dir/here" && GPU_MIGRATION_LOG_LEVEL=1 expect 0 "wrote gpu_migration_logs/gpu_migration_" "${pretrain[@]}" \
    --output_dir "$dir/level" --steps_this_run 1)
[[ $(ls "$dir/here/gpu_migration_logs") =~ ^gpu_migration_[0-9]+\.log$ ]] || fail "no log of the process"
grep -q "\[cpu_match\]: attention(" "$dir"/here/gpu_migration_logs/*.log || fail "level 1 has no matches"
GPU_MIGRATION_LOG_LEVEL=2 expect 0 "wrote $dir/two.log" "${pretrain[@]}" --output_dir "$dir/two" --steps_this_run 1 \
    --migration_log "$dir/two.log" --plain_ops tanh
grep "_match\]" "$dir/two.log" && fail "level 2 has matches"
grep -q "\[cpu_modified\]: tanh(" "$dir/two.log" || fail "level 2 lacks what was modified"
grep -q "^level      2: modified and mismatch only" "$dir/two.log" || fail "the level is not told"
GPU_MIGRATION_LOG_LEVEL=4 expect 64 "migration_log_level is '4', but must be one of 1|2|3" "${pretrain[@]}" --output_dir "$dir/f"
[ "$(find "$dir/here" "$dir/f" 2>/dev/null | wc -l)" = 3 ] || fail "a refused level wrote something"

# ops by their definition: named in the log, losses within rounding; wrong names are refused, also in a dry run
expect 0 "computing these ops by their definition, which is slow: linear_gelu,layernorm" "${pretrain[@]}" --output_dir "$dir/plain" \
    --plain_ops linear_gelu,layernorm --migration-log "$dir/plain.log"
grep -q "\[cpu_modified\]: linear_gelu(.*--> its definition, in double arithmetic: --plain_ops asks for it" "$dir/plain.log" ||
    fail "the plain op is not in the migration log: $(grep gelu "$dir/plain.log")"
grep "attention(" "$dir/plain.log" | grep "definition" >/dev/null && fail "attention was not to be plain"
losses() { sed -n 's/.*"event":"step".*"loss":\([0-9.e+-]*\).*/\1/p' "$1/log.jsonl"; }
paste <(losses "$dir/a") <(losses "$dir/plain") | awk '
    { d = ($1 - $2) / $1; n++; if (d > 1e-5 || d < -1e-5) wrong++ } END { exit n != 4 || wrong > 0 }' ||
    fail "plain ops gave other losses: $(losses "$dir/a") and $(losses "$dir/plain")"
KILN_PLAIN_OPS=all expect 0 "computing these ops by their definition, which is slow: all" "${pretrain[@]}" --output_dir "$dir/all" --steps_this_run 1
expect 64 "there is no op 'gelu'; \`kiln doctor\` lists the ops" "${pretrain[@]}" --output_dir "$dir/f" --plain_ops gelu --dry_run
KILN_PLAIN_OPS=attention expect 0 "by their definition: attention" "$kiln" doctor --dry_run
expect 64 "migration" "${pretrain[@]}" --output_dir "$dir/f" --migration_log
expect 74 "cannot" "${pretrain[@]}" --output_dir "$dir/f" --migration_log "$dir/nowhere/log"
echo "test_profile_flags: traces are whole"
