#!/usr/bin/env bash
# Decoders that `kiln serve` answers for, asked by the clients that people have: tests/peers, with the Python that KILN_PYTHON
# names, each where it is installed.
lacking="left out"
. "$(dirname "$0")/begin.sh"
peers=$(dirname "$0")/../peers
! "$kiln" doctor --dry_run | grep "^server *not built in" >/dev/null ||
    skip microhttpd "this build has no libmicrohttpd; install libmicrohttpd-dev"
need_python clients openai
unpack_golden decoders
export no_proxy=127.0.0.1 PYTHONPATH=

cp -r "$dir/bloom" "$dir/chat"
echo '{% for m in messages %}{{ m.role[0] + m.content }}{% endfor %}{{ ":" if add_generation_prompt }}' >"$dir/chat/chat_template.jinja"
"$kiln" serve --port 0 --model "$dir/bloom" --model "$dir/gpt2" --model "$dir/chat" 2>"$dir/log" &
server_pid=$!
await "$server_pid" grep -q '^serving on' "$dir/log"
url=$(sed -n 's/^serving on //p' "$dir/log")
for client in openai langchain_openai huggingface_hub langchain_huggingface ollama langchain_ollama; do
    if "$python" -c "import $client" 2>/dev/null; then
        "${patient[@]}" "$python" "$peers/check_decoder_clients.py" "$url" bloom $client || fail "$client ($(tail -3 "$dir/log"))"
    else
        lack clients "KILN_PYTHON names no Python with $client"
    fi
done
if "$python" -c "import lm_eval, transformers" 2>/dev/null; then
    "${patient[@]}" "$python" "$peers/check_lm_eval.py" "$url" bloom "$dir/bloom" 2>"$dir/err" || fail "lm_eval ($(tail -5 "$dir/err"))"
else
    lack clients "KILN_PYTHON names no Python with lm_eval, openai and transformers"
fi
