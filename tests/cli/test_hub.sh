#!/usr/bin/env bash
# kiln fetch --hub: the files of a Hugging Face repository that make a model, from a mirror on this machine, with their checksums,
# without a pickle, and resumed at the same commit; and --model finds it by its name.
. "$(dirname "$0")/begin.sh"
. "$(dirname "$0")/server.sh"
cd "$dir"
export KILN_MODELS=$dir/store
fetch() { "$kiln" fetch --retry_wait 0.05 --tries 2 "$@"; }
hub=https://huggingface.co
expect 64 "is not a repository's name, such as intfloat/e5-small-v2" fetch --hub ../x --dry-run
expect 64 "is not a repository's name" fetch --hub a/b/c --dry-run
expect 64 "cannot be combined" fetch --hub org/tiny --url http://host/file
expect 0 "$hub/api/models/org/tiny/revision/main?blobs=true" fetch --hub org/tiny --dry-run
[ ! -e store ] || fail "a dry run wrote"
(unset KILN_MODELS XDG_CACHE_HOME && HOME=/nowhere expect 0 "-> /nowhere/.cache/kiln/models/org/tiny/.hub.json" fetch --hub org/tiny --dry-run)
need_curl
start_server
export KILN_MIRROR=$server

# publish_list REPOSITORY [FILE...]: the list of its files, those of safetensors with their sum; what does not exist has a size.
publish_list()
{
    local file comma=
    {
        printf '{"id": "%s", "sha": "c0ffee", "siblings": [' "$1"
        for file in "${@:2}"; do
            printf '%s{"rfilename": "%s", "size": %d' "$comma" "$file" "$(stat -c %s "model/$file" 2>/dev/null || echo 1)"
            [[ $file != *.safetensors ]] || printf ', "lfs": {"sha256": "%s"}' "$(sha256sum <"model/$file" | cut -d ' ' -f 1)"
            printf '}'
            comma=,
        done
        printf ']}'
    } >list
    publish "$hub/api/models/$1/revision/main?blobs=true" <list
}
"$(dirname "$kiln")/tests/test_api" unpack models
cp -r models/question_answering model
mkdir model/1_Pooling && echo '{}' >model/1_Pooling/config.json
mapfile -t files < <(cd model && find . -type f -printf '%P\n' | sort)
publish_list org/tiny "${files[@]}" pytorch_model.bin training_args.bin onnx/model.onnx tf_model.h5 model.fp16.json.bin ../../evil.json .gitattributes
for file in "${files[@]}"; do publish "$hub/org/tiny/resolve/c0ffee/$file" <"model/$file"; done

# a file that is not there yet keeps no other away; then the same command brings what is missing, although main has moved
part="model-00002-of-00002.safetensors"
mv "$dir/www/huggingface.co/org/tiny/resolve/c0ffee/$part" kept
expect 65 "code 404" fetch --hub org/tiny
cmp model/config.json store/org/tiny/config.json
mv kept "$dir/www/huggingface.co/org/tiny/resolve/c0ffee/$part"
sed -i 's/c0ffee/decaf0/' "$dir/www/huggingface.co/api/models/org/tiny/revision/main?blobs=true"
expect 0 "$part: downloaded, its checksum is right" fetch --hub org/tiny --mirror "$server/~cut"
diff -r --exclude .hub.json model store/org/tiny || fail "other files than those of a model"
expect 0 "$part: already there, its checksum is right" fetch --hub org/tiny --mirror http://127.0.0.1:1
printf x >>store/org/tiny/$part
expect 65 "remove it to download it again" fetch --hub org/tiny
cp model/$part store/org/tiny/

# by its name, wherever --model is; a path is what it is
answers() { "$kiln" ask --model "$1" --context text 'had a man?' 2>/dev/null; }
echo 'A man had a dog. A big dog had bad food and ran off.' >text
answers model >wanted
answers org/tiny | cmp - wanted || fail "the model of that name answers otherwise"
expect 0 "" "$kiln" serve --dry_run --model qa=org/tiny
expect 65 "org/teeny is not a directory with a config.json" "$kiln" serve --dry_run --model qa=org/teeny
mkdir -p org/tiny
! answers org/tiny || fail "the path was passed over"

# no pickle
publish_list org/pickled config.json pytorch_model.bin
expect 65 "lists pytorch_model.bin, but no model.safetensors: kiln downloads neither pickles" fetch --hub org/pickled
[ "$(ls -A store/org/pickled)" = .hub.json ] || fail "of a pickled model came $(ls -A store/org/pickled)"
publish "$hub/api/models/org/odd/revision/main?blobs=true" '{"sha": "../..", "siblings": [{"rfilename": "config.json"}]}'
expect 65 "is no commit" fetch --hub org/odd
publish "$hub/api/models/org/none/revision/v1?blobs=true" '{"sha": "1", "siblings": []}'
expect 65 "lists no config.json" fetch --hub org/none --revision v1
expect 65 "code 404" fetch --hub org/private
