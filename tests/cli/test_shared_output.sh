#!/usr/bin/env bash
# Runs of several kinds in one --output_dir, as the documents' lines write there: each saves beside, resumes from and removes only
# its own, whoever came first, and names what it removes.
. "$(dirname "$0")/begin.sh"
make_store
make_questions
cd "$dir"
printf 'label,text\nsun,the king\nrain,the old city\nsun,king and people\nrain,city of stone\n' >texts.csv
pretrain()
{
    "$kiln" pretrain --input_dir store --config_file config.json --max_seq_length 32 --max_predictions_per_seq 5 --train_batch_size 8 \
        --max_steps 4 --num_steps_per_checkpoint 2 --learning_rate 1e-3 --eval_steps 0 --output_dir "$@"
}
squad()
{
    "$kiln" squad --do_train --init_checkpoint run/ckpt_4 --train_file questions.json --train_batch_size 8 --max_seq_length 32 \
        --max_query_length 8 --doc_stride 16 --skip_cache --max_steps 4 --num_steps_per_checkpoint 2 --output_dir "$@"
}
classify()
{
    "$kiln" classify --do_train --init_checkpoint run/ckpt_4 --train_file texts.csv --train_batch_size 2 --max_seq_length 32 \
        --num_train_epochs 1 --num_steps_per_checkpoint 1 --output_dir "$@"
}
sums() { find "$@" -type f -exec sha256sum {} +; }
unchanged() { sha256sum --quiet -c before || fail "$1 changed what is not its own"; }

# pre-training came first
pretrain run 2>/dev/null
sums run/ckpt_2 run/ckpt_4 >before
expect 0 'saved run/squad/ckpt_4' squad run
expect 64 'run already has a fine-tuned model' squad run
expect 0 'resumed from run/squad/ckpt_4' squad run --resume_from_checkpoint
expect 0 'removing run/model' squad run --overwrite_output_dir
grep -q 'removing run/squad/ckpt_2' err || fail "squad does not name what it removes"
unchanged squad
sums run/squad run/model >>before
for flag in --disable-progress-bar --overwrite_output_dir --resume_from_checkpoint; do
    expect 64 'run/model holds a BertForQuestionAnswering, which a BertForSequenceClassification does not replace' classify run $flag
done
expect 64 'would remove run/model, from which this run starts' squad run --overwrite_output_dir --init_checkpoint run/model
ln -s run/squad/ckpt_4 link
for name in run/squad/ckpt_4 run/squad/ckpt_4/ link; do
    expect 64 "would remove $name, from which" squad run --overwrite_output_dir --init_checkpoint $name
done
unchanged "a run that was refused"
expect 0 'resumed from run/ckpt_4: phase 1, 4 steps done' pretrain run --max_steps 6 --resume_from_checkpoint
unchanged pretrain

# what is no model is not replaced, and that is said before the work
mkdir -p notes/model
echo mine >notes/model/notes.txt
for flag in --disable-progress-bar --overwrite_output_dir; do
    expect 64 'notes/model holds notes.txt, which is not part of a model' squad notes $flag
    [ "$(ls notes)" = model ] || fail "a run that was refused wrote $(ls notes)"
done

# as the replaced scripts name a checkpoint, which kiln's own run has as a directory
expect 0 'there is no run/ckpt_4.pt: run/ckpt_4 of a run of kiln is taken' squad script --init_checkpoint run/ckpt_4.pt
cmp script/model/model.safetensors run/model/model.safetensors || fail "ckpt_4.pt is another model than ckpt_4"
expect 0 'model: run/ckpt_4.pt' squad script --init_checkpoint run/ckpt_4.pt --overwrite_output_dir --dry_run
! grep 'missing:' err || fail "a checkpoint that is there is missing"

# fine-tuning came first, a damaged checkpoint among its own, and two more kinds come
squad other 2>/dev/null
cp -r other older # whose checkpoints do not say it, as those of earlier versions: the class of the model does
rm -r older/model
sed -i '/"command"/d' older/ckpt_*/trainer_state.json
cp other/ckpt_2/trainer_state.json older/ckpt_2 # one that is whole, but not the first to be asked
expect 64 'older already has checkpoints of a BertForQuestionAnswering' squad older
sums other/ckpt_2 other/ckpt_4 other/model >before
rm other/ckpt_4/trainer_state.json
sed -i '/ckpt_4.trainer_state/d' before
expect 0 'saved other/pretrain/ckpt_4' pretrain other
expect 0 'resumed from other/pretrain/ckpt_4' pretrain other --max_steps 6 --resume_from_checkpoint
expect 64 'holds a BertForQuestionAnswering' classify other --overwrite_output_dir
unchanged pretrain
expect 66 'other/ckpt_4 is kept: it does not say that kiln squad saved it' squad other --overwrite_output_dir --num_steps_per_checkpoint 0

# decoders, whose fine-tuning is a pre-training that goes on
make_gpt_store
decoder()
{
    "$kiln" "$@" --output_dir gpt --max_seq_length 16 --train_batch_size 4 --max_steps 2 --disable_progress_bar
}
mkdir tokens
mv meg_text_document.* tokens
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 1, "n_head": 2}' >gpt2.json
train=(pretrain --config_file gpt2.json --input_dir tokens --vocab_file bpe/vocab.json --eval_steps 0)
tune=(finetune-gpt --model gpt/ckpt_2 --train_file lines.jsonl)
decoder "${train[@]}" 2>err || fail "$(cat err)"
sums gpt/ckpt_2 >before
expect 0 'saved gpt/finetune-gpt/ckpt_2' decoder "${tune[@]}"
expect 0 'gpt/finetune-gpt/ckpt_2' decoder "${tune[@]}" --resume_from_checkpoint
expect 64 'gpt/finetune-gpt already has checkpoints' decoder "${tune[@]}"
expect 0 'phase 1 is complete' decoder "${train[@]}" --resume_from_checkpoint
unchanged finetune-gpt
echo "test_shared_output: each kind has its own"
