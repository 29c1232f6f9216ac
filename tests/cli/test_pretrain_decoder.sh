#!/usr/bin/env bash
# `kiln pretrain` with the configuration of a decoder: GPT-2, BLOOM, Qwen 2, Qwen 3, OLMo 2, SmolLM 3, Phi-3 and GPT-NeoX learn to predict the next token of a store in Megatron-LM's
# format, a stopped run goes on with the same bits, the export is Hugging Face's form, and flags of BERT and other data are
# refused.
. "$(dirname "$0")/begin.sh"
tests=$(dirname "$kiln")/tests
mkdir "$dir/store"
"$tests/test_token_windows" write "$dir/store" 200
echo '{"model_type": "gpt2", "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}' >"$dir/gpt2.json"
echo '{"model_type": "bloom", "seq_length": 32, "hidden_size": 24, "n_layer": 2, "n_head": 3}' >"$dir/bloom.json"
echo '{"model_type": "qwen2", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6,
    "num_key_value_heads": 2, "intermediate_size": 64}' >"$dir/qwen2.json"
echo '{"model_type": "qwen3", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64}' >"$dir/qwen3.json"
echo '{"model_type": "olmo2", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64}' >"$dir/olmo2.json"
echo '{"model_type": "smollm3", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "no_rope_layer_interval": 2, "attention_dropout": 0.1}' >"$dir/smollm3.json"
echo '{"model_type": "phi3", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "sliding_window": 9, "resid_pdrop": 0.1, "embd_pdrop": 0.1}' >"$dir/phi3.json"
echo '{"model_type": "gpt_neox", "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 64, "hidden_dropout": 0.1}' >"$dir/gpt_neox.json"

train()
{
    local name=$1 out=$2
    shift 2
    "$kiln" pretrain --input_dir "$dir/store" --vocab_file "$dir/store/tokenizer.json" --config_file "$dir/$name.json" \
        --output_dir "$dir/$out" --max_seq_length 32 --train_batch_size 8 --gradient_accumulation_steps 2 --max_steps 60 \
        --optimizer adamw --learning_rate 1e-2 --warmup_proportion 0.1 --eval_steps 60 --disable_progress_bar "$@"
}

for name in gpt2 bloom qwen2 qwen3 olmo2 smollm3 phi3 gpt_neox; do
    train $name $name --enable-tensorboard-logging >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
    grep -q 'windows of 32 to train on' "$dir/log" || fail "$(cat "$dir/log")"
    awk '/held-out: lm loss/ { gsub(/[(,)]/, " "); loss = $8; unigram = $10 }
        END { exit !(loss > 0 && loss < unigram - 0.5) }' "$dir/log" ||
        fail "$name learnt nothing: $(grep held-out "$dir/log")"
    counts=$(grep -o 'of [0-9]* tokens of the training text, lose [0-9.]* nats' "$dir/log") || fail "no counts: $(cat "$dir/log")"
    grep -q "(unigram [0-9.]*, 6-grams $(cut -d ' ' -f 9 <<<"$counts"))" "$dir/log" || fail "'$counts' is not beside the evaluation"
    for part in 'Next token: loss' 'Next token: accuracy' 'held-out loss of next token by word frequencies alone' \
        'held-out loss of next token by counts of n-grams' 'held-out perplexity' 'held-out bits per byte' 'class="r0 counts"'; do
        grep -q "$part" "$dir/$name/report.html" || fail "report.html of $name has no '$part'"
    done
    ! grep -q 'Masked words' "$dir/$name/report.html" || fail "report.html of $name shows a measure of another model"
    for tag in train/lm_loss train/lm_accuracy heldout/lm_loss heldout/lm_accuracy; do
        grep -aq "$tag" "$dir/$name"/worker_0/events.out.tfevents.* || fail "TensorBoard has no $tag of $name"
    done
    train $name $name-cut --steps_this_run 25 >/dev/null 2>&1
    if [ $name = gpt2 ]; then # without one beside the data the vocabulary is that of the run's own checkpoint
        mv "$dir/store/tokenizer.json" "$dir/aside.json"
        "$kiln" pretrain --input_dir "$dir/store" --config_file "$dir/$name.json" --output_dir "$dir/$name-cut" \
            --max_seq_length 32 --train_batch_size 8 --gradient_accumulation_steps 2 --max_steps 60 --optimizer adamw --learning_rate 1e-2 \
            --warmup_proportion 0.1 --eval_steps 60 --disable_progress_bar --resume_from_checkpoint >"$dir/log" 2>&1
        grep -q "vocabulary: $dir/gpt2-cut/ckpt_25/tokenizer.json" "$dir/log" || fail "no own vocabulary: $(cat "$dir/log")"
        mv "$dir/aside.json" "$dir/store/tokenizer.json"
    else
        train $name $name-cut --resume_from_checkpoint >/dev/null 2>&1
    fi
    for file in model.safetensors optimizer.safetensors tokenizer.json; do
        cmp "$dir/$name/ckpt_60/$file" "$dir/$name-cut/ckpt_60/$file" || fail "$file of $name differs after a stop"
    done
    expect 0 "wrote $dir/$name-hf" "$kiln" export --model "$dir/$name/ckpt_60" --output_dir "$dir/$name-hf"
    expect 0 "read back: all weights are the same" "$kiln" convert --model "$dir/$name-hf" --output_dir "$dir/$name-again"
