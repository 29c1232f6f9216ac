#!/usr/bin/env python3
"""Makes tests/golden/finetuned.safetensors: what PyTorch's AdamW makes of the small GPT-2 and BLOOM of decoders.safetensors in ten steps.

"finetuned/train.jsonl" and "finetuned/heldout.txt" (U8) are texts.  The documents, each with the end of a text behind it, are one stream of tokens; a step
takes all its windows of S + 1 tokens, so their order does not matter.  "CASE_losses" [10] are the mean losses of the next token in each step,
and "CASE_nats" [2] those of the held-out text before and after, all computed in float64 from the weights in float32.  Rates are those of kiln's
linear schedule, RATE * (1 - k / 10) in step k; gradients are clipped to a norm of 1, matrices and embeddings decay.

Run: python make_finetuned.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5)
"""
import json
import pathlib
import tempfile

import torch
from safetensors.torch import load_file, save_file
from small_models import file_tensors
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

S, STEPS, RATE, DECAY = 24, 10, 1e-3, 0.01
WORDS = "the hand and the sea of the end then an other path thins on land that ends with hands".split()
HERE = pathlib.Path(__file__).resolve().parent


def documents(first, n):
    return [" ".join(WORDS[(i * i + 3 * k + i // 2) % len(WORDS)] for k in range(12 + i % 5)) + f", {i}." for i in range(first, first + n)]


def windows(tokenizer, texts):
    end = tokenizer.get_vocab_size() - 1
    ids = [i for text in texts for i in tokenizer.encode(text).ids + [end]]
    n = (len(ids) - 1) // S
    return torch.tensor([ids[w * S : w * S + S + 1] for w in range(n)])


def loss_of(model, rows, pieces):
    """Without rows of the table that are no pieces: kiln keeps them out of the softmax."""
    logits = model(rows[:, :-1]).logits[..., :pieces]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def train(directory, train_rows, heldout_rows, pieces):
    model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").double().train()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}], lr=RATE, eps=1e-8)
    losses, nats = [], [loss_of(model, heldout_rows, pieces).item()]
    for k in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - k / STEPS)
        loss = loss_of(model, train_rows, pieces)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, nats + [loss_of(model, heldout_rows, pieces).item()]


def main():
    decoders = load_file(HERE / "decoders.safetensors")
    train_texts, heldout_texts = documents(1, 40), [" ".join(documents(100, 9))]
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        texts = root / "texts"
        texts.mkdir()
        (texts / "train.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in train_texts))
        (texts / "heldout.txt").write_text(heldout_texts[0])
        tensors = file_tensors("finetuned", texts)
        for case in ("gpt2", "bloom"):
            directory = root / case
            directory.mkdir()
            for key, value in decoders.items():
                if key.startswith(case + "/"):
                    (directory / key.split("/")[1]).write_bytes(value.numpy().tobytes())
            tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
            rows = windows(tokenizer, train_texts)
            losses, nats = train(directory, rows, windows(tokenizer, heldout_texts), tokenizer.get_vocab_size())
            print(case, len(rows), "windows", losses, nats)
            tensors[f"{case}_losses"] = torch.tensor(losses, dtype=torch.float64)
            tensors[f"{case}_nats"] = torch.tensor(nats, dtype=torch.float64)
    save_file(tensors, HERE / "finetuned.safetensors")


main()
