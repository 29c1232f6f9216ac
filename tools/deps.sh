#!/usr/bin/env bash
# Checks the rules of the tree that a machine can check (ARCHITECTURE.md, STYLE.md). Prints every breach and
# fails if there is one. It checks only the files that git tracks; without git (an unpacked archive), all
# files in the folders of the tree.  usage: tools/deps.sh [TREE]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
compiler=${CC:-cc}
breaches=$(mktemp)
files=$(mktemp)
trap 'rm -f "$breaches" "$files"' EXIT

if [ -e .git ] && command -v git >/dev/null; then
    git -c safe.directory='*' -c core.quotePath=off ls-files
else
    find . -maxdepth 1 -type f -printf '%P\n'
    find src include tests fuzz tools bench scripts cmake configs examples docs -type f ! -name '*.pyc' 2>/dev/null || true
fi | while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done | LC_ALL=C sort >"$files"

# list REGEX: the files whose path matches.
list() { grep -E "$1" "$files" || true; }

# search REGEX [GREP_OPTION...]: FILE:LINE:TEXT of every match in the files named on standard input.
search() { xargs -r -d '\n' grep -InHE "${@:2}" -e "$1" || true; }

list_sources() { list '^(src|include|tests|fuzz|tools|bench|scripts|cmake|configs|examples)/.*\.(c|h|cu|cuh|cpp|hpp)$'; }

# Which rooms a room may include: itself and the rooms on its line, no others.
rooms='
core:
dev:    core
ops:    core dev io
io:     core
text:   core io
corpus: core io text
fetch:  core io
launch: core
http:   core
ngram:  core
nn:     core dev ops
data:   core io text corpus nn
optim:  core dev ops
dist:   core dev ops
model:  core dev io text nn
watch:  core dev ops io
pass:   core dev ops io text nn model watch
serve:  core dev ops io text nn data model watch pass
service: core dev ops io text nn data model watch pass serve http
train:  core dev ops io text nn data optim dist model watch pass
report: core dev ops io nn optim model watch pass train
task:   core dev ops io text ngram corpus nn data optim dist model watch pass serve train report
cmd:    core dev ops io text fetch launch http ngram corpus nn data optim dist model watch pass serve service train report task
api:    core dev ops io text nn data optim dist model watch pass serve train report task cmd
'

# Each library is used in one place: its headers, and the file or folder that may include them (zlib: one unpacks, one packs).
libraries='
oneapi/dnnl/ src/ops/cpu/gemm_onednn.c
kiln/        src/api/
cblas.h      src/ops/cpu/gemm_blas.c
hdf5.h       src/io/hdf5_file.c
archive      src/fetch/unpack_archive.c|src/io/archive_stream.c
curl/        src/fetch/http_curl.c
jansson.h    src/core/json.h
zlib.h       src/io/gzip_stream.c|src/io/deflate_blocks.c
bzlib.h      src/io/bzip2_block.c
expat.h      src/corpus/dump_source.c
utf8proc.h   src/text/
pcre2.h      src/text/split_regex.c
iconv.h      src/text/encoding.c
mpi.h        src/dist/mpi/
microhttpd.h src/http/http_mhd.c
'

