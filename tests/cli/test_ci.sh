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

mkdir -p "$dir"/tree/{.ci,tools,scripts}
cp "$source/.ci/run" "$dir/tree/.ci"
# results TESTS FAILURES SKIPPED FILE: a line of shell that writes such a file of ctest's
results() { echo "mkdir -p '$(dirname "$4")'; printf '<testsuite\n\ttests=\"$1\"\n\tfailures=\"$2\"\n\tskipped=\"$3\"\n' >'$4'"; }
# stub FILE LINE...: a script of these lines
stub()
{
    { echo '#!/bin/sh'; printf '%s\n' "${@:2}"; } >"$dir/tree/$1"
    chmod +x "$dir/tree/$1"
}
# the verbs of make; `demo` says that it ran
stub tools/make 'case $1 in' \
    "test) echo \"make \$*\"; $(results 50 0 7 build/results.xml) ;;" "asan) $(results 40 0 5 build-asan/results.xml) ;;" \
    "portable) $(results 30 0 4 build-portable/results.xml) ;;" "fuzz) $(results 10 0 0 build-fuzz/results.xml) ;;" esac
stub tools/install_deps.sh
stub tools/tidy.sh
stub scripts/demo.sh 'echo the demo ran'
run() { PATH="$dir/tree/tools:$PATH" "$dir/tree/.ci/run"; }
# counted CODE LINE: what run ends with
counted()
{
    expect "$1" "$2" run
    [ "$(tail -n 1 "$dir/out")" = "$2" ] || fail "the last line is '$(tail -n 1 "$dir/out")', not '$2'"
}

cases="echo '<testcase name=\"test_a\" status=\"notrun\">'; echo '<testcase name=\"test_b\" status=\"run\">'"
cases="$cases; echo '<testcase name=\"test_c\" status=\"notrun\">'"
stub tools/bare_root.sh "$(results 60 0 20 build-bare/results.xml)" "{ $cases; } >>build-bare/results.xml"
counted 0 "154 passed, 0 failed, 36 skipped"
grep -q "the demo ran" "$dir/out" && fail "the demo ran again outside of the bare root"
grep -qF "make test CTEST=-R '^(test_a|test_c)\$\$'" "$dir/out" ||
    fail "other tests than those that were skipped ran again outside of the bare root"
failing="echo '<testcase name=\"test_d\" status=\"fail\">'"
stub tools/bare_root.sh "$(results 60 1 20 build-bare/results.xml)" "{ $cases; $failing; } >>build-bare/results.xml" "exit 1"
counted 1 "153 passed, 1 failed, 36 skipped"
grep -qF "make test CTEST=-R '^(test_a|test_c|test_d)\$\$'" "$dir/out" ||
    fail "other tests than those that failed or were skipped ran again outside of the bare root"
stub tools/bare_root.sh "exit 77"
counted 0 "114 passed, 0 failed, 17 skipped"
grep -q "the demo ran" "$dir/out" || fail "the demo ran nowhere"
grep -qx "make test" "$dir/out" || fail "the tests ran nowhere"
stub tools/bare_root.sh "$(results 60 2 20 build-bare/results.xml)" "exit 1"
counted 1 "152 passed, 2 failed, 36 skipped"
grep -qx "make test" "$dir/out" || fail "nothing says what failed in the bare root, and not all tests ran again"
stub tools/bare_root.sh "$(results 60 0 20 build-bare/results.xml)" "exit 1" # the demo failed, no test
counted 1 "154 passed, 1 failed, 36 skipped"
stub tools/bare_root.sh "exit 1" # counts of an older run are no counts
counted 1 "114 passed, 1 failed, 16 skipped"

# the real one, by somebody who is not root
mkdir -p "$dir/tree/tests/cli"
cp "$source/tools/bare_root.sh" "$dir/tree/tools"
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
    stub tools/debootstrap "$half" "echo >'$dir/started'; while [ -d '$dir' ]; do echo >'$dir/alive'; sleep 0.1; done"
    rm -f "$dir/started"
    "$dir/tree/tools/bare_root.sh" >/dev/null 2>&1 &
    pid=$!
    await $pid test -e "$dir/started"
    grep "$bare" /proc/mounts && fail "a mount of the root is seen outside"
    kill -$signal $pid
    wait $pid 2>/dev/null && fail "a stopped run succeeds"
    for _ in $(seq 20); do # a busy machine takes a while to end them
        rm -f "$dir/alive"
        sleep 0.5
        [ -e "$dir/alive" ] || break
    done
    [ ! -e "$dir/alive" ] || fail "a process outlives SIG$signal"
    [ $signal = KILL ] || [ ! -e "$bare/root" ] || fail "the root is left after SIG$signal: $(ls "$bare/root")"
done
echo "test_ci: stages are counted, and nothing is left of the bare root"
