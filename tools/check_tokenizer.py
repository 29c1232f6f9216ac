#!/usr/bin/env python3
"""Checks that `kiln tokenize` gives the ids of Hugging Face's `tokenizers`, and prints both speeds.

Rule: every line must match, cased and uncased; the exit code is the verdict.  Three kinds of text, each of --megabytes:
- the files given (as they are, line by line), if there are any, with the vocabularies --uncased and --cased;
- made-up text of scripts (make_script_text.py): Korean, Russian, Chinese, and eleven scripts mixed, with vocabularies that kiln
  trains on a part of it;
- hostile text: words of letters, marks and symbols from every block of Unicode, so that all scripts, combining
  sequences, right-to-left text, Hangul, ideographs, emoji, controls and ill-formed UTF-8 occur, with a vocabulary that
  kiln trains on a part of it, in which few words are unknown.
`tokenizers` gets what Python decodes with errors="replace", and no special tokens: "[SEP]" in a text is text.
Speeds are per second of processor time of one thread; kiln's includes start, reading the text and writing the ids
(bench/tokenizer_rate.c measures encoding alone).

usage: check_tokenizer.py --kiln build/kiln [--uncased VOCAB --cased VOCAB] [--megabytes 100] [--seed 1] [FILE...]
"""
import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

import make_script_text

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

MARKS = [0x300, 0x301, 0x302, 0x308, 0x323, 0x327, 0x328, 0x334, 0x345, 0x34F, 0x302E, 0x302F, 0x5B0, 0x64B, 0x94D,
         0x8D4, 0x1DFB, 0x1E000, 0x1E94A, 0x1D165, 0x1D16D, 0x200D, 0xFE0F, 0x1734]
COMMON = " \t\u00a0\u2003\u3000\r.,!?-'\"()[]{}$+<=>^`|~" \
    "\u00ab\u00bb\u2026\u3001\u3002\u060c\u0964\u00ad\u200b\ufeff\x00\x7f\x85\ufffd"
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80"]


def made_up_line(rng):
    """A line from one or two blocks of 128 code points, with marks, white space and punctuation in between."""
    blocks = [rng.choice((rng.randrange(0, 0x600), rng.randrange(0, 0x220))) for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.2:
        blocks[0] = rng.randrange(0, 0x2200)
    parts = []
    for _ in range(rng.randrange(1, 60)):
        if rng.random() < 0.02:
            parts.append(rng.choice(BROKEN))
        for _ in range(rng.choice((1, 2, 3, 5, 8, 120 if rng.random() < 0.05 else 4))):
            c = rng.choice(blocks) * 128 + rng.randrange(128)
            parts.append(chr(c if not 0xD800 <= c < 0xE000 and c != 10 else 0x61 + c % 26).encode())
            while rng.random() < 0.15:
                parts.append(chr(rng.choice(MARKS)).encode())
        parts.append(rng.choice(COMMON if rng.random() < 0.5 else " ").encode())
    return b"".join(parts)


def real_lines(paths, n_bytes):
    """Lines of the files until they have n_bytes together; an equal share of each file."""
    lines = []
    for path in paths:
        with open(path, "rb") as f:
            lines += f.read(n_bytes // len(paths)).split(b"\n")
    return lines


def made_up_lines(seed, n_bytes):
    rng = random.Random(seed)
    lines = []
    total = 0
    while total < n_bytes:
        lines.append(made_up_line(rng))
        total += len(lines[-1]) + 1
    return lines


def script_lines(kind, seed, n_bytes):
    return b"".join(make_script_text.blocks(kind, n_bytes, seed)).split(b"\n")


def oracle(vocab, lower_case):
    t = Tokenizer(models.WordPiece.from_file(vocab, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return t


def kiln_ids(kiln, vocab, lower_case, data):
    command = [kiln, "tokenize", "--vocab_file", vocab] + (["--do_lower_case"] if lower_case else [])
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out.split(b"\n")[:-1], end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def compare(name, kiln, vocab, lower_case, lines):
    data = b"".join(line + b"\n" for line in lines).decode("utf-8", errors="replace").encode()  # the command takes UTF-8 alone
    found, kiln_s = kiln_ids(kiln, vocab, lower_case, data)
    if len(found) != len(lines):
        sys.exit(f"{name}: {len(found)} lines of ids for {len(lines)} lines of text")
    t = oracle(vocab, lower_case)
    oracle_s, n_wrong, n_ids, n_unknown = 0, 0, 0, 0
    unknown = t.token_to_id("[UNK]")
    for i in range(0, len(lines), 1000):
        texts = [line.decode("utf-8", errors="replace") for line in lines[i : i + 1000]]
        start = time.process_time()
        encoded = [e.ids for e in t.encode_batch_fast(texts)]
        oracle_s += time.process_time() - start
        for line, ids, wanted in zip(lines[i : i + 1000], found[i : i + 1000], encoded):
            n_ids += len(wanted)
            n_unknown += wanted.count(unknown)
            if ids.decode() != " ".join(map(str, wanted)):
                n_wrong += 1
                if n_wrong <= 5:
                    print(f"{name}: {line!r}\n  kiln   {ids.decode()}\n  wanted {' '.join(map(str, wanted))}")
    mb = len(data) / 1e6
    print(f"{name}: {mb:.1f} MB, {len(lines)} lines, {n_ids} ids, {100 * n_unknown / max(n_ids, 1):.1f} % unknown, "
          f"{n_wrong} mismatches; kiln {mb / kiln_s:.1f} MB/s, tokenizers {mb / oracle_s:.1f} MB/s", flush=True)
    return n_wrong


def train_vocab(kiln, lower_case, lines, n_bytes, directory):
    text, vocab = f"{directory}/text.txt", f"{directory}/vocab.txt"
    with open(text, "wb") as f:
        for line in lines:
            if f.tell() < n_bytes:
                f.write(line + b"\n")
    command = [kiln, "vocab", "--input", text, "--vocab_file", vocab, "--vocab_size", "60000", "--limit_alphabet",
               "30000", "--min_frequency", "1", "--input_format", "lines", "--replace_invalid_utf8"]
    subprocess.run(command + (["--do_lower_case"] if lower_case else []), check=True, stderr=subprocess.DEVNULL)
    return vocab


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--uncased")
    parser.add_argument("--cased")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*")
    a = parser.parse_args()
    n_bytes = int(a.megabytes * 1e6)
    n_wrong = 0
    if a.files:
        lines = real_lines(a.files, n_bytes)
        n_wrong += compare("real, uncased", a.kiln, a.uncased, True, lines)
        n_wrong += compare("real, cased", a.kiln, a.cased, False, lines)
    for kind in ("korean", "russian", "chinese", "mixed", "hostile"):
        lines = made_up_lines(a.seed, n_bytes) if kind == "hostile" else script_lines(kind, a.seed, n_bytes)
        with tempfile.TemporaryDirectory() as directory:
            for lower_case in (True, False):
                vocab = train_vocab(a.kiln, lower_case, lines, min(n_bytes, 30000000), directory)
                n_wrong += compare(f"{kind}, {'uncased' if lower_case else 'cased'}", a.kiln, vocab, lower_case, lines)
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main()
