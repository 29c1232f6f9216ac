#!/usr/bin/env bash
# .ci/run's accounting, in a tree whose stages are stubs: what its last line counts and when it fails; and that the bare
# root is skipped, not failed, where there may be none, unless it is required.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"

# Parts take turns: N turns in a row have every test once. A turn that is no number is refused.
(
    mkdir -p "$dir/turns/tools" "$dir/turns/bin"
    cp "$source"/tools/{pick_tests,turn}.sh "$dir/turns/tools"
    printf '#!/bin/sh\nfor i in $(seq 60); do echo "  Test #$i: test_$i"; done\n' >"$dir/turns/bin/ctest"
    chmod +x "$dir/turns/bin/ctest"
    export PATH="$dir/turns/bin:$PATH"
    pick() { env -u KILN_TESTS KILN_TURN="$1" "$dir/turns/tools/pick_tests.sh" build-asan 10 4; }
    for turn in 7 08 9 10; do
        expect 0 "KILN_TURN=$((10#$turn)): left out" pick "$turn"
        left_out=$(cat "$dir/out")
        seq -f 'test_%g' 60 | grep -vE "$left_out" >>"$dir/picked"
    done
    [ "$(sort "$dir/picked" | uniq -u | wc -l) $(wc -l <"$dir/picked")" = "60 60" ] || fail "four turns do not have every test once"
    expect 64 "KILN_TURN is 'x', but must be a whole number" pick x
)

# results FILE TESTS FAILURES SKIPPED [NAME=STATUS...]: a line of shell that writes such a file of ctest's
results()
{
    local file=$1 cases= of
    for of in "${@:5}"; do cases+="\t<testcase name=\"${of%=*}\" classname=\"${of%=*}\" time=\"1\" status=\"${of#*=}\">\n\t</testcase>\n"; done
    echo "mkdir -p '$(dirname "$file")'; printf '<testsuite\n\ttests=\"$2\"\n\tfailures=\"$3\"\n\tskipped=\"$4\"\n\t>\n$cases' >'$file'"
}

# A failed test runs once more alone: it is a failure, unless it passes then and the list has known it for a week at most.
(
    mkdir -p "$dir"/flaky/{tools,tests,bin}
    cp "$source/tools/flaky.sh" "$dir/flaky/tools"
    cd "$dir/flaky"
    export PATH="$dir/flaky/bin:$PATH"
    # once FAILED THEN: a run in which test_a has failed, and what it does alone
    once()
    {
        { echo '#!/bin/sh'; echo 'echo "alone: $*"'; results b/again.xml 1 0 0 "test_a=$2"; } >bin/ctest
        chmod +x bin/ctest
        sh -c "$(results b/results.xml 3 1 0 test_a="$1" test_b=run test_ab=run)"
    }
    list() { printf '# a comment\n%s\n' "$@" >tests/flaky.txt; }
    flaky() { tools/flaky.sh b 2026-03-05; }
    list "test_a 2026-02-26 why"
    once fail run
    expect 0 "flaky: test_a failed, then passed alone; tests/flaky.txt knows it" flaky
    grep -q 'alone: .*-j 1 -R ^(test_a)\$$' "$dir/out" || fail "it did not run alone: $(cat "$dir/out")"
    grep -q 'failures="0"' b/results.xml && ! grep -q fail\" b/results.xml || fail "it is counted: $(cat b/results.xml)"
    once fail fail
    expect 1 "failed twice: test_a" flaky
    grep -q 'failures="1"' b/results.xml || fail "it is not counted: $(cat b/results.xml)"
    for other in "test_a 2026-02-25 why" "test_ab 2026-03-05 why" ""; do
        list "$other"
        once fail run
        expect 1 "flaky: test_a failed, then passed alone, and is not in tests/flaky.txt of the last 7 days" flaky
    done
    sh -c "$(results b/results.xml 9 6 0 test_{1,2,3,4,5,6}=fail)"
    expect 1 "6 tests failed; with 1 to 5 failures each runs once more" flaky

    check() { tools/flaky.sh --check 2026-03-05; }
    list "test_a 2026-02-26 why" && check
    list "test_a 2026-02-25 why" && expect 1 "test_a is flaky since 2026-02-25, more than 7 days: mend the test" check
    for wrong in "test_a" "test_a 2026-02-26" "test_a yesterdy why"; do
        list "$wrong" && expect 1 "is not NAME YEAR-MONTH-DAY REASON" check
    done
)

expect 64 "one regex of tests, not 2" "$source/tools/stress.sh" a b
expect 64 "'x' is not a number" env QUIET=x "$source/tools/stress.sh"
expect 64 "no test in $dir matches" env BUILD="$dir" "$source/tools/stress.sh"

mkdir -p "$dir"/tree/{.ci,tools,scripts,tests}
cp "$source/.ci/run" "$dir/tree/.ci"
cp "$source"/tools/{flaky,turn}.sh "$dir/tree/tools"
cp "$source/tests/flaky.txt" "$dir/tree/tests"
# stub FILE LINE...: a script of these lines
stub()
{
    { echo '#!/bin/sh'; printf '%s\n' "${@:2}"; } >"$dir/tree/$1"
    chmod +x "$dir/tree/$1"
}
# the verbs of make; `demo` says that it ran
stub tools/make 'case $1 in' "test) echo \"make \$*\"; $(results build/results.xml 50 0 7) ;;" \
    "checked) $(results build-checked/results.xml 40 0 5) ;;" esac
