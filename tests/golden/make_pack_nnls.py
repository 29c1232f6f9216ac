#!/usr/bin/env python3
"""Packs histograms of lengths as pack_pretraining_data_pytorch.py does: strategies that fill a row exactly with up to three
sequences, weighted by non-negative least squares (Krell et al. 2021, arXiv:2107.02027), for tests/data/test_pack_nnls.c.

usage: make_pack_nnls.py >pack_nnls.json     (needs numpy and scipy; a minute)
"""
import json
import math

import numpy as np
from scipy.optimize import nnls

DEPTH = 3


def strategies(length, depth, least=1):
    """Non-decreasing lists of at most `depth` positive lengths that sum to `length`."""
    found = [[length]] if length >= least else []
    if depth > 1:
        for first in range(least, length // 2 + 1):
            found += [[first] + rest for rest in strategies(length - first, depth - 1, first)]
    return found


def pack(histogram):
    """Rows for histogram[l - 1] sequences of each length l, and the tokens of padding that are not in any sequence."""
    size = len(histogram)
    lists = strategies(size, DEPTH)
    matrix = np.zeros((size, len(lists)))
    for column, parts in enumerate(lists):
        for part in parts:
            matrix[part - 1, column] += 1
    weights = np.ones(size)
    weights[:8] = 8 / (2 * size)
    weights = np.sqrt(weights)[:, None]
    mixture = np.zeros(len(lists))
    wanted = np.asarray(histogram, dtype=float)
    extra = np.zeros(size)  # sequences of nothing but padding
    left = wanted.copy()
    for _ in range(20):
        solved, _ = nnls(weights * matrix, (weights[:, 0] * left), maxiter=50000)
        whole = np.where(solved < 2, np.rint(solved), np.floor(solved))
        if not whole.any():  # nothing rounds up: one more of those that help most
            gradient = matrix.T @ (left * np.arange(1, size + 1))
            whole[np.argsort(-gradient)[: int(left.sum()) // 2 + 1]] = 1
        mixture += whole
        residual = wanted + extra - matrix @ mixture
        extra += np.maximum(-residual, 0)
        left = wanted + extra - matrix @ mixture
        if left.sum() < 100:
            break
    index = {tuple(parts): i for i, parts in enumerate(lists)}
    for length in range(1, size + 1):  # what is left gets a row with padding
        if left[length - 1] > 0:
            parts = sorted(p for p in (length, size - length) if p > 0)
            mixture[index[tuple(parts)]] += left[length - 1]
    return int(mixture.sum())


def histogram(size, full, decay, n=60000):
    """A share `full` of whole rows; the others fall off by exp(-decay l / size)."""
    weights = [math.exp(-decay * length / size) for length in range(5, size)]
    counts = [0] * 4 + [round(n * (1 - full) * w / sum(weights)) for w in weights]
    return counts + [round(n * full)]


def main():
    cases = []
    for size, full, decay in ((128, 0.7, 0), (128, 0.3, 1), (128, 0.05, 4), (256, 0.4, 2), (512, 0.2, 2)):
        counts = histogram(size, full, decay)
        rows = pack(counts)
        tokens = sum(length * count for length, count in enumerate(counts, 1))
        cases.append({"histogram": counts, "rows": rows, "efficiency": round(tokens / (rows * size), 6)})
    print(json.dumps({"cases": cases}))


if __name__ == "__main__":
    main()
