#!/usr/bin/env bash
# One run of `kiln launch` of which random ranks are killed at random moments, also while they save or start: it goes on by itself,
# never from a step before one that was said to be saved, and ends with the bits of the undisturbed run.
# usage: [ROUNDS=3] [SEED=1] test_kills.sh KILN; `make test-kills` has 20 rounds.
set -euo pipefail
kiln=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
rounds=${ROUNDS:-3}
RANDOM=${SEED:-1}
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; pkill -9 -f "kiln pretrain .*$dir/" || true; rm -rf "$dir"' EXIT
. "$here/../cli/expect.sh"
. "$here/../cli/corpus.sh"
[ -e "$(dirname "$kiln")/libkiln_mpi.so" ] || skip mpi "this build has no MPI; install libopenmpi-dev, and build without KILN_MPI=OFF"
type -P mpirun >/dev/null || skip mpi "there is no mpirun; install openmpi-bin"
# a copy: a start in the moment in which a build writes the program anew would be a failure that nobody asked for
mkdir "$dir/bin"
cp "$kiln" "$(dirname "$kiln")"/libkiln_*.so "$dir/bin/"
kiln=$dir/bin/kiln
export OMP_NUM_THREADS=1
make_store
steps=$((200 * (rounds + 1)))
start_run()
{
    exec "$kiln" launch --num_ranks 2 --max_restarts 6 --backoff 0.1 kiln pretrain --input_dir "$dir/store" --config_file "$dir/config.json" \
        --output_dir "$dir/$1" --max_seq_length 32 --max_predictions_per_seq 5 --global_batch_size 48 --gradient_accumulation_steps 12 \
        --max_steps $steps --learning_rate 1e-3 --num_steps_per_checkpoint 10 --keep_checkpoints 2 --log_freq 1 --disable_progress_bar \
        --reproducible_ranks 4 >"$dir/$1.log" 2>&1 </dev/null
}
ranks() { pgrep -f "^[^ ]*kiln pretrain .*$dir/killed"; }
has_ranks() { [ "$(ranks | wc -l)" = 2 ]; }

(start_run whole) || fail "the undisturbed run: $(tail -5 "$dir/whole.log")"
(start_run killed) &
pid=$!
for ((round = 0; round < rounds; round++)); do
    await $pid has_ranks
    sleep "$((RANDOM % 2)).$((100 + RANDOM % 900))"
    mapfile -t found < <(ranks)
    victim=${found[RANDOM % (${#found[@]} > 0 ? ${#found[@]} : 1)]:-}
    # a rank that is ending already is another round's
    { [ -n "$victim" ] && kill -9 "$victim" 2>/dev/null; } || { kill -0 $pid 2>/dev/null || fail "it ended after $round kills"; round=$((round - 1)); }
    sleep 0.2
done
code=0
wait $pid || code=$?
pid=
[ $code = 0 ] || fail "exit code $code: $(tail -5 "$dir/killed.log")"
n=$(grep -c '^restart ' "$dir/killed.log" || true)
[ "$n" -ge 1 ] && [ "$n" -le "$rounds" ] || fail "$n restarts after $rounds kills"
awk '
    { match($0, /"global_step":[0-9]+/); step = substr($0, RSTART + 14, RLENGTH - 14) + 0 }
    /"event":"saved"/ && step > saved { saved = step }
    /"event":"start"/ && step < saved { print "it went on from step " step ", and " saved " was saved"; lost = 1 }
    /"event":"step"/ { split($0, part, /"step_loss":/); sub(/[,}].*/, "", part[2])
        if (step in loss && loss[step] != part[2]) { print "step " step " has another loss: " part[2] ", " loss[step]; lost = 1 }
        loss[step] = part[2] }
    END { exit lost }' "$dir/killed/log.jsonl" >"$dir/lost" || fail "$(cat "$dir/lost")"
"$kiln" inspect --diff "$dir/whole/ckpt_$steps" "$dir/killed/ckpt_$steps" >"$dir/diff" 2>&1 || fail "other bits: $(tail -3 "$dir/diff")"
echo "test_kills: $rounds ranks killed, $n restarts, $(grep -c '"event":"start"' "$dir/killed/log.jsonl") starts that reached training; $steps steps with the bits of the undisturbed run"
