#!/usr/bin/env python3
"""Writes set_blend.json beside itself: blends of weighted sets by the rule of Megatron-LM (the head of src/data/gpt/set_blend.h),
with numpy's sums, as the replaced system has them: weights are divided by their sum as Python's floats and again as an array.  Of a blend
of n samples the last ones are written.  tests/data/test_set_blend.c reads it.  Needs numpy; 2.4.6 wrote what is committed.
"""
import json
import math
import os

import numpy as np


def blend(weights, n, last=None):
    total = 0.0
    for w in weights:
        total += w
    shares = [w / total for w in weights]
    wanted = [int(math.ceil(n * s * 1.005)) for s in shares]
    parts = np.array(shares, dtype=np.float64)
    parts /= np.sum(parts)
    taken, sets, samples = np.zeros(len(parts), dtype=np.int64), [], []
    for i in range(n):
        d = int(np.argmax(parts * max(float(i), 1.0) - taken))
        sets.append(d)
        samples.append(int(taken[d]))
        taken[d] += 1
    last = last or n
    return {"weights": weights, "n": n, "wanted": wanted, "sets": sets[-last:], "samples": samples[-last:]}


rng = np.random.RandomState(5)
golden = [
    blend([0.5, 0.3, 0.2], 60), blend([1.0, 1.0, 1.0], 20), blend([0.9, 0.1], 40), blend([3.0], 5), blend([0.7, 0.3], 100),
    blend([0.1] * 10, 50), blend([0.2, 0.1] * 9, 200), blend([1e-9, 1.0], 20), blend([0.7, 0.3], 20000, 200),
    blend([float(x) for x in rng.rand(7)], 10000, 200), blend([float(x) for x in rng.rand(100)], 500), blend([float(x) for x in rng.randint(1, 9, 254)], 9000, 500),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "set_blend.json"), "w") as f:
    json.dump(golden, f)
    f.write("\n")