check_arrows() {
    { echo "$rooms"; list '^src/' | search '^# *include "'; } | awk -F'[ ":/]+' '
        !/include/ && /^[a-z]+:/ { known[$1] = 1; for (i = 2; i <= NF; i++) if ($i != "") allowed[$1, $i] = 1; next }
        /include/ {
            match($0, /"[^"]*"/); target = substr($0, RSTART + 1, RLENGTH - 2)
            split($0, place, ":"); split(place[1], path, "/"); from = path[2]
            n = split(target, parts, "/"); to = parts[1]
            if (!(from in known)) print place[1] ": " from " is not a room of tools/deps.sh"
            else if (n < 2) print place[1] ":" place[2] ": write \"" target "\" from src/ on, as room/file.h"
            else if (from != to && !((from, to) in allowed))
                print place[1] ":" place[2] ": " from " must not include " target
            if (target ~ /^ops\/cpu\// && place[1] !~ /^src\/(ops\/cpu\/|cmd\/doctor\.c)/)
                print place[1] ":" place[2] ": " target " is private to src/ops/cpu"
        }'
}

check_libraries() {
    list '^src/' | search '^# *include <' | while IFS=: read -r file line text; do
        while read -r header owner; do
            if [ -n "$header" ] && [[ $text == *"<$header"* && ! $file =~ ^($owner) ]]; then
                echo "$file:$line: only $owner includes <$header...>"
            fi
        done <<<"$libraries"
    done
}

# What clang-format leaves: comments wider than STYLE.md's limit, declarations cut in two before a comment that does not fit beside
# them, and blanks at the end of a comment's line.
check_layout() {
    list_sources | { grep -v '_table\.c$' || true; } | LC_ALL=C search '^[ -~]{111,}' | cut -c-150 | sed 's/$/: more than 110 columns/'
    list_sources | search '[[:blank:]]$' | sed 's/[[:blank:]]*$/: a blank at the end/'
    list_sources | xargs -r awk '
        FNR == 1 { before = "" }
        before ~ /^[ ]+((const|struct|enum|static) )*[A-Za-z_][A-Za-z_0-9]*( [*]+)?$/ && before !~ /^ *(do|else|return)$/ && /;[ ]+\/[*]/ {
            print FILENAME ":" FNR - 1 ": a declaration cut before its comment; put the comment above"
        }
        { before = $0 }'
}

check_names() {
    list '^(src|include|tests|fuzz|tools|bench|scripts|cmake|configs|examples)/' |
        grep -vE '^fuzz/corpus/|/(CMakeLists\.txt|Makefile)$' | awk -F/ '
        $NF in first { print $0 ": there is already a " first[$NF] } { first[$NF] = $0 }'
}

# A function is the text between "{" and "}" in the first column, as clang-format lays it out.
check_lengths() {
    list_sources | grep -v '_table\.c$' | xargs -r awk '
        function end_file() { if (lines > 1000) print name ": " lines " lines, more than 1000" }
        FNR == 1 { end_file(); name = FILENAME; comment = ""; start = 0 }
        { lines = FNR }
        /^\/\*/ { comment = ""; in_comment = 1 }
        in_comment { comment = comment $0; if (/\*\//) in_comment = 0; next }
        $0 == "{" { start = FNR }
        $0 == "}" && start {
            if (FNR - start - 1 > 60 && comment !~ /Long because/)
                print FILENAME ":" start ": a function of " FNR - start - 1 " lines; split it, or begin a sentence of its comment with \"Long because\""
            start = 0
        }
        $0 == "" { comment = "" }
        END { end_file() }'
}

# find_cuda: sets cuda to the flags with which the compiler finds CUDA's headers: none, or the folder beside
# nvcc or of tools/install_nvcc.sh; fails if there are no headers.
find_cuda() {
    local nvcc home
    nvcc=$(command -v nvcc || true)
    for home in "" "${CUDA_HOME:-}" "${nvcc%/bin/nvcc}" build/nvcc; do
        cuda=(${home:+-isystem "$home/include"})
        ! printf '#include <%s>\n' cublasLt.h cuda_runtime_api.h | "$compiler" "${cuda[@]}" -E -x c - >/dev/null 2>&1 || return 0
    done
    return 1
}

# Every header compiles alone; those that need CUDA's headers are checked only if there are any.
check_headers() {
    local flags=(-std=c17 -Isrc -Iinclude -Itests -Itests/fixtures -Itests/ops '-DKILN_VERSION=""' '-DKILN_SOURCE_DIR=""' -DKILN_ISA=baseline
        -DKILN_HAVE_ONEDNN=0 -DKILN_HAVE_BLAS=0 -DKILN_HAVE_HDF5=0 -Wall -Wextra -Wno-unused -Werror -fopenmp -x c)
    local header headers=() cuda=()
    if find_cuda; then
        mapfile -t headers < <(list '^src/.*\.h$')
    else
        for header in $(list '^src/.*\.h$'); do
            if [[ $header == src/ops/cuda/* ]] && "$compiler" -D_POSIX_C_SOURCE=200809L "${flags[@]}" -M -MG "$header" |
                grep -E '\b(cublasLt|cuda_runtime_api)\.h' >/dev/null; then
                left_out+=" ${header##*/}"
            else
                headers+=("$header")
            fi
        done
    fi
    printf '%s\n' "${headers[@]}" | xargs -r -n 24 "$compiler" -D_POSIX_C_SOURCE=200809L "${flags[@]}" "${cuda[@]}" -fsyntax-only 2>&1 || true
    list '^include/.*\.h$' | xargs -r "$compiler" -std=c17 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c 2>&1 || true
    list '^tests/.*\.h$' | xargs -r -n 24 "$compiler" -D_GNU_SOURCE "${flags[@]}" -fsyntax-only 2>&1 || true
}

check_words() {
    local unfinished='TO''DO|FIX''ME|XX''X'
    list '(\.([ch]|cu|cuh|cpp|hpp|sh|py|awk|cmake|md)|(^|/)(CMakeLists\.txt|Makefile|run))$' | search "\b($unfinished)\b"
    list '^src/' | grep -v '^src/cmd/main\.c$' | search '\b_?exit\('
    list '^src/.*\.[ch]$' | grep -v '^src/core/status\.c$' | search '\babort\('
    list '^src/' | grep -vE '^src/(cmd/model_store|core/(launcher|option|parallel)|dist/(nccl_library|world)|launch/rank_environment|service/service|ops/(cuda/choice/(attention_choice|product_cache|product_forms)|cpu/(cpu_isa|gemm_blas|gemm_onednn)|library_search))\.c$' | search '\bgetenv\('
    list '^src/' | search '\balloca\('
    # a path from outside may be a pipe, which blocks, or a device without an end: core/regular_file, io/file; the kernel's files may be opened
    list '^src/' | grep -vE '^src/(core/(cgroup|kernel_file)|launch/supervise)\.c$' | search '\bfopen\(' | grep -vE 'fopen\("/(proc|sys)/' || true
}

# A family of models has a file NAME_family.c in a folder of src/model, and stands in folders of that or its own name.
# Elsewhere the tables of families name it, the commands that are one family's own, and texts that name classes or files of other programs.
check_models() {
    local families folders own others
    folders=$(list '^src/model/[a-z]+/' | cut -d/ -f3 | sort -u | paste -sd'|' -)
    families=$(list '^src/model/[a-z]+/[a-z0-9]+_family\.c$' | sed -E 's|.*/([a-z0-9]+)_family\.c|\1|' | sort -u | paste -sd'|' -)
    [ -n "$families" ] || return 0
    own='^src/model/model_families\.c$|^src/cmd/(plan_report|run_bench|run_pretrain|run_pretrain_gpt|finetune_gpt)\.c$|^src/cmd/(megatron_args|pretrain_variant|train_kinds)\.[ch]$'
    others='[Oo]llama|llama[.]cpp|llama_token_type|finetune[-_]gpt|pretrain[-_]gpt(\.py)?|bert_[A-Za-z0-9._]*json|bertPrep\.py|sbert\.net|"bert_model"|sbert_ce_default_activation_function|Bert(For[A-Za-z]+|Model|TokenizerFast)|GPT2TokenizerFast|GPT-BERT'
    list '^src/(api|cmd|dist|model|pass|report|serve|task|train|watch)/' |
        { grep -vE "^src/[a-z]+/($folders|$families)/|$own" || true; } | search "$families" -i |
        awk -v families="$families" -v others="$others" '
            match($0, /^[^:]*:[0-9]+:/) {
                text = substr($0, RLENGTH + 1)
                gsub(others, "", text)
                if (match(tolower(text), families))
                    print substr($0, 1, index($0, ":")) line($0) ": only tables of models, and what is one family'"'"'s own, name " substr(text, RSTART, RLENGTH) " here (nn/model.h, model/model_family.h)"
            }
            function line(found) { split(found, part, ":"); return part[2] }'
}

# What a loss is called is the model's own (model_sum of nn/model.h): who logs results goes over the model's sums.
check_sums() {
    list '^src/(pass|report|train)/|^src/task/(early_stop|loop|plateau|together|within_step)\.' |
        { grep -vE '^src/report/(report_page|run_log)\.' || true; } |
        search '\b(mlm|nsp)(_|\b)|"span_' -io | while IFS=: read -r file line word; do
        echo "$file:$line: only a model names $word (model_sum of nn/model.h); these are its sums"
    done
}

# Pages that comments and documents name exist.
check_links() {
    list '^(src|tests|fuzz|tools|scripts|docs)/|^[^/]*\.md$' | search '\b(docs/[a-z0-9_/]+|[A-Z]+)\.md\b' -o |
        while IFS=: read -r file line page; do
            [ -e "$page" ] || echo "$file:$line: there is no $page"
        done
}

# docs/decisions/README.md lists every decision.
check_decisions() {
    local page
    for page in $(list '^docs/decisions/[0-9].*\.md$'); do
        grep -qF "(${page##*/})" docs/decisions/README.md || echo "$page: docs/decisions/README.md does not list it"
    done
}

# ARCHITECTURE.md draws every room on a floor above those that it may include.
check_layers() {
    [ -f ARCHITECTURE.md ] || return 0
    { grep -E '^    [0-9]+ +' ARCHITECTURE.md || true; echo "$rooms"; } | awk '
        /^    / { for (i = 2; i <= NF; i++) floor[$i] = $1; next }
        sub(/:/, "", $1) {
            if (!($1 in floor)) print "ARCHITECTURE.md: the layers do not show " $1
            for (i = 2; i <= NF; i++)
                if (floor[$i] >= floor[$1]) print "ARCHITECTURE.md: " $1 " includes " $i ", but is not drawn above it"
        }'
}

# A test waits for an event and has its own clock: what sleeps, or bounds time, says in a comment of its line or of the line above why no
# busy machine can fail it. tests/hosts is for machines of its own.
check_times() {
    local waits='(^|[^A-Za-z_-])((sleep|timeout) +(-[a-z]+ +[A-Z0-9]+ +)*[0-9]|(u|nano)?sleep[(]|alarm[(][1-9]|clock_(gettime|since_s)[(]|poll[(][^)]*, [0-9]+[)]|(SECONDS|pgrep|pkill)($|[^A-Za-z_=]))'
    list '^tests/.*\.(c|h|sh|cpp)$' | { grep -v '^tests/hosts/' || true; } | xargs -r awk -v waits="$waits" '
        { is_said = /(\/\*|#) time: [^ ]/; text = $0; gsub(/\/\*.*|(^|[[:blank:]])#.*/, "", text) }
        FNR == 1 { was_said = 0 }
        text ~ waits && !is_said && !was_said { print FILENAME ":" FNR ": a test that waits or is timed; await an event, or say \"time: why\"" }
        { was_said = is_said }'
}

# Under pipefail, what writes into a pipe that `grep -q` or `head` has left fails; `grep >/dev/null` reads to the end.
check_pipes() {
    list '^tests/.*\.sh$' | xargs -r awk '
        /[^|]\| *grep -[a-zA-Z]*q/ { print FILENAME ":" FNR ": `grep -q` leaves the pipe, and the writer may fail; write `grep ... >/dev/null`" }'
}

left_out=
for check in check_arrows check_libraries check_layout check_names check_lengths check_headers check_words check_models check_sums check_links check_decisions check_layers check_times check_pipes; do
    "$check" >>"$breaches" || echo "$check itself failed" >>"$breaches"
done
if [ -s "$breaches" ]; then
    cat "$breaches" >&2
    echo "deps: $(wc -l <"$breaches") breaches of the law" >&2
    exit 1
fi
echo "deps: $(list_sources | wc -l) files obey the law${left_out:+; not compiled without the headers of CUDA:$left_out}"
