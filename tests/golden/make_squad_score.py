#!/usr/bin/env python3
"""Makes squad_score.json: scores of predictions by the rules of the official SQuAD scripts, for test_squad_score.c.

Written from the rules (Rajpurkar et al. 2016, 2018), in double precision and in the order of the data set: normalised
answers, exact match, F1 of the words, the best over all answers.  The file holds a made-up set of answers with what
is difficult about them, and the scores of the prediction files given on the command line.

usage: make_squad_score.py SQUAD_V1_DEV SQUAD_V2_DEV PREDICTIONS...     (writes beside itself)
"""
import collections
import json
import pathlib
import random
import re
import string
import sys

HERE = pathlib.Path(__file__).parent


def words(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(prediction, truth, version_2):
    if version_2 and (not prediction or not truth):
        return float(prediction == truth)
    same = sum((collections.Counter(prediction) & collections.Counter(truth)).values())
    if same == 0:
        return 0.0
    precision, recall = 1.0 * same / len(prediction), 1.0 * same / len(truth)
    return (2 * precision * recall) / (precision + recall)


def score(data, predictions, version_2):
    exact_sum = f1_sum = 0.0
    total = missing = 0
    for entry in data["data"]:
        for paragraph in entry["paragraphs"]:
            for qa in paragraph["qas"]:
                total += 1
                if qa["id"] not in predictions:
                    missing += 1
                    continue
                truths = [words(a["text"]) for a in qa["answers"]]
                if version_2:
                    truths = [t for t in truths if t] or [[]]
                prediction = words(predictions[qa["id"]])
                exact_sum += max(prediction == t for t in truths)
                f1_sum += max(f1(prediction, t, version_2) for t in truths)
    return dict(exact_match=100.0 * exact_sum / total, f1=100.0 * f1_sum / total), total, missing


ANSWERS = [
    "the cat", "The Cat!", "a", "an", "A an the", "", "...", "a-b", "a_b", "the_end", "a.b c", "theatre", "an'", "U.S.",
    "us", "caf\u00e9", "cafe\u0301", "a\u0301", "CAF\u00c9", "\u0130stanbul", "i\u0307stanbul",
    "\u039f\u0394\u039f\u03a3",
    "\u03bf\u03b4\u03bf\u03c2", "\u03a3", "\u03a3a", "\u0391\u03a3.\u0391", "\u0391\u03a3\u0301", "a\u00a0the\u3000dog",
    "dog\u200bthe", "a\u200ba", "\u4e2d a \u56fd", "\u4e2da\u56fd", "1a", "a\u00b2", "\u216ba", "the \u2014 dog",
    "\u201ca\u201d",
    "\x1cthe\x85dog", "dog dog dog", "dog dog", "dog cat dog", "stra\u00dfe", "STRA\u1e9eE", "\u01c5", "\U00010400",
    "one two three four five six seven", "seven six five four"]


def made_up(version_2):
    rng = random.Random(5)
    qas, predictions = [], {}
    for i in range(400):
        n = rng.randrange(0 if version_2 else 1, 4)
        qas.append(dict(id=f"q{i}", question="?", answers=[dict(text=rng.choice(ANSWERS), answer_start=0)
                                                          for _ in range(n)]))
        if rng.random() < 0.95:
            same = qas[-1]["answers"] and rng.random() < 0.4
            predictions[f"q{i}"] = qas[-1]["answers"][0]["text"] if same else rng.choice(ANSWERS)
    data = dict(version="v2.0" if version_2 else "1.1", data=[dict(paragraphs=[dict(context="c", qas=qas)])])
    scores, total, missing = score(data, predictions, version_2)
    return dict(dataset=data, predictions=predictions, printed=json.dumps(scores), n=total, n_missing=missing)


def main():
    one, two = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
    pairs = [[a, b, json.dumps(score(dict(data=[dict(paragraphs=[dict(qas=[dict(id=0, answers=[dict(text=b)])])])]),
                                     {0: a}, False)[0])] for a in ANSWERS for b in ANSWERS]
    pairs = [p for p in pairs if not p[2].startswith('{"exact_match": 0.0, "f1": 0.0}')]
    golden = dict(pairs=pairs, cases=[made_up(False), made_up(True)], files=[])
    for path in sys.argv[3:]:
        predictions = json.load(open(path, encoding="utf-8"))
        for dataset, data, version_2 in ((sys.argv[1], one, False), (sys.argv[2], two, True)):
            scores, total, missing = score(data, predictions, version_2)
            golden["files"].append(dict(
                dataset=pathlib.Path(dataset).name, predictions=pathlib.Path(path).name, printed=json.dumps(scores),
                n=total, n_missing=missing))
            print(golden["files"][-1])
    rows = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in golden.items())
    (HERE / "squad_score.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
