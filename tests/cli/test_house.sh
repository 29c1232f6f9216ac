#!/usr/bin/env bash
# The laws of the tree (tools/deps.sh) hold, and the check sees each kind of breach in a tree made to break them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "test_house: $*" >&2; exit 1; }

"$root/tools/deps.sh"

mkdir -p "$dir"/src/{core,ops/cpu,nn,cellar,train} "$dir/tools"
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
echo "/* TO""DO: later; see docs/""nowhere.md */" >"$dir/src/core/later.c"
seq 1001 | sed 's/.*/int x;/' >"$dir/src/core/big.c"
{ printf 'int f(void)\n{\n'; seq 61 | sed 's/.*/;/'; echo '}'; } >"$dir/src/core/long.c"
{ printf '/* Long because it is a table. */\nint f(void)\n{\n'; seq 61 | sed 's/.*/;/'; echo '}'; } >"$dir/src/core/excused.c"

"$root/tools/deps.sh" "$dir" 2>"$dir/breaches" && fail "a lawless tree is accepted"
for breach in "climbs.c.*core must not include nn/up.h" "peeks.c.*private" "borrows.c.*jansson" "cellar is not a room" \
    "already a src/nn/twice.c" "needy.h.*size_t" "leaves.c.*exit" "later.c" "no docs/no""where.md" "big.c: 1001 lines" \
    "long.c:2: a function of 61 lines"; do
    grep -q "$breach" "$dir/breaches" || fail "not reported: $breach; only: $(cat "$dir/breaches")"
done
grep -q excused.c "$dir/breaches" && fail "a reason is not accepted"

# every verb of the Makefile has a line of help
verbs=$(sed -n 's/^\([a-z-]*\):.*##.*/\1/p' "$root/Makefile" | sort)
phony=$(sed -n 's/^\.PHONY: //p' "$root/Makefile" | tr ' ' '\n' | sort)
[ "$verbs" = "$phony" ] || fail "Makefile: verbs without help: $(comm -3 <(echo "$verbs") <(echo "$phony") | tr '\n' ' ')"
echo "test_house: the laws hold and are enforced"
