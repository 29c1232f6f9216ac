#!/usr/bin/env bash
# Under any limit of addresses (`ulimit -v`) a command does what it was asked, or says with exit code 71 that there is too
# little: no signal, no hang.  Code 127 is the system's loader, before kiln begins.
. "$(dirname "$0")/begin.sh"
if ! (ulimit -v 2000000 && "$kiln" --version >/dev/null 2>&1); then
    skip addresses "this build (a sanitizer's) cannot run under a limit of addresses"
fi
make_store
export OMP_NUM_THREADS=2

"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/model" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 8 --max_steps 2 --disable_progress_bar 2>/dev/null
cat >"$dir/questions.json" <<'JSON'
{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "the king came to the old city in the night",
"qas": [{"id": "0", "question": "who came", "answers": [{"text": "king", "answer_start": 4}]},
{"id": "1", "question": "came to what", "answers": [{"text": "city", "answer_start": 25}]}]}]}]}
JSON

# limited NAME KIB...: every limit for one command; says at which it begins to work
limited()
{
    local name=$1 worked=
    shift
    for kib in $(seq 60000 25000 460000); do
        rm -rf "$dir/run"
        code=0
        # time: a hang, which no busy machine is taken for
        (ulimit -v "$kib" && exec timeout -s KILL 300 "$@") >"$dir/out" 2>"$dir/err" || code=$?
        case $code in
            0) worked=${worked:-$kib} ;;
            71) grep -q "kiln: error: " "$dir/err" || fail "$name in $kib KiB: 71 without a word: $(cat "$dir/err")"
                [ -z "$worked" ] || fail "$name: $kib KiB are too little, but $worked were not: $(cat "$dir/err")" ;;
            127) grep -q "loading shared libraries" "$dir/err" || fail "$name in $kib KiB: $(cat "$dir/err")" ;;
            *) fail "$name in $kib KiB: exit code $code: $(cat "$dir/err")" ;;
        esac
    done
    [ -n "$worked" ] || fail "$name does not work at all: $(cat "$dir/err")"
    echo "$name works from $worked KiB on"
}

common=(--config_file "$dir/config.json" --output_dir "$dir/run" --max_seq_length 32 --max_predictions_per_seq 5
    --train_batch_size 8 --learning_rate 1e-3 --disable_progress_bar --max_steps 4)
limited pretrain "$kiln" pretrain --input_dir "$dir/store" "${common[@]}"
limited "pretrain in bf16" "$kiln" pretrain --input_dir "$dir/store" "${common[@]}" --autocast
limited squad "$kiln" squad --init_checkpoint "$dir/model/ckpt_2" --output_dir "$dir/run" --do_train --skip_cache \
    --train_file "$dir/questions.json" --do_predict --predict_file "$dir/questions.json" --max_seq_length 48 \
    --train_batch_size 2 --max_steps 2
limited fill "$kiln" fill --model "$dir/model/ckpt_2" "the [MASK] of the city"
echo "the king came to the city" >"$dir/lines"
limited embed "$kiln" embed --model "$dir/model/ckpt_2" "the king came"
echo "test_address_limit: no signal, no hang"
