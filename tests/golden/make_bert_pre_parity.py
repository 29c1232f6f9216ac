#!/usr/bin/env python3
"""Makes tests/golden/bert_pre_parity.safetensors: a tiny random BERT with pre-LN layers ("layer_norm_large_model") and more
rows of embeddings than words, a batch, and what torch computes by the equations below; what is in the file: parity_oracle.py.

    h_0 = LN(word + position + type),  r_0 = 0
    r_1 = r + attention(h),  h_1 = LN_1(r_1);  r_2 = r_1 + FFN(h_1),  h_2 = LN_2(r_2);  the next layer has (h_2, r_2)

In float64, without dropout.  transformers has no such layers; the heads, the names and the losses are BertForPreTraining's.

Run: python make_bert_pre_parity.py   (needs torch, safetensors; made with torch 2.15)
"""
import torch
from parity_oracle import V, randomize, write
from torch.nn import Embedding, LayerNorm, Linear, Module, ModuleDict, ModuleList, Parameter
from torch.nn.functional import cross_entropy, gelu

H, LAYERS, HEADS, F, POSITIONS, WORDS = 24, 3, 3, 40, 32, 57


def norm():
    return LayerNorm(H, eps=1e-12)


class Layer(Module):
    def __init__(self):
        super().__init__()
        self.attention = ModuleDict({"self": ModuleDict({name: Linear(H, H) for name in ("query", "key", "value")}),
                                     "output": ModuleDict({"dense": Linear(H, H), "LayerNorm": norm()})})
        self.intermediate = ModuleDict({"dense": Linear(H, F)})
        self.output = ModuleDict({"dense": Linear(F, H), "LayerNorm": norm()})

    def attend(self, h, mask):
        b, s, _ = h.shape
        q, k, v = (self.attention["self"][name](h).view(b, s, HEADS, H // HEADS).transpose(1, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / (H // HEADS) ** 0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        heads = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, H)
        return self.attention["output"]["dense"](heads)

    def forward(self, h, r, mask):
        r_1 = r + self.attend(h, mask)
        h_1 = self.attention["output"]["LayerNorm"](r_1)
        r_2 = r_1 + self.output["dense"](gelu(self.intermediate["dense"](h_1)))
        return self.output["LayerNorm"](r_2), r_2


class Predictions(Module):
    def __init__(self):
        super().__init__()
        self.bias = Parameter(torch.empty(V))
        self.transform = ModuleDict({"dense": Linear(H, H), "LayerNorm": norm()})


class Model(Module):
    def __init__(self):
        super().__init__()
        tables = {"word": V, "position": POSITIONS, "token_type": 2}
        embeddings = ModuleDict({name + "_embeddings": Embedding(n, H) for name, n in tables.items()})
        embeddings["LayerNorm"] = norm()
        self.bert = ModuleDict({"embeddings": embeddings,
                                "encoder": ModuleDict({"layer": ModuleList(Layer() for _ in range(LAYERS))}),
                                "pooler": ModuleDict({"dense": Linear(H, H)})})
        self.cls = ModuleDict({"predictions": Predictions(), "seq_relationship": Linear(H, 2)})

    def forward(self, batch):
        ids, types, mask, labels, nsp = batch
        e, predictions = self.bert["embeddings"], self.cls["predictions"]
        words = e["word_embeddings"].weight
        h = e["LayerNorm"](words[ids] + e["position_embeddings"].weight[: ids.shape[1]] + e["token_type_embeddings"](types))
        r = torch.zeros_like(h)
        for layer in self.bert["encoder"]["layer"]:
            h, r = layer(h, r, mask)
        z = predictions.transform["LayerNorm"](gelu(predictions.transform["dense"](h)))
        mlm_logits = z @ words.T + predictions.bias
        nsp_logits = self.cls["seq_relationship"](torch.tanh(self.bert["pooler"]["dense"](h[:, 0])))
        real = labels >= 0  # rows of the embeddings from WORDS on are never predicted
        return cross_entropy(mlm_logits[real][:, :WORDS], labels[real]) + cross_entropy(nsp_logits, nsp), mlm_logits, nsp_logits


write("bert_pre_parity.safetensors", "make_bert_pre_parity.py", lambda: randomize(Model()), WORDS)
