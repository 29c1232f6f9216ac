#!/usr/bin/env python3
"""Steps of LANS in fp64 by the equations of the paper (Zheng et al. 2020, arXiv:2006.13484, algorithm 2) as the replaced script
has them, on several tensors at once, for tests/optim/test_optim_vectors.c.

usage: make_lans.py >lans.json     (plain Python)
"""
import json
import math

BETA1, BETA2, EPS = 0.9, 0.999, 1e-6


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def clipped(gradients, limit):
    """Gradients of all tensors, whose norm together is at most `limit` (0: whatever it is)."""
    total = norm([g for tensor in gradients for g in tensor])
    factor = limit / total if 0 < limit < total else 1
    return [[g * factor for g in tensor] for tensor in gradients]


class Tensor:
    def __init__(self, weights, decay):
        self.w, self.decay = list(weights), decay
        self.m, self.v = [0.0] * len(weights), [0.0] * len(weights)

    def step(self, g, t, lr, corrected):
        length = norm(g)
        if length != 0:
            g = [x / (length + EPS) for x in g]
        self.m = [BETA1 * m + (1 - BETA1) * x for m, x in zip(self.m, g)]
        self.v = [BETA2 * v + (1 - BETA2) * x * x for v, x in zip(self.v, g)]
        c1, c2 = (1 - BETA1**t, 1 - BETA2**t) if corrected else (1, 1)
        d = [math.sqrt(v / c2) + EPS for v in self.v]
        r = [m / c1 / y + self.decay * w for m, y, w in zip(self.m, d, self.w)]
        c = [x / y + self.decay * w for x, y, w in zip(g, d, self.w)]
        rho_r, rho_c = self.rate(r, lr), self.rate(c, lr)
        self.w = [w - (BETA1 * rho_r * x + (1 - BETA1) * rho_c * y) for w, x, y in zip(self.w, r, c)]

    def rate(self, direction, lr):
        weights, length = norm(self.w), norm(direction)
        return lr * weights / length if weights != 0 and length != 0 else lr


def poly_constant(k, steps, base, warmup, constant):
    p = k / steps
    if p < warmup:
        return base * p / warmup
    return base if p < warmup + constant else base * (1 - p) / (1 - warmup - constant)


def case(name, tensors, gradients, rates, limit=0, scale=1, corrected=True, schedule=None):
    """gradients[step][tensor] are those that the update is given: `scale` times those that count."""
    state = [Tensor(weights, decay) for weights, decay in tensors]
    want = []
    for t, (all_of_step, lr) in enumerate(zip(gradients, rates), 1):
        counted = clipped([[g / scale for g in tensor] for tensor in all_of_step], limit)
        for tensor, g in zip(state, counted):
            tensor.step(g, t, lr, corrected)
        want.append([tensor.w for tensor in state])
    return {"name": name, "weights": [w for w, _ in tensors], "decays": [d for _, d in tensors], "gradients": gradients,
            "rates": rates, "limit": limit, "scale": scale, "corrected": corrected, "schedule": schedule, "want": want}


# The worked vectors that the replaced script's reference gives: one tensor, two steps, with decay and without.
SPEC = [[[0.3, -0.4, 1.2, 0.0]], [[-0.1, 0.2, 0.4, -0.8]]]
START = [0.5, -1.0, 2.0, 0.25]
SPEC_WANT = {0.01: [0.482645145, -0.985587711, 1.970200311, 0.263999233],
             0.0: [0.482581969, -0.985715359, 1.970468166, 0.264233133]}

# A matrix, a bias, weights of zeros, a tensor whose gradient is 0 now and then, and two that never have one.
TENSORS = [(START, 0.01), ([0.1, 0.0, -0.2], 0.0), ([0.0, 0.0], 0.01), ([0.3, -0.6, 0.9], 0.01), ([1.0, -2.0], 0.01),
           ([0.7, 0.4], 0.0)]


def wave(step, tensor, i):
    return 0.0 if tensor >= 4 or tensor == 3 and step % 2 == 0 else math.sin(3 * step + 5 * tensor + 2 * i) / (tensor + 1)


def waves(steps, scale=1):
    return [[[scale * wave(s, k, i) for i in range(len(w))] for k, (w, _) in enumerate(TENSORS)] for s in range(steps)]


def main():
    cases = [case(f"the reference's vector, decay {decay}", [(START, decay)], SPEC, [0.01] * 2) for decay in SPEC_WANT]
    for c in cases:
        off = max(abs(w - s) for w, s in zip(c["want"][1][0], SPEC_WANT[c["decays"][0]]))
        assert off < 1e-9, f"{c['name']}: {off}"
    schedule = {"steps": 10, "base": 0.02, "warmup": 0.25, "constant": 0.25}
    rates = [poly_constant(k, *schedule.values()) for k in range(1, 11)]
    cases += [
        case("six tensors, rates of the schedule", TENSORS, waves(10), rates, schedule=schedule),
        case("clipped to 1", TENSORS, waves(3), [0.01] * 3, limit=1),
        case("clipped to 1e-6, where eps counts", TENSORS, waves(3), [0.01] * 3, limit=1e-6),
        case("gradients of a scaled loss", TENSORS, waves(3, 1024), [0.01] * 3, scale=1024),
        case("moments as they are", TENSORS, waves(3), [0.01] * 3, corrected=False),
        case("no gradient at all", TENSORS, [[[0.0] * len(w) for w, _ in TENSORS]] * 2, [0.01] * 2),
    ]
    rows = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    print('{"cases": [\n' + rows + "\n]}")


main()
