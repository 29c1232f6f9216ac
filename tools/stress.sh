#!/usr/bin/env bash
# Repeats the tests that wait, which a busy machine could fail: first as the machine is, then beside busy loops that want each
# processor several times over. Prints both counts and what failed; fails if a test did. The build is that of `make test`.
#
#   tools/stress.sh [TESTS]     TESTS: a regex of ctest's; by default the tests that say "time: why" (tools/deps.sh checks that those
#                               that sleep or have bounds do), or wait by a function that says it
#   QUIET=20 LOADED=10          times; 0 leaves that part out
#   HOGS=8                      busy loops; by default four a processor
set -euo pipefail
cd "$(dirname "$0")/.."
refuse() { echo "stress: $1; usage: QUIET=20 LOADED=10 HOGS=8 tools/stress.sh [TESTS]" >&2 && exit 64; }
[ $# -le 1 ] || refuse "one regex of tests, not $#"
quiet=${QUIET:-20} loaded=${LOADED:-10} n_hogs=${HOGS:-$((4 * $(nproc)))} build=${BUILD:-build}
for number in "$quiet" "$loaded" "$n_hogs"; do
    [[ $number =~ ^(0|[1-9][0-9]{0,5})$ ]] || refuse "'$number' is not a number"
done
waiting() { grep -lE '(/\*|#) time: |"(comm_cases|over_nccl)\.h"|^ *(await|all_gone|start_held|stop_held|at_call) ' tests/*/test_*.{c,sh} | grep -v '^tests/hosts/'; }
names=$(waiting | sed 's|.*/||; s|\.[a-z]*$||' | paste -sd'|' -)
tests=${1:-^($names)\$}
counted=$(ctest --test-dir "$build" -N -R "$tests" 2>&1 | sed -n 's/^Total Tests: //p') || true
[ "${counted:-0}" -gt 0 ] || refuse "no test in $build matches '$tests' (make test builds them)"

hogs=() running=() # processes
log=$(mktemp)
trap 'rm -f "$log"; kill "${hogs[@]}" "${running[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# hog: also ends when this script was killed and could not end it
hog()
{
    local i
    while [ -d "/proc/$$" ]; do
        for ((i = 0; i < 10000; i++)); do :; done
    done
}

failed=0
# repeat TIMES HOW
repeat()
{
    [ "$1" -gt 0 ] || return 0
    local status=0
    ctest --test-dir "$build" -R "$tests" --repeat "until-fail:$1" -j "$(nproc)" --output-on-failure >"$log" 2>&1 &
    running=($!)
    wait $! || status=$? # which a signal ends
    running=()
    if [ $status -ne 0 ]; then
        failed=1
        grep -vE 'Passed|^ *Start ' "$log" || true
    fi
    echo "stress: $counted tests, up to $1 times each $2: $(grep -cE ' Passed ' "$log") runs passed, $(grep -cE '\*\*\*(Failed|Timeout|Exception)' "$log") failed"
}
repeat "$quiet" "as the machine is"
for ((i = 0; i < n_hogs && loaded > 0; i++)); do
    hog &
    hogs+=($!)
done
repeat "$loaded" "beside $n_hogs busy loops"
exit $failed
