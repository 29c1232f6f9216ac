#!/usr/bin/env bash
# The index of a multistream dump: recognised and never read as text, so the output is the same with it and without; a dump that
# is cut is told before any text is read, one that has lost pages behind its last; what is wrong with an index is named.
. "$(dirname "$0")/begin.sh"
export OMP_NUM_THREADS=2
cd "$dir"
command -v bzip2 >/dev/null || skip bzip2 "bzip2 is not installed, so there is no multistream dump to try"

prepare() { "$kiln" prepare --format text --output_dir made --overwrite "$@"; }
check() { prepare --check "$@"; } # where only what is said matters
said() { grep -qF -- "$1" err || fail "'$1' was not said: $(cat err)"; }
not_said() { ! grep -qF -- "$1" err || fail "'$1' was said: $(cat err)"; }

# make_dump NAME PAGES WORD: NAME.xml.bz2, a stream for each 10 pages, and NAME-index.txt, its index
make_dump()
{
    local page
    echo '<mediawiki xml:lang="en"><siteinfo><base>https://x.example/wiki/M</base></siteinfo>' | bzip2 >"$1.xml.bz2"
    for ((page = 1; page <= $2; page += 10)); do
        awk -v first=$page -v word="$3" -v at="$(stat -c %s "$1.xml.bz2")" -v index_file="$1-index.txt" 'BEGIN {
            for (i = first; i < first + 10; i++) {
                print at ":" 7 * i ":The king: part " i >>index_file
                printf "<page>\n<title>The king: part %d</title>\n<ns>%d</ns>\n<id>%d</id>\n<revision>\n<text>The old %s " \
                    "number %d saw a river, and the city of stone.</text>\n</revision>\n</page>\n", i, i % 5 == 0, 7 * i, word, i
            }
        }' | bzip2 >>"$1.xml.bz2"
    done
    echo '</mediawiki>' | bzip2 >>"$1.xml.bz2"
}

