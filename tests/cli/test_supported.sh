#!/usr/bin/env bash
# docs/supported.md says of the cpu what tools/supported.sh finds, cell by cell.
set -euo pipefail
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/expect.sh"
need_hdf5
"$root/tools/supported.sh" "$kiln" cpu >"$dir/found"
sed -n '/^| on cpu |/,/^$/p' "$root/docs/supported.md" | sed '/^$/d' >"$dir/said"
[ -s "$dir/said" ] || fail "docs/supported.md has no table of the cpu"
[ "$(wc -l <"$dir/found")" -eq 33 ] || fail "$(cat "$dir/found")"
! grep -q fails "$dir/found" || fail "$(cat "$dir/found")"
diff "$dir/said" "$dir/found" || fail "docs/supported.md is not what runs"
