#!/usr/bin/env bash
# --freeze and --layerwise_lr_decay of every fine-tuning command: what is frozen has the bytes of the model that it came from,
# also behind a resumption, and the rest changes; defaults change nothing; wrong lists and rates get a sentence.
. "$(dirname "$0")/begin.sh"
make_store
awk -v dir="$dir" 'BEGIN {
    n = split("king stone people light water day night men city river", w, " ")
    print "sentence,label" >dir "/texts.csv"
    for (p = 0; p < 40; p++) {
        a = w[1 + p % n]; b = w[1 + (3 * p) % n]
        print a " " b "," (p % 2 ? "odd" : "even") >dir "/texts.csv"
        print a "\tO\n" b "\tB-X\n" >dir "/words.conll"
    }
}'
make_questions
make_model
"$kiln" export --model "$model" --output_dir "$dir/from" >/dev/null 2>&1

tune()
{
    local command_name=$1 out=$2 data=$3
    shift 3
    "$kiln" "$command_name" --init_checkpoint "$dir/from" --output_dir "$dir/$out" --do_train --train_file "$dir/$data" \
        --max_seq_length 48 --train_batch_size 8 --learning_rate 1e-3 --max_steps 6 --log_freq 1 --disable-progress-bar "$@"
}

# The checksum of a tensor's bytes in a model directory: the header of safetensors says where they are.
tensor_sum()
{
    local file=$dir/$1/model.safetensors header begin end
    header=$(od -An -tu8 -N8 "$file" | tr -d ' ')
    read -r begin end <<<"$(head -c $((8 + header)) "$file" | tail -c "$header" | tr -d ' ' |
        sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p")"
    [ -n "$begin" ] || fail "no $2 in $file"
    tail -c +$((8 + header + begin + 1)) "$file" | head -c $((end - begin)) | cksum
}

same() { [ "$(tensor_sum "$1" "$3")" = "$(tensor_sum "$2" "$3")" ]; }

embeddings=bert.embeddings.word_embeddings.weight
lower=bert.encoder.layer.0.output.dense.weight
upper=bert.encoder.layer.1.output.dense.weight
for of in "classify texts.csv" "tag words.conll" "squad questions.json --skip_cache --max_query_length 24"; do
    set -- $of
    tune "$1" "$1" "${@:2}" --freeze embeddings,0 2>"$dir/log" || fail "$(cat "$dir/log")"
    grep -q "frozen: .* M parameters are not trained" "$dir/log" || fail "$(cat "$dir/log")"
    for tensor in "$embeddings" "$lower"; do
        same from "$1/model" "$tensor" || fail "$1: $tensor changed"
    done
    ! same from "$1/model" "$upper" || fail "$1: $upper did not change"
done

# by names, in bf16 and with clipping of the norm of what is left; and resumed
tune classify named texts.csv --freeze 'bert.encoder.layer.1.output,*word_embeddings*' --autocast 2>/dev/null
same from named/model "$upper" && same from named/model "$embeddings" || fail "named tensors changed"
! same from named/model "$lower" || fail "$lower did not change"
tune classify cut texts.csv --freeze embeddings,0 --num_steps_per_checkpoint 2 2>/dev/null
rm -r "$dir/cut/model" "$dir/cut/ckpt_6"
tune classify cut texts.csv --freeze embeddings,0 --num_steps_per_checkpoint 2 --resume_from_checkpoint 2>"$dir/log"
grep -q "resumed from" "$dir/log" || fail "nothing was resumed"
cmp "$dir/cut/model/model.safetensors" "$dir/classify/model/model.safetensors" || fail "another model behind a resumption"
rm -r "$dir/cut/ckpt_6"
expect 0 "freeze was embeddings,0 in the checkpoint and is nothing now" \
    tune classify cut texts.csv --num_steps_per_checkpoint 2 --resume_from_checkpoint

# rates
tune classify plain texts.csv 2>/dev/null
tune classify one texts.csv --layerwise_lr_decay 1 2>/dev/null
cmp "$dir/plain/model/model.safetensors" "$dir/one/model/model.safetensors" || fail "a decay of 1 changes weights"
tune classify decayed texts.csv --layerwise_lr_decay 0.5 2>/dev/null
for tensor in "$embeddings" "$lower" "$upper"; do
    ! same plain/model decayed/model "$tensor" && ! same from decayed/model "$tensor" || fail "$tensor has another rate"
done

expect 64 '"encoder.layer.0" matches no parameter' tune classify no texts.csv --freeze encoder.layer.0
expect 64 "there are no layers 2; the model has 2, numbered 0 to 1" tune classify no texts.csv --freeze embeddings,2
expect 64 "leaves nothing to train" tune classify no texts.csv --freeze '*'
expect 64 "a word that is empty" tune classify no texts.csv --freeze 0,,1 --dry_run
expect 64 "--layerwise_lr_decay" tune classify no texts.csv --layerwise_lr_decay 1.5
expect 64 "--layerwise_lr_decay" tune classify no texts.csv --layerwise_lr_decay 0
[ ! -e "$dir/no" ] || fail "a refused run left something"
