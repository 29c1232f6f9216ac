#!/usr/bin/env bash
# Losses, checkpoints, logs and answers of kiln's commands on fixed inputs, without what differs from run to run.  A change of
# design leaves them equal:
#   tools/record_outputs.sh build/kiln BEFORE; (change and build); tools/record_outputs.sh build/kiln AFTER; diff -r BEFORE AFTER
# "sums" has the sum of each file that a command wrote; NAME.out and NAME.err have what it printed, NAME.log its log.jsonl.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 PROGRAM DIRECTORY" >&2; exit 64; }
mkdir -p "$2"
out=$(realpath "$2")
kiln=$(realpath "$1")
dir=$(dirname "$kiln")/recorded # the same in each run: some files name their place
mkdir "$dir"
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/cli/corpus.sh
. "$(dirname "$0")/../tests/cli/corpus.sh"
export OMP_NUM_THREADS=1
: >"$out/sums"

# Times, rates and places become a letter, and lines are sorted: threads beside the run write some of them.
constant()
{
    sed -E -e "s#$dir#DIR#g" -e "s#$(dirname "$kiln")#BUILD#g" \
        -e 's/"([a-z0-9_]*(time|second|_ms|flops|utilization|bytes_free|memory|resident|elapsed|started)[a-z_]*)" ?: ?("[^"]*"|[0-9.e+-]+)/"\1":T/g' \
        -e 's/"(pid|host|version|commit|revision|bytes)" ?: ?("[^"]*"|[0-9]+)/"\1":T/g' \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?/DATE/g' -e 's/\b[0-9]+:[0-9]{2}(:[0-9]{2})?\b/T/g' \
        -e 's/[0-9.,]+[kM]? ?(us|ms|s|seconds?|min|minutes?|h|hours?|GiB|MiB|KiB|MB|GB|[kMGT]?FLOPS?|(seq|tok|sequences|samples|tokens|texts|questions|documents|articles|words|pairs)(\/s| a second))(\b|$)/T/g' \
        -e 's/([a-z0-9_]*(time|throughput|per_second)[a-z_]*|samples per second|elapsed time per iteration|TFLOPs) ?(\(ms\))?:? *[0-9.]+/\1 T/g' \
        -e 's/^(Checkpoint Save GB|time \(ms\) \| [a-z-]*).*/\1 T/' \
        -e '/^the order of the .* samples is that of/d' "$1" | LC_ALL=C sort
}

# record NAME COMMAND...: what it prints, and its exit status
record()
{
    local name=$1 status=0
    shift
    "$@" >"$dir/stdout" 2>"$dir/stderr" || status=$?
    { constant "$dir/stdout"; echo "exit status $status"; } >"$out/$name.out"
    constant "$dir/stderr" >"$out/$name.err"
}

# written NAME PATH: the sum of each file at PATH that has no times in it, and its log
written()
{
    [ ! -e "$2/log.jsonl" ] || constant "$2/log.jsonl" >"$out/$1.log"
    (cd "$dir" && find "$(realpath --relative-to=. "$2")" -type f ! -name log.jsonl ! -name '*.html' ! -name '*tfevents*' ! -name '*dllogger*' \
        ! -name .lock ! -name run.json ! -name .prepared.json ! -name .data_checked | LC_ALL=C sort | xargs -d '\n' sha256sum) >>"$out/sums"
}

# ran NAME COMMAND...: a command that writes $dir/NAME
ran()
{
    record "$@"
    [ ! -e "$dir/$1" ] || written "$1" "$dir/$1"
}

ranks() { mpirun --allow-run-as-root --oversubscribe -np "$@"; }

# the encoder: text, vocabulary, store, two phases, ranks, optimizers, precisions
make_store
written store "$dir/store"
bert=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --max_seq_length 32 --max_predictions_per_seq 5
    --train_batch_size 16 --learning_rate 1e-3 --eval_steps 4 --log_freq 1 --num_steps_per_checkpoint 4 --disable_progress_bar)
