# What the scripts under the documents' names share; sourced.  Each prints its commands as it runs them; with --dry-run it only
# prints them, and what is missing.  A script names the parts that kiln does not have yet and ends with 69 (docs/exit_codes.md):
# with --dry-run after all commands, else before the one that cannot run.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dry_run=false
missing=()

# kiln of this tree, of KILN, or of the PATH
kiln=${KILN:-}
if [ -z "$kiln" ]; then
    kiln=$(dirname "$here")/build/kiln
    [ -x "$kiln" ] || kiln=$(command -v kiln || echo "$kiln")
fi

# usage TEXT: what the script takes; ends with 64
usage()
{
    echo "usage: $(basename "$0") $1" >&2
    exit 64
}

# miss TEXT: something that the user has to provide
miss() { missing+=("$1"); }

# need PATH WHAT: miss it if it is not there
need() { [ -e "$1" ] || miss "$1: $2"; }


# data_folder NAME PATH: prints where data is made: HL_DATA_DIR_ROOT, by default data, or PATH if the current folder is called
# NAME. Ends with 64 if only DATA_DIR is given, which is one dataset that training reads.
data_folder()
{
    if [ -n "${DATA_DIR:-}" ] && [ -z "${HL_DATA_DIR_ROOT:-}" ]; then
        echo "$(basename "$0"): DATA_DIR is the one dataset that training reads;" \
            "give HL_DATA_DIR_ROOT, the folder of all data" >&2
        exit 64
    fi
    local default=data
    [ "${PWD##*/}" != "$1" ] || default=$2
    echo "${HL_DATA_DIR_ROOT:-$default}"
}

need_kiln() { [ -x "$kiln" ] || miss "$kiln: the program; \`make\` in $(dirname "$here") builds it, and KILN names another"; }

# whole NAME VALUE: ends with 64 unless the value of the variable is a whole number above 0
whole()
{
    [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || { echo "$(basename "$0"): $1 is '$2', but must be a whole number above 0" >&2; exit 64; }
}

# show COMMAND...: prints it so that a shell reads it again
show()
{
    printf '%q' "$1"
    printf ' %q' "${@:2}"
    echo
}

# run COMMAND...: shows it, and runs it unless this is a dry run
run()
{
    show "$@"
    $dry_run || "$@"
}

# tell: prints what is missing; ends the script if something is, or in a dry run
tell()
{
    local line code=0
    for line in "${missing[@]}"; do echo "missing: $line"; done
    [ ${#missing[@]} -eq 0 ] || code=65
    ! $dry_run || code=0
    if $dry_run || [ $code -ne 0 ]; then exit $code; fi
}
