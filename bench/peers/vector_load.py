#!/usr/bin/env python3
"""Loads a server of OpenAI's embeddings with N clients, each of which asks for the next texts as soon as it has an answer, and
prints: texts/s, tokens/s (by the counts in TEXTS.txt), p50 and p99 of a request (ms), requests that
failed. Only Python's standard library.

usage: vector_load.py PORT PATH N_CLIENTS TEXTS_PER_REQUEST SECONDS TEXTS.txt [MODEL]"""
import asyncio
import itertools
import json
import sys
import time


async def ask(reader, writer, path, body):
    """The status and the number of vectors of one request on a connection that is kept."""
    writer.write(b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                 % (path.encode(), len(body)) + body)
    status = int((await reader.readline()).split()[1])
    length = 0
    while (line := await reader.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, await reader.readexactly(length)


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


async def run(port, path, n_clients, bodies, seconds):
    latencies, failed, n_tokens, n_texts = [], 0, 0, 0
    queue = itertools.cycle(bodies)
    until = time.perf_counter() + seconds

    async def client():
        nonlocal failed, n_tokens, n_texts
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            n, body, tokens = next(queue)
            began = time.perf_counter()
            status, _ = await ask(reader, writer, path, body)
            if time.perf_counter() > until:
                break
            latencies.append(time.perf_counter() - began)
            failed += status != 200
            n_texts += n if status == 200 else 0
            n_tokens += tokens if status == 200 else 0
        writer.close()

    await asyncio.gather(*(client() for _ in range(n_clients)))
    print("%.1f %.0f %.1f %.1f %d" % (n_texts / seconds, n_tokens / seconds, 1e3 * quantile(latencies, 0.5),
                                      1e3 * quantile(latencies, 0.99), failed))


def main():
    port, path, n_clients, n_texts, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    with open(sys.argv[6], encoding="utf-8") as f:  # "TOKENS<tab>TEXT"
        rows = [line.rstrip("\n").split("\t", 1) for line in f]
    model = sys.argv[7] if len(sys.argv) > 7 else "default"
    bodies = []
    for i in range(0, len(rows) - n_texts + 1, n_texts):
        part = rows[i:i + n_texts]
        body = json.dumps({"model": model, "input": [text for _, text in part], "encoding_format": "float"}).encode()
        bodies.append((len(part), body, sum(int(tokens) for tokens, _ in part)))
    asyncio.run(run(port, path, n_clients, bodies, seconds))


main()
