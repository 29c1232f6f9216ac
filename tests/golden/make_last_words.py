#!/usr/bin/env python3
"""Makes tests/golden/last_words.json: whether the small GPT-2 and BLOOM of decoders.safetensors guess the last words of texts, by `transformers`.

"texts" are the texts; CASE has for each its number of tokens, its nats, and whether each of them is the most probable one.  Among the texts are
some that a model guesses.  Computed in float64.

Run: python make_last_words.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5)
"""
import json
import pathlib
import tempfile

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
POSITIONS, PIECES = 24, 262  # BLOOM reads any length
TEXTS = ["In the beginning the end", "and the hand of the sea.\n", "the the\nthe", "a \u00e9t\u00e9", "On the first day of the week they went to the house of the king",
         "two  spaces before the  word", "trailing blanks  \n\n"]


def unpack(name, directory):
    with safe_open(HERE / "decoders.safetensors", "pt") as f:
        for key in f.keys():
            if key.startswith(name + "/"):
                (directory / key.removeprefix(name + "/")).write_bytes(bytes(f.get_tensor(key).tolist()))
    return AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").double().eval(), Tokenizer.from_file(str(directory / "tokenizer.json"))


def last_word(model, tokenizer, text):
    text = text.rstrip()
    cut = max(text.rfind(c) for c in " \t\r\n")
    ids, before = tokenizer.encode(text).ids, tokenizer.encode(text[:cut]).ids
    assert ids[: len(before)] == before
    n = len(ids) - len(before)
    ids = torch.tensor(ids[-POSITIONS - 1 :] if model.config.model_type == "gpt2" else ids)
    with torch.no_grad():
        log_p = model(ids[None, :-1]).logits[0, -n:, :PIECES].log_softmax(-1)
    return {"tokens": n, "nats": -log_p.gather(1, ids[-n:, None]).sum().item(), "guessed": bool((log_p.argmax(-1) == ids[-n:]).all())}


def find_guessed(model, tokenizer):
    """A text of two words of one letter, of which the model guesses the second: a space, then a letter."""
    letters = [chr(c) for c in range(33, 127)]
    texts = [a + b + " " + c for a in letters for b in letters[::3] for c in letters[::9]]
    ids = torch.tensor([tokenizer.encode(t).ids if len(tokenizer.encode(t).ids) == 4 else [0] * 4 for t in texts])
    with torch.no_grad():
        best = model(ids[:, :-1]).logits[:, 1:, :PIECES].argmax(-1)
    return next((texts[i] for i in (best == ids[:, 2:]).all(1).nonzero().flatten().tolist()), None)


def main():
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        cases = {"gpt2": unpack("gpt2", pathlib.Path(a)), "bloom": unpack("bloom", pathlib.Path(b))}
        texts = TEXTS + [t for t in (find_guessed(*c) for c in cases.values()) if t]
        golden = {"texts": texts} | {name: [last_word(*c, t) for t in texts] for name, c in cases.items()}
    (HERE / "last_words.json").write_text(json.dumps(golden, indent=1) + "\n")


main()
