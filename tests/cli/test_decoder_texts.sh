#!/usr/bin/env bash
# The special tokens of a decoder, as its files say: prompts, texts and exports have them, whatever they are called; and odd files that
# other programs write are read, or named.
. "$(dirname "$0")/begin.sh"
unpack_golden decoders
cd "$dir"
export CUDA_VISIBLE_DEVICES=

# a GPT-2 whose end of a text is called <end>, by tokenizer_config.json alone
cp -r gpt2 own
sed -i 's/<|endoftext|>/<end>/g' own/tokenizer.json
echo '{"tokenizer_class": "GPT2Tokenizer", "eos_token": "<end>", "bos_token": {"content": "<end>"}}' >own/tokenizer_config.json
end=261
ids_of() { od -An -v -w2 -tu2 "$1.bin" | tr -d ' ' | paste -sd ' '; }
printf '{"text": "the hand"}\n{"text": "the <end>sea"}\n' >t.jsonl
plain=$(printf 'the hand\nthe \nsea\n' | "$kiln" tokenize --vocab_file own/tokenizer.json)
first=$(sed -n 1p <<<"$plain") second=$(sed -n 2p <<<"$plain") third=$(sed -n 3p <<<"$plain")
prepare() { "$kiln" prepare --format gpt --vocab_file own/tokenizer.json --overwrite --output_prefix "$@" 2>err; }
prepare s --input t.jsonl --append_eod || fail "$(cat err)"
[ "$(ids_of s_text_document)" = "$first $end $second $end $third $end" ] || fail "prepare: $(ids_of s_text_document)"
prepare s --input t.jsonl --append_eod --no_parse_special_tokens || fail "$(cat err)"
[ "$(ids_of s_text_document | tr ' ' '\n' | grep -c "^$end\$")" = 2 ] || fail "special tokens as text: $(ids_of s_text_document)"

# lines of the token alone are between documents
printf 'the hand\n<end>\nthe \n<end>\r\nsea\n<end>\n' >t.txt
tune=("$kiln" finetune-gpt --model own --max_seq_length 8 --train_batch_size 1 --max_steps 1 --disable_progress_bar)
expect 0 '3 documents' "${tune[@]}" --train_file t.txt --validation_file t.txt --output_dir o
[ "$(ids_of o/data/train)" = "$first $end $second $end $third $end" ] || fail "finetune-gpt: $(ids_of o/data/train)"
# what is saved says the same
for model in o/model o/ckpt_1; do
    grep -q '"eos_token_id": 261' $model/config.json && grep -q '"bos_token_id": 261' $model/config.json || fail "$model: $(cat $model/config.json)"
    grep -q '"eos_token": "<end>"' $model/tokenizer_config.json || fail "$(cat $model/tokenizer_config.json)"
done
grep -q '"eos_token_id": 261' o/model/generation_config.json || fail "generation_config.json"

# no file says which of two names is meant: the user does
mkdir two
sed 's/<end>/<\/s>/g' own/tokenizer.json >two/tokenizer.json
sed -i 's/"added_tokens": *\[/&{"id": 262, "content": "<|endoftext|>", "special": true},/' two/tokenizer.json
expect 64 'name it by --eod_token' "$kiln" prepare --format gpt --vocab_file two/tokenizer.json --input t.jsonl --append_eod --output_prefix u
expect 64 "is '<no>', which is no token" "$kiln" prepare --format gpt --vocab_file two/tokenizer.json --input t.jsonl --append_eod \
    --eod_token '<no>' --output_prefix u
expect 0 '' "$kiln" prepare --format gpt --vocab_file two/tokenizer.json --input t.jsonl --append_eod --eod_token '<|endoftext|>' --output_prefix u
[ "$(ids_of u_text_document | tr ' ' '\n' | grep -c '^262$')" = 2 ] || fail "--eod_token: $(ids_of u_text_document)"

# prompts: without a text, with CR LF, and as JSON
generate() { "$kiln" generate --model own --max_new_tokens 4 --temperature 0 "$@" 2>err; }
[ "$(generate --prompt '' --ids)" = "$(generate --prompt '<end>' --ids)" ] || fail "an empty prompt begins a text: $(cat err)"
[ "$(printf '\xef\xbb\xbfthe hand\r\n' | generate --ids)" = "$(generate --prompt 'the hand' --ids)" ] || fail "a byte order mark, CR LF"
generate --prompt 'the hand' --json | grep -E '^\{"prompt": ?"the hand", ?"text": ?".*", ?"ids": ?\[[0-9, ]+\], ?"end": ?"(end|length)"\}$' >/dev/null ||
    fail "$(generate --prompt 'the hand' --json)"
