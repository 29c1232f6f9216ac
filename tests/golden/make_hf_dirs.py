#!/usr/bin/env python3
"""Makes tests/golden/hf_dirs.safetensors: model directories as `transformers` writes them, and what it computes with them.

One file holds them all: the tensor "CASE/FILE" (U8) is a file of a directory, "CASE:ids" and so on are the batch and the
outputs in float64 of the weights as they are stored.  Cases: the four classes, whole and sharded, fp32, fp16 and bf16, and
a checkpoint in NVIDIA's manner: padded vocabulary, bert_config.json, old names, a decoder of its own.

Run: python make_hf_dirs.py   (needs torch, transformers, safetensors; made with torch 2.15 and transformers 5)
"""
import json
import pathlib
import tempfile

import torch
from safetensors.torch import save_file
from small_models import PIECES, S, batch_tensors, file_tensors, make_batch, make_model
from transformers import BertForMaskedLM, BertForPreTraining, BertForQuestionAnswering, BertModel, BertTokenizer

torch.manual_seed(3)


def outputs(model, batch):
    ids, types, mask = batch
    with torch.no_grad():
        out = model.double()(input_ids=ids, token_type_ids=types, attention_mask=mask)
    real = mask.bool()
    found = {}
    if "prediction_logits" in out:
        found = {"mlm": out.prediction_logits[real][:, : len(PIECES)], "nsp": out.seq_relationship_logits}
    elif "start_logits" in out:
        found = {"qa": torch.stack([out.start_logits, out.end_logits], dim=-1)[real]}
    elif "logits" in out:
        found = {"mlm": out.logits[real][:, : len(PIECES)]}
    else:
        found = {"hidden": out.last_hidden_state[real], "pooled": out.pooler_output}
    return {k: v.contiguous() for k, v in found.items()}


def nvidia_names(tensors):
    renamed = {}
    for name, t in tensors.items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        for part in ("intermediate.dense", "pooler.dense", "transform.dense"):
            name = name.replace(part, part + "_act")
        renamed["module." + name] = t
    renamed["module.cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    renamed["module.bert.embeddings.position_ids"] = torch.arange(S).reshape(1, S)
    return renamed


def write_nvidia(model, directory):
    save_file(nvidia_names(own_tensors(model)), directory / "model.safetensors")
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
            "hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size",
            "initializer_range")
    config = {k: getattr(model.config, k) for k in keys} | {"vocab_size": len(PIECES)}
    (directory / "bert_config.json").write_text(json.dumps(config, indent=4))
    (directory / "vocab.txt").write_text("".join(p + "\n" for p in PIECES))


def own_tensors(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items() if "decoder" not in k}


def write_case(name, cls, dtype, rows, directory, **save):
    model = make_model(cls, rows).to(dtype)
    if name == "nvidia":
        write_nvidia(model, directory)
    else:
        model.save_pretrained(directory, **save)
        BertTokenizer(vocab={p: i for i, p in enumerate(PIECES)}, do_lower_case=name != "masked_lm").save_pretrained(directory)
    return model


def main():
    cases = [("pretraining", BertForPreTraining, torch.float32, 37, {}), ("masked_lm", BertForMaskedLM, torch.bfloat16, 37, {}),
             ("question_answering", BertForQuestionAnswering, torch.float32, 37, {"max_shard_size": "10KB"}),
             ("encoder", BertModel, torch.float16, 40, {}), ("nvidia", BertForPreTraining, torch.float32, 40, {}),
             ("fp16_shards", BertModel, torch.float16, 37, {"max_shard_size": "4KB"}),
             ("bf16_shards", BertForPreTraining, torch.bfloat16, 37, {"max_shard_size": "4KB"})]
    batch = make_batch()
    tensors = batch_tensors(batch)
    for name, cls, dtype, rows, save in cases:
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            model = write_case(name, cls, dtype, rows, directory, **save)
            tensors |= file_tensors(name, directory)
        tensors |= {f"{name}:{k}": v for k, v in outputs(model, batch).items()}
    save_file(tensors, pathlib.Path(__file__).with_name("hf_dirs.safetensors"))


main()
