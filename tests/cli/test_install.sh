#!/usr/bin/env bash
# `make install` and the examples as a user meets them: under a prefix that was moved, with nothing else of kiln in
# sight, they build and say what `kiln ask`, `kiln classify` and `kiln tag` say; the headers compile alone, as C17 and as C++17;
# the library shows no name but kiln_....
. "$(dirname "$0")/begin.sh"
build=$(dirname "$kiln")
source=$(cd "$(dirname "$0")/../.." && pwd)
export OMP_NUM_THREADS=1 PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig
unset MAKEFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH

# into a folder that stands for the root, by a user who may not write into the build; then the prefix is moved
before=$(find "$build" -maxdepth 1 -type f -printf '%p %T@\n' | sort)
(cd / && DESTDIR=$dir/root "$source/tools/install.sh" /opt/kiln "$build") >"$dir/log" || fail "$(cat "$dir/log")"
[ "$before" = "$(find "$build" -maxdepth 1 -type f -printf '%p %T@\n' | sort)" ] || fail "installing changed the build"
mv "$dir/root/opt/kiln" "$dir/prefix"
[ -z "$(find "$dir/root" -type f)" ] || fail "files outside the prefix: $(find "$dir/root" -type f)"
for file in bin/kiln lib/libkiln.a include/kiln/kiln.h share/man/man1/kiln.1 share/man/man1/kiln-train.1 share/bash-completion/completions/kiln share/kiln/configs/bert_mini.json lib/systemd/system/kiln-serve.service \
    share/kiln/examples/ask_file/Makefile share/doc/kiln/LICENSE share/doc/kiln/docs/howto/finetune.md; do
    [ -s "$dir/prefix/$file" ] || fail "$file is not installed"
done
[ -z "$(find "$dir/prefix/share/kiln/examples" -type f ! -name '*.[ch]' ! -name Makefile)" ] ||
    fail "built examples were installed"
! "$source/tools/install.sh" "$dir/none" "$dir/empty" 2>"$dir/log" || fail "nothing was installed"
grep -q 'run make first' "$dir/log" || fail "$(cat "$dir/log")"

# a configuration by its name: beside the installed program, and beside the one in its build
for program in "$dir/prefix/bin/kiln" "$kiln"; do
    by_name() { (cd "$dir" && "$program" plan --dry_run --device a100 --config_file "$1" 2>&1); }
    by_name mini >"$dir/short" || fail "$(cat "$dir/short")"
    by_name bert_mini | cmp - "$dir/short" || fail "mini is not bert_mini"
    grep -q /configs/bert_mini.json "$dir/short" || fail "another configuration: $(cat "$dir/short")"
    ! by_name mimi >"$dir/log" || fail "mimi is a configuration"
    grep -q 'did you mean mini? there are bert_1.2b, .*bert_large, .*bert_tiny, ' "$dir/log" || fail "$(cat "$dir/log")"
done
rm -r "$dir/prefix/share/kiln/configs"
! "$dir/prefix/bin/kiln" plan --config_file mini 2>"$dir/log" || fail "a configuration that is not there"
grep -q '/configs is not a directory' "$dir/log" || fail "$(cat "$dir/log")"
cp "$source/configs/bert_tiny.json" "$dir/mini" # a file of this name is what is meant
(cd "$dir" && "$kiln" plan --dry_run --device a100 --config_file mini) 2>/dev/null | grep 'model *mini: 2 layers' >/dev/null ||
    fail "the file was passed over"
[ "$("$dir/prefix/bin/kiln" --version | sed -n 1p)" = "kiln $(pkg-config --modversion kiln)" ] || fail "two versions"
strangers=$(nm -g --defined-only "$dir/prefix/lib/libkiln.a" | awk 'NF == 3 && $3 !~ /^kiln_/ { print $3 }')
[ -z "$strangers" ] || fail "the library also shows $strangers"

# the headers alone; engine.h includes kiln.h
echo '#include <kiln/engine.h>' >"$dir/alone.c"
echo 'int main() { kiln_session_close(nullptr); kiln_engine_close(nullptr); return kiln_version()[0] == 0; }' |
    cat "$dir/alone.c" - >"$dir/alone.cc"
read -ra cflags <<<"$(pkg-config --cflags kiln)"
# without libkiln.so.0: as one object
read -ra libs <<<"$(pkg-config --static --libs kiln | sed "s:-lkiln:$dir/prefix/lib/libkiln.a:")"
${CC:-cc} -std=c17 -pedantic -Wall -Wextra -Werror "${cflags[@]}" -fsyntax-only "$dir/alone.c" || fail "headers in C17"
cxx=
for candidate in ${CXX:-} c++ g++ clang++; do
    if [ -z "$cxx" ] && echo '#include <stdint.h>' | "$candidate" -x c++ -fsyntax-only - 2>/dev/null; then
        cxx=$candidate
    fi
