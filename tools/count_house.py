#!/usr/bin/env python3
"""Figures of the architecture: tools/count_house.py prints those that a change should lower, and the places behind them with -v.

lines, files       of src
small headers      under 25 lines, included by at most one other file than their own .c
long calls         public functions outside src/ops with more than 8 parameters
copies             pairs of places in src with 12 equal lines (blanks and lines of one mark aside)
step               files that trainer_step enters, itself or through others (core, dev, ops and watch aside)
settings           flags of a training run that are a member of more than 2 structs, by name and type: a number of
                   one step is no copy of the rule in the flags; structs of ops, operands of kernels, aside
bare prototypes    public functions without a comment above
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh"))
TEXT = {p: p.read_text() for p in SOURCES}
CODE = {p: re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), t, flags=re.S) for p, t in TEXT.items()}
PROTOTYPE = re.compile(r"^(?!static|typedef|#|extern \"C\")[A-Za-z_][\w \*]*?[ \*](\w+)\(([^;{}]*)\);", re.M)
NAMES_A_SETTING = ("command_flags", "vocab_flags", "batch_flags", "optimizer", "pretrain_options", "finetune_options", "run_settings")


def place(path, line):
    return f"{path.relative_to(ROOT)}:{line}"


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def parameters(text):
    depth, count = 0, 1
    for c in text:
        depth += (c == "(") - (c == ")")
        count += c == "," and depth == 0
    return 0 if text.strip() in ("", "void") else count


def small_headers():
    users = {}
    for path, text in TEXT.items():
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            users.setdefault(name, set()).add(path)
    for path in SOURCES:
        n = TEXT[path].count("\n")
        name = str(path.relative_to(ROOT / "src"))
        others = [u for u in users.get(name, ()) if u.with_suffix("") != path.with_suffix("")]
        if path.suffix == ".h" and n < 25 and len(others) <= 1:
            yield f"{place(path, 1)} {n} lines"


def prototypes():
    for path in SOURCES:
        if path.suffix == ".h":
            for m in PROTOTYPE.finditer(CODE[path]):
                yield path, line_of(CODE[path], m.start()), m[1], m[2]


def long_calls():
    for path, line, name, arguments in prototypes():
        if path.relative_to(ROOT / "src").parts[0] != "ops" and parameters(arguments) > 8:
            yield f"{place(path, line)} {name}: {parameters(arguments)} parameters"


def bare_prototypes():
    for path, line, name, _ in prototypes():
        above = TEXT[path].split("\n")[line - 2].strip()
        if not above.endswith("*/") and not re.search(r"[;)]$", above):
            yield f"{place(path, line)} {name}"


def copies(n=12):
    seen = {}
    for path in SOURCES:
        lines = [(i, s.strip()) for i, s in enumerate(TEXT[path].split("\n"), 1)]
        lines = [(i, s) for i, s in lines if len(s) > 1 and not s.startswith("#include")]
        last = -n
        for k in range(len(lines) - n + 1):
            key = tuple(s for _, s in lines[k : k + n])
            first = seen.setdefault(key, (path, lines[k][0]))
            if first != (path, lines[k][0]) and k >= last + n:
                yield f"{place(*first)} and {place(path, lines[k][0])}"
                last = k


def functions():
    for path in SOURCES:
        for m in re.finditer(r"^(static )?[A-Za-z_][\w \*]*?[ \*](\w+)\([^;{}]*\)\n\{\n(.*?)\n\}", CODE[path], re.M | re.S):
            yield path, m[1] is not None, m[2], m[3]


def step(first="trainer_step"):
    """Files of functions that the step calls by name, itself or through others; what it needs of core and dev aside."""
    own, public = {}, {}
    for path, is_static, name, body in functions():
        own[path, name] = body
        if not is_static:
            public[name] = path
    reached, ahead = set(), [(public[first], first)]
    while ahead:
        path, name = ahead.pop()
        if (path, name) in reached:
            continue
        reached.add((path, name))
        for word in set(re.findall(r"\b(\w+)\(", own[path, name])):
            at = path if (path, word) in own else public.get(word)
            if at is not None and at.relative_to(ROOT / "src").parts[0] not in ("core", "dev", "ops", "watch"):
                ahead.append((at, word))
    return sorted({str(path.relative_to(ROOT).with_suffix("")) for path, _ in reached})


def structs():
    for path in SOURCES:
        for m in re.finditer(r"^struct (\w+) \{\n(.*?)^\};", CODE[path], re.M | re.S):
            members = {}
            for d in (d.strip() for d in m[2].split(";") if "(" not in d):
                kind = re.match(r"(?:const )?(?:(?:struct|enum) )?\w+", d)
                members.update({w: kind[0] if kind else "" for w in re.findall(r"[ \*](\w+)(?:\[[^\]]*\])*\s*(?:,|$)", d)})
            if path.relative_to(ROOT).parts[1] != "ops":
                yield m[1], members


def settings():
    holders = {}
    for name, members in structs():
        for member in members.items():
            holders.setdefault(member, set()).add(name)
    for (member, _), names in sorted(holders.items()):
        if names & set(NAMES_A_SETTING) and len(names) > 2 and "_" in member:
            yield f"{member}: {', '.join(sorted(names))}"


def main():
    rows = [("small headers", list(small_headers())), ("long calls", list(long_calls())), ("copies", list(copies())),
            ("step", step()), ("settings", list(settings())), ("bare prototypes", list(bare_prototypes()))]
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    print(f"lines {sum((ROOT / p).read_bytes().count(10) for p in tracked)}\nfiles {len(tracked)}")
    for name, found in rows:
        print(f"{name} {len(found)}")
        if "-v" in sys.argv[1:]:
            print("".join(f"    {line}\n" for line in found), end="")


main()
