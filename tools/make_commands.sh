#!/usr/bin/env bash
# Writes the help of all commands, with all of their flags, to standard output or a file, as docs/commands.md, or as manual pages
# into a folder: kiln.1 and a kiln-COMMAND.1 for each.
# usage: tools/make_commands.sh [KILN [FILE]] or tools/make_commands.sh --man KILN FOLDER      make commands
set -euo pipefail
folder=
[ "${1:-}" != --man ] || { folder=$3 && set -- "$2"; }
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

# manual PAGE SUMMARY: the head of a page.
manual()
{
    printf '.TH %s 1 "" "%s" "User Commands"\n.ad l\n.SH NAME\n' "$(roff <<<"${1^^}")" "$("$kiln" --version | sed q)"
    roff <<<"$1 - $2"
}

write_manual() {
    manual kiln "train, fine-tune, run and serve BERT and GPT models"
    printf '.SH SYNOPSIS\n.B kiln\n.I COMMAND\n[flags]\n.SH DESCRIPTION\n.nf\n'
    "$kiln" --help | sed -n -e '/^[a-z][a-z -]*:$/p' -e '/^  /p' | roff
    printf '.fi\n.SH "SEE ALSO"\n'
    sed -e 's/^\([^ ]*\) .*/.BR kiln-\1 (1),/' -e '$s/,$//' -e 's/-/\\-/g' <<<"$commands"
}

# The flags begin after the first group, "name:", or the first flag.
write_manual_of() {
    manual "kiln-$1" "$2"
    "$kiln" help "$1" all | roff | awk '
        NR == 1 { sub(/^usage: /, ""); print ".SH SYNOPSIS\n" $0 "\n.SH DESCRIPTION"; next }
        NR == 2 && /^$/ { next }
        /^[^ ].*:$/ && before == "" { if (!flags++) print ".SH OPTIONS"; print ".SS \"" substr($0, 1, length($0) - 1) "\""; before = $0; next }
        /^  \\-\\-/ {
            if (!flags++) print ".SH OPTIONS"
            match($0, /^  \\-\\-[^ ]*( [^ ]+)*/)
            print ".TP\n.B " substr($0, 3, RLENGTH - 2)
            $0 = substr($0, RLENGTH + 1)
        }
        { before = $0; sub(/^ +/, ""); sub(/^[.\047]/, "\\\\\\&&"); if ($0 != "") print; else if (!flags) print ".PP" }'
    printf '.SH "SEE ALSO"\n.BR kiln (1)\n'
}

if [ -z "$folder" ]; then
    write_page
    exit
fi
mkdir -p "$folder"
write_manual >"$folder/kiln.1"
while read -r name summary; do
    write_manual_of "$name" "$summary" >"$folder/kiln-$name.1"
done <<<"$commands"
