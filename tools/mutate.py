#!/usr/bin/env python3
"""Finds what no test notices: changes one place of a room at a time (an operator, a constant, a negated condition, a call left
out), builds the tests, and runs those of the room until one fails. Changes that none notices are listed at the end: each is a
missing test, or code without an effect. The tree that is changed is a copy, build-mutate/.

What the compiler refuses, warnings included, is not counted. Where the system lets it (unshare), each test runs where it can write
only a /tmp of its own; a function that removes files or ends processes is never changed.

A change costs the compilation of one file, the link of the library that tests share, and tests: first those that noticed another
change of the file, then the shortest, where one that includes its header may take four times as long. The program is built only
for tests that run it, and with --tests all that scripts start for a script. A test that needs five times the time that it needed
before, and more than the least, has noticed.

usage: tools/mutate.py ROOM [--number 50] [--seed 1] [--limit 60] [--tests REGEX] [--places REGEX] [--copy build-mutate]
"""
import argparse
import collections
import functools
import glob
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(ROOT, "build-mutate")
BUILD = os.path.join(COPY, "build")
PROGRAM = "kiln_program"
STARTED_BY_SCRIPTS = ["kiln_tested", "test_support", PROGRAM]  # the changed library must reach all that scripts start
LEAST_CPU, LEAST_CLOCK = 5, 30  # seconds that each test has; the clock is for threads that wait, and other work may slow it

OPERATORS = [("==", "!="), ("!=", "=="), ("<=", "<"), (">=", ">"), ("&&", "||"), ("||", "&&"), ("<", "<="), (">", ">="),
             ("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"), ("%", "/"), ("+=", "-="), ("-=", "+="), ("<<", ">>"), (">>", "<<"),
             ("&", "|"), ("|", "&")]
OPERATOR = re.compile(r"(?<= )(" + "|".join(re.escape(a) for a, _ in sorted(OPERATORS, key=lambda o: -len(o[0]))) + r")(?= )")
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
CALL = re.compile(r"^\s+[a-z_][a-z_0-9>.-]*\(.*\);$")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\) \{)$")
# A function with one of these is left as it is: a changed one could remove files or end processes that are not the test's.
DANGER = re.compile(r"\b(unlink|unlinkat|rmdir|remove|rename|renameat|kill|killpg|execvp?|execve|fork|posix_spawn|file_remove_tree)\(")


def quiet(text):
    """The text with comments, strings and characters blanked, every column where it was."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                  lambda m: re.sub(r"[^\n]", "\x01", m.group(0)), text, flags=re.S)


def changes_of_line(line, blanked):
    """(what, changed line) of each change of one line."""
    for m in OPERATOR.finditer(blanked):
        for new in [b for a, b in OPERATORS if a == m.group(1)]:
            if m.group(1) == "*" and blanked[m.end():m.end() + 1] != " ":
                continue
            yield f"{m.group(1)} -> {new}", line[:m.start()] + new + line[m.end():]
    for m in NUMBER.finditer(blanked):
        value = int(m.group(1))
        new = str(value + 1) if value < 2 or value % 2 == 0 else str(value - 1)
        yield f"{value} -> {new}", line[:m.start()] + new + line[m.end():]
    m = CONDITION.match(blanked)
    if m:
        yield "condition negated", line[:m.end(1)] + "!(" + line[m.start(2):m.end(2)] + ")" + line[m.start(3):]
    if CALL.match(blanked) and not re.match(r"\s+(return|free|CHECK|log_\w+)\b", blanked):
        yield "call left out", re.match(r"\s*", line).group(0) + ";"
    for old, new in (("true", "false"), ("false", "true")):
        for m in re.finditer(rf"\b{old}\b", blanked):
            yield f"{old} -> {new}", line[:m.start()] + new + line[m.end():]


def changes_of_file(path):
    """(path, line number, what, changed line) of each change of the functions in one file."""
    with open(os.path.join(ROOT, path)) as f:
        text = f.read()
    lines, blanked = text.split("\n"), quiet(text).split("\n")
    start = 0
    for i, line in enumerate(blanked):
        if line == "{":
            start = i
        if line == "}" and start:
            if not any(DANGER.search(b) for b in blanked[start:i]):
                for k in range(start + 1, i):
                    for what, changed in changes_of_line(lines[k], blanked[k]):
                        yield path, k + 1, what, changed
            start = 0


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def copy_tree():
    """Makes the copy what the tree is now, and leaves the times of files that are the same."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    kept = set()
    for name in filter(None, files):
        source, target = os.path.join(ROOT, name), os.path.join(COPY, name)
        if not os.path.isfile(source):
            continue
        kept.add(target)
        with open(source, "rb") as f:
            data = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)
    for folder, folders, names in os.walk(COPY):
        folders[:] = [f for f in folders if os.path.join(folder, f) != BUILD]
        for name in names:
            if os.path.join(folder, name) not in kept:
                os.remove(os.path.join(folder, name))


