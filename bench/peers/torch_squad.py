#!/usr/bin/env python3
"""Sequences per second of extractive question answering in PyTorch with Hugging Face's BertForQuestionAnswering.

usage: torch_squad.py CONFIG.json VOCAB.txt MODEL_DIR DTYPE(fp32|bf16)

Batches of 8 sequences, padded to 384 tokens as run_squad.py feeds them.  The model has random weights; it is written to
MODEL_DIR with the vocabulary, if that does not exist, so that kiln answers with the same one.  Prints the median.
"""
import json
import pathlib
import shutil
import statistics
import sys
import time

import torch
from transformers import BertConfig, BertForQuestionAnswering

LENGTH, BATCH, REPEATS = 384, 8, 3


def main():
    config_path, vocab, directory, dtype = sys.argv[1:5]
    directory = pathlib.Path(directory)
    torch.manual_seed(0)
    if not directory.exists():
        config = BertConfig(**{k: v for k, v in json.load(open(config_path)).items() if k != "model_type"})
        config.vocab_size = sum(1 for _ in open(vocab, encoding="utf-8"))
        BertForQuestionAnswering(config).save_pretrained(directory)
        shutil.copy(vocab, directory / "vocab.txt")
    model = BertForQuestionAnswering.from_pretrained(directory).eval()
    ids = torch.randint(5, model.config.vocab_size, (BATCH, LENGTH))
    times = []
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
        model(ids)
        for _ in range(REPEATS):
            start = time.perf_counter()
            model(ids)
            times.append(time.perf_counter() - start)
    print(BATCH / statistics.median(times))


main()
