#!/usr/bin/env python3
"""MB per second of Hugging Face tokenizers' WordPiece, one thread.   usage: hf_tokenizers.py VOCAB TEXT"""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import BertWordPieceTokenizer

tokenizer = BertWordPieceTokenizer(sys.argv[1], lowercase=True)
lines = open(sys.argv[2], encoding="utf-8").read().split("\n")
start = time.perf_counter()
for line in lines:
    tokenizer.encode(line, add_special_tokens=False)
print(os.path.getsize(sys.argv[2]) / 1e6 / (time.perf_counter() - start))
