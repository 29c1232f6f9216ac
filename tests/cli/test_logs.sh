#!/usr/bin/env bash
# What a run leaves behind to watch it by: log.jsonl, report.html, and on demand dllogger's lines and TensorBoard's event
# files, which go on when the run does and never end it; and `kiln report`.
. "$(dirname "$0")/begin.sh"
make_store

pretrain()
{
    local out=$1
    shift
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 8 --gradient_accumulation_steps 2 --learning_rate 1e-3 \
        --max_steps 8 --eval_steps 4 --eval_samples 8 --log_freq 2 --disable_progress_bar --output_dir "$dir/$out" "$@"
}
count() { grep -c -- "$1" "$2" || true; }

# Without flags: kiln's own log and page, and nothing on standard output.
pretrain plain >"$dir/out" 2>/dev/null
[ ! -s "$dir/out" ] || fail "standard output: $(cat "$dir/out")"
[ ! -e "$dir/plain/worker_0" ] || fail "event files without the flag"
[ "$(count '"event":"step"' "$dir/plain/log.jsonl")" = 4 ] || fail "steps in log.jsonl"
[ "$(count '<figure>' "$dir/plain/report.html")" = 8 ] || fail "charts in report.html"

# Without pairs of sentences the loss of masked words is the total.
pretrain no_pairs --no_nsp >/dev/null 2>&1
[ "$(count '<figure>' "$dir/no_pairs/report.html")" = 5 ] || fail "charts without pairs"
[ "$(count 'data-what="held-out"' "$dir/no_pairs/report.html")" = 2 ] || fail "held-out curves without pairs"

# With the flags of logs, in two runs of four steps: both logs go on.
logs=(--json-summary "$dir/logs/dllogger.json" --enable-tensorboard-logging --resume_from_checkpoint)
pretrain run "${logs[@]}" --steps_this_run 4 >"$dir/first" 2>/dev/null
printf 'DLLL {"torn' >>"$dir/logs/dllogger.json"
printf '{"event":"st' >>"$dir/run/log.jsonl"
pretrain run "${logs[@]}" >"$dir/second" 2>/dev/null
cat "$dir/first" "$dir/second" >"$dir/out"
for key in 'PARAMETER Config : \["Namespace(' 'PARAMETER SEED : 42 $' 'PARAMETER train_start : True $' \
    'PARAMETER batch_size_per_pu : 4 $' 'PARAMETER learning_rate : 0.001 $' 'PARAMETER checkpoint_step : ' \
    ' -  e2e_train_time : .*  training_sequences_per_second : .*  final_loss : .*  raw_train_time : '; do
    [ "$(count "^DLL 20.* - *$key\|$key" "$dir/out")" = 2 ] || fail "$key: $(cat "$dir/out")"
done
# the second start says that its steps are those from 5 on: Event.step 5, SessionLog.START
starts=$(cat "$dir"/run/worker_0/events* | LC_ALL=C grep -aoP '\x10[\x01\x05]\x3a\x02\x08\x01' | od -An -tx1 | tr -s ' \n' ' ')
[ "$starts" = ' 10 01 3a 02 08 01 0a 10 05 3a 02 08 01 0a ' ] || fail "starts in event files: $starts"

# evaluations are no training
tail -n 1 "$dir/run/log.jsonl" | tr ',' '\n' | tr -d '{}"' | awk -F : '{ is[$1] = $2 }
    END { rest = is["seconds"] - is["training_seconds"] - is["evaluation_seconds"]; exit !(is["evaluation_seconds"] > 0 && rest ^ 2 < 1e-12) }' ||
    fail "seconds of training and evaluation: $(tail -n 1 "$dir/run/log.jsonl")"