ran bert "${bert[@]}" --output_dir "$dir/bert" --max_steps 8 --gradient_accumulation_steps 4
record bert_dry_run "${bert[@]}" --output_dir "$dir/none" --max_steps 8 --gradient_accumulation_steps 4 --dry-run
rm -r "$dir/bert/ckpt_8"
record bert_resumed "${bert[@]}" --output_dir "$dir/bert" --max_steps 8 --gradient_accumulation_steps 4 --resume_from_checkpoint
written bert_resumed "$dir/bert"
ran bert_phase2 "${bert[@]}" --output_dir "$dir/bert_phase2" --max_steps 6 --phase2 --init_checkpoint "$dir/bert/ckpt_8"
for form in --autocast --fp8 "--optimizer adamw" "--zero_stage 1" "--optimizer muon" "--reproducible_ranks 4" "--no_nsp" "--recipe modern" "--mask_rate 0.3:0.15"; do
    ran "bert_${form//[^a-z0-9]/}" "${bert[@]}" --output_dir "$dir/bert_${form//[^a-z0-9]/}" --max_steps 4 $form
done
for mesh in "2" "4 --tensor-model-parallel-size 2" "2 --pipeline-model-parallel-size 2" "2 --zero_stage 1"; do
    name=bert_ranks_${mesh//[^a-z0-9]/}
    ran "$name" ranks ${mesh%% *} "${bert[@]}" --output_dir "$dir/$name" --max_steps 4 --gradient_accumulation_steps 2 ${mesh#[0-9]}
done

# the decoder: the flags of Megatron, meshes, another number of ranks after a resume
make_gpt_store
gpt=("$kiln" pretrain-gpt --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32
    --micro-batch-size 2 --data-path "$dir/meg_text_document" --split 949,50,1 --vocab-file "$dir/bpe/vocab.json" --merge-file
    "$dir/bpe/merges.txt" --lr 1e-2 --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --seed 42 --log-interval 2 --eval-iters 2
    --eval-interval 4 --global-batch-size 8 --save-interval 4)
ran gpt "${gpt[@]}" --train-iters 8 --save "$dir/gpt"
ran gpt_again "${gpt[@]}" --train-iters 12 --save "$dir/gpt_again" --load "$dir/gpt"
ran bloom "${gpt[@]}" --train-iters 4 --save "$dir/bloom" --position-embedding-type alibi --embed-layernorm
ran gpt_modern "${gpt[@]}" --train-iters 4 --save "$dir/gpt_modern" --bf16 --recipe modern
for mesh in "2 --tensor-model-parallel-size 2" "4 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2" "2" \
    "2 --zero-stage 1"; do
    name=gpt_ranks_${mesh//[^a-z0-9]/}
    ran "$name" ranks ${mesh%% *} "${gpt[@]}" --train-iters 4 --save "$dir/$name" ${mesh#[0-9]}
done
ran gpt_two_to_one "${gpt[@]}" --train-iters 8 --save "$dir/gpt_two_to_one" --load "$dir/gpt_ranks_2tensormodelparallelsize2"

# fine-tuning and answers
make_questions
awk 'BEGIN { print "sentence,label"; split("city river house", k, " "); for (i = 0; i < 90; i++) print "the " k[1 + i % 3] " went " i ", of people," k[1 + i % 3] }' |
    sed -E 's/^(.*),([a-z]+)$/"\1",\2/' | sed '1s/.*/sentence,label/' >"$dir/class.csv"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "{\"text\": \"the king %d\", \"label\": %.1f}\n", i, i % 5 }' >"$dir/numbers.json"
awk 'BEGIN { for (i = 0; i < 60; i++) { print "the O\ngreat B-PLACE"; if (i % 2) print "city I-PLACE"; print "went O\n" } }' >"$dir/names.conll"
tune=(--init_checkpoint "$dir/bert/ckpt_8" --train_batch_size 8 --gradient_accumulation_steps 2 --learning_rate 1e-3
    --num_train_epochs 2 --log_freq 1 --disable-progress-bar --do_train --do_predict --do_eval)
ran squad "$kiln" squad "${tune[@]}" --output_dir "$dir/squad" --train_file "$dir/questions.json" --predict_file "$dir/questions.json" \
    --max_seq_length 32 --doc_stride 8 --max_query_length 8
for table in class.csv numbers.json; do
    ran classify_${table%.*} "$kiln" classify "${tune[@]}" --output_dir "$dir/classify_${table%.*}" --train_file "$dir/$table" \
        --validation_file "$dir/$table" --predict_file "$dir/$table" --max_seq_length 32
done
ran tag "$kiln" tag "${tune[@]}" --output_dir "$dir/tag" --train_file "$dir/names.conll" --validation_file "$dir/names.conll" \
    --predict_file "$dir/names.conll" --max_seq_length 32
ran tag_ranks ranks 2 "$kiln" tag "${tune[@]}" --output_dir "$dir/tag_ranks" --train_file "$dir/names.conll" --validation_file \
    "$dir/names.conll" --predict_file "$dir/names.conll" --max_seq_length 32
ran finetune_gpt "$kiln" finetune-gpt --model "$dir/gpt/ckpt_8" --train_file "$dir/lines.jsonl" --validation_file "$dir/lines.jsonl" \
    --output_dir "$dir/finetune_gpt" --max_seq_length 24 --train_batch_size 16 --max_steps 6 --learning_rate 1e-3 --log_freq 1 \
    --num_steps_per_checkpoint 3 --disable_progress_bar
record ask "$kiln" ask --model "$dir/squad/model" --context "$dir/corpus.txt" "in the"
record fill "$kiln" fill --model "$dir/bert/ckpt_8" "the king [MASK] to the city"
record embed "$kiln" embed --model "$dir/bert/ckpt_8" "the king" "the city and the river"
record generate "$kiln" generate --model "$dir/gpt/ckpt_8" --prompt "The king" --max_new_tokens 12
record eval "$kiln" eval --model "$dir/gpt/ckpt_8" --input "$dir/lines.jsonl" "$dir/corpus.txt"
record ngram "$kiln" ngram --vocab_file "$dir/bpe/vocab.json" --merge_file "$dir/bpe/merges.txt" --train "$dir/meg_text_document" --input "$dir/corpus.txt"
for model in bert gpt; do
    record inspect_$model "$kiln" inspect "$dir/$model/ckpt_8"
done
record inspect_diff "$kiln" inspect --diff "$dir/bert/ckpt_4" "$dir/bert/ckpt_8"

# files of other programs, out and in again
for form in bert:huggingface bert:pt bert:deepspeed gpt:huggingface gpt:gguf gpt:megatron_deepspeed gpt:universal; do
    name=${form/:/_}
    ran $name "$kiln" convert --format ${form#*:} --model "$dir/${form%:*}/ckpt_8" --output_dir "$dir/$name"
    [[ $form == *deepspeed || $form == *universal ]] || record ${name}_read "$kiln" inspect "$dir/$name"
done
ran bert_from_deepspeed "${bert[@]}" --output_dir "$dir/bert_deepspeed" --max_steps 10 --gradient_accumulation_steps 4 --resume_from_checkpoint
ran gpt_from_universal "${gpt[@]}" --train-iters 10 --save "$dir/gpt_from_universal" --load "$dir/gpt_universal" --universal-checkpoint
ran gpt_from_megatron ranks 2 "${gpt[@]}" --train-iters 4 --save "$dir/gpt_from_megatron" --load "$dir/gpt_megatron_deepspeed" --finetune \
    --tensor-model-parallel-size 2

# text into files of training
ran hdf5 "$kiln" prepare --format hdf5,packed --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --output_dir "$dir/hdf5" --max_seq_length 32 --max_predictions_per_seq 5
shared=$(dirname "$0")/../../shared/data
if [ -d "$shared" ]; then
    tar -xJf "$shared/glue-small.tar.xz" -C "$dir"
    tar -xJf "$shared/blimp.tar.xz" -C "$dir"
    quick=(max_seq_length=16 train_batch_size=32 learning_rate=3e-3 max_steps=6 disable_progress_bar)
    record glue "$kiln" glue --model "$dir/bert/ckpt_8" --data_dir "$dir/glue" --output_dir "$dir/glue_scores" --tasks rte,mrpc --seeds 2 "${quick[@]}"
    written glue "$dir/glue_scores"
    record blimp "$kiln" blimp --model "$dir/bert/ckpt_8" --input "$dir/blimp/wh_island.jsonl" --limit 50 --disable_progress_bar
    ran wiki "$kiln" prepare --input "$shared/enwiki-206-pages-truncated.xml.bz2" --vocab_file "$dir/vocab.txt" --do_lower_case \
        --output_dir "$dir/wiki"
    ran wiki_text "$kiln" prepare --format text --input "$shared/enwiki-206-pages-truncated.xml.bz2" --output_dir "$dir/wiki_text"
fi

# help
"$kiln" --help >"$out/help.out" 2>&1
for command in $(sed -nE 's/^  ([a-z-]+) +[a-z].*/\1/p' "$out/help.out"); do
    record help_$command "$kiln" help $command all
done
echo "$out: $(wc -l <"$out/sums") sums, $(ls "$out" | wc -l) files"
