#!/usr/bin/env python3
"""Tokens per second of BERT pre-training in PyTorch with Hugging Face's BertForPreTraining, as users run it.

usage: torch_bert.py CONFIG.json SEQ_LENGTH BATCH DTYPE(fp32|bf16) VOCAB_SIZE [cpu|cuda]

A step is forward, backward, clipping and AdamW; every sequence is full; 15 % of the tokens are masked.  Prints one line:
tokens per second, median of the timed steps.
"""
import json
import sys

import timed_steps
import torch
from transformers import BertConfig, BertForPreTraining


def main():
    path, length, batch, dtype, vocab = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    device = sys.argv[6] if len(sys.argv) > 6 else "cpu"
    torch.manual_seed(0)
    config = BertConfig(**{k: v for k, v in json.load(open(path)).items() if k != "model_type"})
    config.vocab_size = vocab
    model = BertForPreTraining(config).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    ids = torch.randint(5, vocab, (batch, length), device=device)
    labels = torch.where(torch.rand(batch, length, device=device) < 0.15, ids, torch.full_like(ids, -100))
    types, mask = torch.zeros_like(ids), torch.ones_like(ids)
    nsp = torch.randint(0, 2, (batch,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = model(input_ids=ids, token_type_ids=types, attention_mask=mask, labels=labels,
                         next_sentence_label=nsp).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    print(timed_steps.rate(step, batch * length))


main()
