#!/usr/bin/env bash
# The page of `kiln serve`, and the runs that it watches: first what is sent, then in a browser (tests/peers/check_page.py).
. "$(dirname "$0")/begin.sh"
! "$kiln" doctor --dry_run | grep '^server *not built in' >/dev/null || skip microhttpd "this build has no libmicrohttpd; install libmicrohttpd-dev"

# start FLAG...: $port is the server's
start()
{
    rm -f "$dir/log"
    "$kiln" serve --port 0 "$@" 2>"$dir/log" &
    server_pid=$!
    await "$server_pid" grep -qs '^serving on' "$dir/log"
    port=$(sed -n 's/^serving on .*://p' "$dir/log")
}

# stop: streams end too
stop()
{
    kill "$server_pid"
    wait "$server_pid" || fail "the server ended with status $?"
    server_pid=
}

# ask METHOD PATH [HEADER...]: sends $body; the answer's head is in $dir/head, its body in $dir/body
body=
ask()
{
    local method=$1 path=$2
    shift 2
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n' "$method" "$path" ${#body} >&3
    printf '%s\r\n' "$@" "" >&3
    printf '%s' "$body" >&3
    cat <&3 >"$dir/answer"
    exec 3>&-
    sed '/^\r$/q' "$dir/answer" | tr -d '\r' >"$dir/head"
    tail -c +$(($(sed '/^\r$/q' "$dir/answer" | wc -c) + 1)) "$dir/answer" >"$dir/body"
}
has_head() { grep -iqxE -- "$1" "$dir/head" || fail "no '$1' in: $(cat "$dir/head")"; }

# next_event PART: reads the stream on 3 up to a line that has this part
next_event()
{
    local line
    while IFS= read -r line <&3; do
        [[ $line != *"$1"* ]] || return 0
    done
    fail "the stream ended before: $1"
}

# follow PATH: a stream of events on 3
follow()
{
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$1" >&3
    next_event "text/event-stream"
}

# ---- the page ----

unpack_golden decoders
printf 'a key\n' >"$dir/keys"
start --model "$dir/gpt2" --api_key_file "$dir/keys"
ask GET / 'Accept: text/html,*/*;q=0.8'
has_head 'HTTP/1.1 200 OK'
cp "$dir/body" "$dir/index.html"
grep -oE '(src|href)="[^"]*"' "$dir/index.html" | sed -E 's/.*="(.*)"/\1/' | sort -u >"$dir/names"
[ "$(wc -l <"$dir/names")" -ge 6 ] || fail "the page names $(cat "$dir/names")"
bytes=0
for name in "" $(cat "$dir/names"); do
    ask GET "/$name" 'Accept: text/html'
    has_head 'HTTP/1.1 200 OK'
    has_head "content-security-policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    has_head 'x-content-type-options: nosniff'
    has_head 'referrer-policy: no-referrer'
    has_head 'cache-control: no-cache'
    case $name in
    "") type='text/html; charset=utf-8' ;;
    *.css) type='text/css; charset=utf-8' ;;
    *.js) type='text/javascript; charset=utf-8' ;;
    *.svg) type='image/svg\+xml' ;;
    esac
    has_head "content-type: $type"
    bytes=$((bytes + $(wc -c <"$dir/body")))
    ! grep -nE '([a-z]+:)?//[a-z0-9.-]+\.[a-z]|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\bstyle="|\bon[a-z]+="|@import|\beval\(' "$dir/body" |
        grep -vF 'http://www.w3.org/2000/svg' || fail "/$name names another host, or makes markup of text"
    tag=$(sed -nE 's/^etag: //Ip' "$dir/head")
    ask GET "/$name" 'Accept: text/html' "If-None-Match: $tag"
    has_head 'HTTP/1.1 304 Not Modified'
    [ ! -s "$dir/body" ] || fail "a body with status 304"
done
[ "$bytes" -le 60000 ] || fail "the page's files are $bytes bytes"

# what asks for no page gets none, and what asks a model needs the key
for method in GET HEAD; do
    ask $method / 'Accept: */*'
    has_head 'HTTP/1.1 200 OK'
    has_head 'content-length: 0'
done
for request in 'POST /' 'GET /v1/models' 'GET /watch' 'GET /watch/x'; do
    ask $request
    has_head 'HTTP/1.1 401 .*'
