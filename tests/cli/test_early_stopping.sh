#!/usr/bin/env bash
# Runs that end when the loss of held-out data no longer falls: of classification, tagging, questions and pre-training; the best
# checkpoint is kept and becomes the model; a run that was killed ends with the same bits; wrong flags get a sentence.
. "$(dirname "$0")/begin.sh"
make_store

# Labels that say nothing of the texts can be learnt by heart, which does not help for other texts.
awk -v dir="$dir" 'BEGIN {
    n = split("king stone people light water day night men city river", w, " ")
    s = 11
    for (p = 0; p < 128; p++) {
        out = dir (p < 96 ? "/train" : "/heldout")
        if (p == 0 || p == 96) print "sentence,label" >out ".csv"
        text = ""; words = ""; tags = ""
        for (i = 1; i <= 6; i++) {
            s = (s * 16807) % 2147483647; word = w[1 + s % n]
            text = text (i > 1 ? " " : "") word
            s = (s * 16807) % 2147483647
            print word "\t" (s % 2 ? "O" : "B-X") >out ".conll"
        }
        print "" >out ".conll"
        s = (s * 16807) % 2147483647
        print text "," (s % 2 ? "yes" : "no") >out ".csv"
    }
}'
make_model

tune_command()
{
    local command_name=$1 out=$2 suffix=$3
    shift 3
    command=("$kiln" "$command_name" --init_checkpoint "$model" --output_dir "$dir/$out" --do_train
        --train_file "$dir/train.$suffix" --max_seq_length 32 --train_batch_size 16 --learning_rate 3e-3
        --num_train_epochs 40 --warmup_proportion 0 --log_freq 1 --disable-progress-bar "$@")
}

# What a run says in $dir/log: where it ended and which step was the best; $ended and $best.
read_end()
{
    grep "has not fallen for" "$dir/log" >"$dir/end" || fail "it did not end early: $(tail -3 "$dir/log")"
    ended=$(sed 's/.*step \([0-9]*\): the held-out.*/\1/' "$dir/end")
    best=$(sed 's/.* at step \([0-9]*\)$/\1/' "$dir/end")
    [ "$ended" -lt 240 ] && [ "$best" -lt "$ended" ] || fail "ended at $ended, best $best"
    # by the losses that were logged, the first of the lowest; the log of a resumed run lacks those of before
    local lowest
    ! grep -q "resumed from" "$dir/log" || return 0
    lowest=$(sed -n 's/.*step \([0-9]*\) held-out: loss \([0-9.]*\),.*/\2 \1/p' "$dir/log" | sort -s -n -k1,1 | sed -n 1p)
    [ -z "$lowest" ] || [ "${lowest#* }" = "$best" ] || fail "step ${lowest#* } has the lowest loss, not $best"
}

early=(--eval_steps 6 --early_stopping_patience 3)
tune_command classify whole csv --eval_file "$dir/heldout.csv" "${early[@]}" --predict_file "$dir/heldout.csv" --do_predict
"${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
read_end
first_ended=$ended first_best=$best

"$kiln" export --model "$dir/whole/ckpt_$best" --output_dir "$dir/exported" >/dev/null 2>&1 ||
    fail "ckpt_$best of the best step is not there: $(ls "$dir/whole")"
cmp "$dir/exported/model.safetensors" "$dir/whole/model/model.safetensors" || fail "the model is not that of the best step"
grep -q '"event": *"evaluation"' "$dir/whole/log.jsonl" || fail "no evaluation in the log"

# killed, and gone on: the same end, the same model, the same predictions
tune_command classify killed csv --eval_file "$dir/heldout.csv" "${early[@]}" --num_steps_per_checkpoint 2 \
    --predict_file "$dir/heldout.csv" --do_predict
