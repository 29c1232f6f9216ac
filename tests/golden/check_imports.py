#!/usr/bin/env python3
"""Holds every importer of kiln against PyTorch: models that `transformers` draws are written in every form in which other
programs leave them (make_imports.py, of which these are larger), kiln reads each, and its logits are within
1e-5 x max(1, max |logit|) of PyTorch's in float64.  Prints a table of the largest differences.

usage: check_imports.py KILN [PYTHON]   PYTHON has tensorflow, which writes the TensorFlow forms; without it they are left out
Needs torch, transformers, safetensors.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file

import make_imports

HERE = pathlib.Path(__file__).resolve().parent
SIZES = make_imports.SIZES | {"hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 200,
                              "max_position_embeddings": 64}
FORMS = {"pretraining": ["safetensors/model.safetensors", "safetensors", "bin/pytorch_model.bin", "bin", "ckpt/ckpt_20.pt",
                         "states/mp_rank_00_model_states.pt", "states"],
         "qa": ["safetensors", "bin_shards", "ckpt/model.ckpt-3.pt"]}
TENSORFLOW = {"pretraining": ["tf/bert_model.ckpt", "tf"], "qa": ["tf/model.ckpt-8"]}


def unpack(file, directory):
    for name, data in load_file(file).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data.numpy().tobytes())


def logits_of(model, kiln):
    ids, types = kiln["ids"].long(), kiln["types"].long()
    mask = (torch.arange(ids.shape[1])[None] < kiln["lengths"][:, None]).long()
    with torch.no_grad():
        out = model(input_ids=ids, token_type_ids=types, attention_mask=mask)
    if "prediction_logits" in out:
        return {"mlm": out.prediction_logits[mask.bool()], "nsp": out.seq_relationship_logits}
    return {"qa": torch.stack([out.start_logits, out.end_logits], -1)[mask.bool()]}


def check(kiln, name, model, scratch):
    logits = scratch / "logits.safetensors"
    subprocess.run([kiln, "convert", "--model", scratch / name, "--output_dir", scratch / "converted", "--logits", logits],
                   check=True, capture_output=True)
    read = load_file(logits)
    for output, wanted in logits_of(model, read).items():
        difference, scale = (read[output].double() - wanted).abs().max().item(), max(1.0, wanted.abs().max().item())
        print(f"| `{name}` | {output} | {difference:.1e} | {scale:.2f} |")
        assert difference <= 1e-5 * scale, f"{name}: {output} differs by {difference}"


def main(kiln, python=None):
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        models = make_imports.make_torch(scratch / "forms", seed=23, sizes=SIZES)
        if python is not None:
            subprocess.run([python, HERE / "make_imports.py", "tensorflow", scratch / "forms"], check=True, capture_output=True)
        unpack(scratch / "forms", scratch)
        print("| form | output | largest difference | largest logit, or 1 |\n|---|---|---|---|")
        for task, forms in FORMS.items():
            for form in forms + (TENSORFLOW[task] if python is not None else []):
                check(kiln, f"{task}_{form}", models[task].double(), scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
