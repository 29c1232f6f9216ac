#!/usr/bin/env bash
# What is no plain text is refused by name where text is wanted, made by the tools that users have and, where the shared
# data is there, real files.
. "$(dirname "$0")/begin.sh"
shared=${KILN_SHARED:-$(dirname "$0")/../../../shared}
cd "$dir"

for i in $(seq 200); do
    echo "The cat number $i sat on the mat. The cats sat on mats."
done >text
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n' >vocab.txt

# refused FILE NAME: by every command that takes a file of text
refused()
{
    expect 65 "$1 is $2, not plain text" "$kiln" prepare --input "$1" --vocab_file vocab.txt --output_dir store
    expect 65 "$1 is $2, not plain text" "$kiln" prepare --input "$1" --vocab_file vocab.txt --output_dir store --dry_run
    expect 65 "$1 is $2, not plain text" "$kiln" vocab --input "$1" --vocab_file new.txt --vocab_size 60
    [ ! -e new.txt ] && [ ! -e store/train.bin ] || fail "$1 left something behind"
}

made=0
make() # FILE NAME command...: a compressed or packed file, where there is such a tool
{
    if command -v "$3" >/dev/null; then
        "${@:3}" >"$1"
        refused "$1" "$2"
        expect 65 "standard input is $2, not plain text" "$kiln" tokenize --vocab_file vocab.txt <"$1"
        made=$((made + 1))
    fi
}
unpacked() # FILE NAME command...: read as the text in it, except from standard input
{
    if command -v "$3" >/dev/null; then
        "${@:3}" >"$1"
        expect 0 "1 as lines" "$kiln" prepare --input "$1" --vocab_file vocab.txt --output_dir store --dry_run
        expect 65 "standard input is $2, not plain text" "$kiln" tokenize --vocab_file vocab.txt <"$1"
    fi
}
unpacked text.gz "a gzip file" gzip -c text
unpacked text.bz2 "a bzip2 file" bzip2 -c text
archive=unpacked
"$kiln" doctor | grep '^archives  *libarchive' >/dev/null || archive=make # which unpacks these
$archive text.xz "an xz file" xz -c text
$archive text.zst "a zstd file" zstd -qc text
make text.tar "a tar archive" tar cf - text
make text.zip "a zip archive, or a document or model in one" zip -q - text
make text.utf16 "UTF-16" iconv -f UTF-8 -t UTF-16 text
[ $made -gt 0 ] || fail "there is no tool that packs a file"
head -c 5000 "$kiln" >program
refused program "binary data"
sed 's/.*/{"id": "1", "text": "&"}/' text >lines.json
expect 0 "200 kept" "$kiln" prepare --input lines.json --vocab_file vocab.txt --output_dir store --dry_run
(echo '['; cat lines.json; echo ']') >text.json
refused text.json "JSON, but not in lines"
expect 0 "1 as text" "$kiln" prepare --input text.json --input_format text --vocab_file vocab.txt --output_dir store --dry_run

# lines that look like anything are lines to `kiln tokenize`, and a directory is as good as its files
expect 0 "1" "$kiln" tokenize --vocab_file vocab.txt <text.json
mkdir folder && cp text folder/a && cp text.json folder/b
expect 65 "folder/b is JSON" "$kiln" vocab --input folder --vocab_file new.txt --vocab_size 60

# what git leaves where `git lfs` has not fetched a file
printf \
    'version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 133466304\n' >pointer
for name in model.safetensors weights.pt shard.hdf5 vocab_lfs.txt text.jsonl; do cp pointer $name; done
for name in model.safetensors weights.pt; do
    expect 65 "$name is a pointer of Git LFS, not the file itself" "$kiln" inspect $name
done
expect 65 'run "git lfs pull"' "$kiln" prepare --input text.jsonl --vocab_file vocab.txt --output_dir store
expect 65 'run "git lfs pull"' "$kiln" prepare --input text --vocab_file vocab_lfs.txt --output_dir store
# a name cannot drive the terminal
expect 65 'no\x0akiln: error: file' "$kiln" prepare --input $'no\nkiln: error: file' --vocab_file vocab.txt --output_dir out
expect 65 'no\x1b[2Jfile\x07\u0085 caf' "$kiln" prepare --input $'no\e[2Jfile\a\xc2\x85 café' --vocab_file vocab.txt \
    --output_dir store
! grep -q $'\e' "$dir/err" || fail "control characters reach the terminal"
# half a packed file is not all of the text, and nothing of one is none
seq 20000 | gzip >numbers.gz
head -c 20000 numbers.gz >half.txt.gz
head -c 12 numbers.gz >none.txt.gz
expect 0 "all of the text was read" "$kiln" prepare --input numbers.gz --vocab_file vocab.txt --output_dir store --check
expect 65 "half.txt.gz is cut short" "$kiln" prepare --input half.txt.gz --vocab_file vocab.txt --output_dir store --check
expect 0 "all of the text that is there was read" "$kiln" prepare --input half.txt.gz --vocab_file vocab.txt --output_dir store \
    --check --allow_truncated_input
expect 65 "none.txt.gz is cut short" "$kiln" prepare --input none.txt.gz --vocab_file vocab.txt --output_dir store --check
for head in BZh9 BZh91A BZh91AY\&SY; do
    printf %s "$head" >none.txt.bz2
    expect 65 "none.txt.bz2 is cut short" "$kiln" prepare --input none.txt.bz2 --vocab_file vocab.txt --output_dir store --check
done
expect 65 "the input has no text" "$kiln" prepare --input none.txt.gz --vocab_file vocab.txt --output_dir store --check \
    --allow_truncated_input

dump=$shared/data/enwiki-206-pages-truncated.xml.bz2
if [ -e "$dump" ]; then
    expect 0 "100 redirects" "$kiln" prepare --input "$dump" --vocab_file vocab.txt --output_dir store --check
    bunzip2 -c "$dump" >dump.xml
    expect 65 "a MediaWiki dump (XML)" "$kiln" prepare --input dump.xml --input_format wiki --vocab_file vocab.txt \
        --output_dir store
    tail -n +4000 dump.xml >piece
    expect 0 "1 as dump" "$kiln" prepare --input piece --vocab_file vocab.txt --output_dir store --dry_run
    echo "test_not_text: $made packed files are refused, and a dump is read"
else
    echo "test_not_text: $made packed files are refused; the shared data is not there (KILN_SHARED)"
fi
