#!/usr/bin/env python3
"""Texts per second of transformers as the peer of `kiln embed`, as sentence-transformers does it: texts sorted by length, batches of
32 padded to their longest, the normalised mean over all tokens; and the model that both read.

usage: hf_vectors.py make MODEL_DIR VOCAB     a random BERT-base
       hf_vectors.py MODEL_DIR TEXT N DTYPE   of the first N lines
"""
import sys
import time

BATCH = 32


def make(model_dir, vocab):
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    tokenizer = BertTokenizerFast(vocab, do_lower_case=True)
    BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(model_dir)
    tokenizer.save_pretrained(model_dir)


def vectors(tokenizer, model, texts):
    import torch

    texts = sorted(texts, key=len)
    for at in range(0, len(texts), BATCH):
        batch = tokenizer(texts[at : at + BATCH], padding=True, truncation=True, max_length=512, return_tensors="pt")
        hidden = model(**batch).last_hidden_state.float()
        kept = batch["attention_mask"].unsqueeze(-1)
        torch.nn.functional.normalize((hidden * kept).sum(1) / kept.sum(1))


def main(model_dir, path, n, dtype):
    import torch
    from transformers import BertModel, BertTokenizerFast

    tokenizer = BertTokenizerFast.from_pretrained(model_dir)
    model = BertModel.from_pretrained(model_dir).eval().to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    with open(path, encoding="utf-8") as f:
        texts = [f.readline().rstrip("\n") for _ in range(int(n))]
    with torch.inference_mode():
        vectors(tokenizer, model, texts[:BATCH])  # warms up
        start = time.perf_counter()
        vectors(tokenizer, model, texts)
        print(len(texts) / (time.perf_counter() - start))


if __name__ == "__main__":
    make(*sys.argv[2:4]) if sys.argv[1] == "make" else main(*sys.argv[1:5])
