#!/usr/bin/env bash
# Writes the help of all commands, with all of their flags, to standard output or a file: as docs/commands.md, or as a manual page.
# usage: tools/make_commands.sh [--man] [KILN [FILE]]      make commands
set -euo pipefail
form=md
[ "${1:-}" != --man ] || { form=man && shift; }
kiln=${1:-$(dirname "$0")/../build/kiln}
[ -z "${2:-}" ] || exec >"$2"
commands=$("$kiln" --help | sed -n 's/^  \([a-z-]*\)  *\([^ ].*\)/\1 \2/p')

# A line that begins with a dot or an apostrophe is a request of roff's.
roff() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }

write_page() {
    cat <<'MD'
# Commands

Made from the help of `kiln` by `make commands`. `kiln help COMMAND` shows the flags that people use, `kiln help COMMAND all` what is here.

| command | |
|---|---|
MD
    while read -r name summary; do
        echo "| [\`kiln $name\`](#kiln-$name) | $summary |"
    done <<<"$commands"
    while read -r name summary; do
        printf '\n## kiln %s\n\n' "$name"
        "$kiln" help "$name" all | sed -e 's/^\(.\)/    \1/'
    done <<<"$commands"
}

write_manual() {
    echo ".TH KILN 1 \"\" \"$("$kiln" --version)\" \"User Commands\""
    printf '.SH NAME\nkiln \\- train, fine\\-tune and run BERT\n.SH SYNOPSIS\n.B kiln\nCOMMAND [flags]\n.SH DESCRIPTION\n.nf\n'
    "$kiln" --help | sed -n -e '/^[a-z][a-z -]*:$/p' -e '/^  /p' | roff
    printf '.fi\n'
    while read -r name summary; do
        printf '.SH "KILN %s"\n.nf\n' "${name^^}"
        "$kiln" help "$name" all | roff
        printf '.fi\n'
    done <<<"$commands"
    printf '.SH SEE ALSO\nshare/doc/kiln/README.md under the prefix of the installation\n'
}

if [ $form = man ]; then
    write_manual
else
    write_page
fi
