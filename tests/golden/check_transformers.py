#!/usr/bin/env python3
"""Holds kiln against `transformers`, both ways: what one writes, the other loads without a complaint, with the same
outputs, within 1e-5 x max(1, max |output|) of those in float64, and the same tokens.

usage: check_transformers.py KILN TEST_MODEL_DIR [MODEL_DIR...]
KILN and TEST_MODEL_DIR are the built programs `kiln` and `tests/test_model_dir`; each MODEL_DIR, a Hugging Face directory
or a checkpoint of kiln's, is checked beside the models that this script draws.  Needs torch, transformers, safetensors,
and sentence-transformers for a directory of its.
"""
import json
import logging
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining,
                          AutoModelForQuestionAnswering, AutoModelForSequenceClassification,
                          AutoModelForTokenClassification, AutoTokenizer, BertConfig, BertTokenizer)

transformers.utils.logging.set_verbosity_warning()
transformers.utils.logging.disable_progress_bar()
KILN, TOOL = sys.argv[1:3]
AUTO = {"pretraining": AutoModelForPreTraining, "masked_lm": AutoModelForMaskedLM,
        "question_answering": AutoModelForQuestionAnswering, "encoder": AutoModel,
        "sequence_classification": AutoModelForSequenceClassification,
        "token_classification": AutoModelForTokenClassification}
TASK_OF = {"BertForPreTraining": "pretraining", "BertForMaskedLM": "masked_lm",
           "BertForQuestionAnswering": "question_answering", "BertModel": "encoder",
           "BertForSequenceClassification": "sequence_classification",
           "BertForTokenClassification": "token_classification"}
LABELS = ["no", "yes", "ja, \u00fcberall"]
TEXTS = ["The quick brown fox jumps over the lazy dog.", "Caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00c5ngstr\u00f6m",
         "HELLO World!? don't stop-me (now)", "\u6771\u4eac is \u4eac\u90fd", "tabs\tand\u00a0spaces  here", "\u0438\u0433\u0440\u0430 \u0130stanbul \u00df",
         "x" * 120, "3.14 + 2,718 = ? #hash @at", "word " * 40, "\u00e9\u0301\u0323 combining", "a\u200bb\ufeffc\u0000d"]


