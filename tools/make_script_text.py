#!/usr/bin/env python3
"""Writes made-up text of a script, for measuring and checking tokenizers where no real text of it is at hand.

Words are drawn by Zipf's law (the word of rank r with weight 1 / r) from made-up stems: syllables and letters are
drawn by rank too, and most stems get one of the real endings or particles of the language.  So the share of distinct
words is near that of real text, but its letters say nothing.  The same
arguments give the same text.

  korean   Hangul syllables, white space between words, particles
  russian  Cyrillic letters with endings, the first word of a sentence in upper case
  chinese  ideographs without white space, full-width punctuation
  mixed    all of these, Greek, Arabic, Hebrew, Hindi, Thai, Japanese, accented Latin and English, sentence by sentence

usage: make_script_text.py korean|russian|chinese|mixed MEGABYTES [SEED] >TEXT
"""
import itertools
import random
import sys

PARTICLES = "은 는 이 가 을 를 에 에서 으로 로 의 도 만 와 과 하고 했다 한다 하는 된 되었다 에는 까지 부터 이다 였다 이며 " \
    "들이 들은 들의 에게 보다 처럼 으로는 에서는 라고 하였다 하며 있는 적인".split() + [""] * 8
ENDINGS = "а я о е ы и у ю ой ый ая ое ые ого его ому ами ями ах ях ов ев ть ет ит ют ла ло ли л ся ние ости ский ского".split() \
    + [""] * 4
PLAIN = [""]


def zipf(n):
    return list(itertools.accumulate(1 / (i + 1) for i in range(n)))


class Words:
    """Stems of one script with endings; words(n) draws n of them."""

    def __init__(self, rng, letters, n_stems, lengths, endings=PLAIN):
        letters = list(letters)
        rng.shuffle(letters)
        weights = list(itertools.accumulate(1 / (i + 8) for i in range(len(letters))))
        sizes = rng.choices(lengths, k=n_stems)
        pool = rng.choices(letters, cum_weights=weights, k=sum(sizes))
        ends = list(itertools.accumulate(sizes))
        self.stems = ["".join(pool[end - size : end]) for end, size in zip(ends, sizes)]
        self.weights = zipf(n_stems)
        self.endings = rng.sample(endings, len(endings))
        self.ending_weights = zipf(len(endings))

    def words(self, rng, n):
        stems = rng.choices(self.stems, cum_weights=self.weights, k=n)
        if len(self.endings) == 1:
            return stems
        return [a + b for a, b in zip(stems, rng.choices(self.endings, cum_weights=self.ending_weights, k=n))]


def block(first, last):
    return [chr(c) for c in range(first, last + 1)]


def scripts(rng, kind, n_stems):
    """(words, what separates them, sentence ends, whether sentences begin in upper case) of each script."""

    def korean():
        letters = rng.sample(block(0xAC00, 0xD7A3), 2350)
        return Words(rng, letters, n_stems, (1, 2, 2, 2, 3, 3, 4), PARTICLES), " ", ". ", False

    def russian():
        return Words(rng, block(0x430, 0x44F), n_stems, (1, 2, 3, 4, 4, 5, 5, 6, 7, 8), ENDINGS), " ", ". ", True

    def chinese():
        return Words(rng, block(0x4E00, 0x5FFF), n_stems, (1, 1, 2, 2, 3)), "", "。", False

    if kind != "mixed":
        return [{"korean": korean, "russian": russian, "chinese": chinese}[kind]()]
    few = min(n_stems, 20000)
    return [korean(), russian(), chinese(),
            (Words(rng, block(0x3B1, 0x3C9) + list("άέήίόύώϊ"), few, (2, 4, 6, 8)), " ", ". ", True),
            (Words(rng, block(0x627, 0x64A) + block(0x64B, 0x650), few, (2, 3, 4, 5)), " ", "؟ ", False),
            (Words(rng, block(0x5D0, 0x5EA) + block(0x5B0, 0x5B9), few, (2, 3, 4, 5)), " ", ". ", False),
            (Words(rng, block(0x904, 0x94D), few, (2, 3, 5)), " ", "। ", False),
            (Words(rng, block(0xE01, 0xE2E) + block(0xE30, 0xE39), few, (3, 5, 8)), "", " ", False),
            (Words(rng, block(0x3041, 0x3093) + block(0x30A1, 0x30F3) + block(0x4E00, 0x4FFF), few, (1, 2, 3)), "", "。", False),
            (Words(rng, list("aeioutnsrlmdcpéèêàçñöüßåøłžşıæœđ\u0301"), few, (2, 4, 6, 9)), " ", ". “", True),
            (Words(rng, "etaoinshrdlucmfwypvbgkqjxz", n_stems, (2, 3, 4, 6, 8)), " ", "! ", True)]


def blocks(kind, n_bytes, seed):
    """The text, n_bytes of it, in parts; the last may end inside a character."""
    rng = random.Random(seed)
    all_scripts = scripts(rng, kind, 300000)
    written = 0
    while written < n_bytes:
        words, space, stop, upper = rng.choice(all_scripts)
        drawn = words.words(rng, 20000)
        sentences = []
        at = 0
        while at < len(drawn):
            n = rng.randrange(5, 30)
            sentence = space.join(drawn[at : at + n])
            if rng.random() < 0.2:
                sentence += " (" + str(rng.randrange(1, 3000)) + ")"
            sentence = sentence[:1].upper() + sentence[1:] if upper else sentence
            sentences.append(sentence + stop + ("\n" if rng.random() < 0.2 else ""))
            at += n
        data = ("".join(sentences) + "\n").encode()[: n_bytes - written]
        yield data
        written += len(data)


def main():
    for data in blocks(sys.argv[1], int(float(sys.argv[2]) * 1e6), int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
