"""A server under mixed load: clients that are in order, in every dialect, beside clients that leave, read or write slowly or send half of
a request, while the disk of the access log is full and the models are loaded again.  Each whole request gets its answer, the same request
the same answer, and memory does not grow.  Then 10,000 malformed requests: each gets a status.
usage: soak.py KILN MODELS MINUTES [SEED]; the models are those of the goldens decoders, hf_dirs and classify."""
import collections
import json
import random
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from server import Server, expect

kiln, models, minutes = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
SERVED = ("bloom", "gpt2", "masked_lm", "question_answering", "tokens", "single", "regression")
RELOAD_S, SAMPLE_S, READ_TIMEOUT_S = 20, 1, 3
N_MALFORMED, LONGEST_S = 10000, 0.4
TEXT = "the sea and the hand of the man "

REQUESTS = [
    ("/v1/completions", {"prompt": TEXT, "max_tokens": 40, "temperature": 0}),
    ("/v1/completions", {"prompt": ["a", TEXT], "max_tokens": 30, "seed": 3, "n": 2, "temperature": 0.8}),
    ("/v1/completions", {"prompt": TEXT, "max_tokens": 0, "echo": True, "logprobs": 2}),
    ("/v1/completions", {"prompt": TEXT, "max_tokens": 50, "temperature": 0, "stream": True}),
    ("/v1/embeddings", {"input": [TEXT, "a hand"]}),
    ("/v1/embeddings", {"input": TEXT, "encoding_format": "base64", "dimensions": 4}),
    ("/embed", {"inputs": [TEXT * k for k in range(1, 6)], "truncate": True}),
    ("/embed_all", {"inputs": TEXT}),
    ("/similarity", {"inputs": {"source_sentence": TEXT, "sentences": ["a hand", "the sea"]}}),
    ("/models/single/predict", {"inputs": [["the sea"], ["a hand"]]}),
    ("/models/regression/rerank", {"query": "a man", "texts": ["the sea", "a hand"]}),
    ("/models/question_answering", {"inputs": {"question": "the man ?", "context": TEXT}}),
    ("/models/masked_lm", {"inputs": "the [MASK] and"}),
    ("/models/tokens", {"inputs": TEXT}),
    ("/generate", {"inputs": TEXT, "parameters": {"max_new_tokens": 20}}),
    ("/generate_stream", {"inputs": TEXT, "parameters": {"max_new_tokens": 20}}),
    ("/api/generate", {"model": "bloom", "prompt": TEXT, "options": {"num_predict": 20, "temperature": 0}}),
    ("/api/embed", {"model": "masked_lm", "input": TEXT}),
    ("/tokenize", {"inputs": TEXT}),
    ("/v1/models", None),
    ("/info", None),
    ("/health/ready", None),
]
# what differs from answer to answer
OWN = {"id", "created", "created_at", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "modified_at"}


def without_own(value):
    if isinstance(value, dict):
        return {k: without_own(v) for k, v in value.items() if k not in OWN}
    return [without_own(v) for v in value] if isinstance(value, list) else value


def comparable(body):
    """An answer, whole or as events or lines, without what differs."""
    if not isinstance(body, bytes):
        return without_own(body)
    lines = [line.removeprefix(b"data:").strip() for line in body.splitlines() if line]
    return [without_own(json.loads(line)) if line.startswith(b"{") else line for line in lines]