raw=$(tail -n 1 "$dir/run/log.jsonl" | sed 's/.*"training_seconds":\([0-9.]*\).*/\1/')
grep '"raw_train_time"' "$dir/logs/dllogger.json" | tail -n 1 | grep "\"raw_train_time\": ${raw:0:6}" >/dev/null || fail "raw_train_time is not $raw"
number='[0-9.e+-]*'
line="Training Epoch: 0 Training Iteration: [2468]  average_loss : $number  step_loss : $number  learning_rate : $number"
line="$line  average_training_time_step : $number  average_perf_per_step : $number \$"
[ "$(count " - $line" "$dir/out")" = 4 ] || fail "lines of steps: $(cat "$dir/out")"
[ "$(count '"type": "LOG"' "$dir/logs/dllogger.json")" = "$(count '^DLL ' "$dir/out")" ] || fail "two logs differ"
[ "$(find "$dir/run/worker_0" -name 'events.out.tfevents.*' | wc -l)" = 2 ] || fail "event files of two runs"
for tag in Loss performance learning_rate grad_norm train/mlm_loss train/mlm_accuracy train/nsp_loss train/nsp_accuracy \
    tokens_per_second; do
    size=$(printf '\\x%02x' ${#tag}) # of the tag, which stands before it
    [ "$(cat "$dir"/run/worker_0/events.out.tfevents.* | LC_ALL=C grep -aoP "$size$tag\x15" | wc -l)" = 4 ] ||
        fail "TensorBoard's $tag"
done
[ "$(count '"event":"step"' "$dir/run/log.jsonl")" = 4 ] || fail "the torn line took another with it"
grep -q '1 lines could not be read' "$dir/run/report.html" || fail "the page is silent on the torn line"

# A run that begins anew begins the file anew.
pretrain anew --json-summary "$dir/logs/dllogger.json" >/dev/null 2>&1
[ "$(count train_start "$dir/logs/dllogger.json")" = 1 ] || fail "another run's lines were kept"

# What cannot be written is named once and ends nothing.
mkdir "$dir/full" && touch "$dir/full/worker_0"
pretrain full --json-summary /dev/full --enable-tensorboard-logging >/dev/null 2>"$dir/err" || fail "$(cat "$dir/err")"
[ "$(count '/dev/full.*the run continues' "$dir/err")" = 1 ] || fail "dllogger: $(cat "$dir/err")"
[ "$(count 'worker_0.*training continues' "$dir/err")" = 1 ] || fail "TensorBoard: $(cat "$dir/err")"

# A reader of standard output that leaves is no reason to stop.
pretrain left --json-summary "$dir/left.json" 2>"$dir/err" | head -1 >/dev/null || true
[ -d "$dir/left/ckpt_8" ] || fail "ended with its reader: $(cat "$dir/err")"

# Pages of one run and of several, and what is no run.
expect 0 "wrote $dir/both.html" "$kiln" report "$dir/run" "$dir/plain/log.jsonl" --output "$dir/both.html"
grep -q '<th>json_summary</th>' "$dir/both.html" || fail "what differs is not shown"
! grep -q 'src=\|href=' "$dir/both.html" || fail "the page needs other files"
expect 0 "4 lines of training, 2 evaluations" "$kiln" report --dry-run "$dir/run"
expect 0 "wrote $dir/both.svg" "$kiln" report "$dir/run" "$dir/plain/log.jsonl" --csv "$dir/both.csv" --svg "$dir/both.svg" --latex "$dir/both.tex"
head -n 1 "$dir/both.csv" | grep '^run,set,phase,step,loss,' >/dev/null && [ "$(grep -c ',training,' "$dir/both.csv")" = 8 ] &&
    awk -F , '{ n[NF]++ } END { exit length(n) != 1 }' "$dir/both.csv" || fail "CSV: $(cat "$dir/both.csv")"
[ "$(grep -c '<svg\|<g ' "$dir/both.svg")" = "$(grep -c '</svg>\|</g>' "$dir/both.svg")" ] && ! grep 'var(' "$dir/both.svg" >/dev/null ||
    fail "SVG: $(cat "$dir/both.svg")"
grep '^held-out: .* & .* & .*' "$dir/both.tex" >/dev/null || fail "LaTeX: $(cat "$dir/both.tex")"
! grep report.html "$dir/err" >/dev/null || fail "a page that nobody asked for"
expect 64 "--csv $dir/run/log.jsonl is the log of a run" "$kiln" report "$dir/run" --csv "$dir/run/log.jsonl"
expect 65 "none" "$kiln" report "$dir/none"
expect 65 "log.jsonl" "$kiln" report "$dir/store"
expect 64 "RUN" "$kiln" report
expect 64 "is the log of a run" "$kiln" report "$dir/run" --output "$dir/run/../run/log.jsonl"
expect 64 "RUN" "$kiln" report 1 2 3 4 5 6 7 8 9
expect 74 "$dir/none/x.html" "$kiln" report "$dir/run" --output "$dir/none/x.html"
[ ! -e "$dir/none" ] || fail "a directory was made"
echo "test_logs: all told"
