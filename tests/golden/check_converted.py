#!/usr/bin/env python3
"""Holds what kiln convert writes against PyTorch and `transformers`: torch.load(weights_only=True) takes every ckpt_N.pt, its
state dict is that of the scripts, and both it and the Hugging Face directory give kiln's logits within
1e-5 x max(1, max |logit|).

usage: check_converted.py KILN TEST_API   the built programs `kiln` and `tests/test_api`, which unpacks small models
Needs torch, transformers, safetensors.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file

import check_transformers as peer
from make_exports import CLASSIFIERS, TASKS

WORDS, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


def outputs_of(model, kiln):
    ids, types = kiln["ids"].long(), kiln["types"].long()
    mask = (torch.arange(ids.shape[1])[None] < kiln["lengths"][:, None]).long()
    return peer.wanted_outputs(model, (ids, types, mask), model.config.vocab_size)


def load_script(path, model):
    """A script's state dict in the class of `transformers`: other names of layers, no padding of the vocabulary."""
    state = torch.load(path, weights_only=True)["model"]
    words = state[WORDS]
    assert words.shape[0] % 8 == 0 and words[model.config.vocab_size :].abs().sum() == 0, words.shape
    has_words = DECODER in state
    assert not has_words or state[DECODER].data_ptr() == words.data_ptr(), "the decoder is not tied"
    cut = {k: v[: model.config.vocab_size] if v.shape[0] == words.shape[0] else v for k, v in state.items()}
    renamed = {k.replace(".dense_act.", ".dense."): v for k, v in cut.items()}
    if type(model).__name__ == "BertModel":
        renamed = {k.removeprefix("bert."): v for k, v in renamed.items()}
    if has_words:
        renamed["cls.predictions.decoder.bias"] = renamed["cls.predictions.bias"]
    wrong = model.float().load_state_dict(renamed, strict=False)
    assert not wrong.missing_keys and not wrong.unexpected_keys, wrong
    return model.double()


def check(case, task, scratch):
    logits = scratch / f"{case}.safetensors"
    for form in ("huggingface", "pt"):
        said = peer.kiln("convert", "--model", scratch / "from" / case, "--format", form, "--output_dir", scratch / form / case,
                         "--logits", logits)
        assert "before and after: 0 (" in said, said
    model, kiln = peer.load_model(task, scratch / "huggingface" / case), load_file(logits)
    peer.compare(f"{case}, huggingface", outputs_of(model, kiln), kiln)
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(7)
    peer.compare(f"{case}, pt", outputs_of(load_script(scratch / "pt" / case / "ckpt_0.pt", model), kiln), kiln)


def main():
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        subprocess.run([peer.TOOL, "unpack", scratch / "from"], check=True)
        for case, task in (TASKS | CLASSIFIERS).items():
            check(case, task, scratch)


if __name__ == "__main__":
    main()