done
if [ -n "$cxx" ]; then
    "$cxx" -std=c++17 -pedantic -Wall -Wextra -Werror "${cflags[@]}" -c -o "$dir/alone.o" "$dir/alone.cc" ||
        fail "headers in C++17"
    "$cxx" -o "$dir/alone" "$dir/alone.o" "${libs[@]}" || fail "a C++ program does not link"
    "$dir/alone" || fail "a C++ program does not run"
else
    lack c++ "the headers were tried in C only, for there is no C++ compiler; install g++"
fi

# the example
cp -r "$source/examples/ask_file" "$dir/example"
make -s -C "$dir/example" clean ask_file
"$build/tests/test_api" unpack "$dir/models"
printf 'A man had a dog. A big dog had bad food and ran off, and a mad man had an old cab.\n' >"$dir/text"
ask_file() { (cd / && "$dir/example/ask_file" "$@"); }
ask_file "$dir/models/question_answering" "$dir/text" 'had a man?' 'a cab?' >"$dir/actual" 2>"$dir/log"
"$dir/prefix/bin/kiln" ask --model "$dir/models/question_answering" --context "$dir/text" 'had a man?' 'a cab?' \
    >"$dir/wanted" 2>/dev/null
cmp "$dir/wanted" "$dir/actual" || fail "the library and the program answer differently"
[ ! -s "$dir/log" ] || fail "the library talks: $(cat "$dir/log")"

# the example for labels, beside the prediction files of `kiln classify` and `kiln tag`
cp -r "$source/examples/label_lines" "$dir/labels"
make -s -C "$dir/labels" clean label_lines
printf 'sentence1,sentence2\na mad dog,had a man\nno home,a cab\n' >"$dir/pairs.csv"
printf 'a\nmad\ndog\n\nno\nhome\n\n' >"$dir/words.conll"
predict() { "$dir/prefix/bin/kiln" "$1" --init_checkpoint "$dir/models/$2" --output_dir "$dir/$2" --do_predict \
    --predict_file "$3" \
    --max_seq_length 24 2>/dev/null; }
predict classify single "$dir/pairs.csv"
predict tag tokens "$dir/words.conll"
sed 1d "$dir/pairs.csv" | tr , '\t' | "$dir/labels/label_lines" classify "$dir/models/single" >"$dir/actual" 2>"$dir/log"
diff <(sed 's/.*"label":"\([^"]*\)".*/\1/' "$dir/single/predictions.jsonl") <(sed 's/ [0-9.]*$//' "$dir/actual") ||
    fail "label_lines and kiln classify differ"
printf 'a mad dog\nno home\n' | "$dir/labels/label_lines" tag "$dir/models/tokens" >"$dir/actual" 2>>"$dir/log"
cmp "$dir/tokens/predictions.conll" "$dir/actual" || fail "label_lines and kiln tag differ"
[ ! -s "$dir/log" ] || fail "the library talks: $(cat "$dir/log")"
! "$dir/labels/label_lines" tag "$dir/models/single" </dev/null 2>"$dir/log" || fail "words are labelled by a classifier of texts"
grep -q 'is a BertForSequenceClassification and has no head of a BertForTokenClassification' "$dir/log" ||
    fail "$(cat "$dir/log")"

# the example that continues texts
cp -r "$source/examples/continue_text" "$dir/continue"
make -s -C "$dir/continue" clean continue_text
"$build/tests/test_api_generate" unpack "$dir/decoders"
"$dir/continue/continue_text" "$dir/decoders/bloom" 'and the' >"$dir/actual" 2>"$dir/log"
"$dir/prefix/bin/kiln" generate --model "$dir/decoders/bloom" --prompt 'and the' >"$dir/wanted" 2>/dev/null
# the library gives bytes, the program U+FFFD for those that are no UTF-8
cmp <(sed 's/\xef\xbf\xbd//g' "$dir/wanted") <(iconv -f utf-8 -t utf-8 -c "$dir/actual") || fail "the library and the program continue a text otherwise"
[ ! -s "$dir/log" ] || fail "the library talks: $(cat "$dir/log")"

# expect CODE PATTERN ARGUMENT...: what the example's errors look like
expect() {
    local code=0 out
    out=$(ask_file "${@:3}" 2>&1) || code=$?
    [ "$code" = "$1" ] && grep -qE "$2" <<<"$out" || fail "ask_file ${*:3}: exit code $code: $out"
}
expect 65 'no head of a BertForQuestionAnswering' "$dir/models/encoder" "$dir/text" 'a man?'
expect 65 'is not a directory' "$dir/nothing" "$dir/text" 'a man?'
expect 65 'words' "$dir/models/question_answering" /dev/null 'a man?'
expect 64 'usage' "$dir/models/encoder"
