#!/usr/bin/env bash
# Skips: every test that leaves something out goes through one of two places (tests/test.h, tests/cli/expect.sh), says what
# would enable it, and fails where KILN_REQUIRE names the feature; tools/sum_tests.sh counts them by kind.
set -euo pipefail
kiln=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
cd "$root"
unset KILN_REQUIRE KILN_PYTHON
export KILN_SHARED=$dir/nothing

others=$(grep -rlE 'exit[ (]+(77|TEST_SKIPPED)|return (77|TEST_SKIPPED)' tests tools | grep -vE '^tests/(test\.h|cli/(expect|test_skips|test_ci)\.sh|emulated/test_gpu_scripts\.sh|ops/test_case_workers\.c)$' || true)
[ -z "$others" ] || fail "skips of their own: $others"

# every feature that a test names, also one that only another build lacks
tools/sum_tests.sh --features >"$dir/features"
named=$(grep -rhoE '\b(skip|lack) [a-z0-9+-]+ "|^ *need_python [a-z0-9+-]+ |test_(skip|leave_out)\("[a-z0-9+-]+"' tests tools |
    sed -E 's/^test_[a-z_]*\("//; s/^ *(skip|lack|need_python) //; s/ ?"?$//' | sort -u)
unknown=$(grep -vxF -f "$dir/features" <<<"$named" || true)
[ "$(wc -l <<<"$named")" -gt 10 ] && [ -z "$unknown" ] || fail "tools/sum_tests.sh does not know these features: $unknown"

# try FEATURE PART COMMAND...: the skip, and that the feature can be required, among others
try()
{
    local feature=$1 part=$2
    shift 2
    expect 77 "skipped[$feature]: " "$@"
    grep -F -- "$part" "$dir/out" >/dev/null || fail "$feature: nothing says '$part': $(cat "$dir/out")"
    tools/sum_tests.sh --features | grep -xF -e "$feature" >/dev/null || fail "tools/sum_tests.sh does not know $feature"
    KILN_REQUIRE=x,$feature,y expect 1 "$feature is required, but: " "$@"
    KILN_REQUIRE=x$feature,${feature}y,${feature%?} expect 77 "skipped[$feature]: " "$@"
}
tests=$(dirname "$kiln")/tests
try shared KILN_SHARED "$tests/test_text_oracles"
try shared KILN_SHARED "$tests/test_indexed_megatron"
try shared KILN_SHARED "$tests/test_tfevents"
try transformers "pip install torch transformers safetensors" bash tests/cli/test_transformers.sh "$kiln"
if "$kiln" doctor --dry_run | grep '^hdf5 *not built in' >/dev/null; then
    try hdf5 libhdf5-dev bash tests/cli/test_h5py.sh "$kiln"
    try hdf5 libhdf5-dev bash tests/cli/test_shards.sh "$kiln"
    try hdf5 libhdf5-dev "$tests/test_shard_loader"
else
    try h5py "pip install h5py" bash tests/cli/test_h5py.sh "$kiln"
fi
if "$kiln" doctor --dry_run | grep '^network *not built in' >/dev/null; then
    try curl libcurl4-openssl-dev "$tests/test_download"
    try curl libcurl4-openssl-dev bash tests/cli/test_fetch.sh "$kiln"
fi
if "$kiln" doctor --dry_run | grep '^archives *not built in' >/dev/null; then
    try curl libarchive-dev "$tests/test_unpack"
fi
if "$kiln" doctor --dry_run | grep '^server *not built in' >/dev/null; then
    try microhttpd libmicrohttpd-dev "$tests/test_http"
fi
code=0
"$tests/checkop" cuda fp32 fill >/dev/null 2>&1 || code=$?
if [ "$code" -ne 0 ]; then # there is no GPU
    try cuda "NVIDIA GPU" "$tests/checkop" cuda fp32
fi
expect 64 "no feature of the tests: 'cdua'" env KILN_REQUIRE=cuda,cdua tools/test.sh ci

# the count: by kind, with a part that was left out; a skip without a reason, or for an unknown one, is a failure
cat >"$dir/results.xml" <<'XML'
<testsuite name="x" tests="6" failures="1">
	<testcase name="good" classname="good" time="1" status="run">
		<system-out>left out[c++]: only C was tried; install g++
skipped[cuda]: a test that ran is no skip
</system-out>
	</testcase>
	<testcase name="bad" classname="bad" time="1" status="fail">
		<system-out></system-out>
	</testcase>
	<testcase name="gpu_a" classname="gpu_a" time="1" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>done so far
skipped[cuda]: no &apos;GPU&apos; &amp; no nvcc
</system-out>
	</testcase>
	<testcase name="gpu_b" classname="gpu_b" time="1" status="notrun">
		<system-out>skipped[fp8]: old
</system-out>
	</testcase>
	<testcase name="peer" classname="peer" time="1" status="notrun">
		<system-out>skipped[h5py]: no h5py
</system-out>
	</testcase>
</testsuite>
XML
expect 0 "1 passed, 1 failed, 3 skipped: GPU 2, Python peers 1" tools/sum_tests.sh "$dir/results.xml"
for part in "left out of good, for want of c++: only C was tried; install g++" "skipped for want of cuda: gpu_a" \
    "no 'GPU' & no nvcc"; do
    grep -F -- "$part" "$dir/out" >/dev/null || fail "not told: $part: $(cat "$dir/out")"
done
[ "$(tail -n 1 "$dir/out")" = "1 passed, 1 failed, 3 skipped: GPU 2, Python peers 1" ] || fail "the count is not the last line"
sed 's/\[h5py\]/[h6py]/' "$dir/results.xml" >"$dir/unknown.xml"
expect 1 'peer was skipped for "h6py"' tools/sum_tests.sh "$dir/unknown.xml"
sed 's/skipped.h5py.:/skipped:/' "$dir/results.xml" >"$dir/silent.xml"
expect 1 "peer was skipped for no reason" tools/sum_tests.sh "$dir/silent.xml"
expect 1 "1 passed, 2 failed, 2 skipped: GPU 2" tools/sum_tests.sh "$dir/silent.xml"
echo "test_skips: skips say why, can be forbidden, and are counted"
