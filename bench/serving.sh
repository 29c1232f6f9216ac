#!/usr/bin/env bash
# kiln serve beside other servers, on the same cores, each loaded by the same client in turn; medians of three.
#   texts:   GPT-2's shape (124M, random weights), 8 bits, 64 new tokens behind short prompts, N streams at once, beside
#            llama.cpp's server (LLAMA_SERVER names its program) with the same weights in q8_0.
#   vectors: all-MiniLM-L6-v2, texts of natural lengths, N clients, beside sentence-transformers behind FastAPI, Infinity, and
#            Infinity with ONNX Runtime (INFINITY_PYTHON names an interpreter that has infinity-emb[server,torch,optimum]).
# Peers that are not there are left out, with a line. PARTS="texts vectors", STREAMS="1 4 8 16", CLIENTS="1 8 32", REPEATS=3,
# SECONDS_EACH=15 of a vector run. Part of `make bench`, as BENCH=serving.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
port=18180
server=
log=$work/serving/server.log
mkdir -p "$work/serving"
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true' EXIT

# Starts a server and waits until PATH is answered by 200: path command...
start()
{
    local path=$1
    shift
    "$@" >"$log" 2>&1 &
    server=$!
    until "$python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port$path', timeout=5)" 2>/dev/null; do
        kill -0 "$server" 2>/dev/null || { echo "$1 ended: $(tail -n 1 "$log")" >&2; server=; return 1; }
        sleep 0.2
    done
}

stop()
{
    [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null || true; }
    server=
}

# The median of each column of a file of rows.
medians() { for k in $(seq "$(head -n 1 "$1" | wc -w)"); do awk -v k="$k" '{ print $k }' "$1" | median; done | paste -sd' '; }

field() { cut -d' ' -f"$1" <<<"$2"; }

texts()
{
    [ -s "$work/generation/q8_0/model.gguf" ] || DTYPES=int8 BATCHES=1 REPEATS=1 bench/generation.sh >/dev/null
    cut -d' ' -f1-12 "$work/generation/prompts.txt" >"$work/serving/prompts.txt"
    local peers="kiln" n peer
    [ -x "${LLAMA_SERVER:-}" ] && peers="kiln llama" || echo "llama.cpp's server is not measured: LLAMA_SERVER names its program"
    rm -f "$work/serving"/texts.*
    for _ in $(seq "${REPEATS:-3}"); do
        for peer in $peers; do
            if [ "$peer" = kiln ]; then
                start /health/ready $kiln serve --model "$work/generation/model" --dtype int8 --port $port
            else
                start /health "$LLAMA_SERVER" -m "$work/generation/q8_0/model.gguf" --port $port -np 16 -c 16384 -t "$(nproc)" --no-webui
            fi
            "$python" bench/peers/stream_load.py $port 2 4 16 "$work/serving/prompts.txt" >/dev/null
            for n in ${STREAMS:-1 4 8 16}; do
                "$python" bench/peers/stream_load.py $port "$n" $((n * 3)) 64 "$work/serving/prompts.txt" >>"$work/serving/texts.$peer.$n"
            done
            stop
        done
    done
    row "streams: new tokens/s" kiln llama.cpp ratio
    for n in ${STREAMS:-1 4 8 16}; do
        local k l
        k=$(medians "$work/serving/texts.kiln.$n")
        l=$([ ! -s "$work/serving/texts.llama.$n" ] || medians "$work/serving/texts.llama.$n")
        [ -n "$l" ] || { row "  $n at once" "$(field 1 "$k")" - -; continue; }
        row "  $n at once" "$(field 1 "$k")" "$(field 1 "$l")"
        row "    between pieces, p50 and p99, ms" "$(field 2 "$k") $(field 3 "$k")" "$(field 2 "$l") $(field 3 "$l")" "$(ratio "$(field 3 "$k")" "$(field 3 "$l")")"
        row "    first piece, ms" "$(field 6 "$k")" "$(field 6 "$l")"
        row "    a request, p99, s" "$(field 5 "$k")" "$(field 5 "$l")"
    done
}

# The model as Infinity's engine `optimum` reads it.
make_onnx()
{
    if [ -n "${INFINITY_PYTHON:-}" ] && [ ! -s "$work/serving/onnx/onnx/model.onnx" ]; then
        cp -r "$minilm" "$work/serving/onnx"
        mkdir -p "$work/serving/onnx/onnx"
        "$(dirname "$INFINITY_PYTHON")/optimum-cli" export onnx --library transformers --task feature-extraction \
            --model "$minilm" "$work/serving/onnx_files" >/dev/null 2>&1
        cp "$work/serving/onnx_files/model.onnx" "$work/serving/onnx/onnx"
        cp "$work/serving/onnx_files/model.onnx" "$work/serving/onnx"
    fi
}

vectors()
{
    . bench/minilm.sh
    make_onnx
    local peers="kiln" n peer
    if [ -n "${INFINITY_PYTHON:-}" ]; then
        peers="kiln sentence-transformers infinity onnx"
    else
        echo "sentence-transformers and Infinity are not measured: INFINITY_PYTHON names an interpreter that has them"
    fi
    rm -f "$work/serving"/vectors.*.*
    for _ in $(seq "${REPEATS:-3}"); do
        for peer in ${VECTOR_PEERS:-$peers}; do
            case $peer in
            kiln*) start /health/ready $kiln serve --model "$minilm" --dtype "${VECTOR_DTYPE:-fp32}" --port $port ;;
            sentence*) start /health "$INFINITY_PYTHON" bench/peers/sentence_server.py "$minilm" $port ;;
            infinity*) start /health "$(dirname "$INFINITY_PYTHON")/infinity_emb" v2 --model-id "$minilm" --port $port --engine torch --device cpu --url-prefix /v1 --served-model-name default ;;
            onnx*) start /health "$(dirname "$INFINITY_PYTHON")/infinity_emb" v2 --model-id "$work/serving/onnx" --port $port --engine optimum --device cpu --url-prefix /v1 --served-model-name default ;;
            esac
            local model=default
            [ "$peer" != kiln ] || model=
            "$python" bench/peers/vector_load.py $port /v1/embeddings 4 4 3 "$work/serving/vectors.txt" "$model" >/dev/null
            for n in ${CLIENTS:-1 8 32}; do
                "$python" bench/peers/vector_load.py $port /v1/embeddings "$n" 4 "${SECONDS_EACH:-15}" "$work/serving/vectors.txt" "$model" >>"$work/serving/vectors.$peer.$n"
            done
            stop
        done
    done
    for peer in ${VECTOR_PEERS:-$peers}; do
        [ "$peer" != kiln ] || continue
        row "vectors, 4 texts a request: tokens/s" kiln "${peer:0:12}" ratio
        for n in ${CLIENTS:-1 8 32}; do
            local k p
            k=$(medians "$work/serving/vectors.kiln.$n")
            p=$(medians "$work/serving/vectors.$peer.$n")
            row "  $n clients" "$(field 2 "$k")" "$(field 2 "$p")"
            row "    a request, p50, ms" "$(field 3 "$k")" "$(field 3 "$p")"
            row "    a request, p99, ms" "$(field 4 "$k")" "$(field 4 "$p")"
        done
    done
}

for part in ${PARTS:-texts vectors}; do
    $part
done
