"""Runs the code of a notebook's cells, one after the other, as one script; says which cell failed.

usage: run_notebook.py FILE.ipynb [jupyter]; jupyter: by a kernel of it, which needs nbclient and ipykernel"""
import json
import sys

if sys.argv[2:] == ["jupyter"]:
    import nbformat
    from nbclient import NotebookClient

    NotebookClient(nbformat.read(sys.argv[1], 4)).execute()
    sys.exit()
with open(sys.argv[1], encoding="utf-8") as f:
    cells = [c for c in json.load(f)["cells"] if c["cell_type"] == "code"]
names = {}
for number, cell in enumerate(cells, 1):
    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
print(len(cells), "cells")
