#!/usr/bin/env python3
"""Makes tests/golden/torch_files.safetensors: files as torch.save writes them, and the tensors in them.

The tensor "FILE" (U8) is a file, "FILE:NAME" is what its tensor NAME must read as.  Classes of programs that need not be
here (DeepSpeed's, the data set of the script that saves) are made up under their names: a pickle holds names alone.

Run: python make_torch_files.py   (needs torch, safetensors; made with torch 2.15)
"""
import argparse
import collections
import enum
import io
import pathlib
import random
import sys
import types

import numpy
import torch
from safetensors.torch import save_file

torch.manual_seed(5)
out = {}


def add(name, thing, tensors, **options):
    """`tensors` are those that reading the file must give, by their dotted names."""
    file = io.BytesIO()
    torch.save(thing, file, **options)
    out[name] = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
    for key, t in tensors.items():
        t = t.detach().clone(memory_format=torch.contiguous_format)
        out[f"{name}:{key}"] = t.contiguous().view(torch.uint8) if t.dtype.is_floating_point and t.element_size() == 1 else t


def place(module, thing):
    """Puts a class under its name into a module, which is made for it if need be."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[: i + 1]), types.ModuleType(parts[i]))
    setattr(sys.modules[module], thing.__name__, thing)
    return thing


def make_class(module, name):
    return place(module, type(name, (), {"__module__": module}))


def with_state(cls, **state):
    thing = cls.__new__(cls)
    thing.__dict__.update(state)
    return thing


def flat(prefix, thing):
    """Names and tensors of nested dicts and lists, as kiln calls them."""
    if isinstance(thing, torch.Tensor):
        return {prefix: thing}
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, (list, tuple)) else ()
    found = {}
    for key, value in items:
        found.update(flat(f"{prefix}.{key}" if prefix else str(key), value))
    return found


every = {
    "f32": torch.randn(2, 3), "f64": torch.randn(3, dtype=torch.float64), "f16": torch.randn(4).half(),
    "bf16": torch.randn(2, 2).bfloat16(), "i64": torch.tensor([-1, 2**40]), "i32": torch.tensor([[7, -8]], dtype=torch.int32),
    "u8": torch.arange(5, dtype=torch.uint8), "bool": torch.tensor([True, False, True]), "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3), "e4m3": torch.randn(3).to(torch.float8_e4m3fn), "e5m2": torch.randn(3).to(torch.float8_e5m2),
}
unreadable = {"i16": torch.tensor([1, 2], dtype=torch.int16), "i8": torch.tensor([1], dtype=torch.int8),
              "c64": torch.ones(2, dtype=torch.complex64), "u16": torch.tensor([9], dtype=torch.uint16)}
add("dtypes.pt", {**every, **unreadable}, every)
add("protocol4.pt", {**every, "set": {1}, "long": 1 << 80, "bytes": b"12"}, every, pickle_protocol=4)
legacy = {k: v for k, v in every.items() if "e4" not in k and "e5" not in k}
add("legacy.pt", legacy, legacy, _use_new_zipfile_serialization=False)

m = torch.arange(24.0).reshape(2, 3, 4)
strides = {"whole": m, "transposed": m[0].t(), "permuted": m.permute(2, 0, 1), "column": m[1, :, 2], "part": m[1:, 1:],
           "every_other": m[:, ::2, 1::2], "expanded": m[0, 0, :1].expand(3, 5), "tied": m, "one_row": m[1:, :1].transpose(0, 1)}
add("strides.pt", strides, strides)
add("legacy_strides.pt", strides, strides, _use_new_zipfile_serialization=False)
add("bare.pt", m[0].t(), {"tensor": m[0].t()})


plain = torch.randn(2, 2)
plain.note = "an attribute makes it another call"
parameter = torch.nn.Parameter(torch.randn(3))
noted = torch.nn.Parameter(torch.randn(2))
noted.ds_id = 3
kinds = {"plain": plain, "parameter": parameter, "noted": noted, "sizes": [torch.Size([1, 2]), torch.device("cpu"), torch.bfloat16]}
add("kinds.pt", kinds, {k: v for k, v in kinds.items() if k != "sizes"})


class FromDevice:
    """A tensor of a device that PyTorch keeps as a tensor of the CPU, as it does for XLA."""

    def __init__(self, t):
        self.t = t

    def __reduce__(self):
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (self.t, self.t.dtype, "cpu", False)


add("device.pt", {"w": FromDevice(m[0])}, {"w": m[0]})

# ckpt_N.pt of the NVIDIA and Habana scripts, the loader of the data in it
names = ["module.bert.embeddings.word_embeddings.weight", "module.bert.pooler.dense_act.weight", "module.cls.predictions.bias"]
state = collections.OrderedDict((n, torch.randn(4, 2)) for n in names)
state._metadata = collections.OrderedDict([("", {"version": 1})])
optimizer = {"state": {0: {"step": 20, "exp_avg": torch.randn(4, 2), "exp_avg_sq": torch.randn(4, 2)}},
             "param_groups": [{"lr": 6e-3, "betas": (0.9, 0.999), "params": [0], "bias_correction": True}]}
dataset = make_class("__main__", "pretraining_dataset")
dataset = with_state(dataset, input_file="a.hdf5", max_pred_length=20, inputs=[numpy.arange(6, dtype=numpy.int32)])
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(2)), batch_size=2)
loader = with_state(type(loader), **{**loader.__dict__, "dataset": dataset})
checkpoint = {"model": state, "optimizer": optimizer, "master params": [torch.randn(4, 2)], "files": [1, "a.hdf5", "b.hdf5"],
              "epoch": 3, "data_loader": loader}
add("ckpt_20.pt", checkpoint, flat("", {k: v for k, v in checkpoint.items() if k != "data_loader"}))

# DeepSpeed's: what stands beside the tensors has classes of its own
address = make_class("deepspeed.utils.tensor_fragment", "fragment_address")
scaler = make_class("deepspeed.runtime.fp16.loss_scaler", "LossScaler")
config = "deepspeed.runtime.zero.config"
stage = place(config, enum.Enum("ZeroStageEnum", {"optimizer_states": 1}, module=config))
module = collections.OrderedDict((n.replace("module.", ""), torch.randn(2, 3).bfloat16()) for n in names)
model_states = {"module": module, "buffer_names": [], "optimizer": None, "param_shapes": [collections.OrderedDict(
    (n, t.shape) for n, t in module.items())], "lr_scheduler": {"last_batch_iteration": 9}, "skipped_steps": 0, "global_steps": 10,
    "global_samples": 640, "dp_world_size": 2, "mp_world_size": 1, "ds_config": {"zero_optimization": {"stage": 1}},
    "ds_version": "0.7.7", "args": argparse.Namespace(seed=42, rate=1e-3, path=pathlib.PosixPath("a")), "files": ["a.hdf5"], "epoch": 0}
add("mp_rank_00_model_states.pt", model_states, flat("", {"module": module}))
fragments = [collections.OrderedDict((n, with_state(address, numel=6, start=6 * i)) for i, n in enumerate(names[:2]))]
optim_states = {"optimizer_state_dict": {
    "clip_grad": 1.0, "zero_stage": stage.optimizer_states, "partition_count": 2, "loss_scaler": with_state(scaler, cur_scale=1.0),
    "base_optimizer_state": {"state": {0: {"exp_avg": torch.randn(12), "exp_avg_sq": torch.randn(12)}}, "param_groups": []},
    "single_partition_of_fp32_groups": [torch.randn(12)], "group_paddings": [0], "param_slice_mappings": fragments,
    "random": (numpy.float64(1.5), numpy.random.RandomState(1).get_state()[0])}, "ds_version": "0.7.7"}
add("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", optim_states, flat("", optim_states))

rng_state = {"random": random.Random(1).getstate(), "np": numpy.random.RandomState(1).get_state(), "torch": torch.get_rng_state()[:40]}
state = {"version": 1, "n_processed_files": 2, "step_in_current_file": 7, "rng_state": rng_state}
add("state_0", state, {"rng_state.torch": rng_state["torch"]})

script = io.BytesIO()
torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), script)
out["script.pt"] = torch.frombuffer(bytearray(script.getvalue()), dtype=torch.uint8)

save_file(out, pathlib.Path(__file__).parent / "torch_files.safetensors")
