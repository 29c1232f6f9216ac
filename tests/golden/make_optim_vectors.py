#!/usr/bin/env python3
"""Steps of Muon (Jordan et al. 2024; torch.optim.Muon with adjust_lr_fn="match_rms_adamw", but in fp64), of LANS (Zheng et al. 2020, arXiv:2006.13484, algorithm 2), of NVLAMB_EXP, of LAMB, of DeepSpeed's Lamb, of Adam with L2 regularisation and with decay of its own, and of SGD with momentum (torch.optim.SGD) in fp64, by
the equations that the replaced scripts have, on several tensors at once, for tests/optim/test_optim_vectors.c.

usage: make_optim_vectors.py >optim_vectors.json     (plain Python)
"""
import json
import math

BETA1, BETA2 = 0.9, 0.999


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def clipped(gradients, limit):
    """Gradients of all tensors, whose norm together is at most `limit` (0: whatever it is)."""
    total = norm([g for tensor in gradients for g in tensor])
    factor = limit / total if 0 < limit < total else 1
    return [[g * factor for g in tensor] for tensor in gradients]


class Tensor:
    """An optimizer is a function of a tensor, its gradient, the number of the step, the rate, eps and the corrections."""

    def __init__(self, weights, decay, rows=0):
        self.w, self.decay, self.rows = list(weights), decay, rows
        self.m, self.v = [0.0] * len(weights), [0.0] * len(weights)

    def add_to_moments(self, g):
        self.m = [BETA1 * m + (1 - BETA1) * x for m, x in zip(self.m, g)]
        self.v = [BETA2 * v + (1 - BETA2) * x * x for v, x in zip(self.v, g)]

    def ratio(self, direction):
        weights, length = norm(self.w), norm(direction)
        return weights / length if weights != 0 and length != 0 else 1


def lans(p, g, lr, eps, c1, c2):
    length = norm(g)
    if length != 0:
        g = [x / (length + eps) for x in g]
    p.add_to_moments(g)
    d = [math.sqrt(v / c2) + eps for v in p.v]
    r = [m / c1 / y + p.decay * w for m, y, w in zip(p.m, d, p.w)]
    c = [x / y + p.decay * w for x, y, w in zip(g, d, p.w)]
    rho_r, rho_c = lr * p.ratio(r), lr * p.ratio(c)
    p.w = [w - (BETA1 * rho_r * x + (1 - BETA1) * rho_c * y) for w, x, y in zip(p.w, r, c)]


def nvlamb_exp(p, g, lr, eps, c1, c2):
    p.add_to_moments(g)
    u = [m / c1 / (math.sqrt(v / c2) + eps) + p.decay * w for m, v, w in zip(p.m, p.v, p.w)]
    ratio = max(min(p.ratio(u), 10), 0.01)
    p.w = [w - lr * ratio * x for w, x in zip(p.w, u)]


def ds_fused_lamb(p, g, lr, eps, c1, c2, low=0.01, high=10):
    """DeepSpeed's kernel: no corrected moments, and no bounds where a norm is 0."""
    p.add_to_moments(g)
    u = [m / (math.sqrt(v) + eps) + p.decay * w for m, v, w in zip(p.m, p.v, p.w)]
    ratio = max(min(p.ratio(u), high), low) if norm(p.w) != 0 and norm(u) != 0 else 1
    p.w = [w - lr * ratio * x for w, x in zip(p.w, u)]


def ds_fused_lamb_bounded(*step):
    ds_fused_lamb(*step, low=0.2, high=0.3)


def adam(p, g, lr, eps, c1, c2):
    p.add_to_moments([x + p.decay * w for x, w in zip(g, p.w)])
    p.w = [w - lr * m / c1 / (math.sqrt(v / c2) + eps) for w, m, v in zip(p.w, p.m, p.v)]


def lamb(p, g, lr, eps, c1, c2):
    p.add_to_moments(g)
    u = [m / c1 / (math.sqrt(v / c2) + eps) + p.decay * w for m, v, w in zip(p.m, p.v, p.w)]
    ratio = p.ratio(u) if p.decay != 0 else 1
    p.w = [w - lr * ratio * x for w, x in zip(p.w, u)]


def adamw(p, g, lr, eps, c1, c2):
    p.add_to_moments(g)
    p.w = [w * (1 - lr * p.decay) - lr * math.sqrt(c2) / c1 * m / (math.sqrt(v) + eps) for w, m, v in zip(p.w, p.m, p.v)]


