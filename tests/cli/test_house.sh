#!/usr/bin/env bash
# The laws of the tree (tools/deps.sh) hold, and the check sees each kind of breach in a tree made to break them.
set -euo pipefail
unset $(git rev-parse --local-env-vars 2>/dev/null) # of a hook that runs this
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

. "$(dirname "$0")/expect.sh"

"$root/tools/deps.sh"

mkdir -p "$dir"/src/{core,ops/cpu,nn,cellar,train,serve,api,cmd,task} "$dir/tools"
echo 'int core_a(void);' >"$dir/src/core/fine.h"
"$root/tools/deps.sh" "$dir" >/dev/null || fail "a lawful tree is refused"

echo '#include "nn/up.h"' >"$dir/src/core/climbs.c"
echo '#include "ops/cpu/inner.h"' >"$dir/src/train/peeks.c"
echo '#include <jansson.h>' >"$dir/src/nn/borrows.c"
echo '#include "core/fine.h"' >"$dir/src/cellar/stray.c"
echo 'int a;' >"$dir/src/nn/twice.c"
echo 'int b;' >"$dir/src/ops/twice.c"
echo 'size_t needs_stddef(void);' >"$dir/src/core/needy.h"
echo 'void end(void) { exit(1); }' >"$dir/src/core/leaves.c"
echo 'void *open_it(const char *path) { return fopen(path, "r"); }' >"$dir/src/core/blocks.c"
mkdir -p "$dir/src/nn/bert" "$dir/src/model/bert"
echo 'int bert;' | tee "$dir/src/nn/bert/bert_fine.c" >"$dir/src/model/bert/bert_family.c"
mkdir "$dir/src/model/opt"
echo 'int opt;' | tee "$dir/src/model/opt/opt_family.c" >"$dir/src/model/model_families.c"
for room in train serve api cmd task; do echo 'int BertOnly;' >"$dir/src/$room/knows_$room.c"; done
echo 'int an_OPT;' >"$dir/src/task/knows_another.c"
echo '/* bert_config.json of a BertForMaskedLM */' >"$dir/src/task/quotes.c"
echo "/* TO""DO: later; see docs/""nowhere.md */" >"$dir/src/core/later.c"
printf '/* %0120d */\n' 0 >"$dir/src/core/wide.c"
printf 'struct s {\n    int64_t\n        n; /* cut */\n};\n/* blank \n */\n' >"$dir/src/core/cut.c"
seq 1001 | sed 's/.*/int x;/' >"$dir/src/core/big.c"
{ printf 'int f(void)\n{\n'; seq 61 | sed 's/.*/;/'; echo '}'; } >"$dir/src/core/long.c"
cp "$dir/src/core/long.c" "$dir/src/ops/kernel.cu"
seq 1001 | sed 's/.*/int x;/' >"$dir/src/ops/kernel_code.cuh"
{ printf '/* Long because it is a table. */\nint f(void)\n{\n'; seq 61 | sed 's/.*/;/'; echo '}'; } >"$dir/src/core/excused.c"

mkdir -p "$dir/tests/core"
printf '    usleep(5);\n    usleep(6); /* time: it is said */\n    /* time: said above */\n    usleep(7);\n' >"$dir/tests/core/test_sleepy.c"
printf 'sleep 0.5\npgrep -f kiln\n# who may sleep 5\n[ $SECONDS -lt 9 ]\ntimeout -k 5 30 ls\n' >"$dir/tests/core/test_hasty.sh"

sed 's/^    1   dev  /    1   nn   /; s/^    3   nn   /    3   dev  /; s/  launch$//' "$root/ARCHITECTURE.md" \
    >"$dir/ARCHITECTURE.md"
mkdir -p "$dir/docs/decisions"
echo '# a decision that nobody lists' >"$dir/docs/decisions/0001_""unlisted.md"
echo '# Decisions' >"$dir/docs/decisions/README.md"

