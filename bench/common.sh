# Shared by the benchmarks: paths, the peers' interpreter, the text and its vocabulary, medians and ratios.
# Sourced from the root of the tree.  needs_peers=no: no interpreter.  KILN names a build to measure in place of the tree's.
kiln=${KILN:-build/kiln}
work=build/bench
[ -n "${KILN:-}" ] || make --no-print-directory all >/dev/null # so that figures are never those of an older build
mkdir -p "$work"

python=${PEERS_PYTHON:-build/peers/bin/python}
if [ "${needs_peers:-yes}" = yes ] && ! "$python" -c 'import torch, transformers, tokenizers' 2>/dev/null; then
    tools/install_deps.sh python3-venv
    python3 -m venv build/peers
    python=build/peers/bin/python
    "$python" -m pip install --quiet torch transformers tokenizers
fi

text=$work/king_james.txt
if [ ! -s "$text" ]; then
    tools/install_deps.sh bible-kjv bible-kjv-text
    PATH=$PATH:/usr/games bible -f gen1:1-rev22:21 | sed 's/^[^ ]* //' >"$text"
fi
[ -s "$work/vocab.txt" ] ||
    $kiln vocab --input "$text" --vocab_size 8192 --vocab_file "$work/vocab.txt" --do_lower_case 2>/dev/null
vocab=$(wc -l <"$work/vocab.txt")

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

# The last value of a field in a log.jsonl: field file
logged() { sed -n "s/.*\"$1\":\([0-9.e+]*\).*/\1/p" "$2" | tail -1; }

# One row of the table: name kiln peer [ratio]
row() { printf '%-44s %12.10s %12.10s %8s\n' "$1" "$2" "$3" "${4:-$(ratio "$2" "$3")}"; }
