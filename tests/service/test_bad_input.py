"""What is wrong with a request is told in the form of its dialect, with the limit; and the server answers the next request.
usage: test_bad_input.py KILN MODELS, a folder with the models of the goldens decoders and hf_dirs."""
import json
import socket
import sys
from pathlib import Path

from server import Server, expect, read_answer

kiln, models = Path(sys.argv[1]), Path(sys.argv[2])
SERVED = ("bloom", "gpt2", "masked_lm", "question_answering", "tokens")
MAX_BODY_MIB = 0.25
DEEP = b'{"inputs": ' + b"[" * 100000 + b"]" * 100000 + b"}"


def openai(body):
    error = body["error"]
    return set(error) == {"message", "type", "param", "code"} and isinstance(error["type"], str) and error["message"]


def tei(body):
    return set(body) == {"error", "error_type"} and isinstance(body["error_type"], str) and body["error"]


def hub(body):
    return set(body) == {"error"} and isinstance(body["error"], str) and body["error"]


ollama = hub

# (path, body, status, the dialect, what its message must have)
CASES = [
    ("/v1/completions", b"{", 400, openai, "the body"),
    ("/v1/completions", b"", 400, openai, "the body"),
    ("/v1/completions", b"[1]", 400, openai, "object"),
    ("/v1/completions", b'{"prompt": "a"} x', 400, openai, "the body"),
    ("/v1/completions", b'{"prompt": "half a character \xc3"}', 400, openai, "byte 0xc3"),
    ("/embed", b'{"inputs": "\xff"}', 400, tei, "byte 0xff"),
    ("/v1/completions", DEEP, 400, openai, "deeper than 2048"),
    ("/embed", DEEP, 400, tei, "deeper than 2048"),
    ("/v1/completions", {"prompt": "a", "model": "gpt-5"}, 404, openai, "this server has: bloom, gpt2"),
    ("/v1/embeddings", {"input": "a", "model": "text-embedding-3-small"}, 404, openai, "this server has"),
    ("/api/generate", {"prompt": "a", "model": "llama3"}, 404, ollama, "this server has"),
    ("/models/unknown/embed", {"inputs": "a"}, 404, openai, "names no model of this server"),
    ("/models/unknown", {"inputs": "a"}, 404, openai, "names no model of this server"),
    ("/v1/completions", {"prompt": {"a": 1}}, 400, openai, "prompt"),
    ("/v1/completions", {"prompt": "a", "max_tokens": "ten"}, 400, openai, '"max_tokens" must be'),
    ("/v1/completions", {"prompt": "a", "max_tokens": -1}, 400, openai, "it must be from 0"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 1e30}, 400, openai, "max_tokens"),
    ("/v1/completions", {"prompt": "a", "temperature": [0]}, 400, openai, "temperature"),
    ("/v1/completions", {"prompt": "a", "n": 10 ** 9}, 400, openai, "it must be from 1 to 128"),
    ("/v1/completions", {"prompt": "a", "stop": ["a"] * 100}, 400, openai, "stop"),
    ("/v1/completions", {"prompt": [0, 1, 263]}, 400, openai, "263"),
    ("/v1/completions", {"prompt": [-1]}, 400, openai, "-1"),
    ("/v1/completions", {"prompt": "the sea and the hand " * 400, "model": "gpt2"}, 400, openai, "24"),
    ("/v1/completions", {"prompt": "a", "model": "masked_lm"}, 400, openai, "masked_lm cannot do this"),
    ("/v1/embeddings", {"input": [[0, 1000000]], "model": "masked_lm"}, 400, openai, "1000000"),
    ("/v1/embeddings", {"input": 7}, 400, openai, "input"),
    ("/v1/embeddings", {"input": ""}, 400, openai, "empty"),
    ("/v1/embeddings", {"input": ["a"] * 3000}, 400, openai, "at most 2048"),
    ("/v1/embeddings", {"input": "a", "dimensions": 0}, 400, openai, "dimensions"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, 400, openai, "encoding_format"),
    ("/v1/chat/completions", {"messages": []}, 400, openai, "/v1/completions"),
    ("/embed", {"inputs": "the sea " * 100, "truncate": False}, 422, tei, "tokens"),
    ("/embed", {"inputs": None}, 422, tei, "inputs"),
    ("/embed", {}, 422, tei, "inputs"),
    ("/embed", {"inputs": [1, "a"]}, 422, tei, "id 1 of text 0"),
    ("/embed", {"inputs": "a", "truncate": "yes"}, 422, tei, "truncate"),
    ("/embed", {"inputs": [[5, 4000000000]]}, 422, tei, "id 1 of text 0"),
    ("/rerank", {"query": "a", "texts": ["b"]}, 424, tei, "cannot do this"),
    ("/tokenize", {"nothing": 1}, 422, tei, "inputs"),
    ("/decode", {"ids": [99999999]}, 422, tei, "99999999"),
    ("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 0}}, 422, tei, "max_new_tokens"),
    ("/generate", {"inputs": "a", "parameters": 3}, 422, tei, "parameters"),
    ("/models/question_answering", {"inputs": {"question": "a"}}, 400, hub, "context"),
    ("/models/tokens", {"inputs": 4}, 400, hub, "inputs"),
    ("/api/embed", {"model": "masked_lm"}, 400, ollama, "input"),
    ("/api/generate", {"model": "bloom", "prompt": "a", "options": {"num_predict": "all"}}, 400, ollama, "num_predict"),
    ("/nowhere", {"a": 1}, 404, tei, "no path of this server"),
    ("/v1/nowhere", {"a": 1}, 404, openai, "no path of this server"),
    ("/v1/completions", b" " * 300000, 413, openai, "the limit is 262144"),
    ("/embed", b" " * 300000, 413, tei, "the limit is 262144"),
]


