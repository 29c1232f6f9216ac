#!/usr/bin/env python3
"""Loads a server of /v1/completions with N streams at once, each the next of a list of prompts as soon as one has ended, and
prints: new tokens/s, p50 and p99 of the time between two pieces of a stream (ms), p50 and p99 of a request (s), median time to the
first piece (ms), requests that failed. Only Python's standard library, so that it takes little of the machine.

usage: stream_load.py PORT N_STREAMS N_REQUESTS N_TOKENS PROMPTS.txt"""
import asyncio
import json
import sys
import time


def body_of(prompt, n_tokens):
    return json.dumps({"model": "", "prompt": prompt, "max_tokens": n_tokens, "temperature": 0, "stream": True,
                       "ignore_eos": True, "cache_prompt": False, "seed": 1}).encode()


async def request(port, body):
    """The times at which pieces of the answer came, and whether it was whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (port, len(body)) + body)
    times, is_whole = [], False
    while line := await reader.readline():
        if line.startswith(b"data: [DONE]"):
            is_whole = True
        elif line.startswith(b"data: "):
            times.append(time.perf_counter())
    writer.close()
    return times, is_whole


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


async def run(port, n_streams, bodies, n_tokens):
    gaps, firsts, totals, failed = [], [], [], 0
    queue = iter(bodies)

    async def stream():
        nonlocal failed
        for body in queue:
            began = time.perf_counter()
            times, is_whole = await request(port, body)
            if not is_whole or not times:
                failed += 1
                continue
            firsts.append(times[0] - began)
            totals.append(time.perf_counter() - began)
            gaps.extend(b - a for a, b in zip(times, times[1:]))

    began = time.perf_counter()
    await asyncio.gather(*(stream() for _ in range(n_streams)))
    seconds = time.perf_counter() - began
    tokens = n_tokens * len(totals)
    print("%.1f %.1f %.1f %.3f %.3f %.1f %d" % (
        tokens / seconds, 1e3 * quantile(gaps, 0.5), 1e3 * quantile(gaps, 0.99), quantile(totals, 0.5), quantile(totals, 0.99),
        1e3 * quantile(firsts, 0.5), failed))


def main():
    port, n_streams, n_requests, n_tokens = map(int, sys.argv[1:5])
    with open(sys.argv[5], encoding="utf-8") as f:
        prompts = [line.rstrip("\n") for line in f if line.strip()]
    bodies = [body_of(prompts[i % len(prompts)], n_tokens) for i in range(n_requests)]
    asyncio.run(run(port, n_streams, bodies, n_tokens))


main()
