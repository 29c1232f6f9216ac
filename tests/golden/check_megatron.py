#!/usr/bin/env python3
"""Checks what kiln convert writes for Megatron-DeepSpeed with PyTorch: the files, keys and shapes that the loaders of DeepSpeed and Megatron look for, and the values.

Folders of the small decoders of tests/golden/decoder_files.safetensors, for 1, 2 and 4 ranks of tensor parallelism in 1 and 2 stages, are read by torch.load.  Each file has the
keys that PipelineEngine and Megatron's checkpointing read, in the shapes of its rank; joined as make_decoder_files.py cuts them, tensors are those of `transformers`.

usage: check_megatron.py KILN
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from make_decoder_files import BY_COL, BY_ROW, L, N, PIECES, STEP, H, megatron_of_bloom, megatron_of_gpt2
from safetensors import safe_open
from transformers import BloomForCausalLM, GPT2LMHeadModel

# of DeepSpeed's engine.load_checkpoint and PipelineEngine, and of Megatron's client state
KEYS = {"module", "buffer_names", "optimizer", "param_shapes", "lr_scheduler", "sparse_tensor_module_names", "skipped_steps", "global_steps", "global_samples", "dp_world_size",
        "mp_world_size", "ds_config", "ds_version", "args", "checkpoint_version", "iteration", "tokens"}


def unpack(case, directory):
    with safe_open(pathlib.Path(__file__).with_name("decoder_files.safetensors"), "pt") as f:
        for name in f.keys():
            if name.startswith(f"{case}/"):
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(f.get_tensor(name).numpy().tobytes())
    return directory / case


def dim_of(name):
    return 0 if name.endswith(BY_ROW) else 1 if name.endswith(BY_COL) else None


def check_layers(folder, modules, ranks):
    names = {f"layer_{number:02d}-model_{rank:02d}-model_states.pt" for number in modules for rank in range(ranks)}
    assert {p.name for p in folder.glob("layer_*")} == names, sorted(p.name for p in folder.iterdir())
    for number, module in modules.items():
        states = [torch.load(folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt", weights_only=True) for rank in range(ranks)]
        for state in states:
            assert list(state) == list(module) or set(state) == set(module), (number, list(state))
        for name, wanted in module.items():
            parts, dim = [s[name] for s in states], dim_of(name)
            assert dim is not None or all(torch.equal(p, parts[0]) for p in parts), name
            whole = parts[0] if dim is None else torch.cat(parts, dim)
            n = PIECES if name == "word_embeddings.weight" else whole.shape[0]
            assert len({p.shape for p in parts}) == 1 and torch.equal(whole[:n], wanted.detach().float()[:n]), (number, name)


def check_ranks(folder, modules, ranks, stages):
    assert {p.name for p in folder.glob("mp_rank_*")} == {f"mp_rank_{k:02d}_model_states.pt" for k in range(ranks * stages)}
    seen = set()
    for k in range(ranks * stages):
        x = torch.load(folder / f"mp_rank_{k:02d}_model_states.pt", weights_only=False)
        args = x["args"]
        assert KEYS <= set(x) and isinstance(args, argparse.Namespace), KEYS - set(x)
        assert (args.num_layers, args.hidden_size, args.num_attention_heads) == (L, H, N) and args.padded_vocab_size % (128 * ranks) == 0, args
        assert (args.tensor_model_parallel_size, args.pipeline_model_parallel_size) == (ranks, stages) and x["iteration"] == STEP
        for name, shape in x["param_shapes"][0].items():
            number, rest = (1, name.removeprefix("tied_modules.embed.")) if name.startswith("tied_modules") else (int(name.split(".")[0]), name.split(".", 1)[1])
            layer = torch.load(folder / f"layer_{number:02d}-model_{k % ranks:02d}-model_states.pt", weights_only=True)
            assert shape == layer[rest].shape, (k, name, shape)
            seen.add((number, rest))
    assert seen == {(number, name) for number, module in modules.items() for name in module}


def main():
    kiln = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        directory = pathlib.Path(d)
        for case, cls, modules_of in (("gpt2", GPT2LMHeadModel, megatron_of_gpt2), ("bloom", BloomForCausalLM, megatron_of_bloom)):
            source = unpack(case, directory)
            modules = modules_of(cls.from_pretrained(source))
            for ranks in (1, 2, 4):
                for stages in (1, 2):
                    out = directory / f"{case}_{ranks}_{stages}"
                    subprocess.run([kiln, "convert", "--to", "megatron_deepspeed", "--model", source, "--tp", str(ranks), "--pp", str(stages), "--step", str(STEP),
                                    "--output_dir", out, "--compare_logits", "false"], check=True, capture_output=True)
                    folder = out / (out / "latest").read_text()
                    check_layers(folder, modules, ranks)
                    check_ranks(folder, modules, ranks, stages)
                    assert (out / "latest_checkpointed_iteration.txt").read_text() == str(STEP)
            print(f"{case}: 6 folders of Megatron-DeepSpeed have the keys, shapes and values")


if __name__ == "__main__":
    main()
