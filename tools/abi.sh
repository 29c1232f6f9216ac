#!/usr/bin/env bash
# Prints what programs that were built with include/kiln know of the library, a line each: functions, numbers of enumerations,
# structs and where their members lie.  With OLD, such a print of a release, prints instead what breaks programs of that time,
# and fails if anything does: a line that is gone, or a member that is new, unless it stands behind all of a struct of options,
# which begins with its size.  usage: tools/abi.sh [--include DIR] [OLD]
set -euo pipefail
include=$(dirname "$0")/../include
[ "${1:-}" != --include ] || { include=$2; shift 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Declarations, each in a line, become lines of the print, or a C program's that prints them.
declarations() { printf '#include <kiln/engine.h>\n' | "${CC:-cc}" -std=c17 -E -P -I "$include" -x c - | tr -s '\n\t ' ' ' | sed 's/[;{}]/&\n/g'; }
declarations | awk '
    function trimmed(text) { gsub(/^ +| *[;{}]? *$/, "", text); return text }
    function member(declaration, name) {
        printf "printf(\"member %s.%s at %%zu of %%zu: %s\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n",
            block, name, declaration, block, name, block, name
    }
    # "size_t start, end" are two members; a comma in parentheses is a parameter
    function members(text, parts, n, i, type, name) {
        if (match(text, /\(\*[a-z_0-9]+\)/)) { member(text, substr(text, RSTART + 2, RLENGTH - 3)); return }
        n = split(text, parts, / *, */)
        for (i = 1; i <= n; i++) {
            name = parts[i]
            gsub(/\[.*/, "", name)
            gsub(/.*[ *]/, "", name)
            if (i == 1) { type = parts[1]; sub(name ".*", "", type) }
            member(i == 1 ? parts[1] : type parts[i], name)
        }
    }
    BEGIN { print "#include <kiln/engine.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {" }
    depth == 0 && /^ ?(struct|enum) kiln_[a-z_]+ \{/ { kind = $1; block = $2; depth++
        if (kind == "struct") printf "printf(\"struct %s of %%zu\\n\", sizeof(struct %s));\n", block, block
        next }
    depth == 0 && /\{/ { kind = ""; depth++; next }
    depth > 0 && /\{/ { depth++; next }
    depth > 0 && /\}/ { depth--
        if (kind == "enum") {
            text = trimmed($0)
            gsub(/ *= *[0-9]+| /, "", text)
            n = split(text, numbers, ",")
            for (i = 1; i <= n; i++)
                if (numbers[i] ~ /^KILN_/) printf "printf(\"number %s is %%d\\n\", (int)%s);\n", numbers[i], numbers[i]
        }
        next }
    depth > 0 { if (kind == "struct" && depth == 1) members(trimmed($0)); next }
    match($0, /kiln_[a-z_0-9]+\(/) { printf "printf(\"function %s\\n\");\n", trimmed($0) }
    END { print "return 0; }" }' >"$work/print.c"
"${CC:-cc}" -std=c17 -I "$include" -o "$work/print" "$work/print.c"
"$work/print" | LC_ALL=C sort >"$work/now"
[ $# -gt 0 ] || { cat "$work/now"; exit 0; }

awk '
    function of() { sub(/\..*/, "", $2); return $2 }
    FNR == NR { now[$0]; if ($1 == "struct") size[$2] = $4; if ($1 == "member") { where[$0] = $4; from[$0] = of() }; next }
    $1 == "struct" { old[$2] = $4; if ($2 ~ /_options$/ && size[$2] >= $4) next }
    { was[$0] }
    !($0 in now) { print "gone: " $0; broken = 1 }
    END {
        for (line in where)
            if (!(line in was) && from[line] in old && !(from[line] ~ /_options$/ && where[line] >= old[from[line]])) {
                print "new within: " line; broken = 1
            }
        exit broken
    }' "$work/now" "$1"