class Complaints(logging.Handler):
    """Everything that `transformers` or Python says as a warning or worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def kiln(*args, text=None):
    return subprocess.run([KILN, *map(str, args)], input=text, capture_output=True, text=True, check=True).stdout


def load_quietly(loader, directory, **options):
    complaints = Complaints()
    logger = logging.getLogger("transformers")
    logger.addHandler(complaints)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = loader.from_pretrained(directory, **options)
    logger.removeHandler(complaints)
    said = complaints.said + [str(w.message) for w in caught]
    assert not said, f"loading {directory} says: {said}"
    return loaded


def load_model(task, directory):
    model, info = load_quietly(AUTO[task], directory, output_loading_info=True, attn_implementation="eager")
    assert not any(info.values()), f"{directory}: {info}"
    return model.eval().double()


def check_hearing(scratch, directory):
    """A model without its head must be complained of, or nothing that is loaded quietly says anything."""
    kiln("export", "--model", directory, "--output_dir", scratch / "headless", "--task", "encoder")
    try:
        load_quietly(AutoModelForQuestionAnswering, scratch / "headless")
    except AssertionError:
        return
    raise AssertionError("transformers loads a model without its head, and nothing is heard")


def make_batch(n_words, lengths):
    generator = torch.Generator().manual_seed(5)
    s = max(lengths)
    ids = torch.randint(5, n_words, (len(lengths), s), generator=generator)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, n in enumerate(lengths):
        mask[i, :n] = 1
        types[i, n // 2 : n] = 1
        ids[i, n:] = 0
    return ids, types, mask


def wanted_outputs(model, batch, n_words):
    ids, types, mask = batch
    real = mask.bool()
    with torch.no_grad():
        out = model(input_ids=ids, token_type_ids=types, attention_mask=mask)
    if "prediction_logits" in out:
        return {"mlm": out.prediction_logits[real][:, :n_words], "nsp": out.seq_relationship_logits}
    if "start_logits" in out:
        return {"qa": torch.stack([out.start_logits, out.end_logits], -1)[real]}
    if type(model).__name__ == "BertForSequenceClassification":
        return {"texts": out.logits}
    if type(model).__name__ == "BertForTokenClassification":
        return {"words": out.logits[real]}
    if "logits" in out:
        return {"mlm": out.logits[real][:, :n_words]}
    return {"hidden": out.last_hidden_state[real], "pooled": out.pooler_output}


def kiln_outputs(directory, task, batch, scratch):
    ids, types, mask = batch
    save_file({"ids": ids.int(), "types": types.int(), "lengths": mask.sum(1).int()}, scratch / "in.safetensors")
    subprocess.run([TOOL, str(directory), task, str(scratch / "in.safetensors"), str(scratch / "out.safetensors")],
                   check=True, capture_output=True)
    return load_file(scratch / "out.safetensors")


def compare(name, wanted, actual):
    for key, w in wanted.items():
        difference, scale = (actual[key].double() - w).abs().max().item(), max(1.0, w.abs().max().item())
        print(f"{name:52} {key:7} max |difference| {difference:.2g}, max |output| {scale:.3g}")
        assert difference <= 1e-5 * scale, f"{name}: {key} differs by {difference}"


def check_tokens(name, directory, other=None):
    """The ids of AutoTokenizer on the directory, of kiln with its vocabulary, and of another tokenizer are the same."""
    ours = load_quietly(AutoTokenizer, directory)
    case = ["--do_lower_case"] if json.loads((directory / "tokenizer_config.json").read_text())["do_lower_case"] else []
    for text in TEXTS:
        ids = ours(text)["input_ids"]
        assert other is None or ids == other(text, truncation=False, padding=False)["input_ids"], f"{name}: {text!r}"
    lines = [t.replace("\u0000", "") for t in TEXTS]
    said = kiln("tokenize", "--vocab_file", directory / "vocab.txt", *case, text="\n".join(lines) + "\n")
    for text, line in zip(lines, said.splitlines()):
        ids = ours(text, add_special_tokens=False)["input_ids"]
        assert [int(i) for i in line.split()] == ids, f"{name}: kiln gives {line} for {text!r}, not {ids}"
    pair = ours("one", "two")
    assert pair["token_type_ids"][-2:] == [1, 1] and ours.model_max_length < 1 << 20, name


def check_labels(name, wanted, actual):
    """The configuration of a classifier tells what its labels are; kiln names the problem of several labels too."""
    assert actual.id2label == wanted.id2label and actual.label2id == wanted.label2id, f"{name}: {actual.id2label}"
    assert actual.num_labels == wanted.num_labels, f"{name}: {actual.num_labels} labels"
    assert actual.problem_type == (wanted.problem_type or "single_label_classification"), f"{name}: {actual.problem_type}"


def check_directory(name, directory, scratch, lengths, tokenizer=None):
    """A directory of either side: kiln's outputs are those of `transformers`, and so are those of kiln's export."""
    report = kiln("export", "--model", directory, "--output_dir", scratch / "exported")
    task = TASK_OF[report.split(": ")[1].split(",")[0]]
    model = load_model(task, scratch / "exported")
    batch = make_batch(model.config.vocab_size, lengths)
    wanted = wanted_outputs(model, batch, model.config.vocab_size)
    compare(f"{name}, kiln's export", wanted, kiln_outputs(directory, task, batch, scratch))
    if "classification" in task:
        check_labels(name, AutoConfig.from_pretrained(directory), model.config)
    if (directory / "manifest.json").exists():
        check_tokens(name, scratch / "exported")
        return task
    original = AUTO[task].from_pretrained(directory, attn_implementation="eager").eval().float().double()
    compare(f"{name}, the original", wanted_outputs(original, batch, model.config.vocab_size), wanted)
    check_tokens(name, scratch / "exported", tokenizer or AutoTokenizer.from_pretrained(directory))
    kiln("export", "--model", directory, "--output_dir", scratch / "shards", "--max_shard_size", 100000)
    compare(f"{name}, kiln's shards", wanted, wanted_outputs(load_model(task, scratch / "shards"), batch, model.config.vocab_size))
    return task


def draw_tokenizer(n, lower_case):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-()#@=+\u6771\u4eac\u0438\u0433\u0440\u00df"
    letters += "" if lower_case else "ABCDEFGHIJKLMNOPQRSTUVWXYZ\u00e9\u00ef\u00c5\u00f6"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list(letters) + ["##" + c for c in letters]
    drawn = random.Random(7)
    while len(pieces) < n:
        piece = drawn.choice(["", "##"]) + "".join(drawn.choices(letters[:26], k=drawn.randint(2, 4)))
        if piece not in pieces:
            pieces.append(piece)
    return BertTokenizer(vocab={p: i for i, p in enumerate(pieces)}, do_lower_case=lower_case, model_max_length=1000)


def check_drawn(scratch):
    config = BertConfig(vocab_size=601, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=200,
                        max_position_embeddings=64)
    forms = [(torch.float32, "5GB", True), (torch.float32, "100KB", False), (torch.float16, "100KB", True),
             (torch.bfloat16, "5GB", True)]
    for class_name, task in TASK_OF.items():
        for dtype, shard, lower_case in forms:
            torch.manual_seed(11)
            if "classification" in task:
                config.id2label, config.label2id = dict(enumerate(LABELS)), {n: i for i, n in enumerate(LABELS)}
                config.problem_type = "multi_label_classification" if task.startswith("sequence") else None
            model = getattr(transformers, class_name)(config).to(dtype)
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(torch.randn_like(p) * 0.1)
            directory = scratch / f"{task}_{str(dtype)[6:]}_{shard}"
            model.save_pretrained(directory, max_shard_size=shard)
            tokenizer = draw_tokenizer(601, lower_case)
            tokenizer.save_pretrained(directory)
            found = check_directory(directory.name, directory, scratch, [64, 17, 3, 40], tokenizer)
            assert found == task, f"{directory} was taken for {found}"


def check_embeddings(directory):
    """Mean and CLS vectors, normalised and not, of texts from 1 token to more than the model reads; and where the
    directory is one of sentence-transformers, which must be there then, what it makes of them."""
    tokenizer, model = AutoTokenizer.from_pretrained(directory), load_model("encoder", directory)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    texts = [" ".join(t.split()) for t in TEXTS[:10]] + ["a sentence about nothing " * n for n in (1, 30, 300)]
    length = model.config.max_position_embeddings
    worst = 0.0
    for pooling in ("mean", "cls"):
        for normalize in (True, False):
            lines = kiln("embed", "--model", directory, "--pooling", pooling, "--normalize" if normalize else "--no_normalize",
                         "--max_seq_length", length, text="\n".join(texts) + "\n").splitlines()
            assert len(lines) == len(texts), f"{len(lines)} vectors for {len(texts)} texts"
            for text, line in zip(texts, lines):
                inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)
                with torch.no_grad():
                    h = model(**inputs).last_hidden_state[0]
                v = h[0] if pooling == "cls" else h.mean(0)
                v = v / v.norm() if normalize else v
                worst = max(worst, (v - torch.tensor(json.loads(line), dtype=torch.float64)).abs().max().item())
    print(f"{str(directory)[-48:]:52} embed   max |difference| {worst:.2g}")
    assert worst <= 1e-5, worst
    if (directory / "modules.json").exists():
        from sentence_transformers import SentenceTransformer
        wanted = torch.tensor(SentenceTransformer(str(directory), device="cpu").double().encode(texts))
        lines = kiln("embed", "--model", directory, text="\n".join(texts) + "\n").splitlines()
        worst = (torch.tensor([json.loads(line) for line in lines], dtype=torch.float64) - wanted).abs().max().item()
        print(f"{str(directory)[-48:]:52} sentences  max |difference| {worst:.2g}")
        assert worst <= 1e-5, worst


def main():
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        check_drawn(scratch)
        check_hearing(scratch, scratch / "encoder_float32_5GB")
        check_embeddings(scratch / "encoder_float32_5GB")
        for directory in map(pathlib.Path, sys.argv[3:]):
            positions = AutoConfig.from_pretrained(directory).max_position_embeddings
            task = check_directory(directory.name, directory, scratch, [positions, 17, 3, positions // 2])
            if task == "encoder":
                check_embeddings(directory)
    print("kiln and transformers", transformers.__version__, "agree")


if __name__ == "__main__":
    main()
