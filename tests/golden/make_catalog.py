#!/usr/bin/env python3
"""Makes tests/golden/catalog.safetensors: the model "pretraining" of imports.safetensors as a card of Habana's catalog has it.

The tensor "catalog/FILE" (U8) is a file.  ckpt_8601.pt is what the BERT script saves on Gaudi with PyTorch 1.12 or 1.13, which knows no storage
of an "hpu": each tensor is an array of numpy (torch._utils._rebuild_device_tensor_from_numpy), the names are those of layers with their
activations inside, and the vocabulary is padded.  No PyTorch is needed: stand-ins of its names are pickled.

Run: python make_catalog.py    (needs numpy; made with numpy 2.4, whose arrays are named as those before 2.0)
"""
import io
import json
import pathlib
import pickle
import struct
import sys
import types
import zipfile

import numpy as np

GOLDEN = pathlib.Path(__file__).parent
PADDED = 64


def read_safetensors(data):
    n = struct.unpack("<Q", data[:8])[0]
    types_of = {"F32": "<f4", "U8": "u1"}
    return {name: np.frombuffer(data[8 + n:][slice(*t["data_offsets"])], types_of[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8:8 + n]).items() if name != "__metadata__"}


def write_safetensors(path, files):
    header, at = {}, 0
    for name, data in files.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(files.values()))


class Dtype:
    __module__ = "torch"

    def __reduce__(self):
        return "float32"


def _rebuild_device_tensor_from_numpy():
    raise NotImplementedError


_rebuild_device_tensor_from_numpy.__module__ = "torch._utils"
torch = types.ModuleType("torch")
torch.float32 = Dtype()
utils = types.ModuleType("torch._utils")
utils._rebuild_device_tensor_from_numpy = _rebuild_device_tensor_from_numpy
sys.modules.update({"torch": torch, "torch._utils": utils})


class Tensor:
    def __init__(self, values):
        self.values = values

    def __reduce__(self):
        return _rebuild_device_tensor_from_numpy, (self.values, torch.float32, "hpu:0", False)


def saved(thing):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        data = pickle.dumps(thing, protocol=2).replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
        for name, part in (("archive/data.pkl", data), ("archive/version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(name), part)
    return file.getvalue()


files = read_safetensors((GOLDEN / "imports.safetensors").read_bytes())
model = read_safetensors(files["pretraining_safetensors/model.safetensors"].tobytes())
weights = {}
for name, values in model.items():
    if name.endswith("word_embeddings.weight") or name == "cls.predictions.bias":
        values = np.concatenate([values, np.zeros((PADDED - values.shape[0], *values.shape[1:]), np.float32)])
    for old in ("intermediate.dense.", "pooler.dense.", "transform.dense."):
        name = name.replace(old, old.replace("dense", "dense_act"))
    weights[name] = Tensor(np.ascontiguousarray(values))
weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]
moments = {"step": 8601, "exp_avg": Tensor(np.zeros(2, np.float32)), "exp_avg_sq": Tensor(np.zeros(2, np.float32))}
checkpoint = {"model": weights, "optimizer": {"state": {0: moments}, "param_groups": [{"lr": 0.0, "params": [0]}]}, "files": [0], "epoch": 1,
              "data_loader": None}
write_safetensors(GOLDEN / "catalog.safetensors",
                  {"catalog/ckpt_8601.pt": saved(checkpoint),
                   "catalog/bert_config.json": files["pretraining_ckpt/bert_config.json"].tobytes(),
                   "catalog/vocab.txt": files["pretraining_ckpt/vocab.txt"].tobytes()})
