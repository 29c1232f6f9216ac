#!/bin/bash
# kiln inspect: tells tensor files, models and directories apart, and says what is wrong with damaged ones.
set -eu
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "$1" >&2; exit 1; }

# expect CODE PATTERN ARGS...: exit code and a pattern in the output or the error
expect() {
    local code=0 out
    out=$("$kiln" inspect "${@:3}" 2>&1) || code=$?
    [ "$code" = "$1" ] || fail "inspect ${*:3}: exit code $code, not $1: $out"
    grep -qE -e "$2" <<<"$out" || fail "inspect ${*:3}: no '$2' in: $out"
}

header='{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
{ printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 24 /dev/zero; } >"$dir/t.safetensors"
expect 0 '^kind +safetensors file' "$dir/t.safetensors"
expect 0 'F32  \[2, 3\]  24  w' "$dir/t.safetensors"
expect 0 '"parameters": 6' --json "$dir/t.safetensors"
expect 0 '^kind +safetensors file' --dry-run "$dir/t.safetensors"
head -c 80 "$dir/t.safetensors" >"$dir/cut.safetensors"
expect 65 'is the file cut short' "$dir/cut.safetensors"
expect 65 'cut.safetensors +.*cut short' "$dir"
rm "$dir/cut.safetensors"
expect 0 't.safetensors +whole' "$dir"

# Paths are bytes: those that are not UTF-8 are shown as such, in JSON and on a page too.
odd=$dir/$(printf 'r\377n\303\251')
mkdir "$odd"
cp "$dir/t.safetensors" "$odd/$(printf 't\377.safetensors')"
expect 0 'path +.*/r\\xffné' "$odd"
expect 0 't\\xff.safetensors +whole' "$odd"
expect 0 '"path": ".*/r\\\\xffné"' --json "$odd"
echo '{"event": "start", "time": 1.0, "phase": 1}' >"$odd/log.jsonl"
"$kiln" report "$odd" --output "$dir/report.html" 2>/dev/null
iconv -f utf-8 -t utf-8 "$dir/report.html" >/dev/null || fail "a report that is not UTF-8"
rm -r "$odd" "$dir/report.html"

# NaN and infinity, in every type that has them: how many, and the first; integers have none.
nan='{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},
"c":{"dtype":"F16","shape":[2],"data_offsets":[22,26]},"d":{"dtype":"F64","shape":[1],"data_offsets":[26,34]},
"e":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[34,36]},"f":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[36,38]},
"g":{"dtype":"I32","shape":[1],"data_offsets":[38,42]},"h":{"dtype":"F32","shape":[1],"data_offsets":[42,46]}}'
mkdir "$dir/nan"
{
    printf "\\x$(printf %02x $((${#nan} & 255)))\\x$(printf %02x $((${#nan} >> 8)))\\0\\0\\0\\0\\0\\0%s" "$nan"
    printf '\0\0\200\077\0\0\300\177\0\0\200\377\0\0\0\0'                   # 1, NaN, -infinity, 0
    printf '\200\077\200\077\200\177\0\074\001\174'                           # 1, 1, infinity; 1, NaN
    printf '\0\0\0\0\0\0\360\177\070\177\074\174\377\377\377\177\0\0\200\077' # infinity; 1, NaN; 1, infinity; an integer; 1
} >"$dir/nan/t.safetensors"
expect 99 't.safetensors has NaN or infinity, first in a' "$dir/nan/t.safetensors"
expect 99 '^ +1 +1 +\[0, 1\] +nan +a$' "$dir/nan/t.safetensors"
expect 99 '^ +0 +1 +\[2\] +inf +b$' "$dir/nan/t.safetensors"
expect 99 '^ +1 +0 +\[1\] +-?nan +c$' "$dir/nan/t.safetensors"
expect 99 '^ +0 +1 +\[0\] +inf +d$' "$dir/nan/t.safetensors"
expect 99 '^ +1 +0 +\[1\] +nan +e$' "$dir/nan/t.safetensors"
expect 99 '^ +0 +1 +\[1\] +inf +f$' "$dir/nan/t.safetensors"
expect 99 'whole, but a has NaN or infinity' "$dir/nan"
"$kiln" inspect --json "$dir/nan/t.safetensors" 2>/dev/null | grep -c '"infinity"' | grep -x 6 >/dev/null || fail "not six tensors"
rm -r "$dir/nan"

mkdir "$dir/model"
mv "$dir/t.safetensors" "$dir/model/model.safetensors"
echo '{}' >"$dir/model/tokenizer_config.json"
echo '{"model_type": "bert\u001b[2J"}' >"$dir/model/config.json"
printf '[PAD]\n[UNK]\n' >"$dir/model/vocab.txt"
expect 0 '^kind +model' "$dir/model"
expect 0 'model_type +bert\?\[2J' "$dir/model"
expect 65 'holds no checkpoint' "$dir"
echo '{' >"$dir/model/config.json"
expect 65 'config.json is not valid JSON' "$dir/model"
echo '{}' >"$dir/model/manifest.json"
expect 65 'manifest' "$dir/model"

expect 65 'does not exist' "$dir/nothing"
expect 65 'is not a directory' "$dir/model/vocab.txt"
expect 64 '' 
