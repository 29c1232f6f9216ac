#!/usr/bin/env python3
"""MB of text per second of processor time of Hugging Face tokenizers' WordPiece, one thread, by its fastest call.

usage: hf_tokenizers.py VOCAB cased|uncased TEXT
"""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

MOST_BYTES = 20000000  # its rate does not depend on how much text there is

tokenizer = Tokenizer(models.WordPiece.from_file(sys.argv[1], unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer(lowercase=sys.argv[2] == "uncased")
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
with open(sys.argv[3], "rb") as f:
    data = f.read(MOST_BYTES)
lines = data.decode("utf-8", errors="replace").split("\n")
start = time.process_time()
for i in range(0, len(lines), 1000):
    tokenizer.encode_batch_fast(lines[i : i + 1000], add_special_tokens=False)
print(f"{len(data) / 1e6 / (time.process_time() - start):.2f}")