def configure():
    options = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    options += ["-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
    done = run(["cmake", "--preset", "ci", "-DKILN_CUDA=OFF", "-DKILN_EMULATE_CUDA=OFF", *options], cwd=COPY)
    if done.returncode != 0:
        sys.exit(done.stdout)


def build(targets):
    """None, or what the compiler says."""
    done = run(["ninja", "-C", BUILD, *targets])
    return None if done.returncode == 0 else done.stdout


def keep_niceness():
    """A new session is scheduled as a group, whose niceness is not that of its processes (sched(7), autogroup)."""
    try:
        with open("/proc/self/autogroup", "w") as f:
            f.write(str(os.nice(0)))
    except OSError:
        pass


def limit_resources(cpu_seconds):
    os.setsid()
    keep_niceness()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu_seconds), math.ceil(cpu_seconds)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A test sets limits of its own, and writes far into sparse files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 30, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def can_isolate():
    return shutil.which("unshare") is not None and run(["unshare", "-rmpf", "--mount-proc", "true"]).returncode == 0


def isolated(command, isolates):
    """The command where only /tmp can be written, a folder of its own, and no other process is seen."""
    if not isolates or BUILD.startswith("/tmp/"):
        return command
    script = 'mount -o remount,bind,ro / && mount -t tmpfs none /tmp && cd /tmp && exec "$@"'
    return ["unshare", "-rmpf", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", *command]


class Test:
    def __init__(self, entry, isolates):
        self.name = entry["name"]
        self.runs_program = any(os.path.basename(word) == "kiln" for word in entry["command"])
        self.command = isolated(entry["command"], isolates)
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.cpu = self.clock = None  # seconds of the first run

    def passes(self, cpu_limit, clock_limit):
        """Whether it passes or is skipped within these seconds."""
        child = subprocess.Popen(self.command, cwd=os.path.join(BUILD, "tests"), env=dict(os.environ, **self.environment),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: limit_resources(cpu_limit))
        begun, cpu = time.monotonic(), cpu_of_children()
        try:
            code = child.wait(clock_limit)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        if self.clock is None:
            self.clock, self.cpu = time.monotonic() - begun, cpu_of_children() - cpu
        return code in (0, 77)

    def notices(self):
        return not self.passes(max(LEAST_CPU, 5 * self.cpu), max(LEAST_CLOCK, 5 * self.clock))


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def includes(test, header):
    """Whether the source of the test includes a header of src."""
    source = [f for f in sources_of_tests() if os.path.basename(f) == test.name + ".c"]
    return any(f'"{header}"'.encode() in read(f) for f in source)


@functools.lru_cache
def sources_of_tests():
    return glob.glob(os.path.join(COPY, "tests", "*", "test_*.c"))


def ask_ctest(wanted):
    """What ctest knows of the tests that `wanted`, its arguments, selects; those that are not built have no command."""
    return json.loads(subprocess.check_output(["ctest", "--test-dir", BUILD, "--show-only=json-v1", *wanted], text=True))["tests"]


def names_of(wanted):
    return [t["name"] for t in ask_ctest(wanted)]


def targets_of(names, known):
    """What to build for tests of these names: a program each, or what scripts start."""
    programs = [name for name in names if f"\n{name}: phony" in known]
    return programs if len(programs) == len(names) else programs + STARTED_BY_SCRIPTS


def tests_of(wanted):
    isolates = can_isolate()
    return [Test(t, isolates) for t in ask_ctest(wanted) if "command" in t]


def object_of(path):
    """The file that a source is compiled to, or None (of kernels there are several)."""
    known = [os.path.join(BUILD, "CMakeFiles", target + ".dir", path + ".o") for target in ("kiln", "kiln_mpi", PROGRAM)]
    return next(filter(os.path.exists, known), None)


def is_kernel(path):
    """Whether a source is compiled once for each instruction set."""
    return path.endswith("_kernels.c")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def code_of(compiled):
    """An object file without what only debuggers read, such as columns."""
    stripped = os.path.join(BUILD, "stripped.o")
    done = run(["objcopy", "--strip-debug", compiled, stripped])
    return read(stripped if done.returncode == 0 else compiled)


def compiles_to_something_else(path, code):
    compiled = object_of(path)
    if compiled is None:
        return is_kernel(path)
    return build([os.path.relpath(compiled, BUILD)]) is None and code_of(compiled) != code


def in_turn(tests, path, noticed):
    """The tests in the order in which they most likely notice a change of a file of src soonest."""
    header = path.removeprefix("src/").removesuffix(".c") + ".h"
    return sorted(tests, key=lambda t: (t.name not in noticed, t.clock if includes(t, header) else 4 * t.clock))


def first_that_notices(tests, targets, limit):
    """The name of the first test that fails, 'survives', or 'too long' after `limit` seconds of the processor in tests."""
    if targets and build(targets) is not None:
        return "no effect"
    has_program = False
    used = 0
    for test in tests:
        if used > limit:
            return "too long"
        if test.runs_program and not has_program:
            if build([PROGRAM]) is not None:
                return "no effect"
            has_program = True
        before = cpu_of_children()
        if test.notices():
            return test.name
        used += cpu_of_children() - before
    return "survives"


def try_change(change, targets, tests, limit):
    """'no effect' (the compiler makes the same code, or refuses it), or what `first_that_notices` says of it."""
    path, number, _, changed = change
    file = os.path.join(COPY, path)
    original = read(file)
    compiled = object_of(path)
    code = code_of(compiled) if compiled else None
    lines = original.decode().split("\n")
    lines[number - 1] = changed
    with open(file, "w") as f:
        f.write("\n".join(lines))
    try:
        return first_that_notices(tests, targets, limit) if compiles_to_something_else(path, code) else "no effect"
    finally:
        with open(file, "wb") as f:
            f.write(original)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("room")
    p.add_argument("--number", type=int, default=50, help="number of changes to try")
    p.add_argument("--seed", type=int, default=1, help="seed of the choice")
    p.add_argument("--limit", type=float, default=60, help="seconds of the processor for the tests of a change; one that needs more is not counted")
    p.add_argument("--tests", help="regex of the tests to run instead of the room's, as of ctest -R")
    p.add_argument("--places", default="", help="regex of the changes to try, such as 'schedule.c:12: < ->'")
    p.add_argument("--copy", default="build-mutate", help="folder of the copy that is changed; runs at once need one each")
    o = p.parse_args()
    global COPY, BUILD
    COPY = os.path.join(ROOT, o.copy)
    BUILD = os.path.join(COPY, "build")
    sources = [f for f in subprocess.check_output(["git", "ls-files", f"src/{o.room}"], cwd=ROOT, text=True).split()
               if f.endswith(".c") and not f.endswith("_table.c") and "/cuda/" not in f]
    if not sources:
        sys.exit(f"there are no sources in src/{o.room} to change")
    copy_tree()
    configure()
    wanted = ["-R", o.tests] if o.tests else ["-L", f"^{o.room}$"]
    known = run(["ninja", "-C", BUILD, "-t", "targets", "all"]).stdout
    names = names_of(wanted) if o.tests else [f"check_{o.room}"]
    targets = targets_of(names, known)
    failure = build(targets) if targets else None
    tests = [] if failure else tests_of(wanted)
    if any(t.runs_program for t in tests):
        failure = build([PROGRAM])
    if failure:
        sys.exit(failure)
    for test in list(tests):
        if not test.passes(10 * o.limit, 10 * o.limit):
            print(f"{test.name} fails before any change, and is left out", flush=True)
            tests.remove(test)
    if not tests:
        sys.exit(f"no test is of {o.room}")
    every = [c for f in sources for c in changes_of_file(f) if re.search(o.places, f"{c[0]}:{c[1]}: {c[2]}")]
    random.Random(o.seed).shuffle(every)
    print(f"{o.room}: {o.number} of {len(every)} changes in {len(sources)} files, {len(tests)} tests, seed {o.seed}", flush=True)
    tried, survivors, noticed = 0, [], collections.defaultdict(set)
    for change in every:
        if tried == o.number:
            break
        path, number, what, changed = change
        outcome = try_change(change, targets, in_turn(tests, path, noticed[path]), o.limit)
        if outcome == "no effect":
            continue
        print(f"{path}:{number}: {what}: {outcome}", flush=True)
        if outcome == "too long":
            continue
        tried += 1
        if outcome != "survives":
            noticed[path].add(outcome)
        else:
            survivors.append(f"{path}:{number}: {what}: {changed.strip()}")
    print(f"\n{o.room}: {tried - len(survivors)} of {tried} changes were noticed" + ("; not:" if survivors else ""))
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
