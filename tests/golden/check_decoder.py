#!/usr/bin/env python3
"""Compares the logits that `transformers` computes of a decoder's directory with those of `kiln convert --logits FILE`.

usage: check_decoder.py DIRECTORY LOGITS.safetensors
Each sequence alone, in fp32; the rows of the table that are pieces.  Fails above 1e-5 x max(1, the largest).  Needs torch, transformers, safetensors.
"""
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(directory, logits):
    kiln = load_file(logits)
    model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
    n = len(AutoTokenizer.from_pretrained(directory))
    with torch.no_grad():
        rows = torch.cat([model(kiln["ids"][i : i + 1, :length].long()).logits[0] for i, length in enumerate(kiln["lengths"].tolist())])
    difference, scale = (rows - kiln["lm"])[:, :n].abs().max().item(), max(1.0, rows[:, :n].abs().max().item())
    print(f"{directory}: largest difference of logits {difference:.3g} of {scale:.3g}")
    return int(difference > 1e-5 * scale)


sys.exit(main(*sys.argv[1:]))
