#!/usr/bin/env bash
# Programs that were built with the headers of the last release run with this library: no function, number or place of a member has
# changed (tests/golden/abi.txt, by tools/abi.sh), and libkiln.so.0 shows each function of the headers.  And what tools/abi.sh finds
# in headers that are changed.
. "$(dirname "$0")/begin.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
release=$source/tests/golden/abi.txt
abi() { "$source/tools/abi.sh" "$@"; }

abi "$release" >"$dir/log" || fail "programs of the last release break: $(cat "$dir/log")"
library=$(dirname "$kiln")/libkiln.so.0
[ -e "$library" ] || skip libkiln "this build is static; build without KILN_STATIC=ON"
abi | sed -n 's/^function .*\(kiln_[a-z_0-9]*\)(.*/\1/p' | sort -u >"$dir/declared"
nm -D --defined-only "$library" | sed -n 's/.* T \(kiln_.*\)@@KILN_0/\1/p' | sort >"$dir/shown"
diff "$dir/declared" "$dir/shown" || fail "the headers and the library have other functions"

# changed FILE EXPRESSION: what is said of headers that sed has changed
changed()
{
    mkdir -p "$dir/include"
    cp -r "$source/include/kiln" "$dir/include/"
    sed -i "$2" "$dir/include/kiln/$1"
    ! cmp -s "$source/include/kiln/$1" "$dir/include/kiln/$1" || fail "$2 changes nothing"
    abi --include "$dir/include" "$release" 2>&1 || true
}
breaks() { changed "$1" "$2" | grep "$3" >/dev/null || fail "$2 does not break: $(changed "$1" "$2")"; }
breaks kiln.h 's/kiln_tags_free/kiln_tags_drop/' '^gone: function void kiln_tags_free'
breaks kiln.h 's/    KILN_TAG, /    KILN_TUG, KILN_TAG, /' '^gone: number KILN_TAG is 4'
breaks kiln.h 's/^    int64_t top_k;             .. answers/    int32_t more; int64_t top_k; \/\* answers/' 'gone: member kiln_ask_options.top_k at 8 '
breaks kiln.h 's/^    bool may_be_none;/    bool may_be_none, in_padding;/' 'new within: member kiln_ask_options.in_padding at 41'
breaks kiln.h 's/^    size_t start, end;/    size_t start, end, more;/' 'gone: struct kiln_token of 24'
breaks engine.h 's/^    bool decay;/    bool decay, fresh;/' 'new within: member kiln_parameter.fresh'
[ -z "$(changed kiln.h 's/^    bool may_be_none;/    bool may_be_none; int64_t more;/')" ] || fail "options may grow behind all others"
[ -z "$(changed kiln.h 's/^struct kiln_token {/struct kiln_new { int32_t id; };\nvoid kiln_new(struct kiln_new *new);\nstruct kiln_token {/')" ] ||
    fail "structs and functions may come"
