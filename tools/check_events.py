#!/usr/bin/env python3
"""Reads TensorBoard event files with TensorBoard's own reader and prints every scalar: points, first and last step and
value.  Rule: every directory has scalars, every value is finite, and with --log every value of a tag of the log's lines
is the log's, to the precision of a float; the exit code is the verdict.

usage: check_events.py [--log LOG.jsonl] DIRECTORY...      (needs `pip install tensorboard`)
"""
import argparse
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

# Tags that say what a key of the log's "step" events says.
KEYS = {"Loss": ("loss", "step_loss"), "performance": ("sequences_per_second",), "iters_per_sec": ("steps_per_second",),
        "learning_rate": ("learning_rate",), "grad_norm": ("grad_norm",), "train/mlm_loss": ("mlm_loss",)}


def values_of_log(path):
    """(key, global step) -> value, later lines over earlier ones."""
    values = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            event = json.loads(line)
            if event["event"] == "step":
                for key, value in event.items():
                    values[key, event.get("global_step", event["step"])] = value
    return values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log")
    parser.add_argument("directories", nargs="+")
    args = parser.parse_args()
    wanted = values_of_log(args.log) if args.log else {}
    wrong = compared = 0
    for directory in args.directories:
        reader = EventAccumulator(directory, size_guidance={"scalars": 0})
        reader.Reload()
        tags = reader.Tags()["scalars"]
        print(f"{directory}: {len(tags)} scalars")
        wrong += not tags
        for tag in tags:
            points = reader.Scalars(tag)
            first, last = points[0], points[-1]
            print(f"  {tag}: {len(points)} points, step {first.step} {first.value:.6g} to step {last.step} {last.value:.6g}")
            wrong += sum(not math.isfinite(p.value) for p in points)
            keys = [k for k in KEYS.get(tag, ()) if any((k, p.step) in wanted for p in points)]
            for p in points if keys else ():
                compared += 1
                if not math.isclose(p.value, wanted.get((keys[0], p.step), math.nan), rel_tol=1e-6):
                    print(f"    step {p.step}: {p.value} against {wanted.get((keys[0], p.step))} in the log")
                    wrong += 1
    print(f"{compared} values compared with the log, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