done
ask GET /v1/models 'Authorization: Bearer a key'
grep -qF '"answers":["generate"]' "$dir/body" || fail "$(cat "$dir/body")"
ask GET /watch 'Authorization: Bearer a key'
has_head 'HTTP/1.1 404 .*'
stop

# ---- runs ----

expect 64 "there is nothing to serve" "$kiln" serve
expect 64 "is no directory" "$kiln" serve --watch "$dir/none"
mkdir -p "$dir/runs/a" "$dir/runs/b" "$dir/other/a"
expect 64 "both watched as a" "$kiln" serve --watch "$dir/runs/a" --watch "$dir/other/a"
step() { printf '{"event":"step","time":1.5,"phase":1,"step":%d,"global_step":%d,"loss":2.5}\n' "$1" "$1"; }
save() { cp -r "$dir/gpt2" "$dir/partial" && mv "$dir/partial" "$dir/runs/a/ckpt_$1"; }
log=$dir/runs/a/log.jsonl
start --watch "$dir/runs/a" --watch "second=$dir/runs/b" --watch_prompt "a b"
ask GET /v1/models
grep -qF '{"object":"list","data":[],"watched":["a","second"]}' "$dir/body" || fail "$(cat "$dir/body")"
body='{}' ask POST /v1/completions 'Content-Type: application/json'
has_head 'HTTP/1.1 404 .*'
follow /watch/a
step 1 >"$log"
next_event 'data: {"event":"log"}'
next_event '"step":1,'
printf '{"event":"st' >>"$log" # a line that is being written
printf 'ep","time":2,"phase":1,"step":2,"global_step":2,"loss":2}\n' >>"$log"
next_event '{"event":"step","time":2,"phase":1,"step":2,'

# a resumed run ends a line that was torn, and goes on
printf '{"event":"st\n{"event":"start","time":3,"phase":1,"step":1,"last_step":9}\n' >>"$log"
next_event '{"event":"start","time":3'

# a log in the place of another is sent from its beginning
step 7 >"$dir/new" && mv "$dir/new" "$log"
next_event '{"event":"log"}'
next_event '"step":7,'

# what a decoder says at a checkpoint, and at the next
save 20
next_event '{"event":"sample","step":20,"prompt":"a b","text":"'
save 30
next_event '{"event":"sample","step":30,"prompt":"a b","text":"'
exec 3>&-

# of a long log every so many steps, and all else; of all runs, each by its name
seq 1 20000 | awk '{ printf "{\"event\":\"step\",\"time\":1.5,\"phase\":1,\"step\":%d,\"global_step\":%d,\"loss\":2.5}\n", $1, $1
    if ($1 % 1000 == 0) printf "{\"event\":\"evaluation\",\"phase\":1,\"step\":%d,\"global_step\":%d,\"lm_loss\":2.5}\n", $1, $1 }' >"$dir/runs/b/log.jsonl"
follow /watch
n_steps=0 n_evaluations=0
while IFS= read -r line <&3 && [[ $line != *'"evaluation"'*'"step":20000,'* ]]; do
    case $line in
    *'"event":"step"'*'"step":7,'*) ;;
    *'"event":"step"'*) n_steps=$((n_steps + 1)) ;;
    *'"event":"evaluation"'*) n_evaluations=$((n_evaluations + 1)) ;;
    esac
done
[ "$n_evaluations" -eq 19 ] || fail "$n_evaluations of 19 evaluations"
[ "$n_steps" -gt 1000 ] && [ "$n_steps" -lt 10000 ] || fail "$n_steps of 20000 steps"
step 20001 >>"$dir/runs/b/log.jsonl"
next_event '"step":20001,'
stop
exec 3>&-

# ---- in a browser ----

python=${KILN_PYTHON:-}
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if ! { [ -n "$python" ] && "$python" -c "import playwright, axe_playwright_python" 2>/dev/null; }; then
    lack page "KILN_PYTHON names no Python with playwright and axe_playwright_python; make it by: python3 -m venv V; V/bin/pip install playwright axe-playwright-python; export KILN_PYTHON=V/bin/python"
elif [ -z "$browser" ]; then
    lack chromium "the page in a browser: there is no Chromium; install chromium"
else
    unpack_golden hf_dirs
    unpack_golden classify
    "${patient[@]}" "$python" "$(dirname "$0")/../peers/check_page.py" "$kiln" "$dir" "$browser"
fi
