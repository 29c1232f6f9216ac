#!/usr/bin/env python3
"""Makes exports.sha256 and embeddings.txt beside itself, which let tests/cli/test_peer_goldens.sh hold kiln to
`transformers` where there is no `transformers`.

exports.sha256: every file of what `kiln export` makes of the directories in hf_dirs.safetensors and classify.safetensors, whole
and in shards, after `transformers` has loaded it without a complaint, with the outputs that those have, the tokens of `kiln
tokenize`, and the labels of the original.
embeddings.txt: texts and their vectors, by `transformers` in float64 with the weights of the case "encoder".

usage: make_exports.py KILN TEST_MODEL_DIR [--check]   with --check, nothing is written, and what is there must be the same.
Needs torch, transformers, safetensors; made with torch 2.15 and transformers 5.
"""
import hashlib
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer

import check_transformers as peer

HERE = pathlib.Path(__file__).resolve().parent
TASKS = {"pretraining": "pretraining", "masked_lm": "masked_lm", "question_answering": "question_answering",
         "encoder": "encoder", "nvidia": "pretraining", "fp16_shards": "encoder", "bf16_shards": "pretraining"}
CLASSIFIERS = {"single": "sequence_classification", "multi": "sequence_classification",
               "regression": "sequence_classification", "tokens": "token_classification"}
FORMS = {"whole": [], "shards": ["--max_shard_size", "8000"]}
TEXTS = ["a cab", "A man had a dog, in 3 parks!", "abcdefghijklmnop", "no home in a lake of ice and black ink " * 3,
         "p", "", "big ape  dig\u00e9 in \u6771\u4eac", "no\u00e9l Cafe\u0301"]


def unpack(golden, directory):
    for name, data in golden.items():
        if "/" in name:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(data.numpy().tobytes())


def golden_batch(golden):
    mask = (torch.arange(golden["ids"].shape[1])[None] < golden["lengths"][:, None]).long()
    return golden["ids"].long(), golden["types"].long(), mask


def check_export(case, directory, golden):
    """`transformers` loads it quietly and computes and tokenizes the same."""
    model = peer.load_model(TASKS[case], directory)
    rows = 40 if case == "encoder" else 37  # what its config.json said; that of "nvidia" says 37 and has 40
    assert model.config.vocab_size == rows, model.config
    wanted = {key.split(":")[1]: t for key, t in golden.items() if key.startswith(case + ":")}
    peer.compare(f"{case}, {directory.parent.name}", wanted, peer.wanted_outputs(model, golden_batch(golden), 37))
    peer.check_tokens(case, directory)


def check_classifier(case, directory, golden, original):
    model = peer.load_model(CLASSIFIERS[case], directory)
    peer.check_labels(case, AutoConfig.from_pretrained(original), model.config)
    wanted = {"words" if case == "tokens" else "texts": golden[case + ":logits"]}
    peer.compare(f"{case}, {directory.parent.name}", wanted, peer.wanted_outputs(model, golden_batch(golden), 37))
    peer.check_tokens(case, directory)


def export_digests(golden, classifiers, scratch):
    lines = []
    unpack(golden, scratch / "from")
    unpack(classifiers, scratch / "from")
    for form, flags in FORMS.items():
        for case in TASKS | CLASSIFIERS:
            directory, original = scratch / form / case, scratch / "from" / case
            peer.kiln("export", "--model", original, "--output_dir", directory, *flags)
            if case in TASKS:
                check_export(case, directory, golden)
            else:
                check_classifier(case, directory, classifiers, original)
            assert form == "whole" or len(list(directory.glob("model-*.safetensors"))) > 1, f"{directory} is whole"
            for f in sorted(directory.iterdir()):
                lines.append(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {form}/{case}/{f.name}\n")
    return "".join(lines)


def embeddings(scratch):
    """A line is POOLING, yes or no for unit length, the text, the numbers; between tabs."""
    directory = scratch / "from" / "encoder"
    tokenizer, model = AutoTokenizer.from_pretrained(directory), peer.load_model("encoder", scratch / "whole" / "encoder")
    lines = []
    for pooling in ("mean", "cls"):
        for normalize in ("yes", "no"):
            for text in TEXTS:
                text = " ".join(text.split())
                inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=model.config.max_position_embeddings)
                with torch.no_grad():
                    h = model(**inputs).last_hidden_state[0]
                v = h[0] if pooling == "cls" else h.mean(0)
                v = v / v.norm() if normalize == "yes" else v
                lines.append("\t".join([pooling, normalize, text] + [f"{x:.9g}" for x in v.tolist()]) + "\n")
    return "".join(lines)


def main():
    golden, classifiers = load_file(HERE / "hf_dirs.safetensors"), load_file(HERE / "classify.safetensors")
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        made = {"exports.sha256": export_digests(golden, classifiers, scratch), "embeddings.txt": embeddings(scratch)}
    for name, text in made.items():
        if "--check" not in sys.argv:
            (HERE / name).write_text(text)
            continue
        wanted = (HERE / name).read_text()
        same = text == wanted if name.endswith("sha256") else same_numbers(text, wanted)
        assert same, f"{name} is not what make_exports.py makes"
    print("goldens of what kiln exports and embeds are", "as committed" if "--check" in sys.argv else "written")


def same_numbers(a, b):
    x, y = ([line.split("\t") for line in text.splitlines()] for text in (a, b))
    return [r[:3] for r in x] == [r[:3] for r in y] and all(
        abs(float(p) - float(q)) <= 1e-7 for r, s in zip(x, y) for p, q in zip(r[3:], s[3:], strict=True))


if __name__ == "__main__":
    main()
