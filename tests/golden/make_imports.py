#!/usr/bin/env python3
"""Makes tests/golden/imports.safetensors: two small models in every form that other programs leave them in.

The tensor "CASE/FILE" (U8) is a file.  CASE is "pretraining" or "qa", and a form: safetensors, bin and bin_shards as
`transformers` has them, ckpt of the NVIDIA and Habana scripts (padded vocabulary, layers with their activations inside),
states of DeepSpeed, tf of Google's archives.  All values are exact in bf16, so that every form has the same parameters to the
bit.  The rest are files that are to be refused.

Run: python make_imports.py torch       (needs torch, transformers, safetensors; made with torch 2.15 and transformers 5)
     python make_imports.py tensorflow  (after it; needs tensorflow-cpu, safetensors; made with tensorflow 2.21)
check_imports.py makes larger models with these functions, in a file that follows the argument.
"""
import collections
import io
import json
import pathlib
import re
import sys
import tempfile

import numpy as np

GOLDEN = pathlib.Path(__file__).parent / "imports.safetensors"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [c for c in "abcdefghijklmnopqrstuvwxyz"] + ["##" + c for c in "abcdefghijklmnopqrstuvwxyz"]
PADDED = 64
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "hidden_act": "gelu",
         "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 24, "type_vocab_size": 2,
         "initializer_range": 0.02, "vocab_size": len(PIECES)}
VOCABULARY = "".join(p + "\n" for p in PIECES).encode()


def as_u8(data):
    return np.frombuffer(data, dtype=np.uint8)


def make_torch(golden=GOLDEN, seed=11, sizes=SIZES):
    """Returns the models by their task."""
    import torch
    from safetensors.torch import save as save_safetensors
    from safetensors.numpy import save_file
    from transformers import BertConfig, BertForPreTraining, BertForQuestionAnswering

    torch.manual_seed(seed)
    out = {}

    def saved(thing):
        file = io.BytesIO()
        torch.save(thing, file)
        return file.getvalue()

    def add(case, files, config="config.json"):
        for name, data in files.items():
            out[f"{case}/{name}"] = as_u8(data)
        if config is not None:
            model_type = {"model_type": "bert"} if config == "config.json" else {}
            out[f"{case}/{config}"] = as_u8(json.dumps(model_type | sizes, indent=1).encode())
            out[f"{case}/vocab.txt"] = as_u8(VOCABULARY)

    def make(cls):
        model = cls(BertConfig(**sizes)).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_((torch.randn_like(p) * 0.3).bfloat16().float())
        return model

    def in_scripts(state, rows):
        """A state dict under the names of the scripts, its vocabulary padded to `rows`; tied tensors stay tied."""
        renamed, made = collections.OrderedDict(), {}
        for name, t in state.items():
            if t.data_ptr() not in made:
                made[t.data_ptr()] = torch.cat([t, torch.full((rows - len(PIECES),) + t.shape[1:], 7.0)]) if t.dim() and t.shape[0] == len(PIECES) else t
            for part in ("intermediate.dense", "pooler.dense", "transform.dense"):
                name = name.replace(part, part + "_act")
            renamed[name] = made[t.data_ptr()]
        return renamed

    def wrapped(prefix, state):
        return collections.OrderedDict((prefix + k, v) for k, v in state.items())

    def optimizer_of(state):
        first = next(iter(state.values()))
        return {"state": {0: {"step": 20, "exp_avg": torch.zeros_like(first)[:1]}}, "param_groups": [{"lr": 6e-3, "params": [0]}]}

    models = {"pretraining": make(BertForPreTraining), "qa": make(BertForQuestionAnswering)}
    for task, model in models.items():
        state = model.state_dict()
        own = {k: v.clone() for k, v in state.items() if "decoder" not in k and not k.endswith("position_ids")}
        add(f"{task}_safetensors", {"model.safetensors": save_safetensors(own)})
        scripts = in_scripts(state, PADDED)
        # the attention of one layer as its transpose, as a checkpoint has it that was written column by column
        query = "bert.encoder.layer.1.attention.self.query.weight"
        scripts[query] = scripts[query].t().contiguous().t()
        if task == "pretraining":
            add("pretraining_bin", {"pytorch_model.bin": saved(state)})
            checkpoint = {"model": wrapped("module.", scripts), "optimizer": optimizer_of(state), "master params": [torch.zeros(3)],
                          "files": [0, "a.hdf5"], "epoch": 0}
            add("pretraining_ckpt", {"ckpt_20.pt": saved(checkpoint)}, "bert_config.json")
            states = {"module": {k: v.bfloat16() for k, v in scripts.items()}, "optimizer": optimizer_of(state), "global_steps": 10,
                      "dp_world_size": 2, "ds_version": "0.7.7"}
            add("pretraining_states", {"mp_rank_00_model_states.pt": saved(states)}, "bert_config.json")
        else:
            names = sorted(state)
            index, files = {}, {}
            for i in range(2):
                name = f"pytorch_model-{i + 1:05d}-of-00002.bin"
                part = {n: state[n].clone() for n in names[i::2]}
                files[name] = saved(part)
                index |= {n: name for n in part}
            total = sum(t.numel() * t.element_size() for t in state.values())
            files["pytorch_model.bin.index.json"] = json.dumps({"metadata": {"total_size": total}, "weight_map": index}).encode()
            add("qa_bin_shards", files)
            add("qa_ckpt", {"model.ckpt-3.pt": saved({"model": wrapped("module._orig_mod.", scripts)})}, "bert_config.json")
    words, bias = "bert.embeddings.word_embeddings.weight", "bert.encoder.layer.0.output.dense.bias"
    few = {words: models["qa"].state_dict()[words]}
    add("bad", {
        "only_optimizer.pt": saved({"optimizer": optimizer_of(few), "epoch": 1}),
        "other_prefix.pt": saved({"network": {"encoder_stack": torch.zeros(2)}}),
        "no_tensor.pt": saved({"epoch": 1}),
        "lacks.pt": saved({"model": few}),
        "shape.pt": saved({"model": few | {bias: torch.zeros(9)}}),
        "integers.pt": saved({"model": few | {bias: torch.zeros(16, dtype=torch.int16)}}),
        "refused.pt": saved({"model": few, "call": io.BytesIO}),
        "untied.pt": saved({"model": few | {"cls.predictions.decoder.weight": torch.zeros(16, len(PIECES)).t()}}),
    }, "bert_config.json")
    save_file(out, golden)
    return models