done
expect 0 'model                           Qwen2ForCausalLM' "$kiln" inspect "$dir/qwen2-hf"
expect 0 'the' "$kiln" generate --model "$dir/qwen2-hf" --prompt the --max_new_tokens 5 --dtype int8
expect 0 'model                           Qwen3ForCausalLM' "$kiln" inspect "$dir/qwen3-hf"
expect 0 'model                           SmolLM3ForCausalLM' "$kiln" inspect "$dir/smollm3-hf"
expect 0 'model                           Phi3ForCausalLM' "$kiln" inspect "$dir/phi3-hf"
expect 0 'model                           GPTNeoXForCausalLM' "$kiln" inspect "$dir/gpt_neox-hf"
expect 0 'the' "$kiln" generate --model "$dir/gpt_neox-hf" --prompt the --max_new_tokens 5 --dtype int8
expect 0 'model                           Olmo2ForCausalLM' "$kiln" inspect "$dir/olmo2-hf"
expect 0 'pooling mean' "$kiln" embed --model "$dir/gpt2-hf" "he said"
expect 0 'model                           GPT2LMHeadModel' "$kiln" inspect "$dir/gpt2-hf"
expect 0 'answers                         generate' "$kiln" inspect "$dir/gpt2-hf"
expect 0 'the' "$kiln" generate --model "$dir/gpt2/ckpt_60" --prompt the --max_new_tokens 5
expect 0 '' "$kiln" generate --model "$dir/gpt2-hf" --prompt the --max_new_tokens 5 --ids --seed 3
[ "$(wc -w <"$dir/out")" = 5 ] || fail "not five ids: $(cat "$dir/out")"
cp "$dir/out" "$dir/once"
"$kiln" generate --model "$dir/gpt2-hf" --max_new_tokens 5 --ids --seed 3 <<<the >"$dir/lines"
cmp "$dir/once" "$dir/lines" || fail "a prompt on standard input goes on otherwise"

# prompts beside each other: the order of their lines, and the text that each has with fewer beside it
printf '%s\n' the 'and the house' king 'of the' the >"$dir/prompts"
for size in 1 2 8; do
    "$kiln" generate --model "$dir/gpt2-hf" --max_new_tokens 6 --seed 3 --batch_size $size <"$dir/prompts" >"$dir/size-$size"
    cmp "$dir/size-1" "$dir/size-$size" || fail "$size prompts at once go on otherwise than one"
done
expect 0 '' "$kiln" generate --model "$dir/gpt2-hf" --max_new_tokens 6 --seed 3 --prompt_file "$dir/prompts"
cmp "$dir/size-1" "$dir/out" || fail "prompts of a file go on otherwise"
"$kiln" generate --model "$dir/bloom-hf" --max_new_tokens 6 --seed 3 --autocast <"$dir/prompts" >"$dir/bloom-8"
"$kiln" generate --model "$dir/bloom-hf" --max_new_tokens 6 --seed 3 --autocast --batch_size 1 <"$dir/prompts" | cmp - "$dir/bloom-8" ||
    fail "prompts of BLOOM go on otherwise in bf16"
# a line comes when the answer to the one before it was read
mkfifo "$dir/ask"
"$kiln" generate --model "$dir/gpt2-hf" --max_new_tokens 2 <"$dir/ask" >"$dir/told" &
pid=$!
exec 4>"$dir/ask"
for turn in 1 2; do
    echo the >&4
    await $pid has_lines $turn "$dir/told"
    [ "$(wc -l <"$dir/told")" = $turn ] || fail "no answer before the next line: $(cat "$dir/told")"
