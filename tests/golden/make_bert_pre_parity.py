#!/usr/bin/env python3
"""Makes tests/golden/bert_pre_parity.safetensors: a tiny random BERT with pre-LN layers ("layer_norm_large_model") and more
rows of embeddings than words, a batch, and what torch computes by the equations of bert_torch.py, in float64; what is in the
file: parity_oracle.py.  transformers has no such layers.

Run: python make_bert_pre_parity.py   (needs torch, safetensors; made with torch 2.15)
"""
from bert_torch import Model
from parity_oracle import V, randomize, write

H, LAYERS, HEADS, F, POSITIONS, WORDS = 24, 3, 3, 40, 32, 57

write("bert_pre_parity.safetensors", "make_bert_pre_parity.py",
      lambda: randomize(Model(V, H, LAYERS, HEADS, F, POSITIONS, True, WORDS)), WORDS)
