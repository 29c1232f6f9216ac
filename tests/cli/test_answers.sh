#!/usr/bin/env bash
# `kiln finetune-gpt` on prompts with completions, and on messages: losses of four steps are PyTorch's with labels of the answers alone, to
# six digits, whichever way the answers of a chat are found; --dry_run shows what is learned; files, folders and compressed files are read;
# the model keeps its chat template, by which `kiln generate` answers; what cannot be is one sentence that names file, line and key.
. "$(dirname "$0")/begin.sh"
unpack_golden decoders
unpack_golden answers
a=$dir/answers

# tune NAME KIND FLAGS...: four steps of all examples, as make_answers.py
tune()
{
    "$kiln" finetune-gpt --model "$dir/gpt2" --train_file "$a/$2.jsonl" --eval_file "$a/$2_held.jsonl" --output_dir "$dir/$1" \
        --train_batch_size 12 --max_steps 4 --learning_rate 1e-3 --weight_decay 0.01 --log_freq 1 --disable_progress_bar "${@:3}"
}
losses() { grep "\"event\":\"$1\"" "$dir/$2/log.jsonl" | grep -o '"lm_loss":[0-9.]*' | cut -d : -f 2; }
# equal A B: numbers, to six digits
equal() { paste <(echo "$1") <(echo "$2") | awk 'NF != 2 || ($1 - $2) ^ 2 > (5e-7 * $2) ^ 2 { bad = 1 } END { exit bad || NR == 0 }'; }

# as_torch NAME KIND: what tune printed and logged is that of the golden file
as_torch()
{
    equal "$(losses step "$1")" "$(cat "$dir/numbers/$2_losses")" || fail "losses of $1: $(losses step "$1"), not $(cat "$dir/numbers/$2_losses")"
    equal "$(losses evaluation "$1")" "$(cat "$dir/numbers/$2_nats")" || fail "held-out losses of $1 are others"
    awk 'BEGIN { ORS = "" } { print (NR == 1 ? "" : NR == 2 ? " examples, " : " tokens, of which ") $1 } END { print " are answers and have a loss\n" }' \
        "$dir/numbers/$2_counts" >"$dir/wanted"
    grep -qxFf "$dir/wanted" "$dir/log" || fail "$(cat "$dir/wanted") is not said: $(cat "$dir/log")"
}

tune pairs pairs --gradient_accumulation_steps 3 >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
as_torch pairs pairs
grep -q 'perplexity of held-out answers' "$dir/log" || fail "$(tail -n 1 "$dir/log")"
tune cut pairs --gradient_accumulation_steps 3 --num_steps_per_checkpoint 2 --keep_checkpoints 0 >/dev/null 2>&1
rm -r "$dir"/cut/{ckpt_4,model}
expect 0 'resumed from' tune cut pairs --gradient_accumulation_steps 3 --resume_from_checkpoint
cmp "$dir/cut/model/model.safetensors" "$dir/pairs/model/model.safetensors" || fail "a resumed run ends with another model"
for template in chat_template plain; do
    tune $template chats --chat_template "$a/$template.jinja" >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
    as_torch $template chats
done
# a list of messages as prompt and completion, and a weight of 0, are the same examples as their messages
sed 's/{"messages": \(.*\), \({"role": "assistant"[^}]*}\)\]}$/{"prompt": \1], "completion": [\2]}/' "$a/chats.jsonl" >"$a/lists.jsonl"
sed 's/\("assistant"\)\(.*"assistant"\)/\1, "weight": 0\2/' "$a/chats.jsonl" >"$a/weights.jsonl"
cp "$a/chats_held.jsonl" "$a/lists_held.jsonl" && cp "$a/chats_held.jsonl" "$a/weights_held.jsonl"
for kind in lists weights; do
    tune $kind $kind --chat_template "$a/plain.jinja" >"$dir/log" 2>&1 || fail "$(tail -n 3 "$dir/log")"
done
[ "$(losses step lists)" = "$(losses step weights)" ] || fail "a list of messages and weights are two sets of examples"
[ "$(losses step lists)" != "$(losses step plain)" ] || fail "a weight of 0 changes nothing"

