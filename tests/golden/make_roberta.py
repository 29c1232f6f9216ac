#!/usr/bin/env python3
"""Makes tests/golden/roberta.safetensors: RoBERTa's model directories as `transformers` writes them, and what it computes with them.

One file holds them all: the tensor "CASE/FILE" (U8) is a file of a directory, "tokenizer/FILE" one of each, "CASE:ids" and so on are the batch and the outputs in
float64 of the weights as they are stored.  "TEXTS" (U8) has texts, one a line with a tab in pairs; "TEXT i" its ids with special
tokens.  The tokenizer's merges are learned from the texts.

Run: python make_roberta.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5.24)
"""
import pathlib
import tempfile

import torch
from safetensors.torch import save_file
from small_models import LENGTHS, S, batch_tensors, file_tensors
from tokenizers import AddedToken, ByteLevelBPETokenizer
from transformers import (RobertaConfig, RobertaForMaskedLM, RobertaForQuestionAnswering, RobertaForSequenceClassification,
                          RobertaForTokenClassification, RobertaModel, RobertaTokenizerFast)

torch.manual_seed(5)
TEXTS = ["The house is old.", "the house\tIs it old?", "It's <mask>, isn't it?  Yes; 42 houses!", "déjà vu ☂  two   spaces ", "x"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def make_tokenizer(directory):
    learned = ByteLevelBPETokenizer()
    learned.train_from_iterator(TEXTS * 3, vocab_size=290, min_frequency=2, special_tokens=SPECIAL + ["<mask>"], show_progress=False)
    learned.save_model(str(directory))
    return RobertaTokenizerFast.from_pretrained(directory, mask_token=AddedToken("<mask>", lstrip=True, special=True))


def make_model(cls, words, **more):
    config = RobertaConfig(vocab_size=words, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
                           max_position_embeddings=S + 2, type_vocab_size=1, layer_norm_eps=1e-5, attn_implementation="eager", **more)
    model = cls(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = "LayerNorm.weight" in name or "layer_norm.weight" in name
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if norm else 0.0))
    return model.half()


def make_batch(words):
    ids, mask = torch.randint(5, words, (len(LENGTHS), S)), torch.zeros(len(LENGTHS), S, dtype=torch.long)
    for i, n in enumerate(LENGTHS):
        mask[i, :n] = 1
        ids[i, 0], ids[i, n - 1], ids[i, n:] = 0, 2, 1
    return ids, torch.zeros_like(ids), mask


def outputs(model, batch):
    ids, _, mask = batch
    with torch.no_grad():
        out = model.double()(input_ids=ids, attention_mask=mask)
    real = mask.bool()
    if "start_logits" in out:
        return {"qa": torch.stack([out.start_logits, out.end_logits], dim=-1)[real]}
    if "last_hidden_state" in out:
        return {"hidden": out.last_hidden_state[real], "pooled": out.pooler_output}
    name = {"RobertaForMaskedLM": "mlm", "RobertaForSequenceClassification": "texts", "RobertaForTokenClassification": "words"}
    kind = name[type(model).__name__]
    return {kind: out.logits if kind == "texts" else out.logits[real]}


def main():
    cases = [("masked_lm", RobertaForMaskedLM, {}), ("classifier", RobertaForSequenceClassification, {"num_labels": 3}),
             ("tagger", RobertaForTokenClassification, {"num_labels": 4}), ("answers", RobertaForQuestionAnswering, {}),
             ("encoder", RobertaModel, {})]
    with tempfile.TemporaryDirectory() as d:
        tokenizer = make_tokenizer(pathlib.Path(d))
    batch = make_batch(len(tokenizer))
    tensors = batch_tensors(batch)
    with tempfile.TemporaryDirectory() as d:
        tokenizer.save_pretrained(d)
        tensors |= file_tensors("tokenizer", pathlib.Path(d))
    for name, cls, more in cases:
        with tempfile.TemporaryDirectory() as d:
            model = make_model(cls, len(tokenizer), **more)
            model.save_pretrained(d)
            tensors |= file_tensors(name, pathlib.Path(d))
        tensors |= {f"{name}:{k}": v.contiguous() for k, v in outputs(model, batch).items()}
    tensors["TEXTS"] = torch.frombuffer(bytearray("\n".join(TEXTS).encode()), dtype=torch.uint8)
    for i, text in enumerate(TEXTS):
        tensors[f"TEXT {i}"] = torch.tensor(tokenizer(*text.split("\t"))["input_ids"], dtype=torch.int32)
    save_file(tensors, pathlib.Path(__file__).with_name("roberta.safetensors"))


main()
