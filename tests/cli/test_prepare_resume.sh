#!/usr/bin/env bash
# `kiln prepare` is killed at system calls on its output and resumed until it is done: the bytes are those of an undisturbed run, for
# text, bzip2 and a dump, on 1, 2 and 3 threads, with every kind of output and with cleaning.  A signal saves at once.  What
# has changed meanwhile is refused by name.  FIRST and FACTOR in the environment try other calls, and more of them.
. "$(dirname "$0")/begin.sh"
golden=$(realpath "$(dirname "$0")/../golden/documents")
cd "$dir"

# A corpus of a few MB: documents of random words, some of them twice, some with a line that all share.
awk 'BEGIN {
    words = "the a king city river stone went came saw built gave and of in to over his her people house land water night day"
    n = split(words, w, " ")
    s = 1
    for (d = 0; d < 6000; d++) {
        text = ""
        for (l = 0; l < 3 + d % 7; l++) {
            for (k = 0; k < 12; k++) { s = (s * 16807) % 2147483647; text = text w[1 + s % n] " " }
            text = text "number " d ".\n"
        }
        if (d % 11 == 0) text = text "All rights are reserved here.\n"
        printf "%s\n", text
        if (d % 13 == 0) printf "%s\n", text
    }
}' >corpus.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a king city river stone went came saw built gave and of in to \
    over his her people house land water night day number all rights are reserved here . '##0' '##1' '##2' '##3' '##4' '##5' \
    '##6' '##7' '##8' '##9' 0 1 2 3 4 5 6 7 8 9 >vocab.txt
{
    echo '<mediawiki xml:lang="en"><siteinfo><base>https://x.example/wiki/Main_Page</base></siteinfo>'
    awk 'BEGIN { RS = ""; FS = "\n" } {
        printf "<page>\n<title>T%d</title>\n<ns>0</ns>\n<id>%d</id>\n<revision>\n<model>wikitext</model>\n<text>%s</text>\n</revision>\n</page>\n",
            NR, NR, $0 }' corpus.txt
    echo '</mediawiki>'
} >dump.xml
cat corpus.txt corpus.txt corpus.txt >more.txt
inputs=(folder dump.xml lines.json.gz)
if command -v bzip2 >/dev/null; then
    bzip2 -1 -k more.txt dump.xml # small blocks, so that there are places to continue from
    inputs+=(more.txt.bz2 dump.xml.bz2)
else
    echo "left out[bzip2]: two of five inputs; install bzip2"
fi
mkdir folder
split -n l/40 corpus.txt folder/part.

# prepare THREADS INPUT OUT FLAGS...
prepare()
{
    local threads=$1 input=$2 out=$3
    shift 3
    local vocab=(--vocab_file vocab.txt --do_lower_case)
    [[ " $* " != *" gpt "* ]] || vocab=(--vocab_file "$golden/vocab.json" --merge_file "$golden/merges.txt")
    OMP_NUM_THREADS=$threads "$kiln" prepare --input "$input" "${vocab[@]}" --holdout_fraction 0.1 --output_dir "$out" \
        --save_seconds 0.05 "$@"
}

# what a run told of the text, without times
told() { sed -n 's/, in [0-9].*//; /^read /p; /^pages/p; /left out/p; /^[^ ]*jsonl:/s/.*jsonl//p' "$1"; }

same() { diff -r -x '.*lock' "$1" "$2" >diff || fail "$2 differs from $1: $(head -3 diff)"; }

# interrupted INPUT OUT FLAGS...: the first run is killed at its first call on the output; the next goes on and gets SIGTERM, which saves,
# at the third; the next is killed at the ninth ..., on 1 to 3 threads in turn, until a run ends before it
interrupted()
{
    local input=$1 out=$2 n=${FIRST:-1} runs=0 status=-1 kinds=(kill term)
    shift 2
    stopped=0 saved=0
    while [ $status -ne 0 ]; do
        status=0
        at_call "${kinds[runs % 2]} $n" "$out/" prepare $((1 + runs % 3)) "$input" "$out" --resume "$@" 2>log || status=$?
        case $status in
        0) ;;
        75 | 137 | 143) # the last is SIGTERM before kiln handles it
            stopped=$((stopped + 1))
            [ -z "$(ls "$out"/.prepare/state.json "$out"/train.unfinished/state.json 2>/dev/null)" ] || saved=$((saved + 1)) ;;
        *) fail "${kinds[runs % 2]} at call $n gave $status: $(cat log)" ;;
        esac
        runs=$((runs + 1)) n=$((n * ${FACTOR:-3}))
    done
    [ $saved -gt 1 ] || fail "$input: of $stopped runs that were stopped only $saved had saved a state"
    echo "$input: stopped $stopped times, with a state $saved times"
    same whole "$out"
    told log | diff wanted - >diff || grep -q 'already has all' log || fail "other counts: $(cat diff)"
    [ -z "$(ls -d "$out"/.prepare "$out"/*.unfinished* 2>/dev/null)" ] || fail "something remains: $(ls -a "$out")"
    rm -rf "$out"
}

outputs=(--format store,text)
"$kiln" doctor --dry_run | grep '^hdf5 *not built in' >/dev/null || outputs=(--format store,hdf5,packed,text \
    --max_seq_length 32,64 --max_predictions_per_seq 5,10 --dupe_factor 1 --n_shards 3)
