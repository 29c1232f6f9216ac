#!/usr/bin/env bash
# `--sample_prompts`: each evaluation says what the model makes of fixed texts, in the log and in the report, also after a stop; the
# weights do not depend on it, and what cannot be drawn is refused before the run.
. "$(dirname "$0")/begin.sh"
make_gpt_store
mkdir "$dir/gpt" && mv "$dir"/meg_text_document.* "$dir/gpt"
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}' >"$dir/gpt2.json"

# train OUT [FLAGS...]
train()
{
    "$kiln" pretrain --input_dir "$dir/gpt" --vocab_file "$dir/bpe/tokenizer.json" --config_file "$dir/gpt2.json" \
        --output_dir "$dir/$1" --max_seq_length 32 --train_batch_size 8 --max_steps 40 --eval_steps 20 --log_freq 20 "${@:2}"
}
prompts=(--sample_prompts 'The king' 'and the <queen>')
expect 0 'step 20, "The king": ' train whole "${prompts[@]}"
[ "$(grep -c '"event":"sample"' "$dir/whole/log.jsonl")" = 4 ] || fail "not two texts at two evaluations"
expect 0 '' train plain
expect 0 '' train stopped --steps_this_run 20 "${prompts[@]}"
expect 0 '' train stopped --resume_from_checkpoint "${prompts[@]}"
for out in plain stopped; do
    cmp "$dir/whole/ckpt_40/model.safetensors" "$dir/$out/ckpt_40/model.safetensors" || fail "samples change the weights of $out"
done
texts() { grep -o '"prompt":.*' "$dir/$1/log.jsonl"; }
diff <(texts whole) <(texts stopped) || fail "other samples after a stop"
for part in 'Samples while it learns' 'and the &lt;queen&gt;' '<td>20</td>' '<td>40</td>'; do
    grep -q "$part" "$dir/stopped/report.html" || fail "report.html has no $part"
done

make_store
bert() { "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/config.json" --output_dir "$dir/bert" --max_seq_length 32 \
    --max_predictions_per_seq 5 --train_batch_size 16 --max_steps 5 --eval_steps 5 "$@"; }
expect 64 '"a king" has no [MASK] to fill' bert --sample_prompts 'a [MASK]' 'a king'
[ ! -e "$dir/bert" ] || fail "a refused run wrote something"
expect 0 'step 5, "the old [MASK] went to the [MASK]": ' bert --sample_prompts 'the old [MASK] went to the [MASK]'
grep -qE '"text":"[^ ]+ 0\.[0-9]+, [^ ]+ 0\.[0-9]+, [^ ]+ 0\.[0-9]+; [^"]*"' "$dir/bert/log.jsonl" || fail "not three words for each mask"
