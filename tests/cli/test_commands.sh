#!/usr/bin/env bash
# docs/commands.md is what tools/make_commands.sh makes of the help, and the manual page has every command.
. "$(dirname "$0")/begin.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
"$source/tools/make_commands.sh" "$kiln" >"$dir/commands.md"
diff "$source/docs/commands.md" "$dir/commands.md" >"$dir/difference" ||
    fail "docs/commands.md is not the help of today: run make commands: $(head "$dir/difference")"
"$source/tools/make_commands.sh" --man "$kiln" >"$dir/kiln.1"
for command in $("$kiln" --help | awk '/^  [a-z]/ { print $1 }'); do
    grep -q "^.SH \"KILN ${command^^}\"$" "$dir/kiln.1" || fail "kiln $command is not in the manual page"
    grep -q "^## kiln $command$" "$dir/commands.md" || fail "kiln $command is not in the page"
done
grep -q '^ *\\-\\-emulate_world N' "$dir/kiln.1" || fail "the manual page lacks flags"
! command -v groff >/dev/null || [ -z "$(groff -man -ww -z "$dir/kiln.1" 2>&1)" ] ||
    fail "$(groff -man -ww -z "$dir/kiln.1" 2>&1 | head -3)"
