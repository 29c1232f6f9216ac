#!/usr/bin/env python3
"""Writes the directory `documents` beside itself: JSON lines, a vocabulary, and what Megatron-LM's preprocess_data.py makes of them
with `--json-keys text title --append-eod`: .bin and .idx, written here with numpy from the description of the format
(docs/formats.md), and ids by Hugging Face's `tokenizers`.

Texts have several scripts, line ends, escapes, the text of the special token, and none at all, which writes nothing.
tests/cli/test_prepare_documents.sh reads it.  Needs numpy and tokenizers; 2.4.6 and 0.23.2 wrote what is committed.
"""
import json
import os
import struct

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    ("one", "The cat sat on the mat.\n\nIt's 1234 years old,  isn't it?\n"), ("", "no title: <|endoftext|> is text here"),
    ("empty text", ""), ("blank", " "), ("scripts", "Гроза над рекой 東京は日本の首都です नमस्ते\u00a0e\u0301 😀\t\r\n x"),
    ("escapes", "quote \" backslash \\ slash / tab\t nul\u0000 end"), ("long", "aa ab the then " * 400), ("last", "the end"),
]
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "documents")
os.makedirs(here, exist_ok=True)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.train_from_iterator([text for _, text in TEXTS], trainers.BpeTrainer(
    vocab_size=320, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.model.save(here)
# as preprocess_data.py's tokenizer: one that knows no special token
plain = Tokenizer(models.BPE.from_file(os.path.join(here, "vocab.json"), os.path.join(here, "merges.txt")))
plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
end = json.load(open(os.path.join(here, "vocab.json"), encoding="utf-8"))["<|endoftext|>"]

with open(os.path.join(here, "lines.jsonl"), "w", encoding="utf-8") as f:
    for i, (title, text) in enumerate(TEXTS):
        f.write(json.dumps({"id": i, "title": title, "text": text}, ensure_ascii=i % 2 == 0) + "\n")

for key, texts in (("title", [t for t, _ in TEXTS]), ("text", [t for _, t in TEXTS])):
    documents = [plain.encode(t).ids + [end] for t in texts if plain.encode(t).ids]
    sizes = np.array([len(d) for d in documents], dtype="<i4")
    tokens = np.concatenate([np.array(d, dtype="<u2") for d in documents])
    pointers = np.concatenate([[0], np.cumsum(sizes.astype("<i8"))[:-1]]) * 2
    with open(os.path.join(here, f"{key}.bin"), "wb") as f:
        f.write(tokens.tobytes())
    with open(os.path.join(here, f"{key}.idx"), "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(documents), len(documents) + 1))
        f.write(sizes.tobytes() + pointers.astype("<i8").tobytes() + np.arange(len(documents) + 1, dtype="<i8").tobytes())
    print(f"{key}: {len(documents)} documents, {len(tokens)} tokens")
