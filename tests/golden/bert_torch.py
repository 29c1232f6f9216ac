"""A BERT for pre-training in torch, written out from its equations (docs/math), with the names of Hugging Face's
BertForPreTraining, for layers that transformers does not have too.  Without dropout.

    post-LN:  h_1 = LN_1(h + attention(h)),  h_2 = LN_2(h_1 + FFN(h_1))
    pre-LN:   r_1 = r + attention(h),  h_1 = LN_1(r_1);  r_2 = r_1 + FFN(h_1),  h_2 = LN_2(r_2);  the next layer has (h_2, r_2)
              h_0 = LN(word + position + type),  r_0 = 0
"""
import torch
from torch.nn import Embedding, LayerNorm, Linear, Module, ModuleDict, ModuleList, Parameter
from torch.nn.functional import cross_entropy, gelu


def norm(h):
    return LayerNorm(h, eps=1e-12)


class Layer(Module):
    def __init__(self, h, heads, f, pre_ln):
        super().__init__()
        self.heads, self.pre_ln = heads, pre_ln
        self.attention = ModuleDict({"self": ModuleDict({name: Linear(h, h) for name in ("query", "key", "value")}),
                                     "output": ModuleDict({"dense": Linear(h, h), "LayerNorm": norm(h)})})
        self.intermediate = ModuleDict({"dense": Linear(h, f)})
        self.output = ModuleDict({"dense": Linear(f, h), "LayerNorm": norm(h)})

    def attend(self, h, mask):
        b, s, n = h.shape
        q, k, v = (self.attention["self"][name](h).view(b, s, self.heads, n // self.heads).transpose(1, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / (n // self.heads) ** 0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        heads = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, n)
        return self.attention["output"]["dense"](heads)

    def feed(self, h):
        return self.output["dense"](gelu(self.intermediate["dense"](h)))

    def forward(self, h, r, mask):
        ln_1, ln_2 = self.attention["output"]["LayerNorm"], self.output["LayerNorm"]
        r_1 = (r if self.pre_ln else h) + self.attend(h, mask)
        h_1 = ln_1(r_1)
        r_2 = (r_1 if self.pre_ln else h_1) + self.feed(h_1)
        return ln_2(r_2), r_2


class Predictions(Module):
    def __init__(self, v, h):
        super().__init__()
        self.bias = Parameter(torch.empty(v))
        self.transform = ModuleDict({"dense": Linear(h, h), "LayerNorm": norm(h)})


class Model(Module):
    """Rows of the word embeddings from n_words on are never predicted."""

    def __init__(self, v, h, layers, heads, f, positions, pre_ln, n_words):
        super().__init__()
        self.n_words = n_words
        tables = {"word": v, "position": positions, "token_type": 2}
        embeddings = ModuleDict({name + "_embeddings": Embedding(n, h) for name, n in tables.items()})
        embeddings["LayerNorm"] = norm(h)
        self.bert = ModuleDict({
            "embeddings": embeddings,
            "encoder": ModuleDict({"layer": ModuleList(Layer(h, heads, f, pre_ln) for _ in range(layers))}),
            "pooler": ModuleDict({"dense": Linear(h, h)})})
        self.cls = ModuleDict({"predictions": Predictions(v, h), "seq_relationship": Linear(h, 2)})

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
        real = labels >= 0
        loss = cross_entropy(mlm_logits[real][:, : self.n_words], labels[real]) + cross_entropy(nsp_logits, nsp)
        return loss, mlm_logits, nsp_logits