"$root/tools/deps.sh" "$dir" 2>"$dir/breaches" && fail "a lawless tree is accepted"
for breach in "climbs.c.*core must not include nn/up.h" "peeks.c.*private" "borrows.c.*jansson" "cellar is not a room" \
    "already a src/nn/twice.c" "needy.h.*size_t" "leaves.c.*exit" "blocks.c.*fopen" "later.c" \
    "knows_train.c:1: only tables of models.*name Bert" "knows_serve.c:1: only tables of models.*name Bert" \
    "knows_api.c:1: only tables of models.*name Bert" "knows_cmd.c:1: only tables of models.*name Bert" \
    "knows_task.c:1: only tables of models.*name Bert" "knows_another.c:1: only tables of models.*name OPT" \
    "wide.c:1.*110 columns" "cut.c:2: a declaration cut" "cut.c:5.*a blank at the end" \
    "no docs/no""where.md" "big.c: 1001 lines" \
    "0001_unlisted.md: docs/decisions/README.md does not list" "nn includes dev, but is not drawn above" \
    "the layers do not show launch" \
    "long.c:2: a function of 61 lines" "kernel.cu:2: a function of 61 lines" "kernel_code.cuh: 1001 lines" \
    "test_sleepy.c:1: a test that waits" "test_hasty.sh:1: a test that waits" "test_hasty.sh:2: a test" "test_hasty.sh:4: a test" \
    "test_hasty.sh:5: a test"; do
    grep -q "$breach" "$dir/breaches" || fail "not reported: $breach; only: $(cat "$dir/breaches")"
done
grep -q excused.c "$dir/breaches" && fail "a reason is not accepted"
grep -qE 'bert_(fine|family).c|model_families.c|opt_family.c' "$dir/breaches" &&
    fail "a model may be named where it is, and in its table"
grep -qE 'test_sleepy.c:[^1]|test_hasty.sh:3' "$dir/breaches" && fail "a reason to wait is not accepted"
grep -q quotes.c "$dir/breaches" && fail "classes and files of other programs may be named"

# only what git tracks counts: not what a user or the demo leaves beside it, in the rooms or out of them
command -v git >/dev/null || skip git "whether files that git does not track matter was not tried; install git"
tracked=$dir/tracked
mkdir -p "$tracked"/src/{core,nn} "$tracked/demo/venv"
git init -q "$tracked"
echo 'int core_a(void);' >"$tracked/src/core/fine.h"
git -C "$tracked" add src
echo '#include "nn/up.h"' >"$tracked/src/core/stranger.c"
echo "# TO""DO: somebody else's" | tee "$tracked/demo/venv/foreign.py" >"$tracked/src/nn/foreign.py"
"$root/tools/deps.sh" "$tracked" 2>"$dir/breaches" || fail "files that git does not track matter: $(cat "$dir/breaches")"
git -C "$tracked" add -f src/core/stranger.c demo/venv/foreign.py
"$root/tools/deps.sh" "$tracked" 2>"$dir/breaches" && fail "breaches that git tracks are not seen"
for breach in "stranger.c.*core must not include nn/up.h" "demo/venv/foreign.py"; do
    grep -q "$breach" "$dir/breaches" || fail "not reported: $breach; only: $(cat "$dir/breaches")"
done
grep -q nn/foreign.py "$dir/breaches" && fail "a file that git does not track is a breach"

# headers that need CUDA's, where a compiler without them stands in for a machine without them
cat >"$dir/cc" <<'SH'
#!/bin/sh
exec cc -nostdinc -isystem "$(dirname "$0")/system" "$@"
SH
chmod +x "$dir/cc"
mkdir -p "$dir"/system "$dir"/cuda/src/{core,ops/cuda} "$dir/toolkit/include"
echo '#include <cublasLt.h>' >"$dir/cuda/src/ops/cuda/direct.h"
printf '#include "ops/cuda/direct.h"\nint through(unknown);\n' >"$dir/cuda/src/ops/cuda/through.h"
without_cuda() { env -u CUDA_HOME PATH=/usr/bin:/bin CC="$dir/cc" "$@" "$root/tools/deps.sh" "$dir/cuda"; }
without_cuda >"$dir/said" 2>&1 || fail "CUDA's headers are asked for where there are none: $(cat "$dir/said")"
grep -q "without the headers of CUDA: direct.h through.h" "$dir/said" || fail "nothing says what was left out: $(cat "$dir/said")"
touch "$dir/toolkit/include/"{cublasLt,cuda_runtime_api}.h
without_cuda CUDA_HOME="$dir/toolkit" 2>"$dir/breaches" && fail "headers that need CUDA's are never compiled"
grep -q "through.h:2" "$dir/breaches" || fail "not reported: through.h; only: $(cat "$dir/breaches")"

# every verb of the Makefile has a line of help
verbs=$(sed -n 's/^\([a-z-]*\):.*##.*/\1/p' "$root/Makefile" | sort)
phony=$(sed -n 's/^\.PHONY: //p' "$root/Makefile" | tr ' ' '\n' | sort)
[ "$verbs" = "$phony" ] || fail "Makefile: verbs without help: $(comm -3 <(echo "$verbs") <(echo "$phony") | tr '\n' ' ')"
echo "test_house: the laws hold and are enforced"
