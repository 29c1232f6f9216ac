#!/usr/bin/env bash
# How samples are drawn from a store, by flags: --mask_rate, --whole_word_masks, --no_nsp.  Runs resume to the bit, and only as
# they were drawn; room for predictions follows the rate; the model without next sentences is one that other commands take; files
# whose masks were drawn already refuse the flags.
. "$(dirname "$0")/begin.sh"
make_store

pretrain_command()
{
    local out=$1
    shift
    command=("$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/$out"
        --max_seq_length 32 --train_batch_size 16 --gradient_accumulation_steps 2 --max_steps 30 --learning_rate 1e-3
        --num_steps_per_checkpoint 10 --keep_checkpoints 0 --eval_steps 10 --log_freq 1 --disable_progress_bar "$@")
}

pretrain()
{
    pretrain_command "$@"
    "${command[@]}"
}

# the flags' defaults are no flags
pretrain plain --max_predictions_per_seq 5 2>/dev/null
pretrain spelled --max_predictions_per_seq 5 --mask_rate 0.15 --short_seq_prob 0.1 2>/dev/null
cmp "$dir/plain/ckpt_30/model.safetensors" "$dir/spelled/ckpt_30/model.safetensors" || fail "a default is not the default"
cmp "$dir/plain/ckpt_30/trainer_state.json" "$dir/spelled/ckpt_30/trainer_state.json" || fail "other states"

drawn=(--mask_rate 0.4 --whole_word_masks --no_nsp)
pretrain whole "${drawn[@]}" 2>"$dir/log"
grep -q "samples: one segment each, without next sentences, masks of 0.4 of the tokens, in whole words" "$dir/log" ||
    fail "$(cat "$dir/log")"
grep -q '"max_predictions_per_seq": 13' "$dir/whole/ckpt_30/trainer_state.json" ||
    fail "room for predictions does not follow the rate"
grep -q '"data": ".*, no pairs, whole words, masks 0.4"' "$dir/whole/ckpt_30/trainer_state.json" ||
    fail "the data does not say how it was drawn"
grep -q "mlm_loss" "$dir/whole/log.jsonl" || fail "no losses"
! grep -q "nsp" "$dir/whole/log.jsonl" || grep -q '"no_nsp"' "$dir/whole/log.jsonl" || fail "a loss of next sentences"
! grep -q "nsp_loss\|nsp loss" "$dir/whole/log.jsonl" "$dir/log" || fail "a loss of next sentences"
grep -q "BertForMaskedLM" "$dir/whole/ckpt_30/config.json" || fail "another class of model"
expect 0 "cls.predictions" "$kiln" inspect "$dir/whole/ckpt_30"
! grep -q "seq_relationship\|pooler" "$dir/out" || fail "a head of next sentences"

# killed, and gone on
resumes_to whole "${drawn[@]}"

# a run goes on only with the samples that it had
rm -r "$dir/whole/ckpt_30"
expect 65 "other data" pretrain whole --mask_rate 0.3 --whole_word_masks --no_nsp --resume_from_checkpoint
expect 65 "other data" pretrain whole --mask_rate 0.4 --no_nsp --resume_from_checkpoint
expect 64 "was trained with --no_nsp: resume with it" pretrain whole --mask_rate 0.4 --whole_word_masks --resume_from_checkpoint
rm -r "$dir/plain/ckpt_30"
expect 64 "was trained without --no_nsp: resume without it" \
    pretrain plain --max_predictions_per_seq 5 --no_nsp --resume_from_checkpoint
expect 64 "was trained with --no_nsp: resume with it" pretrain killed --phase2 --phase1_end_step 30 --resume_from_checkpoint
expect 0 "" pretrain killed --phase2 --phase1_end_step 30 --max_steps 2 --no_nsp --resume_from_checkpoint

# what the model is good for
expect 0 "" "$kiln" fill --model "$dir/killed/ckpt_30" "the king went to the [MASK]"
expect 0 "" pretrain on --init_checkpoint "$dir/killed/ckpt_30" --max_predictions_per_seq 5
grep -q "bert.pooler" "$dir/err" || fail "the pooler is not named as new: $(cat "$dir/err")"
expect 0 "" pretrain off --init_checkpoint "$dir/spelled/ckpt_30" --no_nsp

# the rate asks for more than there is room
expect 0 "masks: 0.9 of 32 tokens are 29, but --max_predictions_per_seq allows 5 in a sequence" \
    pretrain dry --dry_run --mask_rate 0.9 --max_predictions_per_seq 5
expect 64 "--mask_rate" pretrain dry --mask_rate 1.5
expect 64 "--mask_rate must be above 0" pretrain dry --mask_rate 0
expect 64 "--mask_rate" pretrain dry --mask_rate -0.1

# a model of one segment cannot tell two sentences apart
sed '0,/{/s//{"type_vocab_size": 1, /' "$dir/config.json" >"$dir/one.json"
expect 64 "type_vocab_size" pretrain segments --config_file "$dir/one.json"
expect 0 "" pretrain segments --config_file "$dir/one.json" --no_nsp --max_steps 2

# files with masks
need_hdf5
"$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --holdout_fraction 0.1 --output_dir "$dir/files" --format hdf5 --max_seq_length 32 \
    --max_predictions_per_seq 5 --whole_word_masks --packed 2>/dev/null
expect 0 "" pretrain files --input_dir "$dir/files" --max_steps 3
for flag in "--mask_rate 0.2" "--mask_rate 0.3:0.15" "--mask_keep_rate 0.2" --even_masks --whole_word_masks --no_nsp \
    --ppmi_embeddings; do
    expect 64 "${flag%% *} needs a token store: the .hdf5 files of" pretrain files2 --input_dir "$dir/files" $flag
done
