#!/usr/bin/env bash
# debian/changelog has the program's version; the program is hardened, and has no path of its source (cmake/hardening.cmake).
. "$(dirname "$0")/begin.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
packaged=$(sed -n '1s/kiln (\(.*\)) .*/\1/p' "$source/debian/changelog")
[ "kiln $packaged" = "$("$kiln" --version | sed -n 1p)" ] || fail "debian/changelog is of version $packaged: $("$kiln" --version | sed -n 1p)"

type readelf >/dev/null 2>&1 || skip binutils "there is no readelf; install binutils"
readelf -dlW "$kiln" >"$dir/said"
for mark in BIND_NOW GNU_RELRO 'Flags: .*PIE'; do
    grep -q "$mark" "$dir/said" || fail "the program is linked without $mark"
done
grep -qE '^(KILN_SANITIZE:BOOL=ON|CMAKE_BUILD_TYPE:STRING=(Debug|Rel.*))' "$(dirname "$kiln")/CMakeCache.txt" && exit
readelf -sW "$kiln" >"$dir/said"
for mark in __stack_chk_fail _chk@; do
    grep -q "$mark" "$dir/said" || fail "the program has no $mark"
done
! grep -qF "$source/src" "$kiln" || fail "the program has paths of its source"
