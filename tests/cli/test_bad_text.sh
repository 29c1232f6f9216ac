#!/usr/bin/env bash
# `kiln prepare` on text that is damaged or made to do damage: cut and corrupt archives, bombs, huge and nested pages, entities,
# ill-formed UTF-8, empty files.  Each is said once, ends in bounded time and memory, and leaves a good store beside it as it was.
# (Files that change while they are read: test_cut_input.  Pipes: test_pipes.  A full disk: test_prepare, test_prepare_resume.)
. "$(dirname "$0")/begin.sh"
export OMP_NUM_THREADS=2
cd "$dir"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the old king saw a river and city of stone . >vocab.txt
limit=unlimited # a sanitizer's build takes terabytes of addresses
if (ulimit -v 2000000 && "$kiln" --version >/dev/null 2>&1); then limit=1000000; fi

# prepare FLAGS...: in at most a minute and 1 GB of addresses
prepare()
{
    # time: a hang, which no busy machine is taken for
    (ulimit -v $limit && exec timeout -s KILL 300 "$kiln" prepare --vocab_file vocab.txt --do_lower_case --output_dir store "$@")
}

# said N TEXT: what the last command printed has the text so often
said() { [ "$(grep -cF -- "$2" err)" = "$1" ] || fail "'$2' is not said $1 times: $(cat err)"; }

# page TITLE: around standard input
page()
{
    printf '  <page>\n    <title>%s</title>\n    <ns>0</ns>\n    <id>1</id>\n    <revision>\n      <text xml:space="preserve">' \
        "$1"
    cat
    printf '</text>\n    </revision>\n  </page>\n'
}
pages()
{
    awk -v n="$1" \
        'BEGIN { for (i = 0; i < n; i++) printf "The old king number %d saw a river and the city of stone.\n\n", i * 7919 }'
}
# dump FILE: pages of standard input between two good ones
dump()
{
    { echo '<mediawiki xml:lang="en"><siteinfo><base>https://x.example/wiki/M</base></siteinfo>'
      echo "The old king." | page first
      cat
      echo "The old city." | page last
      echo '</mediawiki>'; } >"$1"
}

# archives that are cut, or of which bytes have changed
many() { for i in $(seq 40); do pages 400 | page "page $i"; done; }
many | dump whole.xml
n_kept() { sed -n 's/.*lines of JSON: [0-9]*: \([0-9]*\) kept.*/\1/p' err; }
cut_to() { head -c $(($(stat -c %s "$1") * $2 / 100)) "$1" >"$3"; }
gzip -c whole.xml >whole.xml.gz
cut_to whole.xml.gz 60 cut.gz
cut_to whole.xml 60 cut.xml
inputs=(cut.gz cut.xml)
if command -v bzip2 >/dev/null; then
    bzip2 -1 -k whole.xml
    cut_to whole.xml.bz2 60 cut.bz2
    inputs+=(cut.bz2)
else
    lack bzip2 "bzip2 is not installed: its files were not tried"
fi
expect 0 "42 kept" prepare --input whole.xml
cp -r store good
for input in cut.gz cut.bz2; do
    [ ! -e $input ] || for flags in '' --dry_run --check --format\ text; do
        # shellcheck disable=SC2086
        expect 65 "$input is cut short: download all of it, or use what is there with --allow_truncated_input" \
            prepare --input $input --overwrite $flags
    done
    [ ! -e $input ] || expect 65 "$input is cut short" "$kiln" vocab --input $input --vocab_file cut.txt --vocab_size 100
done
diff -r -x .lock -x .prepared.json store good && [ ! -e cut.txt ] || fail "a file that is cut changed the output"
rm -r good
for input in "${inputs[@]}"; do
    expect 0 "1 cut by the end of a file" prepare --input "$input" --overwrite --allow_truncated_input
    [ "$(n_kept)" -gt 10 ] && [ "$(n_kept)" -lt 42 ] || fail "$input: $(n_kept) pages"
    [ "$input" = cut.xml ] || said 1 "warning: $input: it is cut short"
    expect 0 "1 cut by the end of a file" prepare --input "$input" --overwrite --dry_run --allow_truncated_input
    [ "$input" = cut.xml ] || said 1 "warning: $input: it is cut short"
done
cp -r store good

# damage SIZE FILE: the byte in the middle is another
damage()
{
    local at=$(($(stat -c %s "$1") / 2))
    cp "$1" "$2"
    dd if="$1" bs=1 skip=$at count=1 2>/dev/null | tr '\000-\377' '\001-\377\000' |
        dd of="$2" bs=1 seek=$at conv=notrunc 2>/dev/null
}
damage whole.xml.gz bad.gz
expect 65 "bad.gz" prepare --input bad.gz --overwrite
diff -r -x .lock -x .prepared.json store good || fail "a damaged file changed the store"
if [ -e whole.xml.bz2 ]; then
    damage whole.xml.bz2 bad.bz2
    expect 0 "1 damaged parts were left out" prepare --input bad.bz2 --overwrite
    said 1 "warning: bad.bz2: the bzip2 block at bytes "
    [ "$(n_kept)" -gt 10 ] && [ "$(n_kept)" -lt 42 ] || fail "bad.bz2: $(n_kept) pages"
fi

# bombs: 108 MB in less than 1 MB
yes 'the old king saw a river and the city of stone.' | head -c 9000000 >piece || true # the pipe is cut
packers=(gzip)
[ ! -e whole.xml.bz2 ] || packers+=(bzip2)
for packer in "${packers[@]}"; do
    $packer -9 -c piece >packed
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do cat packed; done >bomb.$packer
    expect 65 "bomb.$packer: its first" prepare --input bomb.$packer --overwrite
    said 1 "unpack to more than 100 times their size"
done
rm piece bomb.*

# pages that are huge, nested, quadratic or full of tricks cost themselves, and no other page
times() { awk -v n="$1" -v s="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }
tricks()
{
    times 400000 'the old king saw a river and the city of stone. ' | page huge
    { times 500 '{{nowrap|'; echo a; times 500 '}}'; } | page nested
    times 300000 '[[a|' | page links
    times 300000 '{{#if:' | page conditions
    times 100000 '&lt;div&gt;' | page tags
    times 100000 "''a'''b" | page quotes
    echo '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>&b;' | page declared
    echo '&b;' | page undeclared
    times 100000 '&amp;amp;' | page ampersands
    times 20000 '<x>' | page elements
}
tricks | dump tricks.xml
expect 0 "lines of JSON: 12: 3 kept, 2 without text, 3 malformed, 1 larger than the limit, 3 nested deeper than the limit" \
    prepare --input tricks.xml --overwrite

# ill-formed UTF-8 in a page, and files without anything
printf 'The \377 old king.' | page broken | dump broken.xml
expect 65 "broken.xml is not UTF-8: byte " prepare --input broken.xml --overwrite
expect 0 "1 ill-formed UTF-8 sequences were read as U+FFFD" prepare --input broken.xml --overwrite --replace_invalid_utf8
mkdir folder
: >folder/a.txt
: | gzip >folder/b.txt.gz
pages 30 >folder/c.txt
expect 0 "2 documents have no text" prepare --input folder --overwrite
said 1 "read 3 files"
echo "test_bad_text: done"
