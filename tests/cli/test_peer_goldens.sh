#!/usr/bin/env bash
# What test_transformers holds with `transformers` at hand, from goldens, everywhere: kiln's exports are, byte for byte, those
# that `transformers` loads without a complaint, with the same outputs and tokens; vectors of texts are those that it
# computes.  tests/golden/make_exports.py makes the goldens; tests/model/test_model_dir.c holds the way back.
. "$(dirname "$0")/begin.sh"
golden=$(cd "$(dirname "$0")/../golden" && pwd)

"$(dirname "$kiln")/tests/test_api" unpack "$dir/from"
for case in "$dir"/from/*; do
    name=${case##*/}
    "$kiln" export --model "$case" --output_dir "$dir/whole/$name" >/dev/null 2>&1 || fail "no export of $name"
    "$kiln" export --model "$case" --output_dir "$dir/shards/$name" --max_shard_size 8000 >/dev/null 2>&1 ||
        fail "no shards of $name"
done
cd "$dir"
sha256sum --check --strict --quiet "$golden/exports.sha256" || fail "these files are not those that \`transformers\` has" \
    "loaded; if they are meant to be others, let it load them: tests/golden/make_exports.py"
diff <(find whole shards -type f | LC_ALL=C sort) <(sed 's/^[^ ]*  //' "$golden/exports.sha256" | LC_ALL=C sort) ||
    fail "an export has other files than \`transformers\` has loaded"

# vectors within 1e-5 of those in float64, as in check_transformers.py
for pooling in mean cls; do
    for normalize in yes no; do
        flags=(--no_normalize)
        [ $normalize = no ] || flags=(--normalize)
        awk -F'\t' -v p=$pooling -v n=$normalize '$1 == p && $2 == n' "$golden/embeddings.txt" >wanted
        [ "$(wc -l <wanted)" -ge 8 ] || fail "$(wc -l <wanted) texts"
        cut -f3 wanted | "$kiln" embed --model from/encoder --pooling $pooling "${flags[@]}" 2>/dev/null >actual
        paste wanted <(tr -d '[]' <actual | tr , '\t') | awk -F'\t' '
            NF != 35 { print "line " NR " has " NF " fields: " $0; exit 1 }
            { for (i = 4; i < 20; i++) {
                d = $i - $(i + 16)
                if (d > 1e-5 || d < -1e-5) { print "\"" $3 "\" differs by " d; exit 1 }
            } }' ||
            fail "embed --pooling $pooling, of unit length: $normalize"
    done
done
echo "test_peer_goldens: exports and vectors are those of \`transformers\`"