dry() { "$kiln" finetune-gpt --model "$dir/gpt2" --output_dir "$dir/dry" --dry_run "$@"; }
# a template that writes a turn in another way where others follow: each answer is an example of its own
sed 's/{% endfor %}/{% if loop.last and not add_generation_prompt %}!{% endif %}&/' "$a/plain.jinja" >"$dir/last.jinja"
grep -c assistant.*assistant "$a/chats.jsonl" >"$dir/n_twice"
expect 0 "$((12 + $(cat "$dir/n_twice"))) examples, " dry --train_file "$a/chats.jsonl" --chat_template "$dir/last.jinja"
grep -qF 'u the a >>>and<|endoftext|>!<<<' "$dir/err" || fail "$(cat "$dir/err")"

# what would be trained
expect 0 'the first example, with what is learned between >>> and <<<: the>>> of<|endoftext|><<<' dry --train_file "$a/pairs.jsonl"
expect 0 'u the a >>>and<|endoftext|><<<u on a >>>the<|endoftext|><<<' dry --train_file "$a/chats.jsonl" --chat_template "$a/plain.jinja"
expect 0 '12 examples, ' dry --train_file "$a/pairs.jsonl"
expect 0 '8 examples are left out: no answer begins in their first 3 tokens' dry --train_file "$a/pairs.jsonl" --max_seq_length 3 --train_batch_size 1
[ ! -e "$dir/dry" ] || fail "a dry run wrote"

# files and folders, compressed or not, are the examples of one file
mkdir -p "$dir/folder/b"
head -n 6 "$a/pairs.jsonl" >"$dir/folder/a.jsonl"
tail -n 6 "$a/pairs.jsonl" | gzip >"$dir/folder/b/c.jsonl.gz"
echo 'These are the files.' >"$dir/folder/README.md"
once() { "$kiln" finetune-gpt --model "$dir/gpt2" --output_dir "$dir/$1" --train_batch_size 4 --max_steps 1 --disable_progress_bar "${@:2}"; }
expect 0 'README.md is not lines of JSON, as the examples are; it is left out' once out_folder --train_file "$dir/folder"
cmp "$dir/out_folder/data/train.bin" "$dir/pairs/data/train.bin" || fail "a folder is other examples than its lines"
expect 0 '12 examples, ' once out_files --train_file "$dir/folder/a.jsonl" --train_file "$dir/folder/b/c.jsonl.gz"
cmp "$dir/out_files/data/train.bin" "$dir/pairs/data/train.bin" || fail "two files are other examples than their lines"
mkdir "$dir/texts"
for i in 1 2 3 4; do tr '\n' ' ' <"$a/pairs.jsonl"; done >"$dir/texts/a.md"
gzip <"$dir/texts/a.md" >"$dir/texts/b.txt.gz"
sed 's/{"prompt"/{"said"/' "$a/pairs.jsonl" >"$dir/texts/c.jsonl"
head -c 999 /dev/zero >"$dir/texts/d.bin"
expect 0 'd.bin is binary data' once out_texts --train_file "$dir/texts" --text_field said --validation_split_percentage 60
expect 0 '14 documents' once out_texts2 --train_file "$dir/texts/a.md" "$dir/texts/b.txt.gz" "$dir/texts/c.jsonl" --text_field said --validation_split_percentage 60
cmp "$dir/out_texts/data/train.bin" "$dir/out_texts2/data/train.bin" || fail "a folder is another text than its files"

# the model has its template, and answers by it
ask() { "$kiln" generate --model "$dir/plain/model" --temperature 0 --max_new_tokens 3 "$@" 2>/dev/null; }
printf 'u\nthe\na\n' >"$dir/prompt"
ask --json "$(cat "$dir/prompt")
" >"$dir/raw"
ask --json --chat the >"$dir/chat"
diff <(sed 's/.*"ids"//' "$dir/raw") <(sed 's/.*"ids"//' "$dir/chat") || fail "the prompt of a chat is another: $(cat "$dir/raw" "$dir/chat")"
echo '{"messages": [{"role": "user", "content": "the"}]}' >"$dir/said.jsonl"
[ "$(ask --chat the)" = "$(ask --prompt_file "$dir/said.jsonl")" ] || fail "messages are answered in another way"
ask --chat the >"$dir/answer"
grep -q '^u' "$dir/answer" && fail "the prompt of a chat was printed"
"$kiln" export --model "$dir/plain/ckpt_4" --output_dir "$dir/exported" >/dev/null 2>&1
[ "$("$kiln" generate --model "$dir/exported" --chat the --temperature 0 --max_new_tokens 3 2>/dev/null)" = "$(cat "$dir/answer")" ] ||
    fail "an export lost the template"