cleaning=(--drop_duplicates --drop_repeated_lines 20 --min_document_chars 200 --keep_script latin)
"$kiln" prepare --input more.txt --input_format lines --format text --output_dir json 2>log || fail "$(cat log)"
gzip -c json/documents.jsonl >lines.json.gz
for input in "${inputs[@]}"; do
    flags=("${cleaning[@]}")
    [ $input != folder ] || flags+=("${outputs[@]}" --input_format lines)
    [ $input = folder ] || flags+=(--format store,text)
    rm -rf whole
    for threads in 1 2 3; do
        prepare $threads $input whole.$threads "${flags[@]}" 2>log || fail "$(cat log)"
        told log >wanted
    done
    mv whole.1 whole
    same whole whole.2
    same whole whole.3
    [ -s whole/documents.jsonl ] && [ -s whole/heldout.json ] || fail "$input: outputs are missing"
    interrupted $input again "${flags[@]}"
    rm -rf whole.* whole
done

# whole documents for decoders, whose hashes, held-out parts and piece of a document continue too
gpt=(--format gpt --append_eod --drop_duplicates --drop_near_duplicates --keep_script latin)
for input in folder dump.xml lines.json.gz; do
    prepare 1 $input whole "${gpt[@]}" 2>log || fail "$(cat log)"
    told log >wanted
    interrupted $input again "${gpt[@]}"
    rm -r whole
done

# text of another encoding is read from its beginning again
iconv -f UTF-8 -t UTF-16 more.txt >wide.txt
prepare 2 wide.txt whole --encoding utf-16 2>log || fail "$(cat log)"
told log >wanted
interrupted wide.txt again --encoding utf-16
rm -r whole

# a signal saves, and says how to go on; without --resume what is there is not touched
cut() # makes the directory `cut`, with a state in it
{
    local status=0
    rm -rf cut
    at_call "term 1" cut/.prepare/state.json prepare 1 more.txt cut --overwrite --save_seconds 0.01 2>log || status=$?
    [ $status -eq 75 ] || fail "SIGTERM gave $status: $(cat log)"
}
cut
grep -q 'the same command with --resume continues there' log || fail "not told how to go on: $(cat log)"
again=("$kiln" prepare --input more.txt --vocab_file vocab.txt --do_lower_case --output_dir cut)
same_flags=(--holdout_fraction 0.1 --save_seconds 9)
expect 64 "--resume continues it, --overwrite starts over" "${again[@]}" "${same_flags[@]}"
expect 64 "had another holdout_fraction: 0.1" "${again[@]}" --resume --holdout_fraction 0.2
expect 64 "had another format: store, now store,text" "${again[@]}" "${same_flags[@]}" --resume --format store,text
expect 64 "had 1 input files, but now there are 2" "${again[@]}" "${same_flags[@]}" --resume corpus.txt
sed 's/night/knight/' vocab.txt >other.txt
expect 64 "had another vocabulary" "${again[@]}" "${same_flags[@]}" --resume --vocab_file other.txt
expect 0 "cut/.prepare holds an unfinished run" "${again[@]}" "${same_flags[@]}" --dry_run
touch -d '1 hour ago' more.txt
expect 64 "more.txt has changed since the run to resume began" "${again[@]}" "${same_flags[@]}" --resume
[ -e cut/.prepare/state.json ] || fail "a refused run removed the state"
expect 0 "train.{bin,idx,json}" "${again[@]}" "${same_flags[@]}" --overwrite
cp -r cut whole
cut
printf x | dd of=cut/.prepare/train.bin bs=1 conv=notrunc 2>/dev/null
expect 65 "train.bin has changed since an earlier run wrote its first" "${again[@]}" "${same_flags[@]}" --resume
[ -e cut/.prepare/state.json ] || fail "the work of an earlier run was removed"
echo '{' >cut/.prepare/state.json
expect 65 "state.json is not valid JSON" "${again[@]}" "${same_flags[@]}" --resume
grep -q -- '--overwrite starts over' err || fail "not told what to do: $(cat err)"
rm -rf cut
expect 0 "nothing to resume in cut: starting from the beginning" "${again[@]}" "${same_flags[@]}" --resume
same whole cut

# a directory of that name that is not kiln's stays
mkdir -p other/.prepare && echo mine >other/.prepare/notes
expect 64 "other/.prepare exists, but kiln did not make it" "${again[@]/cut/other}" --overwrite
[ -s other/.prepare/notes ] || fail "a user's file is gone"

# a full disk: what was saved is kept, and completed when there is room
rm -rf whole cut
prepare 2 more.txt whole --format store,text 2>log || fail "$(cat log)"
(
    trap '' XFSZ
    ulimit -f 4000
    prepare 2 more.txt cut --format store,text --save_seconds 0.01 2>log && status=0 || status=$?
    [ $status -eq 74 ] || fail "a full disk gave $status: $(cat log)"
)
grep -q 'cut/.prepare is kept: --resume continues from' log || fail "not told how to go on: $(cat log)"
[ "$(ls cut)" = "" ] || fail "a full disk left $(ls cut)"
prepare 1 more.txt cut --format store,text --resume 2>log || fail "$(cat log)"
grep -q 'resumed after' log || fail "it began anew: $(cat log)"
same whole cut
echo "test_prepare_resume: done"
