#!/usr/bin/env python3
"""MB of text per second of processor time of Hugging Face tokenizers, one thread, by its fastest call; on standard error the number of ids.

usage: hf_tokenizers.py VOCAB cased|uncased TEXT    WordPiece
       hf_tokenizers.py DIRECTORY any TEXT          tokenizer.json of a directory
       hf_tokenizers.py DIRECTORY unigram TEXT      makes DIRECTORY/tokenizer.json: a unigram of as many pieces as XLM-R has, parts of TEXT's words
"""
import collections
import math
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

MOST_BYTES = 20000000  # its rate does not depend on how much text there is

XLM_R_PIECES = 250002


def make_unigram(directory, text):
    """Pieces are the parts of words that take up the most of the text, scores the logarithms of their shares."""
    counts, parts = collections.Counter(), collections.Counter()
    with open(text, encoding="utf-8", errors="replace") as f:
        for line in f:
            counts.update("\u2581" + word for word in line.split())
    for word, n in counts.items():
        for i in range(len(word)):
            for j in range(i + 1, min(len(word), i + 16) + 1):
                parts[word[i:j]] += n
    letters = [part for part in parts if len(part) == 1]
    most = sorted((part for part in parts if len(part) > 1), key=lambda part: (-parts[part] * len(part), part))
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    total = sum(parts.values())
    pieces = [(part, math.log(parts[part] / total)) for part in (letters + most)[: XLM_R_PIECES - len(special)]]
    tokenizer = Tokenizer(models.Unigram([(token, 0.0) for token in special] + pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(special)
    tokenizer.save(os.path.join(directory, "tokenizer.json"))
    print(f"{tokenizer.get_vocab_size()} pieces")


if sys.argv[2] == "unigram":
    make_unigram(sys.argv[1], sys.argv[3])
    sys.exit()
if sys.argv[2] == "any":
    tokenizer = Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
else:
    tokenizer = Tokenizer(models.WordPiece.from_file(sys.argv[1], unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=sys.argv[2] == "uncased")
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
with open(sys.argv[3], "rb") as f:
    data = f.read(MOST_BYTES)
lines = data.decode("utf-8", errors="replace").split("\n")
start = time.process_time()
n_ids = 0
for i in range(0, len(lines), 1000):
    n_ids += sum(len(e.ids) for e in tokenizer.encode_batch_fast(lines[i : i + 1000], add_special_tokens=False))
print(f"{len(data) / 1e6 / (time.process_time() - start):.2f}")
print(f"{n_ids} ids", file=sys.stderr)
