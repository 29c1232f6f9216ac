#!/usr/bin/env bash
# A GGUF file is a model: what llama.cpp's rules wrote (tests/golden/make_gguf.py) is continued as by transformers, told by every
# command as its directory is, and becomes a directory and a file again; and what is refused, in a sentence.
. "$(dirname "$0")/begin.sh"
unpack_golden gguf
cd "$dir"
text="the of and you"

# ids MODEL FLAGS...: what stands behind the text.
ids()
{
    "$kiln" generate --model "$1" --prompt "$text" --max_new_tokens 12 --temperature 0 --ignore_eos --ids "${@:2}" 2>err || fail "$(cat err)"
}

for model in llama qwen2 qwen3 olmo2 smollm3 gpt_neox phi3; do
    file=$model/model.gguf
    if ! "$kiln" tokenize --model $file </dev/null >out 2>err && grep -q PCRE2 err; then
        continue # a build without it
    fi
    wanted=$(tr -d ' ' <numbers/$model:greedy | tr '\n' ' ')
    [ "$(ids $file) " = "$wanted" ] || fail "$model: $(ids $file), not $wanted"
    [ "$(ids $model) " = "$wanted" ] || fail "the directory of $file alone"
    # a directory of it, and a file of that, have the same weights and answers, to the bit
    expect 0 "largest difference of logits before and after: 0 " "$kiln" convert --to huggingface --model $file --output_dir $model.hf
    expect 0 "largest difference of logits before and after: 0 " "$kiln" convert --to gguf --model $model.hf --output_dir $model.again
    for one in $file $model.hf $model.again $model.again/model.gguf; do
        "$kiln" generate --model $one --prompt "$text" --max_new_tokens 8 --temperature 0 --ignore_eos --json --logprobs 3 >"answer" 2>err ||
            fail "$(cat err)"
        [ -e first.$model ] || cp answer first.$model
        cmp answer first.$model || fail "$one answers otherwise than $file"
    done
    printf '%s\n' "$text" "é 中文 12345 <|im_end|> don't" >lines
    "$kiln" tokenize --model $model.hf <lines >wanted
    for flag in --model --vocab_file; do
        "$kiln" tokenize $flag $file <lines >got || fail "tokenize $flag"
        cmp wanted got || fail "tokenize $flag: other ids"
    done
    # it is evaluated and trained as the directory is
    for i in {1..40}; do echo "$text and this have from one word by that"; done >train.txt
    for one in $file $model.hf; do
        "$kiln" eval --model $one --input train.txt 2>err | sed 's/.*context/context/' >nats.${one##*.} || fail "$(cat err)"
        "$kiln" finetune-gpt --init_checkpoint $one --train_file train.txt --output_dir ft.${one##*.} --max_steps 2 --train_batch_size 2 \
            2>err || fail "$(tail -3 err)"
    done
    cmp nats.gguf nats.hf || fail "eval"
    cmp ft.gguf/model/model.safetensors ft.hf/model/model.safetensors || fail "finetune-gpt"
    rm -r ft.gguf ft.hf
    if [ $model != llama ]; then
        "$kiln" generate --model $file --chat --prompt hand --max_new_tokens 2 --temperature 0 --json 2>err >out || fail "$(cat err)"
        grep -qF '<|im_start|>user\nhand<|im_end|>\n<|im_start|>assistant\n' out || fail "a chat: $(cat out)"
    fi
done

# What is refused: a type, a damaged file, one of several.
expect 0 "tokenizer.ggml.tokens         330 texts" "$kiln" inspect llama/model.gguf
head -c 3000 llama/model.gguf >cut.gguf
expect 65 "cut.gguf: a value at byte" "$kiln" generate --model cut.gguf --prompt x
{ head -c 4 llama/model.gguf; printf '\1\0\0\0'; tail -c +9 llama/model.gguf; } >old.gguf
expect 65 "old.gguf is of version 1 of GGUF; kiln reads 2 and 3" "$kiln" generate --model old.gguf --prompt x
head -c 100000 llama/model.gguf >short.gguf
expect 65 "ends behind the end of the file: it is cut short" "$kiln" generate --model short.gguf --prompt x
# the type of a tensor stands behind its name, the number of its dims, and these
at=$(LC_ALL=C grep -abo blk.0.ffn_gate.weight llama/model.gguf | head -1 | cut -d: -f1)
{ head -c $((at + 41)) llama/model.gguf; printf '\14'; tail -c +$((at + 43)) llama/model.gguf; } >q4.gguf
expect 65 "blk.0.ffn_gate.weight (Q4_K) cannot be read: it is quantized in a way that kiln does not read: it reads F32, F16, BF16" \
    "$kiln" convert --to huggingface --model q4.gguf --output_dir q4
[ ! -e q4 ] || fail "a model of an unknown type was written"
[ -z "$(ls -d ./*.tmp 2>/dev/null)" ] || fail "something was left"
