#!/usr/bin/env python3
"""Writes sample_order.json beside itself: the index arrays of Megatron-LM's GPT data, made with numpy's RandomState from the
description (docs/formats.md, and the head of src/data/gpt/sample_order.h): one epoch, several together, the last apart, documents longer
and shorter than a window, empty ones; and splits.  tests/data/test_sample_order.c reads it.  Needs numpy; 2.4.6 wrote what is
committed.
"""
import json
import os

import numpy as np


def order(sizes, first, end, wanted, length, seed):
    draws = np.random.RandomState(seed)
    documents = np.arange(first, end, dtype=np.int32)
    tokens = int(sum(sizes[first:end]))
    epochs = 1
    while (epochs * tokens - 1) // length < wanted:
        epochs += 1
    per_epoch, before = (tokens - 1) // length, ((epochs - 1) * tokens - 1) // length
    apart = epochs > 1 and wanted - before < int(0.80 * per_epoch)
    rows = []
    for n in ([epochs - 1, 1] if apart else [epochs]):
        row = np.tile(documents, n)
        draws.shuffle(row)
        rows.append(row)
    row = np.concatenate(rows)
    total = (epochs * tokens - 1) // length
    # where each token of the row lies; empty documents have none
    places = [(i, t) for i, d in enumerate(row) for t in range(sizes[d])]
    starts = [places[k * length] for k in range(total + 1)]
    cut = before if apart else total
    parts = [np.arange(0, cut, dtype=np.uint32), np.arange(cut, total, dtype=np.uint32)]
    for part in parts:
        draws.shuffle(part)
    return {"sizes": sizes, "first": first, "end": end, "wanted": wanted, "seq_length": length, "seed": seed, "epochs": epochs, "apart": bool(apart),
            "document": row.tolist(), "starts": [int(x) for pair in starts for x in pair], "shuffled": np.concatenate(parts).tolist()}


def split(parts, n):
    share = [float(p) for p in parts.replace("/", ",").split(",")]
    share = (share + [0.0, 0.0])[:3]
    share = [s / sum(share) for s in share]
    bounds = [0]
    for s in share:
        bounds.append(bounds[-1] + int(round(s * float(n))))
    excess = bounds[-1] - n
    return {"list": parts, "n": n, "bounds": [0] + [b - excess for b in bounds[1:]]}


rng = np.random.RandomState(3)
mixed = [int(x) for x in rng.randint(1, 40, 60)]
some_empty = [int(x) for x in rng.randint(0, 5, 50)]
cases = [
    order(mixed, 0, 60, 20, 16, 1234), order(mixed, 0, 60, 150, 16, 42), order(mixed, 10, 55, 75, 16, 7), order(mixed, 0, 60, 81, 16, 1234),
    order(mixed, 3, 9, 500, 5, 99), order(some_empty, 0, 50, 40, 8, 5), order([1000, 3, 2000], 0, 3, 400, 32, 1), order([7], 0, 1, 30, 3, 2),
]
# at the limit of four fifths
tokens = sum(mixed)
per_epoch = (tokens - 1) // 16
for last in (int(0.8 * per_epoch) - 1, int(0.8 * per_epoch), int(0.8 * per_epoch) + 1):
    cases.append(order(mixed, 0, 60, (tokens - 1) // 16 + last, 16, 11))
golden = {
    "orders": cases,
    "splits": [split("949,50,1", n) for n in (1, 7, 100, 1000, 12345, 304230423)] + [split("1", 9), split("98/2/0", 250), split("90,5,5", 10), split("0,1,1", 5)],
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample_order.json"), "w") as f:
    json.dump(golden, f)
    f.write("\n")
print([(c["epochs"], c["apart"], len(c["shuffled"])) for c in cases])
