#!/usr/bin/env python3
"""Fine-tunes with Hugging Face transformers on the batches of `kiln classify` or `kiln tag`, and compares the losses of all steps.

usage: check_classification.py MODEL_DIR TRAIN LOG.jsonl [--batch 32] [--rate 5e-5] [--length 128]

MODEL_DIR has a BertForSequenceClassification or a BertForTokenClassification that both sides start from, with the dropout
probabilities of its config.json set to 0, since the two draw different masks:

    kiln classify --init_checkpoint BERT --do_train --train_file TRAIN.csv --max_steps 1 --learning_rate 0 --output_dir start
    sed -i 's/dropout_prob": 0.1/dropout_prob": 0.0/' start/model/config.json
    kiln classify --init_checkpoint start/model --do_train --train_file TRAIN.csv --max_steps 50 --log_freq 1 --output_dir ours
    check_classification.py start/model TRAIN.csv ours/log.jsonl

TRAIN is CSV with the columns sentence or sentence1, sentence2, and label, or CoNLL columns whose sentences fit the length.
Tokens, labels, losses and gradients are those of `transformers` and PyTorch; order and schedule are kiln's, and so is where eps
stands in AdamW: beside the root of the moment that is not corrected yet, as in `transformers` before its version 5; PyTorch adds
it behind the correction, which makes the first steps larger for gradients near 1e-7.
"""
import argparse
import csv
import json
import re

import torch
from kiln_order import epoch_order
from transformers import AutoTokenizer, BertForSequenceClassification, BertForTokenClassification

SEED, WARMUP, EPS = 42, 0.1, 1e-8


def read_table(path, tokenizer, config, length):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    out = []
    for row in rows:
        texts = (row["sentence1"], row["sentence2"]) if "sentence1" in row else (row["sentence"],)
        label = float(row["label"]) if config.problem_type == "regression" else config.label2id[row["label"]]
        out.append(dict(tokenizer(*texts, truncation="longest_first", max_length=length), labels=label))
    return out


def read_columns(path, tokenizer, config, length):
    with open(path, encoding="utf-8") as f:
        blocks = re.split(r"\n\s*\n", f.read())
    out = []
    for block in blocks:
        lines = [line.split("\t" if "\t" in line else " ") for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        coded = tokenizer([x[0] for x in lines], is_split_into_words=True)
        assert len(coded["input_ids"]) <= length, "a sentence is too long"
        words = coded.word_ids()
        first = [w is not None and w not in words[:i] for i, w in enumerate(words)]
        labels = [config.label2id[lines[w][-1]] if f else -100 for w, f in zip(words, first)]
        out.append(dict(coded, labels=labels))
    return out


def tensors_of(batch):
    width = max(len(x["input_ids"]) for x in batch)
    found = {}
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        found[name] = torch.tensor([x[name] + [0] * (width - len(x[name])) for x in batch])
    labels = [x["labels"] for x in batch]
    if isinstance(labels[0], list):
        labels = [x + [-100] * (width - len(x)) for x in labels]
    return found | {"labels": torch.tensor(labels)}


def main():
    p = argparse.ArgumentParser()
    for name in ("model", "train", "log"):
        p.add_argument(name)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rate", type=float, default=5e-5)
    p.add_argument("--length", type=int, default=128)
    args = p.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    table = args.train.endswith(".csv")
    model = (BertForSequenceClassification if table else BertForTokenClassification).from_pretrained(args.model)
    examples = (read_table if table else read_columns)(args.train, tokenizer, model.config, args.length)
    events = [json.loads(line) for line in open(args.log, encoding="utf-8")]
    ours = [e["step_loss"] for e in events if e["event"] == "step"]
    n_steps = len(ours)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0)
    model.train()
    worst, order, per_epoch = 0.0, [], -(-len(examples) // args.batch)
    for step in range(n_steps):
        if step % per_epoch == 0:
            order = epoch_order(SEED, step // per_epoch, len(examples))
        first = step % per_epoch * args.batch
        loss = model(**tensors_of([examples[i] for i in order[first:first + args.batch]])).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        done = (step + 1) / n_steps
        optimizer.param_groups[0]["lr"] = args.rate * (done / WARMUP if done < WARMUP else (1 - done) / (1 - WARMUP))
        optimizer.param_groups[0]["eps"] = EPS / (1 - 0.999 ** (step + 1)) ** 0.5
        optimizer.step()
        worst = max(worst, abs(loss.item() - ours[step]) / max(abs(ours[step]), 1e-9))
        if step % 10 == 0 or step == n_steps - 1:
            print(f"step {step + 1}: theirs {loss.item():.6f}, ours {ours[step]:.6f}", flush=True)
    print(f"{n_steps} steps, dropout {model.config.hidden_dropout_prob}: losses differ by {worst:.2g} at most, relatively")


main()
