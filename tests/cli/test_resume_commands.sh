#!/usr/bin/env bash
# Runs that the replaced scripts began, in their output directories, with the flags of the documents: `kiln pretrain` goes on
# from them, and its next three losses are those that torch gives from the same state (tests/golden/make_resumed.py; DeepSpeed
# itself wrote its folders), to 6 digits.
. "$(dirname "$0")/begin.sh"
need_hdf5
unpack_golden resumed
cd "$dir"
command=("$kiln" pretrain --input_dir data/store --enable_packed_data_mode False --config_file data/bert_config.json
    --vocab_file data/vocab.txt --learning_rate 3e-3 --warmup_proportion 0.1 --max_steps 40 --max_seq_length 24
    --max_predictions_per_seq 4 --train_batch_size 4 --log_freq 1 --eval_steps 0 --num_steps_per_checkpoint 100)
phase2=(--phase2 --phase1_end_step 10)

# same_losses CASE STEP OPTIMIZER FLAG...: the run in CASE is at STEP of its phase
n_cases=0
same_losses()
{
    local case=$1 step=$2 optimizer=$3
    expect 0 "steps done" "${command[@]}" --output_dir "$case" --optimizer "$optimizer" --resume_from_checkpoint \
        --steps_this_run $((step + 3)) "${@:4}"
    grep '"event":"step"' "$case/log.jsonl" | sed 's/.*"loss":\([0-9.]*\).*/\1/' >losses
    paste losses "numbers/$case.losses" | awk -v case="$case" '
        { worst = ($1 > $2 ? $1 - $2 : $2 - $1) / $2; if (!(worst <= 5e-7)) { print case ": loss " $1 ", not " $2; bad = 1 } }
        END { exit bad || NR != 3 }' || fail "$case goes on otherwise: $(cat losses)"
    n_cases=$((n_cases + 1))
}
same_losses lamb 6 lamb
same_losses masters 6 lamb
same_losses adamw 5 adamw "${phase2[@]}"
same_losses weights 4 adamw
grep -q "has no state of an optimizer: moments start at zero" err || fail "not a word on moments: $(cat err)"
same_losses zero1_2 3 adamw "${phase2[@]}"
grep -q "fp32 weights of 2 ranks" err || fail "not a word on ranks: $(cat err)"
grep -q "its place in the data (file 0)" err || fail "not a word on data: $(cat err)"
[ "$(grep -c "kiln cannot use its place in the data" err)" = 1 ] || fail "what is lost takes one line: $(cat err)"
same_losses zero2_4 3 adamw
same_losses plain_1 3 adamw
same_losses bf16_2 3 adamw
same_losses zero2_1 3 adamw --resume_step 3
same_losses old_zero 3 adamw

# From then on kiln's own checkpoints count, and the same command continues.
expect 0 "resumed from lamb/ckpt_9: phase 1, 9 steps done" "${command[@]}" --output_dir lamb --optimizer lamb \
    --resume_from_checkpoint --steps_this_run 10
# Another program may have gone on beside them.
cp lamb/ckpt_6.pt lamb/ckpt_50.pt
expect 0 "resuming from lamb/ckpt_10, not from lamb/ckpt_50.pt of a later step" "${command[@]}" --output_dir lamb \
    --optimizer lamb --resume_from_checkpoint --steps_this_run 10
# The end of phase 1 begins phase 2, as the documents' second command has it.
cp -r masters/ckpt_6.pt data/ && mkdir begun && mv data/ckpt_6.pt begun/
expect 0 "resumed from begun/ckpt_6.pt: phase 2, 0 steps done" "${command[@]}" --output_dir begun --optimizer lamb \
    --resume_from_checkpoint --phase2 --phase1_end_step 6 --steps_this_run 2
[ -d begun/ckpt_8 ] || fail "phase 2 is not named after both phases: $(ls begun)"
mkdir begun_2 && cp begun/ckpt_6.pt begun_2/
expect 64 "is at step 6 of phase 1, but --phase1_end_step is 7038" "${command[@]}" --output_dir begun_2 --optimizer lamb \
    --resume_from_checkpoint --phase2
expect 66 "there is no begun_2/ckpt_5 for --resume_step 5" "${command[@]}" --output_dir begun_2 --resume_from_checkpoint \
    --resume_step 5
mkdir second && cp adamw/ckpt_15.pt second/
expect 64 "is a checkpoint of phase 2; add --phase2" "${command[@]}" --output_dir second --resume_from_checkpoint

# What is not whole is refused, with nothing written.
mkdir half && cp -r zero2_4/3 zero2_4/latest half/ && rm half/3/*rank_2_*
expect 65 "half a checkpoint: it has files of 3 of its 4 ranks" "${command[@]}" --output_dir half --resume_from_checkpoint
for case in lamb masters; do
    mkdir "cut_$case" && head -c 40000 "$case/ckpt_6.pt" >"cut_$case/ckpt_6.pt"
    expect 65 "cut_$case/ckpt_6.pt" "${command[@]}" --output_dir "cut_$case" --resume_from_checkpoint
done
! compgen -G "half/ckpt_*" >/dev/null || fail "half a checkpoint was trained"

# Folders of DeepSpeed are models, too: of the ranks, in fp32.
expect 0 "newest checkpoint is zero2_4/ckpt_6" "$kiln" export --model zero2_4 --output_dir exported
rm -r zero2_4/ckpt_6
for folder in zero2_4 zero2_4/3; do
    cp data/bert_config.json data/vocab.txt "$folder/"
    expect 0 "fp32 weights of 4 ranks" "$kiln" export --model "$folder" --output_dir exported
    expect 0 "bert.pooler.dense.weight" "$kiln" inspect exported/model.safetensors
done
echo global_step9 >exported/latest # as Hugging Face's trainer leaves it
expect 0 "bert.encoder.*" "$kiln" export --model exported --output_dir again
cmp exported/model.safetensors again/model.safetensors || fail "a model is another with DeepSpeed's file beside it"
echo "test_resume_commands: $n_cases runs go on with the losses of torch"
