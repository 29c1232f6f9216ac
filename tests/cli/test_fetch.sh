#!/usr/bin/env bash
# kiln fetch as a user runs it: from a mirror on this machine, checked, unpacked, without a network, and stopped.  How single
# transfers go wrong is in tests/fetch.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/server.sh"
work=$dir/work
mkdir "$work"
cd "$work"
fetch() { "$kiln" fetch --retry_wait 0.05 --tries 2 --stall_timeout 2 "$@"; }

# without a network, or without libcurl: what is missing and where it belongs
expect 69 "elsewhere and put them there" fetch squad --only 'evaluate-*' --mirror http://127.0.0.1:1
for line in "-> download/squad/v1.1/evaluate-v1.1.py, MD5 afb04912d18ff20696f7f88eed49bea9" \
    "http://127.0.0.1:1/worksheets.codalab.org/rest/bundles/0x6b567e1cf2e041ec80d7098f031c5c9e/contents/blob/"; do
    grep -F -- "$line" "$dir/out" >/dev/null || fail "not listed: $line"
done
# what was brought by hand is checked, in every build
mkdir -p download/squad/v1.1
echo wrong >download/squad/v1.1/evaluate-v1.1.py
expect 65 "but should be afb04912d18ff20696f7f88eed49bea9" fetch squad --only 'evaluate-v1.1*' --mirror http://127.0.0.1:1
printf '%s  evaluate-v1.1.py\n' "$(md5sum <download/squad/v1.1/evaluate-v1.1.py | cut -d ' ' -f 1)" >sums
expect 0 "its checksum is right" fetch squad --only 'evaluate-v1.1*' --mirror http://127.0.0.1:1 --sums sums
rm -r download

# flags
expect 64 "name a source" fetch
expect 64 "there is no source 'wikipidia', only wikipedia, google, squad, oscar" fetch wikipidia
expect 64 "no file of these sources matches 'x*'" fetch squad --only 'x*'
expect 64 "begins neither with http:// nor with https://" fetch --url file:///etc/passwd
expect 64 "begins neither with http:// nor with https://" fetch --url ftp://host/file
expect 64 "begins neither with http:// nor with https://" fetch squad --mirror /mnt/mirror
expect 64 "does not end with a valid file name" fetch --url http://host/
expect 64 "does not end with a valid file name" fetch --url http://host/a/..
expect 64 "is not a checksum" fetch --url http://host/file --md5 12
expect 64 "need a --url" fetch squad --md5 981b29407e0affa3b1b156f72073b945
expect 64 "'../en' is not a language code" fetch wikipedia --language ../en
echo '<html>' >page
expect 65 "is not an MD5 or SHA-256" fetch squad --sums page --dry-run
rm page
expect 0 "-> download/wikicorpus_zh_yue/wikicorpus_zh_yue.xml.bz2" fetch wikipedia --language zh-yue --dry-run
expect 0 \
    "-> d/google_pretrained_weights/chinese_L-12_H-768_A-12.zip, unpacked to d/google_pretrained_weights/chinese_L-12_H-768_A-12" \
    fetch google --output_dir d --dry-run
[ "$(ls)" = sums ] || fail "left something behind: $(ls)"

need_curl
start_server

