#!/usr/bin/env python3
"""Makes tests/golden/classify.safetensors and classify_scores.json: what `transformers` computes with small classifiers, and
what scikit-learn, scipy and seqeval say of random answers.

The tensor "CASE/FILE" (U8) is a file of a model's directory; "CASE:labels", "CASE:logits" and "CASE:loss" are the batch's
labels and, in float64 of the weights as they are stored, what the model makes of the batch.

Run: python make_classify.py   (needs torch, transformers, safetensors, scikit-learn, scipy, seqeval; made with torch 2.15,
transformers 5, scikit-learn 1.9, scipy 1.17, seqeval 1.2.2)
"""
import json
import pathlib
import random
import tempfile

import numpy
import torch
from safetensors.torch import save_file
from scipy.stats import pearsonr, spearmanr
from seqeval.metrics import accuracy_score as token_accuracy
from seqeval.metrics import f1_score as entity_f1
from seqeval.metrics import precision_score, recall_score
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, mean_squared_error
from small_models import LENGTHS, PIECES, S, batch_tensors, file_tensors, make_batch, make_model
from transformers import BertForSequenceClassification, BertForTokenClassification, BertTokenizer

HERE = pathlib.Path(__file__).parent


def write_models():
    torch.manual_seed(5)
    batch = make_batch()
    real = batch[2].bool()
    tensors = batch_tensors(batch)
    n = len(LENGTHS)
    token_labels = torch.randint(0, 5, (n, S))
    token_labels[~real] = -100
    token_labels[:, 0] = -100
    cases = [
        ("single", BertForSequenceClassification, ["no", "yes", "ja, \u00fcberall"], "single_label_classification",
         torch.tensor([2, 0, 1])),
        ("multi", BertForSequenceClassification, ["a", "b", "c", "d"], "multi_label_classification",
         torch.randint(0, 2, (n, 4)).float()),
        ("regression", BertForSequenceClassification, ["LABEL_0"], "regression", torch.tensor([0.5, -2.25, 4.0])),
        ("tokens", BertForTokenClassification, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], None, token_labels),
    ]
    for name, cls, names, problem, labels in cases:
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            model = make_model(cls, len(PIECES), id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)},
                               problem_type=problem, classifier_dropout=0.25)
            model.save_pretrained(directory)
            BertTokenizer(vocab={p: i for i, p in enumerate(PIECES)}).save_pretrained(directory)
            tensors |= file_tensors(name, directory)
        with torch.no_grad():
            out = model.double()(input_ids=batch[0], token_type_ids=batch[1], attention_mask=batch[2],
                                 labels=labels.double() if labels.is_floating_point() else labels)
        tokens = name == "tokens"
        tensors[f"{name}:logits"] = (out.logits[real] if tokens else out.logits).contiguous()
        tensors[f"{name}:loss"] = out.loss.reshape(1)
        labels = labels[real].clamp(min=-1) if tokens else labels
        tensors[f"{name}:labels"] = labels.float() if labels.is_floating_point() else labels.to(torch.int32)
    save_file(tensors, HERE / "classify.safetensors")


def class_cases(rng):
    out = []
    for n_labels, n in ((2, 40), (2, 7), (3, 50), (6, 30)):
        logits = numpy.round(rng.normal(size=(n, n_labels)), 3)
        labels = numpy.where(rng.random(n) < 0.6, logits.argmax(1), rng.integers(0, n_labels, n))
        if n_labels == 6:
            labels[labels == 4] = 0
            logits[:, 4] = -9  # a label that nobody says
        said = logits.argmax(1)
        scores = {"accuracy": accuracy_score(labels, said), "matthews_correlation": matthews_corrcoef(labels, said)}
        if n_labels == 2:
            scores["f1"] = f1_score(labels, said)
        else:
            scores |= {"f1_" + a: f1_score(labels, said, average=a) for a in ("micro", "macro")}
        out.append({"problem": "single_label_classification", "n_labels": n_labels, "logits": logits.ravel().tolist(),
                    "labels": labels.tolist(), "scores": scores})
    for n_labels, n in ((4, 30), (5, 12)):
        logits = numpy.round(rng.normal(size=(n, n_labels)), 3)
        labels = numpy.where(rng.random((n, n_labels)) < 0.7, logits > 0, rng.random((n, n_labels)) < 0.5).astype(int)
        if n_labels == 5:
            labels[:, 2] = 0
            logits[:, 2] = -1
        said = (logits > 0).astype(int)
        scores = {"accuracy": accuracy_score(labels, said)}
        scores |= {"f1_" + a: f1_score(labels, said, average=a, zero_division=0) for a in ("micro", "macro")}
        out.append({"problem": "multi_label_classification", "n_labels": n_labels, "logits": logits.ravel().tolist(),
                    "labels": labels.ravel().tolist(), "scores": scores})
    for n in (25, 8):
        logits = rng.integers(-8, 9, n) / 4  # with ties
        labels = numpy.where(rng.random(n) < 0.5, logits, rng.integers(-8, 9, n) / 4)
        scores = {"pearson": pearsonr(logits, labels)[0], "spearmanr": spearmanr(logits, labels)[0],
                  "mse": mean_squared_error(labels, logits)}
        out.append({"problem": "regression", "n_labels": 1, "logits": logits.tolist(), "labels": labels.tolist(),
                    "scores": scores})
    return out


def tag_cases(rng):
    """Random labels, among them sequences that no scheme allows: seqeval's default counts them too."""
    sets = [["O"] + [b + t for b in ("B-", "I-") for t in ("PER", "LOC", "MISC")], ["O", "I-PER", "I-LOC"],
            ["O"] + [b + t for b in "BIES" for t in ("-PER", "-a-b")], ["O", "B", "I", "B-X", "I-X", "PER"]]
    out = []
    for labels in sets:
        for n in (1, 40):
            truth = [[rng.choice(labels) for _ in range(rng.randint(1, 12))] for _ in range(n)]
            said = [[a if rng.random() < 0.75 else rng.choice(labels) for a in row] for row in truth]
            scores = {"precision": precision_score(truth, said, zero_division=0),
                      "recall": recall_score(truth, said, zero_division=0),
                      "f1": entity_f1(truth, said, zero_division=0), "accuracy": token_accuracy(truth, said)}
            out.append({"labels": labels, "truth": truth, "said": said, "scores": {k: float(v) for k, v in scores.items()}})
    return out


def main():
    write_models()
    scores = {"classes": class_cases(numpy.random.default_rng(7)), "tags": tag_cases(random.Random(7))}
    (HERE / "classify_scores.json").write_text(json.dumps(scores, separators=(",", ":")) + "\n")


main()
