#!/usr/bin/env bash
# Summarises a run of CTest: which tests were skipped for which feature and what would enable them, then one
# line of counts. A test says "skipped[FEATURE]: what would enable it" (tests/test.h, tests/cli/expect.sh); a
# skip without that is a failure here.  usage: tools/sum_tests.sh RESULTS.xml (of ctest --output-junit), or:
# tools/sum_tests.sh --features
set -euo pipefail
# the features that KILN_REQUIRE may name, and the word for their kind
features='
cuda          GPU
fp8           GPU
h5py          Python peers
transformers  Python peers
clients       Python peers
yaml          Python peers
tensorflow    Python peers
python-numpy  tools
page          Python peers
hdf5          HDF5
curl          libcurl and libarchive
microhttpd    libmicrohttpd
mpi           MPI
namespaces    tools
slurm         tools
shared        data of the developers
c++           tools
git           tools
chromium      tools
chroot        tools
bzip2         tools
libkiln       a shared library
cc            tools
binutils      tools
int8          a processor with VNNI or AMX
jupyter       tools
mypy          tools
objdump       tools
python        tools
nvcc          tools
addresses     build
libkiln       build
cpu-avx2      processor
cpu-avx512    processor
cpu-avx512bf16 processor
'
if [ "${1:?a JUnit file of ctest, or --features}" = --features ]; then
    awk 'NF { print $1 }' <<<"$features"
    exit 0
fi
awk -v features="$features" '
    function attribute(name) { return match($0, "[ \t]" name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : "" }
    function note(into) {
        feature = why = $0
        sub(/^[^[]*\[/, "", feature); sub(/\]: .*/, "", feature); sub(/^[^]]*\]: /, "", why)
        gsub(/&lt;/, "<", why); gsub(/&gt;/, ">", why); gsub(/&quot;/, "\"", why); gsub(/&apos;/, "\047", why); gsub(/&amp;/, "\\&", why)
    }
    BEGIN { n = split(features, lines, "\n"); for (i = 1; i <= n; i++) if (split(lines[i], w, " +") > 1) { kind[w[1]] = lines[i]; sub(/^[^ ]+ +/, "", kind[w[1]]) } }
    /<testcase / { name = attribute("name"); status = attribute("status"); reason = ""; total++; failed += status == "fail" }
    { sub(/^.*<system-out>/, "") }
    /^left out\[[^]]*\]: / { note(); print "left out of " name ", for want of " feature ": " why }
    /^skipped\[[^]]*\]: / && status == "notrun" { note(); reason = feature }
    /<\/testcase>/ && status == "notrun" {
        skipped++
        if (!(reason in kind)) { print name " was skipped for " (reason == "" ? "no reason" : "\"" reason "\", which tools/sum_tests.sh does not know"); bad++; next }
        if (!(reason in first)) { order[++n_reasons] = reason; first[reason] = why }
        names[reason] = names[reason] " " name
        if (!(kind[reason] in of_kind)) kinds[++n_kinds] = kind[reason]
        of_kind[kind[reason]]++
    }
    END {
        for (i = 1; i <= n_reasons; i++) print "skipped for want of " order[i] ":" names[order[i]] "\n    " first[order[i]]
        line = total - failed - skipped " passed, " failed + bad " failed, " skipped - bad " skipped"
        for (i = 1; i <= n_kinds; i++) line = line (i == 1 ? ": " : ", ") kinds[i] " " of_kind[kinds[i]]
        print line
        exit bad > 0
    }' "$1"