# SQuAD: what a mirror has is held to the published sums, and to no others than the user says
squad=https://rajpurkar.github.io/SQuAD-explorer/dataset
publish $squad/train-v1.1.json '{"data": []}'
publish $squad/dev-v1.1.json '{"data": [1]}'
expect 65 "it should have 4854279" fetch squad --only 'dev-v1.1*' --mirror "$server"
[ ! -e download/squad/v1.1/dev-v1.1.json ] || fail "a wrong file has its name"
(cd "$dir/www/rajpurkar.github.io/SQuAD-explorer/dataset" && sha256sum ./*) | sed 's# \./# #' >sums
expect 0 "dev-v1.1.json: downloaded, its checksum is right" fetch squad --only '*-v1.1.json' --mirror "$server" --sums sums
expect 0 "dev-v1.1.json: already there, its checksum is right" fetch squad --only '*-v1.1.json' --mirror "$server/~gone" \
    --sums sums
# one that the server does not have does not keep the others away
rm -r download
expect 65 "code 404" fetch squad --mirror "$server" --sums sums
[ -s download/squad/v1.1/dev-v1.1.json ] || fail "one missing file kept the others away"

# a dump: its sum is in a list that names the day
dumps=https://dumps.wikimedia.org/enwiki/latest
head -c 100000 /dev/zero | tr '\0' w >dump
publish $dumps/enwiki-latest-pages-articles.xml.bz2 <dump
publish $dumps/enwiki-latest-md5sums.txt "$(md5sum <dump | cut -d ' ' -f 1)  enwiki-20261101-pages-articles.xml.bz2"
expect 0 "its checksum is right" fetch wikipedia --mirror "$server/~cut"
cmp dump download/wikicorpus_en/wikicorpus_en.xml.bz2
expect 0 "already there, its checksum is right" fetch wikipedia --mirror http://127.0.0.1:1
echo x >>download/wikicorpus_en/wikicorpus_en.xml.bz2
expect 65 "remove it to download it again" fetch wikipedia --mirror http://127.0.0.1:1
rm download/wikicorpus_en/wikicorpus_en.xml.bz2
expect 69 "elsewhere and put them there" fetch wikipedia --mirror http://127.0.0.1:1
[ "$(ls download/wikicorpus_en)" = enwiki-latest-md5sums.txt ] || fail "the older list is lost: $(ls download/wikicorpus_en)"
rm -r download
expect 65 "wikicorpus_en.xml.bz2.part, downloaded from" fetch wikipedia --mirror "$server/~wrong"
[ -z "$(find download -name 'wikicorpus_en.xml*')" ] || fail "a damaged dump is kept"
rm "$dir/www/dumps.wikimedia.org/enwiki/latest/enwiki-latest-md5sums.txt"
expect 0 "so only the length" fetch wikipedia --mirror "$server"

# OSCAR: the files that a list names
oscar=https://s3.amazonaws.com/datasets.huggingface.co/oscar/1.0/unshuffled/deduplicated/en
for part in 1 2 3; do
    echo "part $part" | gzip -n | publish $oscar/en_part_$part.txt.gz
    printf 'en_part_%d.txt.gz\t%s\n' $part "$(sha256sum <"$dir/www/${oscar#*://}/en_part_$part.txt.gz" | cut -d ' ' -f 1)"
done | publish $oscar/en_sha256.txt
expect 0 "names 3 files" fetch oscar --mirror "$server" --unpack yes
[ "$(cat download/oscar-en/en_part_2.txt)" = "part 2" ] || fail "not unpacked"
rm -r download
expect 0 "" fetch oscar --mirror "$server" --only '*_3.txt.gz'
[ "$(ls download/oscar-en | tr '\n' ' ')" = "en_part_3.txt.gz en_sha256.txt " ] || fail "--only took $(ls download/oscar-en)"
printf '../../evil\t%064d\n' 0 | publish $oscar/en_sha256.txt
rm -r download
expect 65 "is not an MD5 or SHA-256 with a file name" fetch oscar --mirror "$server"
rm -r download

# any URL, and archives: good, damaged, and made to fill a disk
mkdir bert && echo '[PAD]' >bert/vocab.txt && tar czf bert.tar.gz bert && rm -r bert
publish https://host/bert.tar.gz <bert.tar.gz
expect 0 "downloaded, its checksum is right" fetch --url "$server/host/bert.tar.gz" --output_dir a --unpack yes \
    --sha256 "$(sha256sum <bert.tar.gz | cut -d ' ' -f 1)"
[ "$(cat a/bert/vocab.txt)" = '[PAD]' ] || fail "not unpacked"
expect 0 "a/bert: already there" fetch --url "$server/host/bert.tar.gz" --output_dir a --unpack yes
head -c 200 bert.tar.gz | head -c 100 | publish https://host/cut.tar.gz
expect 65 "damaged" fetch --url "$server/host/cut.tar.gz" --output_dir a --unpack yes
# damage that libarchive does not see: a wrong CRC of gzip, a tar without its end
mkdir -p whole/in && seq 3000 >whole/in/numbers
gzip -n <whole/in/numbers >whole/numbers.gz
tar -C whole -czf whole/in.tgz in && tar -C whole -cf whole/in.tar in
for file in numbers.gz in.tgz; do
    at=$(($(stat -c %s whole/$file) - 6))
    { head -c $at whole/$file; printf '\377\377'; tail -c 4 whole/$file; } | publish https://host/bad_$file
    expect 65 "is damaged" fetch --url "$server/host/bad_$file" --output_dir damaged --unpack yes
done
tar -tf whole/in.tar >/dev/null
head -c $(($(wc -c <whole/in/numbers) / 512 * 512 + 1536)) whole/in.tar | publish https://host/cut.tar
expect 65 "its end is missing" fetch --url "$server/host/cut.tar" --output_dir damaged --unpack yes
[ ! -e damaged/bad_numbers ] && [ ! -e damaged/bad_in ] && [ ! -e damaged/cut ] ||
    fail "damaged files were unpacked: $(ls damaged)"
publish https://host/in.tar <whole/in.tar
expect 0 "unpacked" fetch --url "$server/host/in.tar" --output_dir damaged --unpack yes

head -c 300M /dev/zero | gzip -n | publish https://host/bomb.gz
expect 65 "100 times its size, so kiln does not unpack it" fetch --url "$server/host/bomb.gz" --output_dir a --unpack yes
ln -s /etc link && tar czf links.tar.gz link && rm link
publish https://host/links.tar.gz <links.tar.gz
expect 65 "neither a file nor a directory" fetch --url "$server/host/links.tar.gz" --output_dir a --unpack yes
[ "$(find a -maxdepth 1 ! -name '*.gz' | sort | tr '\n' ' ')" = "a a/bert " ] || fail "half unpacked: $(find a)"

# stopped by a signal or killed: the same command resumes
head -c 1000000 /dev/zero | tr '\0' x >long
publish https://host/long <long
publish https://host/longer <long
stopped() # SIGNAL NAME CODE
{
    "$kiln" fetch --url "$server/~hangs/host/$2" --output_dir b --stall_timeout 600 2>"$dir/stopped" &
    local pid=$! status=0
    await $pid test -s "b/$2.part"
    await $pid test -s "b/$2.part.from"
    kill "-$1" $pid
    { wait $pid || status=$?; } 2>/dev/null
    [ $status -eq "$3" ] || fail "$1 ends it with $status: $(cat "$dir/stopped")"
    [ ! -e "b/$2" ] || fail "half a file has its name"
    expect 0 "resuming after" fetch --url "$server/~hangs/host/$2" --output_dir b
    cmp long "b/$2"
    [ ! -e "b/$2.part" ] && [ ! -e "b/$2.part.from" ] || fail "left something behind"
}
stopped TERM long 75
stopped KILL longer 137
echo "test_fetch: sources, lists, archives and ends of kiln fetch"
