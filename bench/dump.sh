#!/usr/bin/env bash
# From a Wikipedia dump to a token store, beside `lbzip2 -n 2` and `bzip2`, which only unpack it, in turn on the same two cores.
#
# The dump is synthetic: the articles of WIKI_TEXT (a directory of WikiExtractor's output) wrapped as pages, and after every 20 of them
# a real page of WIKI_DUMP (a small .xml.bz2), repeated until there are SIZE_MB of XML (200 by default; 5000 for the row in
# docs/numbers.md).  REPEATS=3.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh
sample=${WIKI_DUMP:-../shared/data/enwiki-206-pages-truncated.xml.bz2} articles=${WIKI_TEXT:-}
size_mb=${SIZE_MB:-200}
[ -s "$sample" ] && [ -d "$articles" ] || { echo "WIKI_DUMP=FILE.xml.bz2 WIKI_TEXT=DIR bench/dump.sh" >&2; exit 1; }
dump=$work/dump_$size_mb.xml.bz2
pack=$(command -v lbzip2 || command -v bzip2)

# The sample's pages, one a line.
real_pages() { bzip2 -dc "$sample" | awk '/<page>/ { page = "" } { page = page $0 "\001" } /<\/page>/ { print page }'; }

# A page for every <doc> of standard input, and the next real page after every 20 of them.
wrap_pages()
{
    awk -v pages="$1" '
        function escape(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
        function add_real() {
            if ((getline page < pages) <= 0) { close(pages); getline page < pages }
            gsub(/\001/, "\n", page); printf "%s", page
        }
        /^<doc id=/ {
            title = $0; sub(/.*title="/, "", title); sub(/">$/, "", title); n++; skip = 2
            printf "  <page>\n    <title>%s</title>\n    <ns>0</ns>\n    <id>%d</id>\n    <revision>\n      <id>%d</id>\n", escape(title), n, n
            printf "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n      <text bytes=\"1\" xml:space=\"preserve\">"
            next
        }
        /^<\/doc>/ { print "</text>\n    </revision>\n  </page>"; if (n % 20 == 0) add_real(); next }
        skip > 0 { skip--; next }
        { print escape($0) }'
}

make_dump()
{
    real_pages >"$work/pages"
    {
        bzip2 -dc "$sample" | sed -n '1,/<\/siteinfo>/p'
        while find "$articles" -type f | sort | xargs cat 2>/dev/null; do :; done | wrap_pages "$work/pages"
    } | head -c $((size_mb * 1000000)) | "$pack" -c >"$dump.new" || true # the pipe is cut
    mv "$dump.new" "$dump"
}

# seconds command...: of the clock
seconds()
{
    local start=$EPOCHREALTIME
    "$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; return 1; }
    awk "BEGIN { print $EPOCHREALTIME - $start }"
}

prepare() { rm -rf "$work/dump_store"; OMP_NUM_THREADS=$1 $kiln prepare --input "$dump" --vocab_file "$work/vocab.txt" --do_lower_case --output_dir "$work/dump_store"; }

[ -s "$dump" ] || make_dump
: >"$work/lbzip2.txt" >"$work/bzip2.txt" >"$work/one.txt" >"$work/two.txt"
for _ in $(seq "${REPEATS:-3}"); do
    ! command -v lbzip2 >/dev/null || seconds lbzip2 -n 2 -dc "$dump" >>"$work/lbzip2.txt"
    seconds bzip2 -dc "$dump" >>"$work/bzip2.txt"
    seconds prepare 1 >>"$work/one.txt"
    seconds prepare 2 >>"$work/two.txt"
done
mb=$(bzip2 -dc "$dump" | wc -c | awk '{ print $1 / 1e6 }')
rate() { awk "BEGIN { printf \"%.1f\", $mb / $(median <"$work/$1.txt") }"; }
echo "$mb MB of XML, MB/s: unpacked by lbzip2 -n 2 $([ -s "$work/lbzip2.txt" ] && rate lbzip2 || echo "not there"), by bzip2 $(rate bzip2);" \
    "to a token store by kiln in one thread $(rate one), in two $(rate two)"
grep -E "pages|documents" "$work/err" || true