stub tools/install_deps.sh
stub tools/tidy.sh
stub scripts/demo.sh 'echo the demo ran'
run() { env -u KILN_ISA PATH="$dir/tree/tools:$PATH" "$dir/tree/.ci/run"; }
# counted CODE LINE: what run ends with
counted()
{
    expect "$1" "$2" run
    [ "$(tail -n 1 "$dir/out")" = "$2" ] || fail "the last line is '$(tail -n 1 "$dir/out")', not '$2'"
}
ran_here() { grep -qx "make test" "$dir/out" && grep -q "the demo ran" "$dir/out"; }

bare() { results build-bare/results.xml "$@"; }
again=$(results build-bare/again.xml 20 0 4)
stub tools/bare_root.sh "$(bare 60 0 20)" "$again"
counted 0 "91 passed, 0 failed, 29 skipped"
ran_here && fail "the tests ran again outside of the bare root"
stub tools/bare_root.sh "$(bare 60 1 20 test_d=fail)" "$again" 'echo "flaky: test_d failed, then passed alone, and"' "exit 1"
counted 1 "90 passed, 1 failed, 29 skipped"
tail -n 2 "$dir/out" | grep "^flaky: test_d failed" >/dev/null || fail "nothing says at the end that a test is flaky"
grep -q "^failed: test_d of the stage bare" "$dir/out" || fail "nothing names what failed"
stub tools/bare_root.sh "exit 77"
counted 0 "78 passed, 0 failed, 13 skipped"
ran_here || fail "the demo or the tests ran nowhere"
stub tools/bare_root.sh "$(bare 60 0 20)" "exit 1" # the demo failed, no test
counted 1 "75 passed, 1 failed, 25 skipped"
stub tools/bare_root.sh "exit 1" # counts of an older run are no counts
counted 1 "35 passed, 1 failed, 5 skipped"
stub tools/bare_root.sh "$(bare 60 0 20)" "$again" 'echo "with ${KILN_ISA:-its own}"'
if grep -qw avx2 /proc/cpuinfo; then # six turns in a row, or four, have every set
    for turn in 1 2 3 4 5 6; do
        KILN_TURN=$turn run | grep '^with ' >>"$dir/sets"
    done
    for set in "its own" avx2 baseline; do grep -qx "with $set" "$dir/sets" || fail "no turn is $set: $(cat "$dir/sets")"; done
fi

# the real one, by somebody who is not root
mkdir -p "$dir/tree/tests/cli"
cp "$source/tools/bare_root.sh" "$source/tools/bare_common.sh" "$dir/tree/tools"
cp "$source/tests/cli/expect.sh" "$dir/tree/tests/cli"
chmod -R a+rX "$dir"
stranger=()
[ "$(id -u)" -ne 0 ] || stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups)
expect 77 "skipped[chroot]: only root" env -u KILN_REQUIRE "${stranger[@]}" "$dir/tree/tools/bare_root.sh"
expect 1 "chroot is required, but: only root" env KILN_REQUIRE=chroot "${stranger[@]}" "$dir/tree/tools/bare_root.sh"

# by root, with a debootstrap that fails, or that is stopped half way: nothing is left of the root, its mounts and processes
if [ "$(id -u)" -ne 0 ] || ! unshare --mount --pid --fork --kill-child --mount-proc true 2>/dev/null; then
    lack chroot "what the bare root leaves behind was not tried; run this as root, where namespaces are allowed"
    exit 0
fi
git init -q "$dir/tree"
git -C "$dir/tree" -c user.name=t -c user.email=t@t commit -q --allow-empty -m t
bare=$dir/tree/build-bare
half='mkdir -p "$4/proc" && mount -t tmpfs tmpfs "$4/proc" && touch "$4/proc/inside"'
stub tools/debootstrap "$half" 'echo "E: no network"; exit 1'
export PATH=$dir/tree/tools:$PATH
unset KILN_REQUIRE
expect 77 "skipped[chroot]: debootstrap cannot make a Debian 12" "$dir/tree/tools/bare_root.sh"
grep -q "E: no network" "$dir/out" || fail "nothing says why: $(cat "$dir/out")"
for signal in TERM KILL; do
    stub tools/debootstrap "$half" "exec 9>'$dir/alive'; flock 9; echo >'$dir/started'; sleep 1000" # time: longer than the test
    rm -f "$dir/started"
    "$dir/tree/tools/bare_root.sh" >/dev/null 2>&1 &
    pid=$!
    await $pid test -e "$dir/started"
    grep "$bare" /proc/mounts && fail "a mount of the root is seen outside"
    kill -$signal $pid
    wait $pid 2>/dev/null && fail "a stopped run succeeds"
    all_gone "$dir/alive"
    [ $signal = KILL ] || [ ! -e "$bare/root" ] || fail "the root is left after SIG$signal: $(ls "$bare/root")"
done
echo "test_ci: stages are counted, and nothing is left of the bare root"
