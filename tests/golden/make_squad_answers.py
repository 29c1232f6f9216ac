#!/usr/bin/env python3
"""Makes squad_answers.json: the answers that SQuAD features with given logits have, for test_squad_answers.c.

Written from the rules (reference: BERT's run_squad.py): best starts x best ends, alignment of the pieces' text with
the original, windows merged, null score.  The logits come from a generator that the test has as well, so they are not
stored.  Words are those of BERT's BasicTokenizer, taken from transformers.  The file holds a made-up set in full, and
for the SQuAD files given a hash over the answers.

usage: make_squad_answers.py VOCAB_FILE SQUAD_V1_DEV SQUAD_V2_DEV   (needs tokenizers, transformers)
"""
import json
import math
import pathlib
import random
import sys

from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer

from make_squad_features import PIECES, WordPieces, all_features, fnv1a

HERE = pathlib.Path(__file__).parent
MASK = 0xFFFFFFFFFFFFFFFF


class Logits:
    """Multiples of 1/64 in [-8, 8) with many ties, or 24 random bits in (-8, 8): splitmix64 from a seed."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def list(self, n, ties):
        if ties:
            return [float((self.next() >> 54) - 512) / 64 for _ in range(n)]
        return [float((self.next() >> 40) - (1 << 23)) / (1 << 20) for _ in range(n)]


def place(pieces, features, index, x, start, end, basic):
    """The text of the tokens start..end of a feature as it stands in the original."""
    f = features[index]
    spelled = " ".join(pieces.pieces[i] for i in f["ids"][start:end + 1])
    spelled = " ".join(spelled.replace(" ##", "").replace("##", "").split())
    original = " ".join(x["words"][f["words"][start]:f["words"][end] + 1])
    tokenized = " ".join(basic.tokenize(original))
    at = tokenized.find(spelled)
    if at < 0 or not spelled:
        return original
    of_original = [i for i, c in enumerate(original) if c != " "]
    of_tokenized = [i for i, c in enumerate(tokenized) if c != " "]
    if len(of_original) != len(of_tokenized):
        return original
    first, last = of_tokenized.index(at), of_tokenized.index(at + len(spelled) - 1)
    return original[of_original[first]:of_original[last] + 1]


def best_of_window(pieces, features, index, x, starts, ends, options, basic):
    f = features[index]
    n_best = options["n_best"]

    def best(logits):
        return sorted(range(len(logits)), key=lambda i: -logits[i])[:n_best]
    pairs = [(s, e) for s in best(starts) for e in best(ends)
             if f["words"][s] >= 0 and f["words"][e] >= 0 and f["best"][s] and s <= e < s + options["max_length"]]
    pairs.sort(key=lambda p: -(starts[p[0]] + ends[p[1]]))
    found = []
    for s, e in pairs:
        if len(found) == n_best:
            break
        text = place(pieces, features, index, x, s, e, basic)
        if text not in [t for t, _, _ in found]:
            found.append((text, starts[s], ends[e]))
    return found


def answer_all(pieces, examples, features, options, logits):
    basic = BasicTokenizer(do_lower_case=options["lower_case"])
    found, nulls = {}, {}
    for x in examples:
        found[x["id"]] = []
    for index, f in enumerate(features):
        x = examples[f["example"]]
        n = len(f["ids"])
        starts, ends = logits.list(n, index % 2), logits.list(n, index % 2)
        if f["example"] % 2:  # as good as the best answers
            starts[0] = ends[0] = 7.5 + (index % 8) / 8
        found[x["id"]] += best_of_window(pieces, features, index, x, starts, ends, options, basic)
        null = (starts[0] + ends[0], starts[0], ends[0])
        nulls[x["id"]] = min(nulls.get(x["id"], null), null, key=lambda v: v[0])
    answers, nbest = {}, {}
    for key, candidates in found.items():
        null = nulls.get(key, (0.0, 0.0, 0.0))
        if options["version_2"]:
            candidates = candidates + [("", null[1], null[2])]
        best = sorted(candidates, key=lambda c: -(c[1] + c[2]))[:options["n_best"]] or [("empty", 0.0, 0.0)]
        powers = [math.exp(c[1] + c[2] - best[0][1] - best[0][2]) for c in best]
        nbest[key] = [dict(text=c[0], probability=p / sum_left_to_right(powers), start_logit=c[1], end_logit=c[2])
                      for c, p in zip(best, powers)]
        answers[key] = best[0][0]
        if options["version_2"]:
            real = [c for c in best if c[0]]
            answers[key] = real[0][0] if real and null[0] - real[0][1] - real[0][2] <= options["threshold"] else ""
    return answers, nbest


def sum_left_to_right(values):
    total = 0.0
    for value in values:
        total += value
    return total


def made_up():
    rng = random.Random(3)
    thai = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35" * 30
    words = ["The", "year", "1895-1943", "(1895).", "Caf\u00e9", "Cafe\u0301s", "Paris,", "\u4e2d\u56fd", "a", "b",
             "ab", "b.a", "was\u00a0he", "\u00adearly", "helium", "b" * 105 + ",born", "in-" + "ab" * 52 + "?", "\uac01" * 35,
             thai + ",year", "\u0130s", "he's", "s#s", "\u00df", "e\u0301" * 101 + ".a", "\u03a3\u03b1\u03c2"]
    paragraphs = []
    for p in range(6):
        context = "".join(rng.choice(words) + rng.choice([" ", "  ", "\n", "\t", "\u202f"])
                          for _ in range(rng.randrange(2, 40)))
        paragraphs.append(dict(context=context, qas=[
            dict(id=f"{p}-{q}\u00e9\"", question="who was " * q, answers=[]) for q in range(3)]))
    paragraphs.append(dict(context="\u200b \u00ad", qas=[dict(id="nothing", question="?", answers=[])]))
    return dict(version="v2.0", data=[dict(paragraphs=paragraphs)])


def main():
    vocab = [line.rstrip("\n") for line in open(sys.argv[1], encoding="utf-8")]
    small_vocab = PIECES + ["#", "###", "##", "h", "##a", "##1", "\u0e2a", "c", "##f", "s", "ss", "##\u03b1"]
    golden = dict(vocab=small_vocab, dataset=made_up(), cases=[], hashes=[])
    for seed, (version_2, lower_case, n_best, max_length, threshold, seq) in enumerate([
            (False, True, 8, 30, 0.0, 40), (True, True, 5, 4, -3.0, 24), (True, False, 8, 30, 0.0, 64),
            (True, True, 1, 30, 2.5, 40), (False, False, 3, 1, 0.0, 24)]):
        options = dict(version_2=version_2, lower_case=lower_case, n_best=n_best, max_length=max_length,
                       threshold=threshold, settings=[seq, 8, 6])
        pieces = WordPieces(small_vocab, lower_case)
        examples, features, _ = all_features(golden["dataset"], pieces, seq, 8, 6, False, version_2)
        answers, nbest = answer_all(pieces, examples, features, options, Logits(seed))
        golden["cases"].append(dict(
            options, seed=seed, predictions=json.dumps(answers, indent=4) + "\n", nbest=nbest,
            nbest_text=json.dumps(nbest, indent=4) + "\n" if n_best == 1 else None))  # probability 1.0 everywhere
    for path, version_2 in ((sys.argv[2], False), (sys.argv[3], True)):
        data = json.load(open(path, encoding="utf-8"))
        data["data"] = data["data"][:6]
        for lower_case, seq in ((True, 384), (True, 96), (False, 96)):
            options = dict(version_2=version_2, lower_case=lower_case, n_best=20, max_length=30, threshold=0.5,
                           settings=[seq, 32, 24], n_entries=6)
            pieces = WordPieces(vocab, lower_case)
            examples, features, _ = all_features(data, pieces, seq, 32, 24, False, version_2)
            answers, nbest = answer_all(pieces, examples, features, options, Logits(seq))
            # exp() may differ in its last bit, so probabilities count with 10 digits
            text = json.dumps(answers, indent=4) + "\n" + "".join(
                f"{key}\t{c['text']}\t{c['probability']:.9e}\t{c['start_logit']:.17g}\t{c['end_logit']:.17g}\n"
                for key, candidates in nbest.items() for c in candidates)
            golden["hashes"].append(dict(options, file=pathlib.Path(path).name, seed=seq, n_features=len(features),
                                         n_answered=sum(a != "" for a in answers.values()),
                                         hash=f"{fnv1a(0xCBF29CE484222325, text.encode()):016x}"))
            print(golden["hashes"][-1], flush=True)
    rows = ",\n".join(f' "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in golden.items())
    (HERE / "squad_answers.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
