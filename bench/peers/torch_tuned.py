#!/usr/bin/env python3
"""BERT in PyTorch as fast as PyTorch goes: scaled_dot_product_attention, torch.compile, bf16 weights, the head of masked
words on masked positions only.  The peer of tools/gpu_bench.sh; needs torch and nothing else.

usage: torch_tuned.py train CONFIG.json LENGTH BATCH [options]     forward and backward, and with fused AdamW
       torch_tuned.py answer CONFIG.json LENGTH BATCH [options]    question answering, in a CUDA graph
       torch_tuned.py ceilings                                     products of 8192 in TFLOP/s, copies in TB/s

Prints sequences per second, by the median of the timed runs: of train two numbers, without and with the optimizer.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WARM_UP, RUNS = 5, 15


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, self.heads, self.p = c["hidden_size"], c["num_attention_heads"], c["hidden_dropout_prob"]
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, c["intermediate_size"]), nn.Linear(c["intermediate_size"], h)
        self.norm1, self.norm2 = nn.LayerNorm(h, 1e-12), nn.LayerNorm(h, 1e-12)

    def forward(self, x, mask):
        b, t, h = x.shape
        p = self.p if self.training else 0.0
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        a = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        a = self.out(a.transpose(1, 2).reshape(b, t, h))
        x = self.norm1(x + functional.dropout(a, p, self.training))
        y = self.down(functional.gelu(self.up(x)))
        return self.norm2(x + functional.dropout(y, p, self.training))


class Bert(nn.Module):
    def __init__(self, c, vocab, job, recompute):
        super().__init__()
        h, self.p, self.job, self.recompute = c["hidden_size"], c["hidden_dropout_prob"], job, recompute
        self.word, self.segment = nn.Embedding(vocab, h), nn.Embedding(2, h)
        self.position = nn.Embedding(c["max_position_embeddings"], h)
        self.norm = nn.LayerNorm(h, 1e-12)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        if job == "answer":
            self.span = nn.Linear(h, 2)
        else:
            self.pooler, self.nsp = nn.Linear(h, h), nn.Linear(h, 2)
            self.transform, self.transform_norm = nn.Linear(h, h), nn.LayerNorm(h, 1e-12)
            self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, ids, types, positions, mask, masked=None, labels=None, next_labels=None):
        x = self.norm(self.word(ids) + self.segment(types) + self.position(positions))
        x = functional.dropout(x, self.p, self.training)
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False) if self.recompute else layer(x, mask)
        if self.job == "answer":
            return self.span(x)
        words = self.transform_norm(functional.gelu(self.transform(x.flatten(0, 1)[masked])))
        logits = functional.linear(words, self.word.weight, self.bias)
        follows = self.nsp(torch.tanh(self.pooler(x[:, 0])))
        return functional.cross_entropy(logits.float(), labels) + functional.cross_entropy(follows.float(), next_labels)


def arguments():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("job", choices=("train", "answer", "ceilings"))
    p.add_argument("config", nargs="?")
    p.add_argument("length", type=int, nargs="?")
    p.add_argument("batch", type=int, nargs="?")
    p.add_argument("--vocab", type=int, default=30528)
    p.add_argument("--masked", type=float, default=0.15, help="fraction of the tokens that is predicted")
    p.add_argument("--short", type=float, default=0, help="part of the sequences that is cut to a random length; all are padded")
    p.add_argument("--natural", type=int, default=0, help="answer sequences of 0.35 to 1.65 times this, sorted, padded to a batch's longest")
    p.add_argument("--checkpoint_activations", action="store_true")
    p.add_argument("--compile", choices=("whole", "layer", "none"), default="whole")
    p.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    p.add_argument("--device", default="cuda")
    return p.parse_args()


def inputs(a, lengths):
    """Ids, types, positions and the mask of a padded batch; no mask if nothing is padded."""
    longest = max(lengths)
    ids = torch.randint(5, a.vocab, (len(lengths), longest), device=a.device)
    positions = torch.arange(longest, device=a.device).expand_as(ids).contiguous()
    real = positions < torch.tensor(lengths, device=a.device)[:, None]
    mask = None if bool(real.all()) else real[:, None, None, :]
    return ids, torch.zeros_like(ids), positions, mask


def build(a, config):
    torch.manual_seed(0)
    model = Bert(config, a.vocab, a.job, a.checkpoint_activations).to(a.device)
    model = model.bfloat16() if a.dtype == "bf16" else model
    if a.compile == "layer":
        for layer in model.layers:
            layer.compile()
    elif a.compile == "whole":
        model.compile()
    return model


def timed(run, device):
    for _ in range(WARM_UP):
        run()
    times = []
    for _ in range(RUNS):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def train(a, config):
    model = build(a, config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=a.device == "cuda")
    draw = torch.Generator().manual_seed(1)
    cut = torch.rand(a.batch, generator=draw) < a.short
    shorter = torch.randint(2, a.length + 1, (a.batch,), generator=draw)
    lengths = torch.where(cut, shorter, torch.full_like(shorter, a.length)).tolist()
    lengths[0] = a.length
    ids, types, positions, mask = inputs(a, lengths)
    places = torch.cat([i * a.length + torch.randperm(n)[: max(1, int(n * a.masked))] for i, n in enumerate(lengths)])
    masked = places.sort().values.to(a.device)
    labels = torch.randint(5, a.vocab, (len(masked),), device=a.device)
    next_labels = torch.randint(0, 2, (a.batch,), device=a.device)

    def passes():
        optimizer.zero_grad(set_to_none=True)
        model(ids, types, positions, mask, masked, labels, next_labels).backward()

    def step():
        passes()
        optimizer.step()

    return f"{a.batch / timed(passes, a.device):.6g} {a.batch / timed(step, a.device):.6g}"


def graphed(model, batch, device):
    """The forward pass as a CUDA graph where there is one."""
    with torch.inference_mode():
        for _ in range(3):
            model(*batch)
        if device != "cuda":
            return lambda: model(*batch)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(*batch)
    return graph.replay


def answer(a, config):
    model = build(a, config).eval()
    if not a.natural:
        run = graphed(model, inputs(a, [a.length] * a.batch), a.device)
        with torch.inference_mode():
            return a.batch / timed(run, a.device)
    count = 8 * a.batch
    lengths = sorted(min(a.length, int(a.natural * (0.35 + 1.3 * (n * 0.618034 % 1)))) for n in range(count))
    runs = [graphed(model, inputs(a, lengths[i : i + a.batch]), a.device) for i in range(0, count, a.batch)]

    def all_of_them():
        for run in runs:
            run()

    with torch.inference_mode():
        return count / timed(all_of_them, a.device)


def ceilings():
    x, y = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    z = torch.empty_like(x)
    big, copy = torch.empty(1 << 30, device="cuda", dtype=torch.uint8), torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    products = 2 * 8192**3 / timed(lambda: torch.mm(x, y, out=z), "cuda")
    copies = 2 * big.numel() / timed(lambda: copy.copy_(big), "cuda")
    return f"{products / 1e12:.0f} {copies / 1e12:.2f}"


def main():
    a = arguments()
    if a.job == "ceilings":
        print(ceilings())
        return
    config = {"hidden_dropout_prob": 0.1, "max_position_embeddings": 512, **json.load(open(a.config))}
    print(train(a, config) if a.job == "train" else answer(a, config))


main()
