#!/usr/bin/env python3
"""Makes src/text/unicode_overrides_table.c: where Hugging Face's `tokenizers` and utf8proc disagree on a code point.

Rule: `tokenizers` is the oracle, asked through its own normalizers, one code point at a time, all 0x110000 of them;
utf8proc is read through ctypes by the same rules as src/text/unicode.c.  Only differences are written.

usage: make_unicode_overrides.py > src/text/unicode_overrides_table.c      (needs tokenizers and libutf8proc.so.2)
"""
import ctypes
import sys

import tokenizers
from tokenizers import normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
OTHER, SPACE, REMOVED, PUNCTUATION, CJK, MARK = range(6)
CLASS_NAMES = ["OTHER", "SPACE", "REMOVED", "PUNCTUATION", "CJK", "MARK"]

utf8proc = ctypes.CDLL("libutf8proc.so.2")
utf8proc.utf8proc_version.restype = ctypes.c_char_p
utf8proc.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_int16)
utf8proc.utf8proc_tolower.restype = ctypes.c_int32
utf8proc.utf8proc_decompose_char.restype = ctypes.c_ssize_t
MN, PC, PO, ZS, ZP, CC, CF, CO = 6, 12, 18, 23, 25, 26, 27, 29  # utf8proc_category_t
DECOMPOSE = 1 << 4  # UTF8PROC_DECOMPOSE


def base_class(c):
    """The class by utf8proc: the same decisions as base_class in src/text/unicode.c, the CJK ranges apart."""
    category = utf8proc.utf8proc_get_property(c)[0]
    if c in (0x09, 0x0A, 0x0D) or ZS <= category <= ZP:
        return SPACE
    if c in (0, 0xFFFD) or category in (CC, CF, CO):
        return REMOVED
    if PC <= category <= PO or chr(c) in "$+<=>^`|~":
        return PUNCTUATION
    return MARK if category == MN else OTHER


def base_ccc(c):
    return utf8proc.utf8proc_get_property(c)[1]


def base_decomposition(c):
    out = (ctypes.c_int32 * 8)()
    boundary = ctypes.c_int(0)
    n = utf8proc.utf8proc_decompose_char(c, out, 8, DECOMPOSE, ctypes.byref(boundary))
    return tuple(out[:n])


class Oracle:
    """What `tokenizers` does with single code points."""

    clean = normalizers.BertNormalizer(True, False, False, False)
    spread = normalizers.BertNormalizer(False, True, False, False)
    strip = normalizers.BertNormalizer(False, False, True, False)
    lower = normalizers.Lowercase()
    nfd = normalizers.NFD()
    split = pre_tokenizers.BertPreTokenizer()

    def char_class(self, c):
        s = chr(c)
        if self.clean.normalize_str(s) != s:
            return SPACE if self.clean.normalize_str(s) == " " else REMOVED
        if c == 0x20:
            return SPACE
        if self.spread.normalize_str(s) != s:
            return CJK
        if self.strip.normalize_str("a" + s) == "a":
            return MARK
        pieces = [p for p, _ in self.split.pre_tokenize_str("a" + s + "b")]
        if len(pieces) == 1:
            return OTHER
        assert pieces == ["a", s, "b"], (hex(c), pieces)  # a new white space would make two
        return PUNCTUATION

    def decomposition(self, c):
        return tuple(map(ord, self.nfd.normalize_str(chr(c))))

    def lower_case(self, c):
        return tuple(map(ord, self.lower.normalize_str(chr(c))))

    def swaps(self, first, second):
        """Whether canonical ordering puts `second` before `first`: 0 < ccc(second) < ccc(first)."""
        return self.nfd.normalize_str("a" + chr(first) + chr(second)) == "a" + chr(second) + chr(first)

    def ccc(self, c, marks):
        """The canonical combining class, by the order that c takes among `marks`: (ccc, code point), ascending."""
        lowest, highest = marks[0][1], marks[-1][1]
        if c not in (lowest, highest) and not self.swaps(c, lowest) and not self.swaps(highest, c):
            return 0
        for ccc, mark in marks:
            if mark == c or not (self.swaps(c, mark) or self.swaps(mark, c)):
                return ccc
        raise ValueError(hex(c))


def to_ranges(values):
    """[(code point, value)] in ascending order -> [(first, last, value)]."""
    ranges = []
    for c, value in values:
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == value:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, value])
    return ranges


def differences():
    """Where oracle and base differ: [(code point, (class, ccc))], [undecomposed code point], [(code point, lower)]."""
    oracle = Oracle()
    marks = {}
    for c in CODE_POINTS:  # one code point that the oracle orders, for each combining class
        if base_ccc(c) and (oracle.swaps(0x345, c) or oracle.swaps(c, 0x334)):
            marks.setdefault(base_ccc(c), c)
    marks = sorted(marks.items())
    classes, wholes, lowers = [], [], []
    for c in CODE_POINTS:
        decomposition = oracle.decomposition(c)
        if decomposition != base_decomposition(c):
            assert decomposition == (c,), hex(c)  # so far utf8proc only knows more
            wholes.append(c)
        ccc = oracle.ccc(c, marks) if decomposition == (c,) else base_ccc(c)
        found = oracle.char_class(c)
        if (found, ccc) != (CJK if found == CJK else base_class(c), base_ccc(c)):
            classes.append((c, (found, ccc)))
        lower = oracle.lower_case(c)
        if decomposition == (c,) and lower != (utf8proc.utf8proc_tolower(c),):
            assert len(lower) == 1, hex(c)  # only U+0130 has a longer one, and it decomposes first
            lowers.append((c, lower[0]))
    return classes, wholes, lowers


HEAD = """/* unicode_overrides_table: where Hugging Face's tokenizers %s differs from utf8proc %s on a single
 * code point.  Made by tools/make_unicode_overrides.py; do not edit. */
#include "text/unicode.h"

"""


def main():
    classes, wholes, lowers = differences()
    print(HEAD % (tokenizers.__version__, utf8proc.utf8proc_version().decode()), end="")
    ranges = to_ranges(classes)
    print("const struct unicode_class_override unicode_class_overrides[] = {")
    for first, last, (found, ccc) in ranges:
        print(f"    {{0x{first:04X}, 0x{last:04X}, UNICODE_{CLASS_NAMES[found]}, {ccc}}},")
    print(f"}};\nconst int unicode_n_class_overrides = {len(ranges)};\n")
    print("const uint32_t unicode_wholes[] = {")
    for c in wholes:
        print(f"    0x{c:04X},")
    print(f"}};\nconst int unicode_n_wholes = {len(wholes)};\n")
    ranges = to_ranges([(c, lower - c) for c, lower in lowers])
    print("const struct unicode_lower_override unicode_lower_overrides[] = {")
    for first, last, shift in ranges:
        print(f"    {{0x{first:04X}, 0x{last:04X}, {shift}}},")
    print(f"}};\nconst int unicode_n_lower_overrides = {len(ranges)};")


if __name__ == "__main__":
    main()
