#!/usr/bin/env python3
"""Lists innermost loops of the AVX2 kernels that compute on vectors and store one to the stack: a spill, or a vector built by halves.

usage: find_spills.py [BUILD]

Prints SOURCE FUNCTION ADDRESS INSTRUCTION of each, and ends with 1 if there is one; 69 without objdump, or without kernels for AVX2.
What a loop only reads from the stack is a constant of it, an operand like any other. Standard library only.
"""
import pathlib
import re
import shutil
import subprocess
import sys

# (source, function): why its loops may store vectors
ALLOWED = {
    ("activation_kernels.c", "gelu_backward_run"): "numbers between two conversions are whole vectors in an array",
    ("linear_kernels.c", "gelu_part"): "the same",
    ("token_choice_kernels.c", "choose_item"): "candidates of three numbers, written in turn: as many stores, and no sums",
    ("embed_kernels.c", "scatter_item"): "a row: a tensor is an argument of a call; its columns are no loop, but unrolled",
}

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(.*\S)")
JUMP = re.compile(r"^j\w+ +([0-9a-f]+) ")
ARITHMETIC = re.compile(r"^v(f|mul|add|sub|div|pmadd|pmul|padd|psub)\w* .*%ymm")
STORE = re.compile(r"^v.*mm\d+,-?(0x[0-9a-f]+)?\(%r(sp|bp)\)$")
FRAME = re.compile(r"^mov +%rsp,%rbp$")


def functions(listing):
    """Pairs of a function's name and its instructions, pairs of an address and a text."""
    name, code = "", []
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            yield name, code
            name, code = match[1], []
        elif match := INSTRUCTION.match(line):
            code.append((match[1], match[2]))
    yield name, code


def successors(code):
    place = {address: i for i, (address, _) in enumerate(code)}
    after = []
    for i, (_, text) in enumerate(code):
        goes_on = i + 1 < len(code) and not text.startswith(("jmp", "ret"))
        jump = JUMP.match(text)
        target = place.get(jump[1]) if jump else None
        after.append([j for j in (i + 1 if goes_on else None, target) if j is not None])
    return after


def cycles(nodes, after):
    """The strongly connected sets of more than one node (Tarjan 1972, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in nodes:
        todo = [] if root in index else [(root, iter(after[root]))]
        while todo:
            node, rest = todo[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for next_node in rest:
                if next_node in nodes and next_node not in index:
                    todo.append((next_node, iter(after[next_node])))
                    break
                if next_node in on_stack:
                    low[node] = min(low[node], index[next_node])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(set(stack[at:]))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return [cycle for cycle in found if len(cycle) > 1]


def innermost_loops(nodes, after):
    """Cycles of which none is left without any one of their entries. Of several entries the outermost leaves the least."""
    for cycle in cycles(nodes, after):
        entries = {j for i in range(len(after)) if i not in cycle for j in after[i] if j in cycle}
        left = [inner for entry in entries if (inner := cycles(cycle - {entry}, after))]
        least = min(left, key=lambda inner: sum(map(len, inner)), default=[])
        yield from innermost_loops(set().union(*least), after) if least else [cycle]


def spills(code):
    """An instruction of each innermost loop that stores a vector."""
    framed = any(FRAME.match(text) for _, text in code)
    for loop in innermost_loops(set(range(len(code))), successors(code)):
        lines = [code[i] for i in sorted(loop)]
        stores = [line for line in lines if (match := STORE.match(line[1])) and (match[2] == "sp" or framed)]
        if stores and any(ARITHMETIC.match(text) for _, text in lines):
            yield stores[0]


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] and sys.argv[1].startswith("-"):
        print("usage: find_spills.py [BUILD]", file=sys.stderr)
        return 64
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    objects = sorted(build.glob("CMakeFiles/kiln_kernels_avx2.dir/src/ops/cpu/*_kernels.c.o"))
    if not objects or not shutil.which("objdump"):
        print("no objdump: install binutils" if objects else f"{build} has no kernels for AVX2", file=sys.stderr)
        return 69
    n_found = 0
    for path in objects:
        listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, text=True, stdout=subprocess.PIPE).stdout
        for name, code in functions(listing):
            for address, text in () if (path.stem, name) in ALLOWED else spills(code):
                print(path.stem, name, address, text)
                n_found += 1
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
