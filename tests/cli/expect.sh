# Functions for tests that run the program; sourced with $dir set to the test's own directory.

fail()
{
    echo "failed: $*" >&2
    exit 1
}

# In front of a command that could hang: it ends after this. So long that a busy machine does not reach it.
patient=(timeout -k 5 300) # time: a hang

# lack FEATURE WHY: says that a part is skipped and what would enable it; a failure if KILN_REQUIRE names the
# feature (a comma-separated list).  tests/test.h has the same for programs.
lack()
{
    [[ ,${KILN_REQUIRE:-}, != *,"$1",* ]] || fail "$1 is required, but: $2"
    echo "${lacking:-left out}[$1]: $2"
}

# skip FEATURE WHY: ends the test as skipped; tools/test.sh counts skips by feature.
skip()
{
    lacking=skipped lack "$@"
    exit 77
}

# need_hdf5: skips in a build without HDF5.
need_hdf5()
{
    ! "$kiln" doctor --dry_run | grep '^hdf5 *not built in' >/dev/null ||
        skip hdf5 "this build has no HDF5; install libhdf5-dev, and build without KILN_HDF5=OFF"
}

# need_python FEATURE MODULE...: $python is the Python that KILN_PYTHON names, which has the modules.
need_python()
{
    local modules=${*:2}
    python=${KILN_PYTHON:-}
    { [ -n "$python" ] && "$python" -c "import ${modules// /,}" 2>/dev/null; } || skip "$1" \
        "KILN_PYTHON names no Python with ${modules// /, }; make it by: python3 -m venv V; V/bin/pip install $modules; export KILN_PYTHON=V/bin/python"
}

# expect CODE TEXT command...: the command must end with this exit code and print the text; its output is then
# in $dir/out and $dir/err.
expect()
{
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$dir/out" 2>"$dir/err" || got=$?
    [ "$got" -eq "$code" ] || fail "exit code $got, not $code: $* ($(cat "$dir/err"))"
    grep -qF -- "$text" "$dir/out" "$dir/err" || fail "'$text' is not in what was printed: $* ($(cat "$dir/err"))"
}

# same_numbers A B: the files, or pipes, are equal but for rounding of the numbers in them.
same_numbers()
{
    local number='-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?' part
    cat "$1" >"$dir/same_a" && cat "$2" >"$dir/same_b"
    for part in a b; do
        sed -E "s/$number/#/g" "$dir/same_$part" >"$dir/same_text_$part"
        grep -oE -e "$number" "$dir/same_$part" >"$dir/same_numbers_$part"
    done
    cmp "$dir/same_text_a" "$dir/same_text_b" && paste "$dir/same_numbers_a" "$dir/same_numbers_b" |
        awk '{ d = $1 - $2; bound = 1e-5 * ($1 < -1 ? -$1 : $1 > 1 ? $1 : 1); if (d > bound || -d > bound) exit 1 }'
}

# unpack_golden NAME: the tensors of tests/golden/NAME.safetensors, in the order of its table.  DIR/FILE, of bytes, becomes that
# file in $dir; NAME, of numbers, becomes lines of numbers/NAME.
unpack_golden()
{
    local golden at bytes type name
    golden=$(dirname "${BASH_SOURCE[0]}")/../golden/$1.safetensors
    at=$((8 + $(od -An -t u8 -N 8 "$golden")))
    while read -r bytes type name; do
        if [ "$type" = U8 ] && [[ $name == */* ]]; then
            mkdir -p "$dir/${name%/*}"
            tail -c +$((at + 1)) "$golden" | head -c "$bytes" >"$dir/$name" || true # the pipe is cut
            [ "$(stat -c %s "$dir/$name")" = "$bytes" ] || fail "$name was not unpacked"
        elif [ "$type" = F64 ]; then
            mkdir -p "$dir/numbers"
            tail -c +$((at + 1)) "$golden" | head -c "$bytes" | od -An -v -t f8 -w8 >"$dir/numbers/$name" || true
        fi
        at=$((at + bytes))
    done < <("$kiln" inspect "$golden" | awk '$1 ~ /^(U8|I32|F32|F64)$/ { print $(NF - 1), $1, $NF }')
}

# start_held command...: runs it in the background as $pid, with a log that blocks it after $room bytes, a page by default: so it
# cannot end before it gets a signal, however slow this shell is.
start_held()
{
    mkfifo "$dir/held"
    exec 9<>"$dir/held"
    head -c $((16 * $(getconf PAGESIZE) - ${room:-$(getconf PAGESIZE)})) /dev/zero >&9 # of the 16 pages of a pipe
    "$@" >/dev/null 2>"$dir/held" 9>&- &
    pid=$!
}

# stop_held SIGNAL DIR [command...]: sends it the signal once it has saved a checkpoint there, or the command succeeds, and lets it
# continue; $status is its exit status.
stop_held()
{
    local signal=$1
    [ $# -gt 2 ] || set -- "$1" "$2" compgen -G "$2/ckpt_*"
    await "$pid" "${@:3}" >/dev/null
    kill "-$signal" "$pid"
    exec 8<"$dir/held" 9>&-
    cat <&8 >/dev/null
    exec 8<&-
    wait "$pid" && status=0 || status=$?
    rm "$dir/held"
}

# at_call "KIND N" PATH command...: runs it, of which the N-th system call on the output at PATH gets a signal, with no clock between:
# tests/hosts/save_faults.c. Of processes of mpirun, the first one. $dir/mark is there if it made so many.
at_call()
{
    local fault="$1 0 $2 $dir/mark"
    shift 2
    rm -f "$dir/mark"
    LD_PRELOAD=$(dirname "$kiln")/tests/libsave_faults.so SAVE_FAULTS=$fault \
        ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 "$@"
}

# all_gone FILE: waits until all have ended who inherited the descriptor that locks the file (exec 9>FILE; flock 9).
all_gone() { "${patient[@]}" flock "$1" true || fail "somebody still holds $1"; }

# await PID command...: waits until the command succeeds, while the process lives; its last act counts too.
await()
{
    local process=$1
    shift
    until "$@"; do
        kill -0 "$process" 2>/dev/null || "$@" || fail "the process ended too early for: $*"
        sleep 0.02 # time: between two looks, of any number
    done
}

# has_lines N FILE: for `await`
has_lines() { [ -e "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]; }
