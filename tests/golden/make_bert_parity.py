#!/usr/bin/env python3
"""Makes tests/golden/bert_parity.safetensors: a tiny random BertForPreTraining, a batch, and what Hugging Face computes.

The oracle is transformers' BertForPreTraining in float64 without dropout; what is in the file: parity_oracle.py.

Run: python make_bert_parity.py   (needs torch, transformers, safetensors; made with torch 2.15 and transformers 5)
"""
import torch
from parity_oracle import V, randomize, write
from transformers import BertConfig, BertForPreTraining


class Model(BertForPreTraining):
    def forward(self, batch):
        ids, types, mask, labels, nsp = batch
        out = super().forward(input_ids=ids, token_type_ids=types, attention_mask=mask, labels=labels,
                              next_sentence_label=nsp)
        return out.loss, out.prediction_logits, out.seq_relationship_logits


def make_model():
    config = BertConfig(vocab_size=V, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                        attn_implementation="eager")
    return randomize(Model(config).double())


write("bert_parity.safetensors", "make_bert_parity.py", make_model)
