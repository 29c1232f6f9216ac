"""Python's kiln beside the pipelines of transformers on the same models.

usage: check_python.py MODELS DECODERS; MODELS/entailment is a classifier of texts with the label "Entailment"."""
import importlib.util
import sys
import warnings

import numpy as np
import torch
import transformers

import kiln

MODELS, DECODERS = sys.argv[1:3]
TEXTS = ["a mad dog, had.", "\u00c9lan pied; q a", "ice", "a a b b"]
warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.item() if hasattr(value, "item") else value


def expect(got, wanted, what):
    if isinstance(wanted, float):
        assert abs(got - wanted) < 1e-4, (what, got, wanted)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted), (what, got, wanted)
        for k in wanted:
            expect(got[k], wanted[k], f"{what}.{k}")
    elif isinstance(wanted, list):
        assert isinstance(got, list) and len(got) == len(wanted), (what, got, wanted)
        for i, (g, w) in enumerate(zip(got, wanted)):
            expect(g, w, f"{what}[{i}]")
    else:
        assert got == wanted, (what, got, wanted)


class Both:
    """A pipeline of kiln's and of transformers', whose answers must be the same."""

    n_calls = 0

    def __init__(self, task, path, **settings):
        self.kiln = kiln.pipeline(task, model=path, **settings)
        self.peer = transformers.pipeline(task, model=path, device="cpu", dtype=torch.float32, **settings)

    def check(self, *inputs, **settings):
        Both.n_calls += 1
        expect(plain(self.kiln(*inputs, **settings)), plain(self.peer(*inputs, **settings)), f"{inputs} {settings}")


for strategy in ("none", "simple", "first", "average", "max"):
    for ignored in ({}, {"ignore_labels": []}, {"ignore_labels": ["PER", "B-LOC"]}):
        both = Both("token-classification", f"{MODELS}/tokens", aggregation_strategy=strategy, **ignored)
        for text in [*TEXTS, TEXTS]:
            both.check(text)
both = Both("fill-mask", f"{MODELS}/masked_lm")
for text in ("a [MASK] had a dog.", "[MASK] e", "a [MASK] had a [MASK]."):
    both.check(text)
    both.check(text, top_k=3, targets=["a", "b", "cab"])
both.check(["a [MASK]", "[MASK] b"])
for name in ("single", "multi", "regression"):
    for settings in ({}, {"top_k": None}, {"top_k": 2}):
        both = Both("text-classification", f"{MODELS}/{name}", **settings)
        for function in ({}, {"function_to_apply": "none"}, {"function_to_apply": "sigmoid"}, {"function_to_apply": "softmax"}):
            for text in [*TEXTS, TEXTS, {"text": "a dog", "text_pair": "a man"}]:
                both.check(text, **function)
            for top_k in (None, 1, 2):
                both.check(TEXTS[0], top_k=top_k, **function)
both = Both("zero-shot-classification", f"{MODELS}/entailment")
for labels in (["a", "bad", "dog"], ["dog"], "a, dog"):
    for several in (False, True):
        both.check(TEXTS[3], labels, hypothesis_template="a {}", multi_label=several)
both = Both("feature-extraction", f"{MODELS}/encoder")
for text in [*TEXTS, TEXTS]:
    both.check(text)
for name in ("gpt2", "bloom"):
    both = Both("text-generation", f"{DECODERS}/{name}")
    for text in ("and the", "a", ["and", "the"]):
        for settings in ({}, {"return_full_text": False}):
            both.check(text, max_new_tokens=10, do_sample=False, **settings)
if importlib.util.find_spec("sentence_transformers"):
    from sentence_transformers import SentenceTransformer

    for name in ("encoder", "masked_lm"):  # no files of its own: both pool by the mean
        ours = kiln.SentenceTransformer(f"{MODELS}/{name}")
        theirs = SentenceTransformer(f"{MODELS}/{name}", device="cpu", model_kwargs={"dtype": torch.float32})
        for precision in ("float32", "binary", "ubinary", "int8", "uint8"):
            got, wanted = (m.encode(TEXTS, precision=precision, convert_to_numpy=True) for m in (ours, theirs))
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), (name, precision, got.shape, wanted.shape)
            # rounding may take a number over a step
            apart = np.abs(got.astype(float) - wanted.astype(float)).max() if "binary" not in precision else (got != wanted).mean()
            assert apart <= {"float32": 1e-5, "binary": 0, "ubinary": 0}.get(precision, 1), (name, precision, apart)
        np.testing.assert_allclose(ours.similarity(ours.encode(TEXTS), ours.encode(TEXTS)),
                                   theirs.similarity(theirs.encode(TEXTS), theirs.encode(TEXTS)), atol=1e-5)
    print("vectors as sentence-transformers'")
print(Both.n_calls, "answers as transformers' pipelines")
