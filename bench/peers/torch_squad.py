#!/usr/bin/env python3
"""Sequences per second of extractive question answering in PyTorch with Hugging Face's BertForQuestionAnswering.

usage: torch_squad.py CONFIG.json VOCAB.txt MODEL_DIR answer|train fp32|bf16

Batches of 8 sequences, padded to 384 tokens as run_squad.py feeds them: forward, or forward, backward, clipping and
AdamW.  The model has random weights; it is written to MODEL_DIR with the vocabulary, if that does not exist, so that kiln
works with the same one.  Prints the median.
"""
import json
import pathlib
import shutil
import statistics
import sys
import time

import torch
from transformers import BertConfig, BertForQuestionAnswering

LENGTH, BATCH, REPEATS = 384, 8, 2


def main():
    config_path, vocab, directory, job, dtype = sys.argv[1:6]
    directory = pathlib.Path(directory)
    torch.manual_seed(0)
    if not directory.exists():
        config = BertConfig(**{k: v for k, v in json.load(open(config_path)).items() if k != "model_type"})
        config.vocab_size = sum(1 for _ in open(vocab, encoding="utf-8"))
        BertForQuestionAnswering(config).save_pretrained(directory)
        shutil.copy(vocab, directory / "vocab.txt")
    model = BertForQuestionAnswering.from_pretrained(directory).train(job == "train")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    ids = torch.randint(5, model.config.vocab_size, (BATCH, LENGTH))
    spans = torch.randint(0, LENGTH, (2, BATCH))
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16")

    def train():
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = model(ids, start_positions=spans[0], end_positions=spans[1]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    def answer():
        with torch.inference_mode(), autocast:
            model(ids)

    run = train if job == "train" else answer
    run()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(BATCH / statistics.median(times))


main()
