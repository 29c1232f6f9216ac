#!/usr/bin/env bash
# docs/commands.md is what tools/make_commands.sh makes of the help, each command has a manual page, and shells
# complete from the same tables.
. "$(dirname "$0")/begin.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
"$source/tools/make_commands.sh" "$kiln" >"$dir/commands.md"
diff "$source/docs/commands.md" "$dir/commands.md" >"$dir/difference" ||
    fail "docs/commands.md is not the help of today: run make commands: $(head "$dir/difference")"
"$source/tools/make_commands.sh" --man "$kiln" "$dir/man"
for command in $("$kiln" --help | awk '/^  [a-z]/ { print $1 }'); do
    grep -q "^kiln.-${command//-/.-} .- " "$dir/man/kiln-$command.1" || fail "kiln $command has no manual page"
    grep -q "^## kiln $command$" "$dir/commands.md" || fail "kiln $command is not in the page"
done
grep -q '^.B .-.-emulate_world N' "$dir/man/kiln-pretrain.1" || fail "the manual page lacks flags"
! command -v groff >/dev/null || [ -z "$(groff -man -ww -z "$dir"/man/*.1 2>&1)" ] ||
    fail "$(groff -man -ww -z "$dir"/man/*.1 2>&1 | sed 3q)"

# the build's facts
expect 0 "kernels    baseline" "$kiln" --version
grep -q '^libraries  jansson [0-9.]*, ' "$dir/out" || fail "no libraries: $(cat "$dir/out")"

# what a shell offers: commands, flags, choices; nothing where files are meant
completes() # WANTED WORD...
{
    [ "$("$kiln" complete "${@:2}" | cut -f 1 | paste -sd ' ')" = "$1" ] || fail "complete ${*:2}: $("$kiln" complete "${@:2}")"
}
completes "classify convert" c
completes "tokenize" help tok
completes "gpt bert" train --kind ""
completes "--kind" train --kin
completes "" train --output_dir ""
completes "" nothing --x
expect 64 "only for bash, zsh and fish" "$kiln" completion csh
PATH=$(dirname "$kiln"):$PATH
# shellcheck source=/dev/null
. <("$kiln" completion bash)
offered() { COMP_WORDS=(kiln "$@") COMP_CWORD=$# && _kiln; echo "${COMPREPLY[*]}"; }
[ "$(offered train --kind = b)" = bert ] || fail "bash offers $(offered train --kind = b)"
for shell in zsh fish; do
    command -v $shell >/dev/null || { lack $shell "its completion was not parsed; install $shell"; continue; }
    "$kiln" completion $shell >"$dir/script" && $shell -n "$dir/script" || fail "$shell refuses its completion"
done
! command -v fish >/dev/null || [ "$(fish -c "$("$kiln" completion fish); complete -C 'kiln train --kind b'")" = bert ] ||
    fail "fish offers something else"