def google_name(name):
    """The name and the transposition of a tensor as run_pretraining.py and run_squad.py of google-research/bert have them."""
    for head, new in (("qa_outputs.", "cls/squad/output_"), ("cls.seq_relationship.", "cls/seq_relationship/output_")):
        if name.startswith(head):
            return new + {"weight": "weights", "bias": "bias"}[name[len(head):]], False
    if name == "cls.predictions.bias":
        return "cls/predictions/output_bias", False
    name = re.sub(r"layer\.(\d+)\.", r"layer_\1.", name)
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    if name.endswith("_embeddings.weight"):
        return name[: -len(".weight")].replace(".", "/"), False
    if name.endswith(".weight"):
        return (name[: -len("weight")] + "kernel").replace(".", "/"), True
    return name.replace(".", "/"), False


def make_tensorflow(golden=GOLDEN):
    import tensorflow as tf
    from safetensors.numpy import load, load_file, save_file

    out = {k: v for k, v in load_file(golden).items() if "_tf/" not in k}
    for task, prefix in (("pretraining", "bert_model.ckpt"), ("qa", "model.ckpt-8")):
        tensors = {"global_step": np.int64(20)}
        for name, value in load(out[f"{task}_safetensors/model.safetensors"].tobytes()).items():
            new, is_kernel = google_name(name)
            tensors[new] = value.T.copy() if is_kernel else value
            if name.endswith("LayerNorm.bias") or name.endswith("query.weight"):
                tensors |= {f"{new}/{m}": np.zeros_like(tensors[new])[:1] for m in ("adam_m", "adam_v", "LAMB", "LAMB_1")}
        with tempfile.TemporaryDirectory() as d:
            tf.raw_ops.SaveV2(prefix=f"{d}/{prefix}", tensor_names=list(tensors), shape_and_slices=[""] * len(tensors),
                              tensors=[tf.constant(v) for v in tensors.values()])
            for file in sorted(pathlib.Path(d).iterdir()):
                out[f"{task}_tf/{file.name}"] = as_u8(file.read_bytes())
        sizes = {k: v for k, v in json.loads(out[f"{task}_safetensors/config.json"].tobytes()).items() if k != "model_type"}
        out[f"{task}_tf/bert_config.json"] = as_u8(json.dumps(sizes, indent=1).encode())
        out[f"{task}_tf/vocab.txt"] = as_u8(VOCABULARY)
    save_file(out, golden)


if __name__ == "__main__":
    {"torch": make_torch, "tensorflow": make_tensorflow}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
