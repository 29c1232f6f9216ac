#!/usr/bin/env python3
"""Makes src/text/script_table.c: the script of each code point, by Unicode's Scripts.txt as fontTools carries it.

Scripts in NAMES keep their names, all others become one; Common and Inherited have no row.

usage: make_scripts.py > src/text/script_table.c; clang-format -i src/text/script_table.c      (needs fonttools)
"""
import re

from fontTools.unicodedata import Scripts

NAMES = """latin greek cyrillic armenian hebrew arabic syriac devanagari bengali gurmukhi gujarati oriya tamil telugu
kannada malayalam sinhala thai lao tibetan myanmar georgian hangul ethiopic khmer mongolian hiragana katakana bopomofo
han""".split()
OTHER = "other"
WITHOUT = {"Zyyy", "Zinh", "Zzzz"}

rows = []
for i, first in enumerate(Scripts.RANGES):
    code = Scripts.VALUES[i]
    last = Scripts.RANGES[i + 1] - 1 if i + 1 < len(Scripts.RANGES) else 0x10FFFF
    if code in WITHOUT:
        continue
    name = Scripts.NAMES[code].lower()
    number = NAMES.index(name) if name in NAMES else len(NAMES)
    if rows and rows[-1][1] + 1 == first and rows[-1][2] == number:
        rows[-1][1] = last
    else:
        rows.append([first, last, number])

version = re.search(r"Scripts-([\d.]+)\.txt", open(Scripts.__file__, encoding="utf-8").read()).group(1)
print(f"""/* script_table: the scripts of Unicode {version} (Scripts.txt; Copyright Unicode, Inc.,
 * https://www.unicode.org/license.txt).  Made by tools/make_scripts.py; do not edit. */
#include "text/script.h"

const char *const script_names[] = {{""")
print(", ".join(f'"{name}"' for name in [*NAMES, OTHER]) + "};")
print("const int script_n = sizeof script_names / sizeof script_names[0];")
print("const struct script_range script_ranges[] = {")
print(", ".join(f"{{0x{a:04X}, 0x{b:04X}, {n}}}" for a, b, n in rows) + "};")
print("const int script_n_ranges = sizeof script_ranges / sizeof script_ranges[0];")