# longer than the model reads
# Texts as arguments; several texts after a prompt; prompts with line ends; a line between texts; how probable tokens are.
[ "$(generate 'the hand' 'the king' --ids)" = "$(printf 'the hand\nthe king\n' | generate --ids)" ] || fail "arguments: $(cat err)"
"$kiln" generate --model own --max_new_tokens 8 --ids --num_return_sequences 3 'the hand' 'the king' >samples 2>err
[ "$(sort -u samples | wc -l)" -gt 2 ] && [ "$(wc -l <samples)" = 6 ] || fail "samples: $(cat samples)"
"$kiln" generate --model own --max_new_tokens 8 --ids 'the hand' 'the king' >alone 2>err
[ "$(sed -n '1p;4p' samples)" = "$(cat alone)" ] || fail "the first of several texts is another: $(cat samples alone)"
printf '{"prompt": "the\\nhand"}\n' >prompts.jsonl
[ "$(generate --prompt_file prompts.jsonl --ids)" = "$(generate $'the\nhand' --ids)" ] || fail "JSON lines: $(cat err)"
printf '{"text": "the"}\n' >wrong.jsonl
expect 65 'wrong.jsonl line 1: "prompt" is missing' "$kiln" generate --model own --prompt_file wrong.jsonl
[ "$(generate 'the hand' 'the king' --ids --separator '' | sed -n 2p)" = '' ] || fail "no line between texts"
[ "$(generate 'the hand' 'the king' --separator '%%' | grep -cx '%%')" = 1 ] || fail "not one line between two texts"
generate 'the hand' --json --logprobs 2 >rated
grep -E '"logprobs": ?\{"content": ?\[\{"token": ?"[^"]*", ?"logprob": ?-?[0-9.e-]+, ?"bytes": ?\[[0-9,]*\], ?"top_logprobs": ?\[\{' rated >/dev/null ||
    fail "no log-probabilities: $(cat rated)"
expect 64 '--logprobs is printed with --json' "$kiln" generate --model own 'the hand' --logprobs 1
expect 64 'only one of them can be continued' "$kiln" generate --model own 'the hand' --prompt 'the'

expect 65 '--context_shift goes on without the older half' "$kiln" generate --model own --prompt 'the hand' --max_new_tokens 60
[ "$(generate --prompt 'the hand' --max_new_tokens 60 --ignore_eos --context_shift --ids | wc -w)" = 60 ] || fail "--context_shift: $(cat err)"
# bytes that are no UTF-8 are printed as U+FFFD
"$kiln" generate --model own --max_new_tokens 20 --seed 3 --temperature 20 --top_k 0 --prompt 'the' 2>/dev/null | iconv -f utf-8 -t utf-8 >/dev/null ||
    fail "what is printed is no UTF-8"

# a post_processor's begin, before prompts and documents
cp -r own framed
printf '{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<end>": {"id": "<end>", "ids": [261], "tokens": ["<end>"]}}}' >frame
grep -q '"post_processor": *null' framed/tokenizer.json || fail "the golden's tokenizer has a post_processor"
sed -i "s|\"post_processor\": *null|\"post_processor\": $(cat frame)|" framed/tokenizer.json
[ "$(generate --model framed --prompt 'the hand' --ids)" = "$(generate --prompt '<end>the hand' --ids)" ] || fail "the begin of the frame: $(cat err)"

# files of other programs
cp -r own odd
sed -i '1s/^/\xef\xbb\xbf/' odd/config.json odd/tokenizer.json odd/tokenizer_config.json # byte order marks
sed -i '/"model_type"/d' odd/config.json
[ "$("$kiln" tokenize --vocab_file odd/tokenizer.json <<<'the hand')" = "$first" ] || fail "tokenizer.json behind a byte order mark"
[ "$(generate --model odd --prompt 'the hand' --ids)" = "$(generate --prompt 'the hand' --ids)" ] || fail "byte order marks, no model_type: $(cat err)"
mkdir adapter
cp own/config.json own/tokenizer.json adapter
echo >adapter/adapter_model.safetensors
for case in whole bare; do
    expect 65 'is an adapter (PEFT), which kiln does not read: merge it' "$kiln" generate --model adapter --prompt a
    rm -f adapter/config.json
done
echo '{"content": "the hand"}' >other.jsonl
expect 65 'other.jsonl line 1: the line lacks "text"' "$kiln" eval --model own --input other.jsonl
printf '{"n": NaN, "text": "the hand and the sea", "half": "\\ud800", "big": 123456789012345678901234567890}\n' >wild.jsonl
expect 0 'nats a token' "$kiln" eval --model own --input wild.jsonl
gzip -c wild.jsonl >packed.jsonl.gz
[ "$("$kiln" eval --model own --input packed.jsonl.gz 2>/dev/null | cut -d : -f 2-)" = "$("$kiln" eval --model own --input wild.jsonl 2>/dev/null | cut -d : -f 2-)" ] ||
    fail "lines that are packed"
printf 'PAR1\x15\x04' >rows.txt
expect 65 'is a Parquet file' "$kiln" eval --model own --input rows.txt
mkdir folder
cp t.jsonl folder
head -c 4000 "$kiln" >folder/picture
expect 0 'folder/picture is binary data, not plain text: give plain text in UTF-8; it is left out' "$kiln" prepare --format gpt --vocab_file own/tokenizer.json --input folder --output_prefix f
