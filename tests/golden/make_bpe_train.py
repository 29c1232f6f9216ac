#!/usr/bin/env python3
"""Writes bpe_train.json beside itself: what Hugging Face's `tokenizers` learns from small texts by byte-level BPE.

Each case has its lines, the pattern, the size, the least frequency, and the pieces by id and the merges that BpeTrainer gives with all
bytes as its alphabet.  The texts have many ties, runs of one letter, several scripts, and pieces that two merges make.
tests/text/test_bpe_train.c reads it.  Needs tokenizers; 0.23.2 wrote what is committed.
"""
import json
import os
import random

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
SPECIALS = {"gpt2": ["<|endoftext|>"], "bloom": ["<unk>", "<s>", "</s>", "<pad>"]}


def splitter(pattern):
    if pattern == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(BLOOM), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def learn(lines, pattern, size, least):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = splitter(pattern)
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=least, special_tokens=SPECIALS[pattern], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(lines, trainer)
    model = json.loads(t.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    return {"lines": lines, "pattern": pattern, "vocab_size": size, "min_frequency": least, "pieces": pieces,
            "merges": [" ".join(m) for m in model["merges"]]}


def random_lines(rng, letters, n_lines, n_words, longest):
    return [" ".join("".join(rng.choice(letters) for _ in range(rng.randint(1, longest))) for _ in range(n_words))
            for _ in range(n_lines)]


rng = random.Random(7)
english = ["the cat sat on the mat, and the cats don't sit on mats.", "She's 1234 years old; we'll see: they've (not) gone | away!",
           "the the the then there these those  two  blanks", "hug hug hug pug pug hugs"]
scripts = ["Гроза над рекой, гроза над городом.", "東京は日本の首都です。東京、東京!", "नमस्ते। कैसे हैं आप? नमस्ते", "e\u0301te\u0301 ete\u0301 \u00e9t\u00e9 \u00e9t\u00e9"]
runs = ["aaaa aaaaa aaaaaaa aaaaaaaaaaa", "abababab babababa aabbaabb", "a" * 100]
cases = []
for pattern in ("gpt2", "bloom"):
    for size in (260, 280, 400, 2000):
        cases.append(learn(english + scripts, pattern, size, 1))
    cases.append(learn(english + scripts + runs, pattern, 2000, 2))
    cases.append(learn(runs, pattern, 2000, 1))
    for letters, longest in (("ab", 12), ("abcde", 8), ("abc\u00e9\u4e2d", 6)):
        cases.append(learn(random_lines(rng, letters, 40, 12, longest), pattern, 700, 1))
        cases.append(learn(random_lines(rng, letters, 40, 12, longest), pattern, 330, 3))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bpe_train.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump(cases, f, ensure_ascii=False, indent=0)
    f.write("\n")
print(f"{path}: {len(cases)} cases")