class Load:
    def __init__(self, server):
        self.server, self.ends = server, threading.Event()
        self.lock = threading.Lock()
        self.counts, self.faults, self.first = collections.Counter(), [], {}
        self.resident, self.longest_s = [], 0

    def fault(self, text):
        with self.lock:
            self.faults.append(text[:500])

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def check(self, i, status, body):
        path, asked = REQUESTS[i]
        if status != 200:
            self.fault(f"{path}: {status} {body}")
            return
        got = comparable(body)
        with self.lock:
            wanted = self.first.setdefault(i, got)
        if got != wanted:
            self.fault(f"{path} {asked}: {got}, before {wanted}")

    # ---- clients: each is run again and again by a thread of its own ----

    def ask_in_order(self, draw):
        """Several requests of one connection."""
        c = self.server.connect()
        for _ in range(draw.randint(1, 20)):
            i = draw.randrange(len(REQUESTS))
            began = time.monotonic()
            status, _, body = self.server.ask(*REQUESTS[i], connection=c)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.check(i, status, body)
            self.count("whole")
        c.close()

    def read_slowly(self, draw):
        i = draw.randrange(len(REQUESTS))
        with self.server.raw() as s:
            s.sendall(as_bytes(*REQUESTS[i]))
            answer = b""
            while part := s.recv(draw.randint(1, 400)):
                answer += part
                time.sleep(draw.random() / 200)
        if not answer.startswith(b"HTTP/1.1 200 ") or not (answer.endswith((b"}", b"]", b"0\r\n\r\n"))):
            self.fault(f"{REQUESTS[i][0]} read slowly: {answer[-300:]}")
        self.count("read slowly")

    def write_slowly(self, draw):
        i = draw.randrange(len(REQUESTS))
        request = as_bytes(*REQUESTS[i])
        with self.server.raw() as s:
            for at in range(0, len(request), 60):
                s.sendall(request[at:at + 60])
                time.sleep(draw.random() / 20)
            answer = b"".join(iter(lambda: s.recv(65536), b""))
        if not answer.startswith(b"HTTP/1.1 200 "):
            self.fault(f"{REQUESTS[i][0]} written slowly: {answer[:300]}")
        self.count("written slowly")

    def leave(self, draw):
        """Begins something long, and is killed: the connection is closed, or reset."""
        body = {"prompt": TEXT, "max_tokens": 1500, "n": draw.randint(1, 8), "stream": draw.random() < 0.5, "ignore_eos": True}
        s = self.server.raw()
        s.sendall(as_bytes("/v1/completions", body))
        if draw.random() < 0.5:
            s.recv(draw.randint(1, 3000))
        if draw.random() < 0.5:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        self.count("left")

    def send_half(self, draw):
        request = as_bytes(*REQUESTS[draw.randrange(len(REQUESTS))])
        with self.server.raw() as s:
            s.sendall(request[:draw.randrange(len(request))])
            if draw.random() < 0.3:  # until the server has had enough of it
                b"".join(iter(lambda: s.recv(65536), b""))
        self.count("half")

    def read_never(self, draw):
        with self.server.raw() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(as_bytes("/v1/completions", {"prompt": TEXT, "max_tokens": 1500, "n": 8, "stream": True, "ignore_eos": True}))
            self.ends.wait(draw.random() * 3)
        self.count("never read")

    def repeat(self, client, number):
        draw = random.Random(f"{seed} {number}")
        while not self.ends.is_set():
            try:
                client(draw)
            except OSError as e:
                if client not in (self.leave, self.send_half, self.read_never):
                    self.fault(f"{client.__name__}: {e!r}")
            except Exception as e:  # a client that is in order must not fail
                self.fault(f"{client.__name__}: {e!r}")

    def watch(self):
        began = reloaded = time.monotonic()
        while not self.ends.wait(SAMPLE_S):
            now = time.monotonic()
            self.resident.append((now - began, self.server.memory_bytes()))
            if self.server.process.poll() is not None:
                self.fault("the server has ended")
                self.ends.set()
            if now - reloaded > RELOAD_S:
                self.server.signal(signal.SIGHUP)
                reloaded = now
                self.count("reloads")

    def run(self, seconds):
        clients = [self.ask_in_order] * 3 + [self.read_slowly] * 2 + [self.write_slowly, self.leave, self.send_half, self.read_never]
        threads = [threading.Thread(target=self.repeat, args=(client, i)) for i, client in enumerate(clients)]
        threads.append(threading.Thread(target=self.watch))
        for t in threads:
            t.start()
        self.ends.wait(seconds)
        self.ends.set()
        for t in threads:
            t.join()

    def growth_bytes(self):
        """Of the resident memory in the last third, beside that in the second: of its median, since models that are loaded again are
        there twice for a moment, as answers are that nobody reads yet."""
        end = self.resident[-1][0]
        third = [sorted(b for t, b in self.resident if k * end / 3 <= t < (k + 1) * end / 3) for k in range(3)]
        middle = [bytes_of[len(bytes_of) // 2] for bytes_of in third]
        return middle[2] - middle[1], middle[1]


def as_bytes(path, body, close=True):
    text = b"" if body is None else json.dumps(body).encode()
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
    return (head + ("Connection: close\r\n" if close else "") + "\r\n").encode() + text


# ---- malformed requests ----

def mutate(draw, text):
    text = bytearray(text)
    for _ in range(draw.randint(1, 4)):
        at, n = draw.randrange(len(text)), draw.randint(1, 12)
        kind = draw.randrange(6)
        if kind == 0:
            text[at] = draw.randrange(256)
        elif kind == 1:
            del text[at:at + n]
        elif kind == 2:
            text[at:at] = text[at:at + n]
        elif kind == 3:
            text[at:at] = bytes(draw.randrange(256) for _ in range(n))
        elif kind == 4:
            text[at:at] = draw.choice([b"\r\n", b"\0", b"\xff", b"[[[[", b'{"', b"1e999", b"\\ud800", b"Content-Length: 7\r\n", b": ", b"\t"])
        else:
            other = draw.randrange(len(text))
            text[at], text[other] = text[other], text[at]
        if not text:
            text = bytearray(b" ")
    return bytes(text)


def malformed(draw):
    """Half of them: the body alone, whose length is right."""
    path, body = REQUESTS[draw.randrange(len(REQUESTS))]
    request = as_bytes(path, body)
    if body is None or draw.random() < 0.5:
        return mutate(draw, request)
    text = mutate(draw, json.dumps(body).encode())
    return request[:request.index(b"Content-Length")] + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(text) + text


def status_of(server, request):
    """The status, 0 if the server closed without one, and the seconds."""
    began = time.monotonic()
    answer = b""
    with server.raw() as s:
        try:
            s.sendall(request)
            while part := s.recv(65536):
                answer += part
                if answer.startswith(b"HTTP/1.1 ") and len(answer) >= 12:
                    break
        except OSError:
            pass
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0, time.monotonic() - began


def send_malformed(server, n):
    lock, statuses, worst, next_one = threading.Lock(), collections.Counter(), [], iter(range(n))

    def work():
        while True:
            with lock:
                i = next(next_one, None)
            if i is None:
                return
            request = malformed(random.Random(f"{seed} {i}"))
            status, seconds = status_of(server, request)
            with lock:
                statuses[status] += 1
                if status != 200:
                    worst.append((seconds, status, request))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return statuses, sorted(worst, reverse=True)


def main():
    flags = [word for name in SERVED for word in ("--model", models / name)] + ["--port", 0]
    with Server(kiln, *flags, "--access_log", "/dev/full", "--read_timeout_s", READ_TIMEOUT_S) as server:
        load = Load(server.ready())
        load.run(minutes * 60)
        growth, before = load.growth_bytes()
        print(f"{minutes:g} minutes: {dict(load.counts)}, {len(load.faults)} lost or wrong; the longest answer in order took "
              f"{load.longest_s:.2f} s; resident memory {before / 1e6:.1f} MB, {growth / 1e6:+.1f} MB later", flush=True)
        expect(not load.faults, "\n".join(load.faults[:20]))
        expect(growth < 0.05 * before + 4e6, f"memory grows: {[(round(t), b >> 20) for t, b in load.resident[::10]]}")
        expect(server.end() == 0, f"the exit code: {server.log()[-2000:]}")
    with Server(kiln, *flags, "--read_timeout_s", LONGEST_S / 2) as server:
        server.ready()
        statuses, worst = send_malformed(server, N_MALFORMED)
        print(f"{N_MALFORMED} malformed requests: {dict(sorted(statuses.items()))}; the longest took {worst[0][0] * 1e3:.0f} ms: "
              f"{worst[0][1]} {worst[0][2][:200]!r}", flush=True)
        late = sum(seconds > LONGEST_S for seconds, _, _ in worst)
        print(f"{late} took more than {LONGEST_S * 1e3:.0f} ms; 0, closed without a status: "
              f"{[request[:200] for _, status, request in worst if status == 0][:3]}", flush=True)
        expect(server.ask("/health/ready")[0] == 200 and server.end() == 0, f"the server: {server.log()[-2000:]}")
        expect(not {500, 502, 503, 504} & set(statuses), f"statuses: {statuses}")


main()