start_held "${command[@]}"
stop_held KILL "$dir/killed"
[ "$status" -eq 137 ] || fail "kill -9 gave exit code $status"
"${command[@]}" --resume_from_checkpoint 2>"$dir/log" || fail "$(cat "$dir/log")"
grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
read_end
[ "$ended $best" = "$first_ended $first_best" ] || fail "it ended at $ended, not $first_ended"
cmp "$dir/killed/model/model.safetensors" "$dir/whole/model/model.safetensors" || fail "another model"
cmp "$dir/killed/predictions.jsonl" "$dir/whole/predictions.jsonl" || fail "other predictions"

# evaluation alone changes nothing
tune_command classify watched csv --eval_file "$dir/heldout.csv" --eval_steps 6 --num_train_epochs 2
"${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
[ "$(grep -c " held-out: loss" "$dir/log")" -eq 2 ] || fail "$(cat "$dir/log")"
tune_command classify alone csv --num_train_epochs 2
"${command[@]}" 2>/dev/null
cmp "$dir/watched/model/model.safetensors" "$dir/alone/model/model.safetensors" || fail "evaluation changes the weights"

tune_command tag tagged conll --eval_file "$dir/heldout.conll" --early_stopping_patience 2
"${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
read_end
[ $((ended % 6)) -eq 0 ] || fail "not at the end of an epoch: $ended"

make_questions
mv "$dir/questions.json" "$dir/train.json"
tune_command squad asked json --eval_file "$dir/train.json" --early_stopping_patience 1 --early_stopping_delta 1000 \
    --max_seq_length 64 --max_query_length 24 --skip_cache --max_steps 8 --eval_steps 3
"${command[@]}" 2>"$dir/log" || fail "$(cat "$dir/log")"
grep -q "step 6: the held-out loss has not fallen for 1 evaluations" "$dir/log" || fail "$(cat "$dir/log")"

# pre-training: the held-out loss of a rate that is much too high
pretrain()
{
    "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$1" --max_seq_length 32 \
        --max_predictions_per_seq 5 --train_batch_size 16 --max_steps 60 --learning_rate 0.2 --optimizer adamw \
        --num_steps_per_checkpoint 10 --keep_checkpoints 1 --eval_steps 4 --log_freq 1 --disable_progress_bar \
        --early_stopping_patience 2 "${@:2}"
}
pretrain long 2>"$dir/log" || fail "$(cat "$dir/log")"
read_end
[ -d "$dir/long/ckpt_$best" ] || fail "the best checkpoint is gone: $(ls "$dir/long")"
[ -d "$dir/long/ckpt_$ended" ] || fail "the last checkpoint is gone: $(ls "$dir/long")"
"$kiln" export --model "$dir/long/ckpt_$best" --output_dir "$dir/exported_long" >/dev/null 2>&1
cmp "$dir/exported_long/model.safetensors" "$dir/long/best/model.safetensors" || fail "best/ is not the best"
pretrain long --resume_from_checkpoint 2>"$dir/log"
grep -q "phase 1 is complete: $ended of 60" "$dir/log" || fail "a run that ended goes on: $(cat "$dir/log")"
! grep -q '"best_' "$dir/pre/ckpt_5/trainer_state.json" || fail "a run without early stopping counts"

# wrong flags
tune_command classify none csv
expect 64 "--early_stopping_patience needs --eval_file" "${command[@]}" --early_stopping_patience 2
expect 64 "--eval_steps needs --eval_file" "${command[@]}" --eval_steps 2
expect 64 "leave out --skip_checkpoint" "${command[@]}" --eval_file "$dir/heldout.csv" --early_stopping_patience 2 \
    --skip_checkpoint
expect 65 "nowhere.csv" "${command[@]}" --eval_file "$dir/nowhere.csv"
expect 64 "--early_stopping_patience" "${command[@]}" --early_stopping_patience -1
expect 64 "counts evaluations: give --eval_steps" pretrain none --eval_steps 0
expect 64 "leave out --skip_checkpoint" pretrain none --skip_checkpoint
cp -r "$dir/store" "$dir/store2"
rm "$dir"/store2/heldout.*
expect 64 "needs held-out text" pretrain none --input_dir "$dir/store2"
expect 64 "--early_stopping_delta" pretrain none --early_stopping_delta -1