mkdir both alone
dump=both/xwiki-latest-pages-articles-multistream.xml.bz2
index=both/xwiki-latest-pages-articles-multistream-index.txt.bz2
make_dump "${dump%.xml.bz2}" 400 king
mv "${index%.bz2}" lines
bzip2 -c lines >$index
streams=($(cut -d : -f 1 lines | uniq))
[ ${#streams[@]} = 40 ] && [ "$(wc -l <lines)" = 400 ] || fail "the index has ${#streams[@]} streams"

# with it and without: the same bytes, from a folder or named, packed or not, in either order
expect 0 "320 kept" prepare --input $dump
mv made/documents.jsonl whole
told="lists 400 pages in 40 streams of $dump"
for inputs in "both" "$index $dump" "$dump $index"; do
    expect 0 "the index $index $told" prepare --input $inputs
    said "plan: 1 files, 0.0 MB; 1 as dump, bzip2, 0.0 MB; 1 more as the index of a dump"
    said "lines of JSON: 400: 320 kept, 80 in another namespace"
    not_said "warning"
    cmp made/documents.jsonl whole || fail "$inputs: other text"
done
cp lines plain.txt
expect 0 "the index plain.txt $told" check --input plain.txt $dump
cp lines both/xwiki-latest-pages-articles-multistream-index.txt
cp whole both/documents.jsonl # another text beside them: then the name says of which dump it is
expect 0 "the index both/xwiki-latest-pages-articles-multistream-index.txt $told" check --input both
said "the index $index $told"
said "lines of JSON: 720: 640 kept"
rm both/documents.jsonl both/*-index.txt
expect 0 "the index $index $told" prepare --input both --dry_run
expect 0 "the index $index $told" check --input both --input_format dump
bunzip2 -k $dump
expect 0 "the index $index lists 400 pages in 40 streams of ${dump%.bz2}" check --input ${dump%.bz2} $index
not_said "warning"
rm ${dump%.bz2}

# a vocabulary has no words of it: the numbers of streams are only there
expect 0 "the index $index $told" "$kiln" vocab --input both --vocab_file vocab.txt --min_frequency 1
! grep -qx ':' vocab.txt || fail "the index was read as text"

# cut at the beginning of a stream, where nothing but the index tells: at once, and nothing is written
head -c "${streams[30]}" $dump >alone/cut.xml.bz2
expect 0 "300: 240 kept" check --input alone/cut.xml.bz2
not_said "warning"
said_cut="line 301 of its index $index names a stream of pages at byte ${streams[30]}, but the file has only ${streams[30]} bytes"
for flag in --overwrite --dry_run --check; do
    expect 65 "alone/cut.xml.bz2 is cut short: $said_cut; download the rest, or leave the index out" \
        prepare --input alone/cut.xml.bz2 $index $flag
    not_said "plan:"
done
cmp made/documents.jsonl whole || fail "a dump that is cut changed the output"

# cut in its last pages, behind the last place of the index; damaged in the middle; with a stream too few
head -c $((streams[39] + 100)) $dump >alone/cut.xml.bz2
expect 65 "the index lists 400 pages of alone/cut.xml.bz2, and 390 were read whole: the dump is cut short" \
    check --input alone/cut.xml.bz2 $index
expect 0 "the index lists 400 pages of alone/cut.xml.bz2, and 390 were read whole: the dump is cut short" \
    check --input alone/cut.xml.bz2 $index --allow_truncated_input
said "10 pages that the indexes of dumps list were not read"
{ head -c $((streams[20] + 60)) $dump; head -c 9 /dev/zero; tail -c +$((streams[20] + 70)) $dump; } >alone/cut.xml.bz2
expect 0 "the index lists 400 pages of alone/cut.xml.bz2, and 389 were read whole: the dump has lost pages" \
    check --input alone/cut.xml.bz2 $index # ten in the stream, and one behind the gap
said "1 damaged parts were left out"
head -n 395 lines >few.txt
expect 0 "lists 395 pages of $dump, and 400 were read whole: the index is cut short, or belongs to another dump; all pages are used" \
    prepare --input few.txt $dump
cmp made/documents.jsonl whole || fail "an index that is too short changed the output"

# indexes that are of no use
refused() # refused TEXT INPUT...
{
    local text=$1
    shift
    expect 65 "$text" check --input "$@"
    said "leave the index out of the inputs: the text is the same"
}
make_dump ywiki-multistream 50 empress
refused "$index is not the index of ywiki-multistream.xml.bz2: its line 11 says that a bzip2 stream begins" $index \
    ywiki-multistream.xml.bz2
sed '250s/.*/<html>/' lines >bad.txt
refused "line 250 of the index bad.txt is not OFFSET:PAGE_ID:TITLE: '<html>'" bad.txt $dump
sed '250s/^[0-9]*/99999999999999999999/' lines >bad.txt
refused "line 250 of the index bad.txt is not OFFSET:PAGE_ID:TITLE: '99999999999999999999:1750:" bad.txt $dump
awk -F : -v OFS=: 'NR > 250 { $1++ } { print }' lines >bad.txt # as of another date; only some places are looked at
refused "bad.txt is not the index of $dump: its line 2" bad.txt $dump
said "of the dump, but none does"
awk '{ for (i = 0; i < 100; i++) print }' lines | bzip2 -1 >long.bz2
head -c $(($(stat -c %s long.bz2) * 2 / 3)) long.bz2 >bad.bz2
refused "the index bad.bz2 ends in the middle of its data: download it again" bad.bz2 $dump
mkdir lost
head -c 300 $index >lost/${index##*/}
refused "the index lost/${index##*/} ends in the middle of its data: download it again" lost $dump
{ head -c 100 $index; head -c 9 /dev/zero; tail -c +110 $index; } >lost/${index##*/}
refused "the index lost/${index##*/} has damaged parts: download it again" lost $dump
echo "The old king." >book.txt
cp alone/cut.xml.bz2 alone/other.xml.bz2
for others in book.txt alone; do
    refused \
        "$index is the index of a multistream dump, xwiki-latest-pages-articles-multistream.xml.bz2, which is not among the inputs" \
        $index $others
done
refused "plain.txt is the index of a multistream dump, which is not among the inputs" plain.txt

# in a folder of many files without the name of one: not looked for, and still no text; prose if asked for
mkdir many
for i in $(seq 70); do echo "The old king." >many/$i; done
cp lines many/other
expect 65 "many/other is the index of a multistream dump, not plain text: leave it out" check --input many
expect 0 "71 documents" check --input many --input_format text
mv many/other many/index
cp $dump many
refused "many/index is the index of a multistream dump" many
rm -r many

# text that looks like one
printf '10:15:32 The king came.\n10:15:40 The king left.\n' >times.txt
expect 0 "1 documents" check --input times.txt
printf 'Part 1 of it.\n%s\n' "$(head -n 3 lines)" >quoted.txt
expect 0 "1 documents" check --input quoted.txt

# resumed: the pages of both runs are counted, and the inputs must be the same
mkdir big
first=${streams[0]} # the streams of pages, over and over
end=$(($(stat -c %s $dump) - $(echo '</mediawiki>' | bzip2 | wc -c)))
head -c "$end" $dump | tail -c +$((first + 1)) >pages
head -c "$first" $dump >big/${dump##*/}
: >lines.big
for i in $(seq 0 59); do
    cat pages >>big/${dump##*/}
    awk -F : -v OFS=: -v more=$((i * (end - first))) '{ $1 += more; print }' lines >>lines.big
done
bzip2 -c lines.big >big/${index##*/}
run=("$kiln" prepare --format text --output_dir resumed --input big)
status=0
at_call "kill 2" resumed/.prepare/state.json "${run[@]}" --save_seconds 0.001 2>err || status=$?
[ $status -eq 137 ] || fail "it was not killed when it had a state: $status, $(cat err)"
cp -r resumed killed
expect 0 "resumed after" "${run[@]}" --resume
said "lists 24000 pages in 2400 streams"
said "lines of JSON: 24000: 19200 kept"
not_said "pages of big"
rm -rf resumed && mv killed resumed
mv big/${index##*/} .
expect 64 "had 2 input files, but now there are 1" "${run[@]}" --resume
bzip2 -c lines >big/${index##*/}
expect 64 "has changed since the run to resume began" "${run[@]}" --resume
echo "test_dump_index: done"