done
exec 4>&-
wait $pid
text=$("$kiln" generate --model "$dir/gpt2-hf" --prompt the --max_new_tokens 8 --temperature 0)
stop=${text:6:3}
expect 0 '' "$kiln" generate --model "$dir/gpt2-hf" --prompt the --max_new_tokens 8 --temperature 0 --stop "$stop" 'no such text'
new=$(cat "$dir/out")
[[ ${text:3} == "${new:3}$stop"* ]] || fail "'$text' was not ended before '$stop', but: '$new'"
echo 'the the the the the the the the the the the the the the' >>"$dir/prompts"
expect 0 '' "$kiln" generate --model "$dir/gpt2-hf" --prompt=' ' --max_new_tokens 2
expect 0 'warning: standard input had no prompt: give a text' "$kiln" generate --model "$dir/gpt2-hf" </dev/null
expect 65 'prompt 6 has' "$kiln" generate --model "$dir/gpt2-hf" --max_new_tokens 20 --prompt_file "$dir/prompts"
[ ! -s "$dir/out" ] || fail "prompts were answered before one that does not fit was found"
expect 64 '--stop is empty' "$kiln" generate --model "$dir/gpt2-hf" --prompt a --stop ''
expect 64 'only one of them' "$kiln" generate --model "$dir/gpt2-hf" --prompt a --prompt_file "$dir/prompts"
expect 65 "$dir/none" "$kiln" generate --model "$dir/gpt2-hf" --prompt_file "$dir/none"
expect 0 'keys and values of the texts in a batch: 0.5 MiB' "$kiln" generate --model "$dir/gpt2-hf" --dry_run --batch_size 32
echo 'and the house of the king' >"$dir/text"
expect 0 'context 32, stride 32: ' "$kiln" eval --model "$dir/gpt2-hf" --input "$dir/text"
cp "$dir/text" "$dir/a \"text\""
expect 0 '\"text\"","tokens":' "$kiln" eval --model "$dir/gpt2-hf" --input "$dir/a \"text\"" --json
: >"$dir/empty"
expect 65 'a text of 0 tokens' "$kiln" eval --model "$dir/gpt2-hf" --input "$dir/empty"
expect 64 'stride 9 is longer than the context, 8' "$kiln" eval --model "$dir/gpt2-hf" --input "$dir/text" --context 8 --stride 9
expect 65 "$dir/none" "$kiln" eval --model "$dir/gpt2-hf" --input "$dir/none"
expect 65 'together 41, but the model reads at most 32' "$kiln" generate --model "$dir/gpt2-hf" --prompt a --max_new_tokens 40
expect 65 'this model answers: generate' "$kiln" fill --model "$dir/gpt2-hf" 'a [MASK]'
grep -aq 'h.0.attn.c_attn.weight' "$dir/gpt2-hf/model.safetensors" || fail "GPT-2's joined tensor is not in the export"
grep -aq 'h.0.self_attention.query_key_value.weight' "$dir/bloom-hf/model.safetensors" ||
    fail "BLOOM's joined tensor is not in the export"
train gpt2 ordered --megatron_order >"$dir/log" 2>&1 || fail "Megatron's order: $(tail -n 3 "$dir/log")"
train gpt2 ordered-cut --megatron_order --steps_this_run 25 >/dev/null 2>&1
expect 65 'order' train gpt2 ordered-cut --resume_from_checkpoint
train gpt2 ordered-cut --megatron_order --resume_from_checkpoint >/dev/null 2>&1
cmp "$dir/ordered/ckpt_60/model.safetensors" "$dir/ordered-cut/ckpt_60/model.safetensors" || fail "the order changes after a stop"
train gpt2 written --megatron_order --data_cache_path "$dir/index" --eval_steps 0 >/dev/null 2>&1
[ "$(ls "$dir/index" | grep -c '_train_indexmap_480ns_32sl_42s_.*_idx.npy$')" = 3 ] || fail "index files: $(ls "$dir/index")"
expect 0 'is that of' train gpt2 read --megatron_order --data_cache_path "$dir/index" --eval_steps 0
cmp "$dir/written/ckpt_60/model.safetensors" "$dir/read/ckpt_60/model.safetensors" || fail "another order out of the files"
printf x >>"$(ls "$dir"/index/*_shuffle_idx.npy)"
expect 65 'shuffle_idx.npy' train gpt2 broken --megatron_order --data_cache_path "$dir/index" --eval_steps 0
expect 64 'needs --megatron_order' train gpt2 broken --data_cache_path "$dir/index"
! cmp -s "$dir/gpt2/ckpt_60/model.safetensors" "$dir/ordered/ckpt_60/model.safetensors" || fail "both orders are one"
train gpt2 bf16 --autocast --checkpoint_activations >"$dir/log" 2>&1 || fail "bf16: $(tail -n 3 "$dir/log")"

# from lines of JSON to a text: kiln's own tokenizer and store, whose PREFIX.json names the tokenizer
for i in $(seq 120); do
    echo "{\"text\": \"The king number $i went to the city, and the queen number $((i * 7 % 100)) came in from the garden.\"}"
