#!/usr/bin/env bash
# Wikitext to text, kiln and WikiExtractor on one core, on the same pages, in turn.  WIKI_DUMP is a dump of a few MB, as
# .xml.bz2 (the sample in ../shared/data by default); PEERS_PYTHON has wikiextractor 3.0.6.
set -euo pipefail
cd "$(dirname "$0")/.."
dump=${WIKI_DUMP:-../shared/data/enwiki-206-pages-truncated.xml.bz2}
[ -s "$dump" ] || { echo "no dump: WIKI_DUMP=FILE.xml.bz2 names one" >&2; exit 1; }
python=${PEERS_PYTHON:-build/peers/bin/python}
"$python" -c 'import wikiextractor' 2>/dev/null || "$python" -m pip install --quiet wikiextractor==3.0.6
"$python" tools/compare_wikitext.py "$dump" build/tests/convert_wikitext --rate 10
