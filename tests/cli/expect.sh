# What the tests that drive the program share; sourced with $dir set to a directory of the test's own.

fail()
{
    echo "failed: $*" >&2
    exit 1
}

# expect CODE TEXT command...: the command ends with this exit code and what it prints contains the text; its output
# is then in $dir/out and $dir/err.
expect()
{
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$dir/out" 2>"$dir/err" || got=$?
    [ "$got" -eq "$code" ] || fail "exit code $got, not $code: $* ($(cat "$dir/err"))"
    grep -qF -- "$text" "$dir/out" "$dir/err" || fail "'$text' is not in what was printed: $* ($(cat "$dir/err"))"
}
