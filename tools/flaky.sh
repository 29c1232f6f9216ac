#!/usr/bin/env bash
# Runs the failed tests of a run of CTest once more, one at a time. A test that passes alone is flaky: it stays a failure unless
# tests/flaky.txt lists it, for a week at most. BUILD/results.xml says then that it ran.
# usage: tools/flaky.sh BUILD TODAY      TODAY as in 2026-11-29; exits with 1 if a failure is left
#        tools/flaky.sh --check TODAY    whether the list is in order: an entry that is older than a week fails
set -euo pipefail
cd "$(dirname "$0")/.."
list=tests/flaky.txt
days=7
most=5 # more failures at once are no flake
what=${1:?a build, or --check} today=${2:?today, as in 2026-11-29}

day_of() { date -u -d "$1" +%s 2>/dev/null | awk '{ print int($1 / 86400) }'; }
entries() { sed 's/#.*//' "$list" | awk 'NF'; }

# is_excused TEST: the list has it, and not for too long.
is_excused()
{
    local name since why
    while read -r name since why; do
        [ "$name" != "$1" ] || [ $(($(day_of "$today") - $(day_of "$since"))) -gt $days ] || return 0
    done < <(entries)
    return 1
}

check_list()
{
    local name since why day status=0
    while read -r name since why; do
        day=$(day_of "$since") || true
        if [ -z "$day" ] || [ -z "$why" ]; then
            echo "$list: '$name $since $why' is not NAME YEAR-MONTH-DAY REASON" >&2
            status=1
        elif [ $(($(day_of "$today") - day)) -gt $days ]; then
            echo "$list: $name is flaky since $since, more than $days days: mend the test" >&2
            status=1
        fi
    done < <(entries)
    return $status
}

# failed_in RESULTS: the names of the failed tests.
failed_in() { sed -nE 's/.*<testcase name="([^"]*)".* status="fail".*/\1/p' "$1"; }

# excuse TEST RESULTS: one failure less.
excuse()
{
    sed -i -E "/<testcase name=\"$1\"/s/ status=\"fail\"/ status=\"run\"/" "$2"
    sed -i -E "0,/failures=\"[0-9]+\"/s/failures=\"[0-9]+\"/failures=\"$(failed_in "$2" | wc -l)\"/" "$2"
}

if [ "$what" = --check ]; then
    check_list
    exit
fi
mapfile -t failed < <(failed_in "$what/results.xml")
if [ ${#failed[@]} -eq 0 ] || [ ${#failed[@]} -gt $most ]; then
    echo "flaky.sh: ${#failed[@]} tests failed; with 1 to $most failures each runs once more alone"
    exit 1
fi
echo "once more, alone: ${failed[*]}"
ctest --test-dir "$what" --output-on-failure --output-junit again.xml -j 1 -R "^($(IFS='|' && echo "${failed[*]}"))\$" || true
left=0
for name in "${failed[@]}"; do
    if ! grep -q "<testcase name=\"$name\".* status=\"run\"" "$what/again.xml"; then
        echo "failed twice: $name"
        left=1
    elif is_excused "$name"; then
        echo "flaky: $name failed, then passed alone; $list knows it"
        excuse "$name" "$what/results.xml"
    else
        echo "flaky: $name failed, then passed alone, and is not in $list of the last $days days"
        left=1
    fi
done
exit $left
