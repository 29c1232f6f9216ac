#!/usr/bin/env python3
"""Tokens per second of GPT-2 pre-training in PyTorch with Hugging Face's GPT2LMHeadModel.

usage: torch_gpt2.py CONFIG.json SEQ_LENGTH BATCH DTYPE(fp32|bf16) [eager|compiled] [cpu|cuda]

A step is forward, backward, clipping and AdamW over a batch of full sequences.  Prints one line: tokens per second, median of
the timed steps.
"""
import json
import sys

import timed_steps
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main():
    path, length, batch, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    compiled = len(sys.argv) > 5 and sys.argv[5] == "compiled"
    device = sys.argv[6] if len(sys.argv) > 6 else "cpu"
    torch.manual_seed(0)
    config = GPT2Config(**{k: v for k, v in json.load(open(path)).items() if k != "model_type"}, use_cache=False)
    model = GPT2LMHeadModel(config).train().to(device)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    ids = torch.randint(0, config.vocab_size, (batch, length), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    print(timed_steps.rate(step, batch * length))


main()