def message_of(body):
    error = body["error"]
    return error["message"] if isinstance(error, dict) else error


def is_well(server):
    status, _, body = server.ask("/v1/completions", {"prompt": "the hand", "max_tokens": 3, "temperature": 0})
    expect(status == 200 and body["usage"]["completion_tokens"] == 3, f"the next request: {status} {body}")


def check_cases(server):
    wrong = []
    for path, body, wanted, dialect, text in CASES:
        status, _, answer = server.ask(path, body)
        said = isinstance(answer, dict) and "error" in answer and dialect(answer) and text in message_of(answer)
        if status != wanted or not said:
            wrong.append(f"{path} {str(body)[:80]}: {status} {str(answer)[:300]}, not {wanted} {dialect.__name__} with '{text}'")
        is_well(server)
    expect(not wrong, "\n".join(wrong))


def check_deadline(server):
    """What is asked for by Request-Timeout; in a stream the error is the last event."""
    long = {"prompt": "the sea", "max_tokens": 2000, "n": 100, "ignore_eos": True}
    status, _, body = server.ask("/v1/completions", long, {"Request-Timeout": "0.05"})
    expect(status == 504 and "longer than 0.05 s" in message_of(body), f"a deadline: {status} {body}")
    status, _, body = server.ask("/v1/completions", {**long, "stream": True}, {"Request-Timeout": "0.05"})
    last = body if isinstance(body, dict) else json.loads(body.strip().rsplit(b"data: ", 1)[1])
    expect("longer than 0.05 s" in message_of(last), f"a deadline in a stream: {status} {last}")
    is_well(server)


def answer_to(server, head, body=b""):
    """Of raw bytes, until the server closes."""
    with server.raw() as s:
        try:
            s.sendall(head + body)
        except OSError:
            pass  # it has closed already
        answer = b""
        try:
            while part := s.recv(65536):
                answer += part
        except OSError:
            pass
        return answer


RAW_CASES = [
    ("two lengths", b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}", b"400"),
    ("two kinds of a body", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"400"),
    ("two hosts", b"Host: localhost\r\nContent-Length: 2\r\n", b"{}", b"400"),
    ("no size of a chunk", b"Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n", b"400"),
    ("a chunk that is longer than it says", b"Transfer-Encoding: chunked\r\n", b"2\r\n{}{}{}\r\n0\r\n\r\n", b"400"),
    ("a chunk of 2^64 bytes", b"Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\n", b"4"),
    ("chunks over the limit", b"Transfer-Encoding: chunked\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n" + (
        b"10000\r\n" + b" " * 65536 + b"\r\n") * 4 + b"0\r\n\r\n", b"413"),
    ("a body that is cut", b"Content-Length: 1000\r\n", None, b""),
]


def check_raw(server):
    for name, fields, body, status in RAW_CASES:
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + fields + b"\r\n"
        if body is None:
            with server.raw() as s:
                s.sendall(head + b"{")
        else:
            answer = answer_to(server, head, body)
            expect(answer.startswith(b"HTTP/1.1 " + status) or (not answer and status == b"400"), f"{name}: {answer[:200]}")
        is_well(server)


def check_clients_that_do_not_read(server):
    """Their answers are kept up to a bound, and then they are cut; others are answered meanwhile."""
    stream = {"prompt": "the sea", "max_tokens": 2000, "n": 16, "stream": True, "ignore_eos": True, "logprobs": 5}
    lazy = []
    for _ in range(3):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", server.port))
        body = json.dumps(stream).encode()
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                  % len(body) + body)
        lazy.append(s)
    for _ in range(5):
        is_well(server)
    c = server.connect()
    c.request("GET", "/metrics")
    expect(read_answer(c)[0] == 200, "metrics")
    for s in lazy:
        s.close()


def main():
    flags = [word for name in SERVED for word in ("--model", models / name)]
    with Server(kiln, *flags, "--port", 0, "--max_body_mib", MAX_BODY_MIB) as server:
        server.ready()
        is_well(server)
        for check in (check_cases, check_deadline, check_raw, check_clients_that_do_not_read):
            check(server)
            print(check.__name__, flush=True)
        is_well(server)
        expect(server.end() == 0, f"the exit code: {server.log()}")


main()
