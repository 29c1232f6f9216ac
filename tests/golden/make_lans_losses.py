#!/usr/bin/env python3
"""Makes tests/golden/lans_losses.txt: ten losses of training the documents' large models, as tests/cli/lans.sh makes them small,
by LANS, DeepSpeed's clipping and the script's schedule, which are written out below; in float64, on the weights that kiln begins
with.  A line is the model, how losses of micro-batches are joined, and the losses; tests/cli/test_lans.sh compares kiln's.

LANS's first step is the sign of each element's gradient, whatever its size, so where one is as small as fp32's rounding, fp32
steps elsewhere than float64.  Few models have such an element that matters: BERT-1.5B with the mean of micro-batches has one, by
which its fifth loss differs in the sixth digit (2.3e-6) and its tenth in the fifth (3.2e-5); so it is not among these.

Run: python make_lans_losses.py KILN >lans_losses.txt   (needs torch, safetensors, numpy, bash; made with torch 2.15)
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from bert_torch import Model
from make_shards import N, P, S, sequence
from parity_oracle import decays
from safetensors.torch import load_file

STEPS, BATCH, MICRO = 10, 8, 4
LR, WARMUP, CONSTANT, DEGREE = 0.015, 0.25, 0.25, 1.0  # of lans.sh
BETA1, BETA2, EPS, DECAY, CLIP = 0.9, 0.999, 1e-6, 0.01, 1.0
NORMS = {"1.2b": ["global", "micro"], "1.2b_pre_ln": ["global"], "1.5b": ["global"], "5b": ["global"]}


def kiln_begins(kiln, directory):
    """The models' configurations and the weights of step 0: one step at the rate 0 leaves them as they are."""
    commands = ['. "$0"', "make_lans_inputs"]
    commands += [f"lans_train {m} begin_{m} --learning_rate 0 --steps_this_run 1" for m in NORMS]
    script = pathlib.Path(__file__).parent.parent / "cli" / "lans.sh"
    subprocess.run(["bash", "-ec", f'kiln=$1 dir=$2; {"; ".join(commands)}', script, kiln, directory], check=True,
                   stderr=subprocess.DEVNULL)
    for m in NORMS:
        config = json.loads((pathlib.Path(directory) / f"{m}.json").read_text())
        yield m, config, load_file(f"{directory}/begin_{m}/ckpt_1/model.safetensors")


def make_batch(first, n):
    """Sequences first to first + n - 1 of the file, which begins again behind its last."""
    ids, types, mask = (torch.zeros(n, S, dtype=torch.long) for _ in range(3))
    labels, nsp = torch.full((n, S), -100), torch.zeros(n, dtype=torch.long)
    for row in range(n):
        words, segments, places, wanted, nsp[row] = sequence((first + row) % N)
        ids[row, : len(words)] = torch.tensor(words)
        types[row, : len(words)] = torch.tensor(segments)
        mask[row, : len(words)] = 1
        for place, word in zip(places, wanted):
            labels[row, place] = word
    return ids, types, mask, labels, nsp


def rate(k):
    p = k / STEPS
    if p < WARMUP:
        return LR * p / WARMUP
    return LR if p < WARMUP + CONSTANT else LR * ((1 - p) / (1 - WARMUP - CONSTANT)) ** DEGREE


def clip(params):
    """DeepSpeed's: one norm of all gradients, with 1e-6 added."""
    norm = torch.sqrt(sum((p.grad**2).sum() for _, p in params)).item()
    factor = (norm + 1e-6) / CLIP
    for _, p in params:
        p.grad.div_(max(1.0, factor))


def ratio(w, direction):
    a, b = w.norm().item(), direction.norm().item()
    return a / b if a > 0 and b > 0 else 1.0


def lans(name, p, state, t, lr):
    """Zheng et al. 2020, algorithm 2; decays() gives the script's two groups."""
    m, v = state.setdefault(name, (torch.zeros_like(p), torch.zeros_like(p)))
    n = p.grad.norm()
    g = p.grad / (n + EPS) if n > 0 else p.grad
    m.mul_(BETA1).add_(g, alpha=1 - BETA1)
    v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
    d = torch.sqrt(v / (1 - BETA2**t)) + EPS
    decay = (DECAY if decays(name) else 0.0) * p
    r, c = m / (1 - BETA1**t) / d + decay, g / d + decay
    p.sub_(lr * (BETA1 * ratio(p, r) * r + (1 - BETA1) * ratio(p, c) * c))


def losses(config, weights, how):
    heads = config["num_attention_heads"]
    v = weights["bert.embeddings.word_embeddings.weight"].shape[0]
    model = Model(v, config["hidden_size"], config["num_hidden_layers"], heads, config["intermediate_size"],
                  config["max_position_embeddings"], config.get("layer_norm_large_model", False), v)
    model.load_state_dict(weights)
    params, state, history = list(model.named_parameters()), {}, []
    for t in range(1, STEPS + 1):
        first = (t - 1) * BATCH
        model.zero_grad()
        loss = model(make_batch(first, BATCH))[0]
        history.append(loss.item())
        if how == "micro":
            loss = sum(model(make_batch(first + i, MICRO))[0] for i in range(0, BATCH, MICRO)) * MICRO / BATCH
        loss.backward()
        with torch.no_grad():
            clip(params)
            for name, p in params:
                lans(name, p, state, t, rate(t))
    return history


def main():
    assert max(len(sequence(i)[3]) for i in range(N)) < P
    with tempfile.TemporaryDirectory() as directory:
        for name, config, weights in kiln_begins(sys.argv[1], directory):
            for how in NORMS[name]:
                print(name, how, *(f"{x:.12f}" for x in losses(config, weights, how)))


main()
