#!/usr/bin/env bash
# Every command line of the five documents that kiln replaces, as one process, run for real: the last flags make model and data
# small, all others are the document's.
. "$(dirname "$0")/begin.sh"
shopt -s extglob
tests=$(cd "$(dirname "$0")" && pwd)
. "$tests/documents.sh"
need_hdf5
unset "${!OMPI_@}" "${!SLURM_@}" WORLD_SIZE RANK LOCAL_RANK
make_store
make_questions
"$kiln" prepare --input "$dir/corpus.txt" --vocab_file "$dir/vocab.txt" --do_lower_case --input_format lines \
    --one_sentence_per_line --holdout_fraction 0.1 --format hdf5 --max_seq_length 48 --max_predictions_per_seq 8 \
    --output_dir "$dir/padded" 2>/dev/null
"$kiln" pack --input_dir "$dir/padded/training" --output_dir "$dir/packed" --max_sequence_length 48 \
    --max_predictions_per_sequence 8 2>/dev/null
echo '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 8, "gradient_clipping": 1.0, "bf16": {"enabled": true},
    "zero_optimization": {"stage": 1}, "steps_per_print": 48}' >"$dir/ds.json"
mkdir "$dir/bin"
# which runs an --eval_script
printf '#!/bin/sh\necho "scored $1 $2 $3"\necho "{\\"exact_match\\": 12.5, \\"f1\\": 34.75}"\n' >"$dir/bin/python3"
chmod +x "$dir/bin/python3"
export PATH=$dir/bin:$PATH
n_run=0

# what phase 2 goes on from, and what questions are answered with
"$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/first" --max_seq_length 48 \
    --max_predictions_per_seq 8 --train_batch_size 8 --max_steps 2 --eval_steps 0 2>/dev/null
"$kiln" squad --init_checkpoint "$dir/first/ckpt_2" --output_dir "$dir/qa" --do_train --train_file "$dir/questions.json" \
    --max_steps 2 --max_seq_length 48 --max_query_length 8 --doc_stride 16 --skip_cache 2>/dev/null

# run_small NUMBER: runs the command whose script and words are set
run_small()
{
    local out=$dir/out_$1 all=" ${words[*]} "
    case $script in
    run_pretraining)
        local small=(--config_file "$dir/config.json" --output_dir "$out" --input_dir "$dir/packed" --vocab_file "$dir/vocab.txt"
            --max_steps 4 --eval_steps 0 --json-summary "$out.json")
        [[ $all != *" --enable_packed_data_mode False "* && $all != *" --deepspeed "* ]] ||
            small+=(--input_dir "$dir/padded/training")
        [[ $all != *" --phase2 "* ]] || { small+=(--phase1_end_step 2 --allow_other_data); cp -r "$dir/first" "$out"; }
        if [[ $all == *" --deepspeed "* ]]; then
            small+=(--deepspeed_config "$dir/ds.json")
        else
            small+=(--train_batch_size 16 --gradient_accumulation_steps 2)
        fi
        expect 0 "saved" env "${exports[@]}" "$kiln" pretrain "${words[@]}" "${small[@]}"
        [[ $all != *" --phase2 "* ]] || [ -s "$out/ckpt_6/model.safetensors" ] || fail "$1: phase 2 did not go on from phase 1"
        ;;
    run_squad)
        local small=(--init_checkpoint "$dir/first/ckpt_2" --config_file "$dir/config.json" --vocab_file "$dir/vocab.txt"
            --output_dir "$out" --max_seq_length 48 --max_query_length 8 --doc_stride 16 --eval_script "$dir/evaluate.py"
            --predict_file "$dir/questions.json" --json-summary "$out.json")
        if [[ $all == *" --do_train "* ]]; then
            small+=(--train_file "$dir/questions.json" --max_steps 2)
        else
            small+=(--init_checkpoint "$dir/qa/model")
        fi
        expect 0 "wrote $out/predictions.json" env "${exports[@]}" "$kiln" squad "${words[@]}" "${small[@]}"
        grep -qF "scored $dir/evaluate.py $dir/questions.json $out/predictions.json" "$dir/out" ||
            fail "$1: the eval script was not run: $(cat "$dir/out")"
        grep -q '"exact_match": *12.5' "$out.json" && grep -q '"F1": *34.75' "$out.json" &&
            grep -q '"F1": *34.75' "$out/log.jsonl" ||
            fail "$1: the script's score is lost: $(tail -3 "$out.json")"
        ;;
    pack*)
        expect 0 "sequences a pack" "$kiln" pack "${words[@]}" --input_dir "$dir/padded/training" --output_dir "$out"
        ;;
    esac
    grep -q '^DLLL ' "$out.json" 2>/dev/null || [[ $script == pack* ]] || fail "$1: no dllogger lines"
    n_run=$((n_run + 1))
}
cd "$dir"
read_documents "$tests"/documents/*.txt
for i in "${!numbers[@]}"; do
    split_command "${lines[i]}"
    [ -z "$script" ] || run_small "${numbers[i]}"
done
echo "test_documents_run: $n_run command lines ran, made small"
[ $n_run -eq 41 ] || fail "not all of them"