"$kiln" convert --model "$dir/plain/model" --to gguf --output_dir "$dir/gguf" >/dev/null 2>&1
grep -aF "$(cat "$a/plain.jinja")" "$dir/gguf/model.gguf" >/dev/null || fail "a GGUF file has no template"

# what cannot be
line() { printf '%s\n' "$@" >"$dir/bad.jsonl"; }
bad() { expect 65 "$1" once bad --train_file "$dir/bad.jsonl" "${@:2}"; }
line '{"prompt": "a", "completion": "b"}' '{"question": "a", "answer": "b"}'
bad 'bad.jsonl line 2: the line has neither "prompt" and "completion" nor "messages", but "question", "answer"'
line '{"content": "a"}'
bad 'bad.jsonl line 1: the line has neither "text", "prompt" and "completion", nor "messages", but "content"; --text_field names the key'
bad 'has neither "body", "prompt"' --text_field body
line '{"prompt": "a"}'
bad 'line 1: "completion" is missing'
line '{"prompt": null, "completion": "b"}'
bad '"prompt" is null, but must be a text, or a list of messages'
line '{"prompt": "a", "completion": 5}'
bad '"completion" is a number, but must be'
line '{"prompt": "a", "completion": ""}'
bad '"completion" is empty: there is nothing to learn'
line '{"prompt": "a", "completion": [{"role": "assistant", "content": "b"}]}'
bad '"prompt" is a string, but "completion" is a list'
line '["a"]'
bad 'line 1: the line is not a JSON object'
line '{"messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "b"}]}'
bad 'line 1: the model has no chat template, which makes a text of "messages": give one by --chat_template'
line '{"messages": [{"role": "user", "content": "b"}]}'
bad 'no message is an answer of the assistant' --chat_template "$a/plain.jinja"
line '{"messages": [{"role": "assistant", "content": null, "tool_calls": []}]}'
bad 'messages[0].tool_calls is not supported' --chat_template "$a/plain.jinja"
line '{"prompt": "the hand and the sea", "completion": " of"}'
bad 'bad.jsonl has no example with an answer to learn' --max_seq_length 3
line '{"messages": []}'
bad 'messages must be an array of at least one message' --chat_template "$a/plain.jinja"
cp "$a/chats.jsonl" "$dir/bad.jsonl"
echo "{{ x|selectattr('y') }}" >"$dir/other.jinja"
bad 'chat_template, line 1: the filter selectattr is not read by kiln' --chat_template "$dir/other.jinja"
echo "{% for message in messages %}{{ loop.length }}{{ message.content }}{% endfor %}" >"$dir/other.jinja"
bad 'so the answer cannot be told from the rest: mark it in the template by {% generation %}' --chat_template "$dir/other.jinja"
echo "{% for message in messages %}{% generation %}{{ message.content }}{% endgeneration %}{% endfor %}" >"$dir/other.jinja"
bad 'the chat template marks 4 answers by {% generation %}, but the assistant has 2 messages' --chat_template "$dir/other.jinja"
expect 65 "cannot open $dir/none.jinja" once bad --train_file "$a/chats.jsonl" --chat_template "$dir/none.jinja"
expect 65 'is not lines of JSON (.jsonl), as the examples are' once bad --train_file "$a/pairs.jsonl" "$dir/texts/a.md"
head -n 3 "$a/pairs.jsonl" >"$dir/bad.jsonl"
bad '2 training examples of its 3: fewer than a batch of 4; give more'
expect 64 'needs --train_file' once bad
expect 64 "$dir/folder" once folder --train_file "$dir/folder"
expect 65 'the model has no chat template, which makes a prompt of messages' "$kiln" generate --model "$dir/gpt2" --chat the
echo "test_answers: a model learns answers as in PyTorch"
