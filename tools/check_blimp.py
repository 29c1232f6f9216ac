#!/usr/bin/env python3
"""Compares `kiln blimp` with Hugging Face transformers: each pair's two sums, and the accuracy of each paradigm and in all.

usage: check_blimp.py KILN PATH... [--model DIR] [--masking NAME] [--limit N] [--hidden 64] [--layers 2] [--threads N]

PATH are files of pairs or directories of them, as BLiMP's.  Without --model it makes a small BertForMaskedLM with random weights and
a vocabulary of the sentences' words in pieces: random weights are enough to see whether both compute the same, and are larger than
BERT's (a standard deviation of 0.1), so that sums differ from sentence to sentence.  --limit: the first N pairs of each paradigm.

transformers gets each sentence once for each token, that token masked, in padded batches.  Sums must agree within 1e-4 of
themselves, accuracies within 0.05 points.  Needs torch and transformers.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

SUM_TOLERANCE, POINTS_TOLERANCE, BATCH = 1e-4, 0.05, 256


def read_pairs(paths):
    files = []
    for path in paths:
        files += [os.path.join(path, x) for x in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
    pairs = {}
    for path in files:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.strip():
                    pairs[os.path.basename(path), number] = json.loads(line)
    return pairs


def make_model(kiln, directory, pairs, args):
    text, vocab, model = (os.path.join(directory, x) for x in ("text", "vocab.txt", "model"))
    with open(text, "w", encoding="utf-8") as f:
        for pair in pairs.values():
            f.write(pair["sentence_good"] + "\n" + pair["sentence_bad"] + "\n")
    subprocess.run([kiln, "vocab", "--input", text, "--input_format", "lines", "--vocab_file", vocab, "--vocab_size", "1500",
                    "--do_lower_case"], check=True, stderr=subprocess.DEVNULL)
    torch.manual_seed(1)
    with open(vocab, encoding="utf-8") as f:
        n_pieces = sum(1 for _ in f)
    config = BertConfig(vocab_size=n_pieces, hidden_size=args.hidden, num_hidden_layers=args.layers,
                        num_attention_heads=max(1, args.hidden // 32), intermediate_size=4 * args.hidden,
                        max_position_embeddings=64, initializer_range=0.1)
    BertForMaskedLM(config).save_pretrained(model)
    shutil.copy(vocab, model)
    with open(os.path.join(model, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"tokenizer_class": "BertTokenizer", "do_lower_case": True}, f)
    return model


def masked(tokenizer, text, within_word):
    """The ids of the text with each token masked in turn, and (position, label) of each."""
    ids = tokenizer(text)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(ids)
    for position in range(1, len(ids) - 1):
        row = list(ids)
        row[position] = tokenizer.mask_token_id
        following = position + 1
        while within_word and pieces[following].startswith("##"):
            row[following] = tokenizer.mask_token_id
            following += 1
        yield row, position, ids[position]


@torch.no_grad()
def log_likelihoods(model, tokenizer, texts, within_word):
    items = [(row, position, label, i) for i, text in enumerate(texts)
             for row, position, label in masked(tokenizer, text, within_word)]
    items.sort(key=lambda item: len(item[0]))
    sums = [0.0] * len(texts)
    for first in range(0, len(items), BATCH):
        batch = items[first:first + BATCH]
        width = len(batch[-1][0])
        ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row, _, _, _ in batch])
        attention = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _, _, _ in batch])
        hidden = model.bert(input_ids=ids, attention_mask=attention).last_hidden_state
        rows = hidden[torch.arange(len(batch)), torch.tensor([position for _, position, _, _ in batch])]
        logs = torch.log_softmax(model.cls(rows).double(), -1)
        for k, (_, _, label, text) in enumerate(batch):
            sums[text] += logs[k, label].item()
    return sums


def run_kiln(kiln, model, masking, directory, args):
    table, scores = (os.path.join(directory, x) for x in ("table.json", "scores.jsonl"))
    command = [kiln, "blimp", "--model", model, "--masking", masking, "--json", table, "--scores", scores, "--input", *args.paths]
    subprocess.run(command + (["--limit", str(args.limit)] if args.limit else []), check=True, stdout=subprocess.DEVNULL)
    with open(table, encoding="utf-8") as t, open(scores, encoding="utf-8") as s:
        return json.load(t), [json.loads(line) for line in s]


def compare(table, scores, pairs, sums, masking):
    """The number of failures, each printed."""
    worst, failures, counts = 0.0, 0, {}
    for i, score in enumerate(scores):
        key = os.path.basename(score["file"]), score["line"]
        for side, other in (("good", sums[2 * i]), ("bad", sums[2 * i + 1])):
            off = abs(score[side] - other) / abs(other)
            worst = max(worst, off)
            if off > SUM_TOLERANCE:
                failures += 1
                print(f"{key[0]} line {key[1]}: {side} is {score[side]}, but {other} in transformers")
        paradigm = pairs[key].get("UID", key[0].rsplit(".", 1)[0])
        n, right = counts.get(paradigm, (0, 0))
        counts[paradigm] = n + 1, right + (sums[2 * i] > sums[2 * i + 1])
    ours = {name: row["accuracy"] for name, row in table["paradigm"].items()} | {"": table["accuracy"]}
    theirs = {name: 100 * right / n for name, (n, right) in counts.items()}
    theirs[""] = 100 * sum(right for _, right in counts.values()) / len(scores)
    if ours.keys() != theirs.keys() or table["pairs"] != len(scores):
        failures += 1
        print("the table has other paradigms or pairs")
    for name, value in theirs.items():
        if abs(ours.get(name, -1) - value) > POINTS_TOLERANCE:
            failures += 1
            print(f"{name or 'all'}: {ours.get(name)} %, but {value} % in transformers")
    print(f"{masking}: {len(scores)} pairs of {len(counts)} paradigms, {ours['']:.2f} % here and {theirs['']:.2f} % in transformers, "
          f"sums at most {worst:.1e} apart")
    return failures


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kiln")
    p.add_argument("paths", nargs="+")
    p.add_argument("--model")
    p.add_argument("--masking", choices=("token", "within_word"), help="default: both, one after the other")
    for name, default in (("limit", 0), ("hidden", 64), ("layers", 2), ("threads", 2)):
        p.add_argument("--" + name, type=int, default=default)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    pairs, failures = read_pairs(args.paths), 0
    with tempfile.TemporaryDirectory() as directory:
        path = args.model or make_model(args.kiln, directory, pairs, args)
        tokenizer, model = AutoTokenizer.from_pretrained(path), BertForMaskedLM.from_pretrained(path).eval()
        for masking in [args.masking] if args.masking else ["token", "within_word"]:
            start = time.time()
            table, scores = run_kiln(args.kiln, path, masking, directory, args)
            kiln_s, start = time.time() - start, time.time()
            texts = [pairs[os.path.basename(s["file"]), s["line"]]["sentence_" + side] for s in scores for side in ("good", "bad")]
            sums = log_likelihoods(model, tokenizer, texts, masking == "within_word")
            print(f"{masking}: kiln {kiln_s:.1f} s, transformers {time.time() - start:.1f} s")
            failures += compare(table, scores, pairs, sums, masking)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
