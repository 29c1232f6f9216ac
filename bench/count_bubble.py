#!/usr/bin/env python3
"""Counts the bubble of a pipeline from the traces that its stages write with --profile.

usage: count_bubble.py MICRO_BATCHES CHUNKS TRACE_OF_STAGE_0 TRACE_OF_STAGE_1 ...

A step lasts from the first forward of stage 0 to its last backward, the first and the last work of all.  A stage is
idle in it but for its forwards and backwards.  Printed: for each step of the traces the part of the time in which
stages are idle, the median of all, and what the formula says, (p - 1) / (chunks m + p - 1).  And the same by turns:
the schedule is run again, in which each forward and backward takes as long as the shortest of all steps in its place,
so as if nothing else ran on the machine, and messages took no time.
Standard library only.
"""
import json
import statistics
import sys


def steps_of(path):
    """A list of steps, each a list of (name, begin, end) in microseconds."""
    with open(path, encoding="utf-8") as f:
        events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X" and e["cat"] == "phase"]
    steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("micro-step"))
    work = sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["name"] in ("forward", "backward"))
    return [[(name, b, e) for b, e, name in work if begin <= b < end] for begin, end in steps]


def busy(step):
    return sum(end - begin for _, begin, end in step)


def actions(stages, chunks, micro, stage):
    """The order of dist/pipeline.c: (is a backward, chunk, micro-batch)."""
    n, after, per_round = micro * chunks, stages - stage - 1, stages * chunks
    warm_up = min(n, after if chunks == 1 else 2 * after + (chunks - 1) * stages)

    def nth(backward, k):
        chunk = k % per_round // stages
        return backward, chunks - 1 - chunk if backward else chunk, k // per_round * stages + k % stages

    order = [nth(False, k) for k in range(warm_up)]
    for k in range(n - warm_up):
        order += [nth(False, warm_up + k), nth(True, k)]
    return order + [nth(True, k) for k in range(n - warm_up, n)]


def by_turns(stages, chunks, micro, takes):
    """The idle part of a step in which the k-th action of stage s takes takes[s][k]."""
    last = stages * chunks - 1
    orders = [actions(stages, chunks, micro, s) for s in range(stages)]
    ends, free, at = {}, [0.0] * stages, [0] * stages
    while any(at[s] < len(orders[s]) for s in range(stages)):
        for s in range(stages):
            while at[s] < len(orders[s]):
                is_backward, chunk, m = orders[s][at[s]]
                part = chunk * stages + s
                if is_backward:
                    needs = (False, part, m) if part == last else (True, part + 1, m)
                else:
                    needs = (False, part - 1, m)
                if needs[1] >= 0 and needs not in ends:
                    break
                start = max(free[s], ends.get(needs, 0.0))
                free[s] = ends[is_backward, part, m] = start + takes[s][at[s]]
                at[s] += 1
    return 1 - sum(map(sum, takes)) / (stages * max(free))


def main():
    micro, chunks, traces = int(sys.argv[1]), int(sys.argv[2]), [steps_of(path) for path in sys.argv[3:]]
    stages = len(traces)
    seen = []
    for step in zip(*traces):
        assert all(len(s) == 2 * micro * chunks for s in step), f"{[len(s) for s in step]} forwards and backwards"
        lasts = max(e for _, _, e in step[0]) - min(b for _, b, _ in step[0])
        seen.append(1 - sum(busy(s) for s in step) / (stages * lasts))
    least = [[min(e - b for _, b, e in place) for place in zip(*steps)] for steps in traces]
    formula = (stages - 1) / (chunks * micro + stages - 1)
    print("steps:", " ".join(f"{100 * x:.2f}" for x in seen), "% idle")
    for what, value in (
        ("traced, the median", statistics.median(seen)),
        ("by turns, with the shortest of the durations", by_turns(stages, chunks, micro, least)),
    ):
        print(f"{what}: {100 * value:.2f} %, {value / formula:.3f} of the formula's {100 * formula:.2f} %")
    works = [sum(t) for t in least]
    print(f"by these the busiest stage works {max(works) / min(works):.3f} times as long as the least busy one")


main()
