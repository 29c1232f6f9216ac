#!/usr/bin/env python3
"""MB of text per second of processor time of byte-level BPE with GPT-2's pattern, one thread: Hugging Face's
tokenizers by its fastest call, tiktoken, and gigatoken from a file, its fastest way, with an empty cache and then
with that of the same text.  Lines are encoded one by one, as bench/tokenizer_rate.c does.

usage: bpe_peers.py VOCAB_JSON MERGES TEXT
"""
import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import awkward  # noqa: E402
import gigatoken  # noqa: E402
import tiktoken  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

MOST_BYTES = 20000000  # the rates of the first two do not depend on how much text there is
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def bytes_of_characters():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in printable}
    for i, b in enumerate(b for b in range(256) if b not in printable):
        table[chr(256 + i)] = b
    return table


def rate(name, n_bytes, encode, count=lambda n_ids: n_ids):
    start = time.process_time()
    ids = encode()
    print(f"{name} {n_bytes / 1e6 / (time.process_time() - start):.2f}")
    print(f"{name}: {count(ids)} ids", file=sys.stderr)


vocab_path, merges_path, text_path = sys.argv[1:]
with open(text_path, "rb") as f:
    data = f.read(MOST_BYTES)
lines = data.decode("utf-8", errors="ignore").split("\n")

hf = Tokenizer(models.BPE.from_file(vocab_path, merges_path))
hf.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
with open(vocab_path, encoding="utf-8") as f:
    pieces = json.load(f)
table = bytes_of_characters()
special = pieces.pop("<|endoftext|>")
ranks = {bytes(table[c] for c in piece): i for piece, i in pieces.items()}
tik = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": special})


def encode_hf():
    return sum(
        len(e.ids)
        for i in range(0, len(lines), 1000)
        for e in hf.encode_batch_fast(lines[i : i + 1000], add_special_tokens=False)
    )


rate("tokenizers", len(data), encode_hf)
rate("tiktoken", len(data), lambda: sum(len(tik.encode_ordinary(line)) for line in lines))
giga = gigatoken.Tokenizer(hf)
source = gigatoken.TextFileSource([text_path], separator=b"\n")
for name in "gigatoken", "gigatoken_warm":
    rate(name, os.path.getsize(text_path), lambda: giga.encode_files(source, parallel=False), awkward.count)
