#!/usr/bin/env python3
"""Checks a trace written by --profile against the rules of the Chrome trace event format and kiln's own.

usage: check_trace.py TRACE.json

Rules: it is JSON with a traceEvents list; every event has ph, pid and name; a complete event (ph "X") has a tid,
a ts and a dur that are not negative, and its tid has a name; the complete events of one row are nested or apart;
an op is a slot of src/ops/ops.h with bytes, flops, dtype, layer and shapes; a copy has bytes and is in the row of
the ops, of a device that is not the cpu; ops and copies take no longer than the micro-steps that they are part of.
Standard library only.
"""
import json
import pathlib
import re
import sys
from decimal import Decimal

OP_ARGS = ("layer", "dtype", "shapes", "bytes", "flops", "GB/s", "GF/s")


def known_ops():
    header = pathlib.Path(__file__).resolve().parent.parent / "src" / "ops" / "ops.h"
    return set(re.findall(r"void \(\*(\w+)\)\(struct exec", header.read_text()))


def check_fields(event):
    for key in ("ph", "pid", "name"):
        assert key in event, f"no {key} in {event}"
    assert event["ph"] in ("X", "M"), f"ph of {event}"
    if event["ph"] == "X":
        for key in ("tid", "ts", "dur", "cat"):
            assert key in event, f"no {key} in {event}"
        assert event["ts"] >= 0 and event["dur"] >= 0, f"negative time in {event}"


def check_nesting(row, events):
    """In order of their beginnings, each event ends before what encloses it does."""
    enclosing = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while enclosing and enclosing[-1]["ts"] + enclosing[-1]["dur"] <= begin:
            enclosing.pop()
        if enclosing:
            outer = enclosing[-1]
            assert end <= outer["ts"] + outer["dur"], f"row {row}: {event['name']} crosses the end of {outer['name']}"
        enclosing.append(event)


def check_op(event, ops):
    assert event["name"] in ops, f"{event['name']} is no op"
    for key in OP_ARGS:
        assert key in event["args"], f"no {key} in {event}"
    assert event["args"]["bytes"] > 0 and event["args"]["flops"] >= 0, f"counts of {event}"


def check_copy(event, row_of_ops, device):
    assert event["name"] == "copy batch" and event["tid"] == row_of_ops, f"no copy of a batch to the device: {event}"
    assert event["args"]["bytes"] > 0 and event["args"]["GB/s"] >= 0, f"counts of {event}"
    assert device != "cpu", "the cpu has nothing to copy"


def main(path):
    trace = json.loads(pathlib.Path(path).read_text(), parse_float=Decimal)
    events = trace["traceEvents"]
    rows, named = {}, set()
    for event in events:
        check_fields(event)
        if event["ph"] == "X":
            rows.setdefault((event["pid"], event["tid"]), []).append(event)
        elif event["name"] == "thread_name":
            named.add((event["pid"], event["tid"]))
    for row, in_row in rows.items():
        assert row in named, f"row {row} has no name"
        check_nesting(row, in_row)
    ops = [e for e in events if e.get("cat") == "op"]
    known = known_ops()
    for event in ops:
        check_op(event, known)
    steps = [e for e in events if e["name"].startswith("micro-step ")]
    assert steps and ops, "no micro-steps or no ops"
    copies = [e for e in events if e.get("cat") == "copy"]
    for event in copies:
        check_copy(event, ops[0]["tid"], trace["otherData"]["device"])
    op_time, step_time = sum(e["dur"] for e in ops + copies), sum(e["dur"] for e in steps)
    assert op_time <= step_time, f"ops and copies take {op_time} us of {step_time}"
    print(f"{path}: {len(steps)} micro-steps, {len(ops)} calls of {len({e['name'] for e in ops})} ops, "
          f"{len(copies)} copies, {100 * op_time / step_time:.1f} % of the time in ops; all rules hold")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except (AssertionError, KeyError, ValueError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