done >"$dir/lines.jsonl"
mkdir "$dir/bpe" "$dir/own"
"$kiln" vocab --input "$dir/lines.jsonl" --kind bpe --vocab_file "$dir/bpe/vocab.json" --vocab_size 300 >/dev/null 2>&1
"$kiln" prepare --format gpt --input "$dir/lines.jsonl" --vocab_file "$dir/bpe/tokenizer.json" --append_eod \
    --output_prefix "$dir/own/mine" >/dev/null 2>&1
train gpt2 own-run --input_dir "$dir/own" --vocab_file "$dir/bpe/tokenizer.json" --train_batch_size 4 --eval_steps 60 \
    >"$dir/log" 2>&1 ||
    fail "own data: $(tail -n 3 "$dir/log")"
grep -q 'checksums match' "$dir/log" && grep -q 'step 60 held-out: lm loss' "$dir/log" || fail "$(cat "$dir/log")"
expect 0 'The king' "$kiln" generate --model "$dir/own-run/ckpt_60" --prompt 'The king' --max_new_tokens 8 --temperature 0
expect 65 'vocabulary' train gpt2 none --input_dir "$dir/own"

# with no more flags than are needed a decoder learns; BERT's rate and optimizer teach it nothing, and that is said; and recipes
plain()
{
    "$kiln" pretrain --input_dir "$dir/store" --vocab_file "$dir/store/tokenizer.json" --config_file "$dir/gpt2.json" \
        --output_dir "$dir/plain-$1" --max_seq_length 32 --train_batch_size 8 --max_steps 120 --disable_progress_bar "${@:2}"
}
expect 0 "a decoder's defaults: --optimizer adamw --learning_rate 1e-3 --lr_schedule linear" plain usual
awk '/held-out: lm loss/ { gsub(/[(,)]/, " "); loss = $8; unigram = $10 } END { exit !(loss > 0 && loss < unigram) }' "$dir/err" ||
    fail "the defaults teach nothing: $(grep held-out "$dir/err")"
! grep -E 'above that of|about that of' "$dir/err" || fail "an alarm for a run that learns"
expect 0 'is above that of word frequencies alone' plain lamb --optimizer lamb --learning_rate 5e-5
expect 0 'recipe modern: --optimizer muon --learning_rate 8e-3 --adam_beta2 0.98 --weight_decay 0.1 --lr_schedule linear' \
    plain modern --recipe modern --max_steps 2
grep -q 'dropout is 0.1, as .*gpt2.json says' "$dir/err" && ! grep -q 'no_nsp' "$dir/err" || fail "BERT's recipe: $(cat "$dir/err")"
expect 64 "--recipe reference is BERT-large's" plain reference --recipe reference

expect 64 '--mask_rate needs a BERT model' train gpt2 none --mask_rate 0.2
train gpt2 uncounted --ngram_tokens 0 >"$dir/log" 2>&1 || fail "no counts: $(tail -n 3 "$dir/log")"
! grep -q 'grams' "$dir/log" "$dir/uncounted/log.jsonl" || fail "counts though they are off"
cmp "$dir/gpt2/ckpt_60/model.safetensors" "$dir/uncounted/ckpt_60/model.safetensors" || fail "counts change what is trained"
train gpt2 few --ngram_tokens 500 2>&1 | grep 'of 500 tokens of the training text' >/dev/null || fail "not 500 tokens"
expect 64 'a gpt2 model is not computed in fp8' train gpt2 none --fp8
expect 65 'fewer than a batch' train gpt2 none --train_batch_size 2000
expect 65 'positions, fewer than' train gpt2 none --max_seq_length 64
rm "$dir/store/train.bin"
expect 65 'has no PREFIX.idx and PREFIX.bin: it needs' train gpt2 none --eval_steps 0 --input_dir "$dir"
cp "$0" "$dir/one.txt" # one document: tokens of it are held out
store() { "$kiln" prepare --format gpt --input "$dir/one.txt" --vocab_file "$dir/store/tokenizer.json" --output_prefix "$1" 2>"$dir/err" || fail "$(cat "$dir/err")"; }
store "$dir/single/a" && store "$dir/several/a" && store "$dir/several/b"
expect 65 'has several stores (PREFIX.idx and PREFIX.bin), and none is named train or train_*' train gpt2 none --input_dir "$dir/several"
expect 0 'has too few documents to hold some out: the last' train gpt2 none --input_dir "$dir/single" --dry_run
rm "$dir"/several/*
store "$dir/several/train" && store "$dir/several/heldout"
expect 0 'several/train_text_document: ' train gpt2 none --input_dir "$dir/several" --dry_run
