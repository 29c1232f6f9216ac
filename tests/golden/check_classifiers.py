#!/usr/bin/env python3
"""Holds classifiers that kiln trained against `transformers`: it loads what `kiln classify` and `kiln tag` save without a
complaint, with the labels of the table and the problem_type, and says of texts, pairs of texts and words what their
prediction files say, within 1e-5.

usage: check_classifiers.py KILN TEST_MODEL_DIR
Needs torch, transformers, safetensors.
"""
import csv
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

import check_transformers as peer

TEXTS = ["a man", "no home, in a lake of ice", "caf\u00e9 and a dog", "x", "a child made a cake and a big cage of ink"]
OTHERS = ["had a dog", "ice", "a man had a big black dog, in a big cage on the lake", "y", "z"]
WORDS = [(["Ada", "had", "tea"], ["B-PER", "O", "O"]), (["in", "New", "York", "caf\u00e9-bar"], ["O", "B-LOC", "I-LOC", "O"])]
LENGTH = 32


def draw_model(directory):
    torch.manual_seed(13)
    model = BertModel(BertConfig(vocab_size=601, hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
                                 intermediate_size=200, max_position_embeddings=64))
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(directory)
    peer.draw_tokenizer(601, False).save_pretrained(directory)


def train(command, start, table, out, *flags):
    """Two steps, so that the head is no longer what it was drawn as; then predictions of the table."""
    peer.kiln(command, "--init_checkpoint", start, "--output_dir", out, "--do_train", "--train_file", table, "--max_steps", 2,
              "--train_batch_size", 4, "--learning_rate", "1e-3", "--max_seq_length", LENGTH, "--do_predict", "--predict_file",
              table, "--disable-progress-bar", *flags)
    return out / "model"


def load(directory, task, labels, problem):
    model = peer.load_model(task, directory)
    config = model.config
    assert config.id2label == dict(enumerate(labels)), config.id2label
    assert config.label2id == {n: i for i, n in enumerate(labels)}, config.label2id
    assert config.num_labels == len(labels) and config.problem_type == problem, config
    assert config.architectures == [type(model).__name__], config.architectures
    return model, AutoTokenizer.from_pretrained(directory)


def logits_of(model, tokenizer, *texts, **options):
    inputs = tokenizer(*texts, return_tensors="pt", truncation="longest_first", max_length=LENGTH, **options)
    with torch.no_grad():
        return model(**inputs).logits[0]


def check_texts(scratch, start, name, labels, of_texts, problem, pairs=False):
    table, columns = scratch / f"{name}.csv", ["sentence1", "sentence2"] if pairs else ["sentence"]
    rows = list(zip(TEXTS, OTHERS)) if pairs else [(t,) for t in TEXTS]
    with open(table, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([columns + ["label"]] + [[*row, label] for row, label in zip(rows, of_texts)])
    out = train("classify", start, table, scratch / name, "--problem_type", problem)
    model, tokenizer = load(out, "sequence_classification", labels, problem)
    worst = 0.0
    for row, line in zip(rows, (scratch / name / "predictions.jsonl").read_text().splitlines(), strict=True):
        logits, said = logits_of(model, tokenizer, *row), json.loads(line)
        scores = torch.tensor([said["scores"][label] for label in labels], dtype=torch.float64)
        wanted = {"single_label_classification": lambda x: x.softmax(0), "multi_label_classification": torch.sigmoid,
                  "regression": lambda x: x}[problem](logits)
        worst = max(worst, (scores - wanted).abs().max().item() / max(1, wanted.abs().max().item()))
        if problem == "single_label_classification":
            assert said["label"] == labels[int(logits.argmax())], said
    print(f"classify {name:43} predictions, max |difference| {worst:.2g}")
    assert worst <= 1e-5, worst


def check_words(scratch, start):
    table = scratch / "words.conll"
    table.write_text("".join("".join(f"{w}\t{l}\n" for w, l in zip(*s)) + "\n" for s in WORDS), encoding="utf-8")
    labels = sorted({label for s in WORDS for label in s[1]})
    model, tokenizer = load(train("tag", start, table, scratch / "words"), "token_classification", labels,
                            "single_label_classification")
    said = [line.split("\t")[2] for line in (scratch / "words/predictions.conll").read_text().split("\n") if line]
    wanted = []
    for words, _ in WORDS:
        logits = logits_of(model, tokenizer, words, is_split_into_words=True)
        ids = tokenizer(words, is_split_into_words=True).word_ids()
        wanted += [labels[int(logits[ids.index(i)].argmax())] for i in range(len(words))]
    assert said == wanted, f"{said} is not {wanted}"
    batch = peer.make_batch(model.config.vocab_size, [64, 17, 3, 40])
    peer.compare("tag, what kiln trained", peer.wanted_outputs(model, batch, 601),
                 peer.kiln_outputs(scratch / "words/model", "token_classification", batch, scratch))


def main():
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        start = scratch / "start"
        draw_model(start)
        check_texts(scratch, start, "single", ["a", "b", "c"], ["a", "b", "a", "c", "b"], "single_label_classification")
        check_texts(scratch, start, "pairs", ["no", "yes"], ["no", "yes", "yes", "no", "yes"], "single_label_classification", True)
        check_texts(scratch, start, "multi", ["a", "b", "c"], ["a,b", "c", "", "b", "a,b,c"], "multi_label_classification")
        check_texts(scratch, start, "regression", ["LABEL_0"], [0.5, -2.25, 4.0, 1.0, 0.0], "regression")
        check_words(scratch, start)
    print("classifiers of kiln's and transformers agree")


if __name__ == "__main__":
    main()
