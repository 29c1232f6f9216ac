#!/usr/bin/env python3
"""Makes text_unicode.txt and text_cases.json: what Hugging Face's `tokenizers` does, for tests/text/test_text_*.c.

text_unicode.txt: for each 4,096 code points a line `block uncased cased`: FNV-1a of all words and their byte offsets in
two short texts around every code point (surrogates apart).  text_cases.json: a small vocabulary of characters and
marks, and made-up texts, as hexadecimal bytes, with ids and byte offsets, uncased and cased.

usage: make_text_golden.py      (needs tokenizers; writes beside itself)
"""
import json
import pathlib
import random

from tokenizers import PreTokenizedString, Tokenizer, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
BLOCK = 4096
MARKS = [0x300, 0x301, 0x323, 0x328, 0x334, 0x345, 0x34F, 0x302E, 0x302F, 0x5B0, 0x64B, 0x94D, 0x8D4, 0x1DFB, 0x1E000,
         0x1E94A, 0x1D165, 0x1D16D, 0x200D, 0x1734, 0xF73, 0x344]
LETTERS = "abcXYZ0\u00e9\u00c5\u0130\u00df\u01c5\u03a3\u0419\u05d0\u0627\u0915" \
    "\uac01\u1e9e\u1100\u4e2d\uf900\u3042\U0001d15f\U0001f600"
# Marks that are not stripped, so their order shows.
STAYING = "\u08d4\U0001d16d\u302e\U0001d165\U00011442\U0001e94a"
OTHERS = " \t\u00a0\u2003\u3000\r.,!?-'$`|~\u00ab\u2026\u3001\u060c\u0964\u00ad\u200b\ufeff\x00\x7f\x85\ufffd"
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80"]


def fnv1a(h, data):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def words(normalizer, text):
    """[(word, (first byte, byte behind))] of the original text."""
    p = PreTokenizedString(text)
    p.normalize(normalizer.normalize)
    pre_tokenizers.BertPreTokenizer().pre_tokenize(p)
    return [(word, span) for word, span, _ in p.get_splits("original", "byte")]


def block_hash(normalizer, block):
    h = 0xCBF29CE484222325
    for c in range(block * BLOCK, (block + 1) * BLOCK):
        if 0xD800 <= c < 0xE000:
            continue
        for text in (f"a{chr(c)}b", f"x{chr(c)}{STAYING}{chr(c)}Y"):
            for word, (start, end) in words(normalizer, text):
                h = fnv1a(h, word.encode() + bytes((start, end)))
    return h


def made_up_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 9)):
        if rng.random() < 0.1:
            parts.append(rng.choice(BROKEN))
        for _ in range(rng.choice((1, 2, 3, 5, 101 if rng.random() < 0.05 else 4))):
            parts.append(rng.choice(LETTERS).encode())
            while rng.random() < 0.3:
                parts.append(chr(rng.choice(MARKS)).encode())
        parts.append(rng.choice(OTHERS if rng.random() < 0.5 else " ").encode())
    return b"".join(parts)


def small_vocab():
    """The five special pieces, and every character above in all its forms but some, alone, continuing, and in pairs."""
    chars = sorted(set(normalizers.NFD().normalize_str(LETTERS + LETTERS.lower() + OTHERS) + LETTERS + LETTERS.lower()))
    chars = [c for c in chars if c.isprintable() and not c.isspace() and c not in "b\u0419"]
    marks = [chr(c) for c in MARKS]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + chars + ["##" + c for c in chars + marks] + marks
    pieces += [a + b for a in "aceix" for b in "aceix\u302e"] + ["##" + a + b for a in "acei" for b in "xz0"]
    return list(dict.fromkeys(pieces))


def char_to_byte(data):
    """Byte offset of each character of the decoded text: ill-formed parts count with their own bytes."""
    offsets = [0]
    at = 0
    for c in data.decode("utf-8", errors="replace"):
        width = len(c.encode())
        if data[at : at + width] != c.encode():  # an ill-formed part: the shortest that decodes to one U+FFFD
            width = 1
            while at + width < len(data) and data[at : at + width + 1].decode("utf-8", errors="replace") == "\ufffd":
                width += 1
        at += width
        offsets.append(at)
    return offsets


def cases():
    vocab = small_vocab()
    rng = random.Random(20)
    found = []
    for i in range(240):
        data = made_up_text(rng)
        t = Tokenizer(models.WordPiece({p: i for i, p in enumerate(vocab)}, unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=i % 2 == 0)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        e = t.encode(data.decode("utf-8", errors="replace"))
        at = char_to_byte(data)
        spans = [[at[start], at[end]] for start, end in e.offsets]
        found.append({"text": data.hex(), "lower_case": i % 2 == 0, "ids": e.ids, "spans": spans})
    return {"vocab": vocab, "cases": found}


def main():
    (HERE / "text_cases.json").write_text(json.dumps(cases(), separators=(",", ":")) + "\n")
    uncased = normalizers.BertNormalizer(lowercase=True)
    cased = normalizers.BertNormalizer(lowercase=False)
    with open(HERE / "text_unicode.txt", "w") as f:
        for block in range(0x110000 // BLOCK):
            f.write(f"{block} {block_hash(uncased, block):016x} {block_hash(cased, block):016x}\n")


if __name__ == "__main__":
    main()
