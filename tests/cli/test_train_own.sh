#!/usr/bin/env bash
# examples/train_own as a user meets it: built from installed files alone, it learns by a DeepSpeed file with ZeRO's first stage,
# alone and as 2 ranks of mpirun, with the same bits; and goes on alone from what 2 ranks saved.  Commands do not take its
# checkpoints for models.
. "$(dirname "$0")/begin.sh"
build=$(dirname "$kiln")
source=$(cd "$(dirname "$0")/../.." && pwd)
export OMP_NUM_THREADS=1 PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig
unset MAKEFLAGS CPATH C_INCLUDE_PATH LIBRARY_PATH

"$(dirname "$0")/../../tools/install.sh" "$dir/prefix" "$build" >/dev/null
cp -r "$source/examples/train_own" "$dir/example"
make -s -C "$dir/example" clean train_own
cd "$dir"

# own [ARGUMENT...]: alone; ranks N [ARGUMENT...]: N ranks
own() { "$dir/example/train_own" --deepspeed_config "$dir/example/ds.json" "$@"; }
ranks()
{
    TMPDIR=$(mktemp -d -p "$dir") "${patient[@]}" "${mpi[@]}" -n "$1" "$dir/example/train_own" \
        --deepspeed_config "$dir/example/ds.json" "${@:2}" </dev/null
}

own --reproducible_ranks 4 --weights alone >alone.log 2>err || fail "alone: $(cat err)"
[ ! -s err ] || fail "the library talks: $(cat err)"
awk '$1 == "step" { last = $4 + 0; if (first == "") first = last } END { exit !(first > 1 && last < 0.1) }' alone.log ||
    fail "the loss does not fall: $(cat alone.log)"

# what is wrong, by name
sed 's/"stage": 1/"stage": 2/' example/ds.json >stage2.json
code=0
"$dir/example/train_own" --deepspeed_config stage2.json 2>err || code=$?
[ "$code" = 69 ] && grep -q '"zero_optimization.stage" 2' err || fail "stage 2: exit code $code: $(cat err)"
code=0
"$dir/example/train_own" 2>err || code=$?
[ "$code" = 64 ] && grep -q usage err || fail "no file: exit code $code"
code=0
WORLD_SIZE=2 RANK=0 own 2>err || code=$?
[ "$code" = 69 ] && grep -q 'mpirun' err || fail "ranks without a launcher: exit code $code: $(cat err)"

own --max_steps 20 --output_dir engine >/dev/null
code=0
"$kiln" export --model engine/ckpt_20 --output_dir exported 2>err || code=$?
[ "$code" = 65 ] && grep -q '"model_type" is "kiln_engine"' err ||
    fail "kiln export of an engine's checkpoint: exit code $code: $(cat err)"

. "$source/tests/cli/ranks.sh"
need_mpirun

ranks 2 --reproducible_ranks 4 --weights two >two.log 2>err || fail "2 ranks: $(cat two.log err)"
cmp alone two || fail "2 ranks end with other weights than one"
diff <(sed 's/, [0-9]* ranks$//' alone.log) <(sed 's/, 2 ranks$//' two.log) || fail "2 ranks log other losses"

# the same ranks, without the canonical order of sums
ranks 2 --max_steps 100 --weights plain >/dev/null 2>err || fail "2 ranks: $(cat err)"
ranks 2 --max_steps 100 --weights again >/dev/null 2>err || fail "2 ranks: $(cat err)"
cmp plain again || fail "the same ranks end with other weights"

ranks 2 --reproducible_ranks 4 --max_steps 200 --output_dir saved >/dev/null 2>err || fail "2 ranks that save: $(cat err)"
own --reproducible_ranks 4 --output_dir saved --weights resumed >resumed.log || fail "resuming"
[ "$(head -n 1 resumed.log | cut -d: -f1)" = "step 250" ] || fail "it began at $(head -n 1 resumed.log)"
cmp alone resumed || fail "what 2 ranks saved goes on otherwise"

# one rank cannot read its file: all say so
code=0
TMPDIR=$dir "${patient[@]}" "${mpi[@]}" -n 1 "$dir/example/train_own" --deepspeed_config example/ds.json : \
    -n 1 "$dir/example/train_own" --deepspeed_config none.json >/dev/null 2>err </dev/null || code=$?
[ "$code" -ne 0 ] && [ "$(grep -c '^train_own: rank 1 of 2: cannot open none.json' err)" -eq 2 ] ||
    fail "one rank without a file: exit code $code: $(cat err)"