def sgd(p, g, lr, eps, c1, c2):
    p.m = [BETA1 * m + x + p.decay * w for m, x, w in zip(p.m, g, p.w)]
    p.w = [w - lr * m for w, m in zip(p.w, p.m)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def orthogonal(flat, rows):
    """The nearest orthogonal matrix, nearly: five rounds of Newton and Schulz with Jordan's coefficients."""
    length = norm(flat)
    cols = len(flat) // rows
    x = [[v / length if length != 0 else 0.0 for v in flat[i * cols:(i + 1) * cols]] for i in range(rows)]
    for _ in range(5):
        gram = product(x, list(zip(*x)))
        cubed, fifth = product(gram, x), product(gram, product(gram, x))
        x = [[3.4445 * p - 4.7750 * q + 2.0315 * r for p, q, r in zip(*row)] for row in zip(x, cubed, fifth)]
    return [v for row in x for v in row]


def muon(p, g, lr, eps, c1, c2, momentum=0.95):
    if p.rows == 0:
        return adamw(p, g, lr, eps, c1, c2)
    p.m = [momentum * m + (1 - momentum) * x for m, x in zip(p.m, g)]
    u = orthogonal([momentum * m + (1 - momentum) * x for m, x in zip(p.m, g)], p.rows)
    step = lr * 0.2 * math.sqrt(max(p.rows, len(p.w) // p.rows))
    p.w = [w * (1 - lr * p.decay) - step * x for w, x in zip(p.w, u)]


def poly_constant(k, steps, base, warmup, constant):
    p = k / steps
    if p < warmup:
        return base * p / warmup
    return base if p < warmup + constant else base * (1 - p) / (1 - warmup - constant)


def case(name, update, tensors, gradients, rates, limit=0, scale=1, eps=1e-6, corrected="moments", schedule=None, ratios=None,
         parts=None, rows=None):
    """gradients[step][tensor] are those that the update is given: `scale` times those that count.  Corrected are the moments,
    the steps, or nothing.  parts[tensor] of the rate are those of the tensors (all 1 if there are none),
    rows[tensor] those of matrices that are updated as such, or 0."""
    parts, rows = parts or [1.0] * len(tensors), rows or [0] * len(tensors)
    state = [Tensor(weights, decay, n) for (weights, decay), n in zip(tensors, rows)]
    want = []
    for t, (all_of_step, lr) in enumerate(zip(gradients, rates), 1):
        c1, c2 = 1 - BETA1**t, 1 - BETA2**t
        rate = lr * math.sqrt(c2) / c1 if corrected == "steps" else lr
        counted = clipped([[g / scale for g in tensor] for tensor in all_of_step], limit)
        for tensor, g, part in zip(state, counted, parts):
            update(tensor, g, rate * part, eps, *((c1, c2) if corrected == "moments" else (1, 1)))
        want.append([tensor.w for tensor in state])
    return {"name": name, "optimizer": update.__name__.removesuffix("_bounded"), "ratios": ratios, "weights": [w for w, _ in tensors],
            "decays": [d for _, d in tensors], "parts": parts, "rows": rows, "gradients": gradients, "rates": rates, "limit": limit, "scale": scale, "eps": eps,
            "corrected": corrected, "schedule": schedule, "want": want}


# The worked vectors that the replaced script's reference gives: one tensor, two steps, with decay and without.
SPEC = [[[0.3, -0.4, 1.2, 0.0]], [[-0.1, 0.2, 0.4, -0.8]]]
START = [0.5, -1.0, 2.0, 0.25]
SPEC_WANT = {0.01: [0.482645145, -0.985587711, 1.970200311, 0.263999233],
             0.0: [0.482581969, -0.985715359, 1.970468166, 0.264233133]}

# A matrix, a bias, weights of zeros, a tensor whose gradient is 0 now and then, and two that never have one.
TENSORS = [(START, 0.01), ([0.1, 0.0, -0.2], 0.0), ([0.0, 0.0], 0.01), ([0.3, -0.6, 0.9], 0.01), ([1.0, -2.0], 0.01),
           ([0.7, 0.4], 0.0)]
# Weights so large, and so small, that the bounds of a ratio count.
BOUNDED = [([100.0, -200.0], 0.0), ([1e-5, 2e-5], 0.01)]


# Matrices behind other tensors: wide, tall, square.
MATRICES = [(START, 0.01), ([0.1, 0.0, -0.2], 0.0), ([0.1 * (i % 7) - 0.3 for i in range(15)], 0.01),
            ([0.2 * (i % 5) - 0.4 for i in range(12)], 0.0), ([1.0, 0.5, -0.5, 0.25], 0.1), ([0.5, 0.25], 0.01)]
ROWS = [0, 0, 3, 4, 2, 1]


def wave(step, tensor, i):
    return 0.0 if tensor in (4, 5) or tensor == 3 and step % 2 == 0 else math.sin(3 * step + 5 * tensor + 2 * i) / (tensor + 1)


def waves(steps, scale=1, tensors=TENSORS):
    return [[[scale * wave(s, k, i) for i in range(len(w))] for k, (w, _) in enumerate(tensors)] for s in range(steps)]


def main():
    cases = [case(f"the reference's vector, decay {decay}", lans, [(START, decay)], SPEC, [0.01] * 2) for decay in SPEC_WANT]
    for c in cases:
        off = max(abs(w - s) for w, s in zip(c["want"][1][0], SPEC_WANT[c["decays"][0]]))
        assert off < 1e-9, f"{c['name']}: {off}"
    schedule = {"steps": 10, "base": 0.02, "warmup": 0.25, "constant": 0.25}
    rates = [poly_constant(k, *schedule.values()) for k in range(1, 11)]
    cases += [
        case("rates of the schedule", lans, TENSORS, waves(10), rates, schedule=schedule),
        case("clipped to 1", lans, TENSORS, waves(3), [0.01] * 3, limit=1),
        case("clipped to 1e-6, where eps counts", lans, TENSORS, waves(3), [0.01] * 3, limit=1e-6),
        case("gradients of a scaled loss", lans, TENSORS, waves(3, 1024), [0.01] * 3, scale=1024),
        case("moments as they are", lans, TENSORS, waves(3), [0.01] * 3, corrected="nothing"),
        case("no gradient at all", lans, TENSORS, [[[0.0] * len(w) for w, _ in TENSORS]] * 2, [0.01] * 2),
        case("ratios", nvlamb_exp, TENSORS + BOUNDED, waves(4, tensors=TENSORS + BOUNDED), [0.01] * 4, eps=1e-8),
        case("whole steps corrected", nvlamb_exp, TENSORS + BOUNDED, waves(4, tensors=TENSORS + BOUNDED), [0.01] * 4, eps=1e-8,
             corrected="steps"),
        case("DeepSpeed's bounds", ds_fused_lamb, TENSORS + BOUNDED, waves(4, tensors=TENSORS + BOUNDED), [0.01] * 4, eps=1e-8,
             corrected="steps"),
        case("bounds below 1", ds_fused_lamb_bounded, TENSORS + BOUNDED, waves(4, tensors=TENSORS + BOUNDED), [0.01] * 4, eps=1e-8,
             corrected="steps", ratios=(0.2, 0.3)),
        case("decay in the gradient", adam, TENSORS, waves(4), [0.01] * 4, eps=1e-8),
        case("an eps that counts", adam, TENSORS, waves(4), [0.01] * 4, eps=0.5),
    ]
    parts = [0.9**k for k in range(len(TENSORS))]
    cases += [case("matrices", muon, MATRICES, waves(4, tensors=MATRICES), [0.01] * 4, rows=ROWS),
              case("matrices, clipped, of a scaled loss", muon, MATRICES, waves(3, 1024, MATRICES), [0.01] * 3, limit=1, scale=1024,
                   parts=parts, rows=ROWS),
              case("no matrices", muon, TENSORS, waves(3), [0.01] * 3)]
    cases += [case(f"rates of layers, {u.__name__}", u, TENSORS, waves(3), [0.01] * 3, limit=1, parts=parts)
              for u in (lamb, lans, nvlamb_exp, adam, adamw, sgd)]
    cases += [case("momentum", sgd, TENSORS, waves(6), [0.01, 0.02, 0.02, 0.01, 0.005, 0]),
              case("momentum of a scaled loss, clipped", sgd, TENSORS, waves(3, 1024), [0.01] * 3, limit=1, scale=1024)]
    rows = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    print('{"cases": [\n' + rows + "\n]}")


main()
