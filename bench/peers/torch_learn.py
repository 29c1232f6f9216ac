#!/usr/bin/env python3
"""Pre-trains BERT in PyTorch with Hugging Face's BertForPreTraining for a given time, by the recipe of 2018, as its users run it.

usage: torch_learn.py STORE CONFIG.json OUT SECONDS [fp32|bf16] [SEED] [RATE]

STORE is a token store of `kiln prepare`.  Pairs of segments with a next-sentence label, 15 % of the tokens masked (80 / 10 / 10), batches of
32 sequences of 128 tokens, padded to the longest, AdamW with weight decay 0.01, clipping at 1, a linear schedule by the
clock whose first hundredth is the warm-up (Devlin et al. 2018, arXiv:1810.04805; RATE 1e-3 suits small models).  OUT gets the
model as a directory of transformers, and log.jsonl: seconds, steps, tokens and loss.
"""
import json
import os
import shutil
import sys
import time

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining

BATCH, LENGTH, MASKED, SHORT = 32, 128, 0.15, 0.1


class Store:
    """Sentences and documents of Megatron's memory-mapped format (docs/formats.md)."""

    def __init__(self, directory):
        words = [line.rstrip("\n") for line in open(f"{directory}/vocab.txt", encoding="utf-8")]
        self.n_words = len(words)
        self.cls, self.sep, self.mask = (words.index(w) for w in ("[CLS]", "[SEP]", "[MASK]"))
        index = open(f"{directory}/train.idx", "rb").read()
        assert index[:9] == b"MMIDIDX\0\0", "not an index"
        n, n_bounds = np.frombuffer(index, "<u8", 2, 18)
        sizes = np.frombuffer(index, "<i4", int(n), 34)
        self.bounds = np.frombuffer(index, "<i8", int(n_bounds), 34 + 12 * int(n))
        self.ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.tokens = np.memmap(f"{directory}/train.bin", "<u2" if index[17] == 8 else "<i4", "r")

    def segment(self, first, last, most):
        """Whole sentences from `first` on, at least one and at most `most` tokens; and the sentence after them."""
        end = first + 1
        while end < last and self.ends[end + 1] - self.ends[first] <= most:
            end += 1
        begin = self.ends[first]
        return self.tokens[begin:min(self.ends[end], begin + most)].astype(np.int64), end

    def document(self, rng):
        while True:
            d = rng.integers(len(self.bounds) - 1)
            if self.bounds[d] < self.bounds[d + 1]:
                return self.bounds[d], self.bounds[d + 1]

    def pair(self, rng):
        most = LENGTH - 3 if rng.random() >= SHORT else int(rng.integers(2, LENGTH - 3))
        first, last = self.document(rng)
        a, after = self.segment(int(rng.integers(first, last)), last, int(rng.integers(1, most)))
        is_random = after >= last or rng.random() < 0.5
        if is_random:
            first, last = self.document(rng)
            after = int(rng.integers(first, last))
        b, _ = self.segment(after, last, most - len(a))
        return a, b, int(is_random)

    def batch(self, rng, n):
        pairs = [self.pair(rng) for _ in range(n)]
        longest = max(len(a) + len(b) for a, b, _ in pairs) + 3
        ids, types, mask = (np.zeros((n, longest), np.int64) for _ in range(3))
        labels = np.full((n, longest), -100)
        for i, (a, b, _) in enumerate(pairs):
            row = np.concatenate([[self.cls], a, [self.sep], b, [self.sep]])
            types[i, len(a) + 2:len(row)] = 1
            mask[i, :len(row)] = 1
            real = np.flatnonzero((row != self.cls) & (row != self.sep))
            at = rng.choice(real, max(1, round(MASKED * len(row))), replace=False)
            labels[i, at] = row[at]
            how = rng.random(len(at))
            row[at[how < 0.8]] = self.mask
            other = at[how >= 0.9]
            row[other] = rng.integers(0, self.n_words, len(other))
            ids[i, :len(row)] = row
        following = torch.tensor([label for _, _, label in pairs])
        return {"input_ids": torch.from_numpy(ids), "token_type_ids": torch.from_numpy(types), "attention_mask": torch.from_numpy(mask),
                "labels": torch.from_numpy(labels), "next_sentence_label": following}, int(mask.sum())


def main():
    directory, config_path, out, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    bf16 = (sys.argv[5] if len(sys.argv) > 5 else "fp32") == "bf16"
    seed = int(sys.argv[6]) if len(sys.argv) > 6 else 42
    rate = float(sys.argv[7]) if len(sys.argv) > 7 else 1e-3
    store, rng = Store(directory), np.random.default_rng(seed)
    torch.manual_seed(seed)
    config = BertConfig(**{k: v for k, v in json.load(open(config_path)).items() if k != "model_type"}, architectures=["BertForPreTraining"])
    config.vocab_size = store.n_words
    model = BertForPreTraining(config).train()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=rate)
    os.makedirs(out, exist_ok=True)
    log = open(f"{out}/log.jsonl", "w")
    start, step, n_tokens = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - start) < seconds:
        part = elapsed / seconds
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (part + 1e-6) / 0.01, 1 - part)
        fields, n = store.batch(rng, BATCH)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = model(**fields).loss
        loss.backward()
        n_tokens += n
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        print(json.dumps({"seconds": round(time.monotonic() - start, 1), "step": step, "tokens": n_tokens, "loss": round(loss.item(), 4)}),
              file=log, flush=True)
    model.save_pretrained(out)
    shutil.copy(f"{directory}/vocab.txt", out)
    print(f"{step} steps, {n_tokens / 1e6:.1f} M tokens, {n_tokens / seconds:.0f} tokens a second")


main()
