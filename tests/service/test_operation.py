"""How `kiln serve` is operated: where it listens, what it says of itself, signals, systemd, and flags that are wrong.
usage: test_operation.py KILN MODELS, a folder with the models of tests/golden/decoders.safetensors."""
import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import metrics_format
from server import PATIENCE_S, Server, expect, read_answer, refused

kiln, models = Path(sys.argv[1]), Path(sys.argv[2])
folder = Path(tempfile.mkdtemp(dir=models))
BLOOM, GPT2 = models / "bloom", models / "gpt2"
COMPLETIONS = "/v1/completions"
LONG = {"prompt": "the sea", "max_tokens": 1500, "n": 16, "temperature": 0, "stream": True, "ignore_eos": True}


def serve(*flags, model=BLOOM, **more):
    return Server(kiln, "--model", model, "--port", 0, *flags, **more)


def begin_long(server, **fields):
    """A stream of which a part has come."""
    c = server.begin(COMPLETIONS, {**LONG, **fields})
    c.answer = c.getresponse()
    expect(c.answer.status == 200, c.answer.status)
    c.first = c.answer.readline()
    return c


def end_long(c):
    return c.first + c.answer.read()


def write(name, text, mode=0o600):
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def await_lines(path, n):
    """A request is counted, and has its line in the access log, shortly after its answer."""
    for _ in range(100 * PATIENCE_S):
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= n:
            return [json.loads(line) for line in lines]
        time.sleep(0.01)
    expect(False, f"{path} has {len(lines)} lines, not {n}")


def test_health_and_metrics():
    with serve("--access_log", folder / "access") as s:
        s.ready()
        for path in ("/health/live", "/health/ready"):
            expect(s.ask(path)[0::2] == (200, {"status": "ok"}), path)
            status, headers, body = s.ask(path, method="HEAD")
            expect((status, body) == (200, b""), f"HEAD {path}: {status} {body}")
        expect(s.ask(COMPLETIONS, {"prompt": "a secret text", "max_tokens": 3})[0] == 200, "completions")
        expect(s.ask(COMPLETIONS + "?key=secret", {"prompt": 7})[0] == 400, "a prompt that is a number")
        lines = await_lines(folder / "access", 6)
        status, headers, body = s.ask("/metrics")
        expect(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers["Content-Type"])
        families = metrics_format.parse(body.decode())
        expect(metrics_format.value(families, "kiln_requests_total", 'dialect="openai",status="2xx"') == 1, "count of 2xx")
        expect(metrics_format.value(families, "kiln_requests_total", 'dialect="openai",status="4xx"') == 1, "count of 4xx")
        expect(metrics_format.value(families, "kiln_new_tokens_total") == 3, "count of new tokens")
        expect(metrics_format.value(families, "te_request_count") == 6, "te_request_count")
        for name in ("te_request_success", "te_request_failure", "te_queue_size", "te_batch_next_size", "te_batch_next_tokens",
                     "te_request_duration", "te_request_queue_duration", "te_request_inference_duration",
                     "te_request_tokenization_duration", "process_resident_memory_bytes", "kiln_build_info"):
            expect(name in families, name)
        expect(s.end() == 0, f"the exit code after SIGTERM: {s.log()}")
    expect(sorted(line["status"] for line in lines) == [200] * 5 + [400], f"the access log: {lines}")
    worked = next(line for line in lines if line["path"] == COMPLETIONS and line["status"] == 200)
    expect(worked["new_tokens"] == 3 and worked["tokens"] > 0 and worked["model"] == "bloom", worked)
    expect(all(line["time"].endswith("Z") and line["address"] == "127.0.0.1" and line["seconds"] >= 0 for line in lines), lines)
    expect("secret" not in (folder / "access").read_text(), "a text, or a query, is in the access log")


def test_full_disk():
    """Lines are lost, once with a warning, and requests go on."""
    with serve("--access_log", "/dev/full") as s:
        s.ready()
        for _ in range(5):
            expect(s.ask(COMPLETIONS, {"prompt": "a", "max_tokens": 1})[0] == 200, "a request on a full disk")
        s.await_line("lines of the access log are lost: No space left on device")
        expect(s.end() == 0 and s.log().count("are lost") == 1, s.log())


def activated(listener):
    """A script that begins a command with this socket as systemd would."""
    return f'export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&{listener.fileno()}; exec "$@"'


def test_loading():
    """503 until the models are there.  A request waits at the socket before the server begins; it comes too late only on a busy
    machine, and then the server is started again."""
    flags = [word for i in range(60) for word in ("--model", f"m{i}={BLOOM}")]
    for _ in range(50):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            c = http.client.HTTPConnection(*listener.getsockname(), timeout=PATIENCE_S)
            c.request("GET", "/health/ready")
            with Server(kiln, *flags, script=activated(listener), pass_fds=[listener.fileno()]) as s:
                status, headers, body = read_answer(c)
                if status == 200:
                    continue
                expect(status == 503 and headers["Retry-After"] and "being loaded" in body["error"], f"{status} {body}")
                s.port = listener.getsockname()[1]
                s.await_line("serving on ")
                expect(s.ask("/health/ready")[0] == 200, "ready")
                return
    expect(False, "no request was answered before the models were there")


def test_keys():
    keys = write("keys", "first-key\r\n\nsecond\n")
    with serve("--api_key_file", keys) as s:
        s.ready()
        for path in ("/health/live", "/health/ready", "/metrics"):
            expect(s.ask(path)[0] == 200, f"{path} needs a key")
        status, headers, body = s.ask("/v1/models")
        expect(status == 401 and headers["WWW-Authenticate"] == "Bearer" and "error" in body, f"{status} {body}")
        for name, value, wanted in (("Authorization", "Bearer first-key", 200), ("X-Api-Key", "second", 200),
                                    ("Authorization", "bearer second", 200), ("Authorization", "Bearer second ", 200),
                                    ("Authorization", "Bearer first", 401), ("Authorization", "Bearer first-keyy", 401),
                                    ("Authorization", "first-key", 401), ("X-Api-Key", "", 401)):
            status = s.ask("/v1/models", headers={name: value})[0]
            expect(status == wanted, f"{name}: {value} gives {status}")
        expect("key" not in s.log(), f"a key, or a warning, in the log: {s.log()}")
    with serve("--api_key_file", write("open_keys", "key\n", 0o644)) as s:
        s.await_line("open_keys can be read by other users")
    refused(kiln, 64, "has no key", "--model", BLOOM, "--api_key_file", write("no_keys", "\n\n"))
    refused(kiln, 65, "absent", "--model", BLOOM, "--api_key_file", folder / "absent")


def test_flags():
    """What is wrong ends the command before its port is open, and touches no file."""
    own = socket.create_server(("127.0.0.1", 0))
    port, file, long = own.getsockname()[1], write("file", "mine"), folder / ("s" * 108)
    refused(kiln, 64, "--model", "--port", 0)
    refused(kiln, 65, "nowhere", "--model", models / "nowhere")
    refused(kiln, 64, "both served as bloom", "--model", BLOOM, "--model", f"bloom={GPT2}")
    refused(kiln, 64, "NAME=DIR", "--model", "=" + str(BLOOM).lstrip("/"))
    refused(kiln, 64, f"port {port}: another program has it", "--model", BLOOM, "--port", port)
    refused(kiln, 64, "65535", "--model", BLOOM, "--port", 65536)
    refused(kiln, 64, "192.0.2.1", "--model", BLOOM, "--host", "192.0.2.1")
    refused(kiln, 64, "no address", "--model", BLOOM, "--host", "example.org")
    refused(kiln, 64, "1 to 107 bytes", "--model", BLOOM, "--unix_socket", long)
    refused(kiln, 64, "is no socket", "--model", BLOOM, "--unix_socket", file)
    expect(file.read_text() == "mine", "--unix_socket has removed a file")
    refused(kiln, 74, "cannot append to", "--model", BLOOM, "--access_log", folder / "no" / "log")
    refused(kiln, 64, "KILN_SERVE_BATCH_SIZE", "--model", BLOOM, env={"KILN_SERVE_BATCH_SIZE": "abc"})
    own.close()


def test_plan():
    plan = refused(kiln, 0, "", "--model", BLOOM, "--model", f"other={GPT2}", "--dry_run")
    expect("bloom: " in plan and "other: " in plan and "generate" in plan and "that are free" in plan, plan)
    command = f'ulimit -v 150000; exec "{kiln}" serve --model "{BLOOM}" --port 0'
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S)
    expect(run.returncode == 71 and "GiB of memory are free: serve fewer" in run.stderr, f"{run.returncode} {run.stderr}")


def test_environment():
    env = {"KILN_SERVE_PORT": "0", "KILN_SERVE_MODEL": f"named={BLOOM}", "KILN_SERVE_MAX_BODY_MIB": "0.01"}
    with Server(kiln, env=env) as s:
        s.ready()
        expect(s.ask("/v1/models")[2]["data"][0]["id"] == "named", "KILN_SERVE_MODEL")
        status, _, body = s.ask(COMPLETIONS, b" " * 20000)
        expect(status == 413 and "the limit is 10485" in body["error"]["message"], f"KILN_SERVE_MAX_BODY_MIB: {status} {body}")
    with Server(kiln, "--model", GPT2, env=env) as s:
        expect(s.ready().ask("/v1/models")[2]["data"][0]["id"] == "gpt2", "a flag is stronger than the environment")


def test_unix_socket():
    path = folder / "socket"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))  # of a process that was killed
    left.close()
    with Server(kiln, "--model", BLOOM, "--unix_socket", path) as s:
        s.ready()
        expect(s.unix_socket == str(path) and s.ask("/health/ready")[0] == 200, "a unix socket")
        refused(kiln, 64, "a program listens on", "--model", BLOOM, "--unix_socket", path)
        expect(s.ask("/health/ready")[0] == 200, "the second server has taken the socket")
        expect(s.end() == 0 and not path.exists(), "the socket is left behind")


def test_systemd():
    """A socket that systemd opened, and what it is told: sd_listen_fds(3), sd_notify(3)."""
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(folder / "notify"))
    notices.settimeout(PATIENCE_S)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with Server(kiln, "--model", BLOOM, script=activated(listener), pass_fds=[listener.fileno()],
                env={"NOTIFY_SOCKET": str(folder / "notify")}) as s:
        s.await_line("serving on ")
        s.port = port
        expect(notices.recv(1000) == b"READY=1", "READY=1")
        expect(s.ask("/health/ready")[0] == 200, "the socket of systemd")
        s.signal(signal.SIGHUP)
        told = [notices.recv(1000).decode() for _ in range(2)]
        expect(told[0].startswith("RELOADING=1\nMONOTONIC_USEC=") and told[1] == "READY=1", told)
        s.signal(signal.SIGTERM)
        expect(notices.recv(1000) == b"STOPPING=1", "STOPPING=1")
        expect(s.wait() == 0, "exit code")
    socket.create_connection(("127.0.0.1", port)).close()  # systemd's socket goes on listening
    with Server(kiln, "--model", BLOOM, script='export LISTEN_PID=$$ LISTEN_FDS=1; exec 3</dev/null "$@"') as s:
        s.await_line("descriptor 3 is no stream socket")
        expect(s.wait() == 64, "a descriptor that is no socket")


def test_reload():
    served = folder / "served"
    shutil.copytree(GPT2, served)
    with serve("--shutdown_timeout_s", 1000, model=f"m={served}") as s:
        s.ready()
        ask = {"prompt": "the hand", "max_tokens": 8, "temperature": 0}
        first = s.ask(COMPLETIONS, ask)[2]["choices"]
        expect(s.ask("/v1/models")[2]["data"][0]["max_model_len"] == 24, "the model before")
        shutil.rmtree(served)  # what is served has been read
        expect(s.ask(COMPLETIONS, ask)[2]["choices"] == first, "a directory that is gone")
        n = len(s.lines)
        s.signal(signal.SIGHUP)
        s.await_line("the models are not loaded again, and those before go on: ", n)
        expect(s.ask(COMPLETIONS, ask)[2]["choices"] == first, "after a reload that failed")
        shutil.copytree(BLOOM, served)
        n = len(s.lines)
        s.signal(signal.SIGHUP)
        s.await_line("the models are loaded again", n)
        expect(s.ask("/v1/models")[2]["data"][0]["max_model_len"] == 2048, "the new model")
        # a request in flight ends with the model that it began with, and holds up neither another reload nor the end
        c = begin_long(s)
        for source in (GPT2, BLOOM):
            shutil.rmtree(served)
            shutil.copytree(source, served)
            n = len(s.lines)
            s.signal(signal.SIGHUP)
            s.await_line("the models are loaded again", n)
            expect(s.ask(COMPLETIONS, ask)[0] == 200, "the new model")
        s.signal(signal.SIGTERM)
        s.await_line("ending: ")
        expect(end_long(c).endswith(b"data: [DONE]\n\n"), "the stream of the model before")
        expect(s.wait() == 0, f"exit code: {s.log()}")


def test_drain():
    with serve("--shutdown_timeout_s", 1000) as s:
        s.ready()
        kept = s.connect()
        s.ask("/health/ready", connection=kept)
        c = begin_long(s)
        s.signal(signal.SIGTERM)
        s.await_line("ending: .* get 1000 s")
        try:
            s.connect().connect()
            expect(False, "a new connection is accepted")
        except ConnectionRefusedError:
            pass
        try:
            s.ask(COMPLETIONS, {"prompt": "a"}, connection=kept)
            expect(False, "an idle connection is kept")
        except (ConnectionError, OSError):
            pass
        text = end_long(c)
        expect(text.endswith(b"data: [DONE]\n\n") and text.count(b'"finish_reason":"length"') == 16, "the stream is cut")
        expect(s.wait() == 0 and "broken off" not in s.log(), s.log())


def test_second_signal():
    for signals, flags in ((2, ("--shutdown_timeout_s", 1000)), (1, ("--shutdown_timeout_s", 0.1))):
        with serve(*flags) as s:
            s.ready()
            streams = [begin_long(s, n=5) for _ in range(3)]  # all at once in 16 places
            whole = s.begin(COMPLETIONS, {**LONG, "stream": False})
            half = s.raw()
            half.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
            for _ in range(signals):
                n = len(s.lines)
                s.signal(signal.SIGTERM)
                s.await_line("ending: ")
            expect(s.wait() == 0, f"exit code: {s.log()}")
            expect("requests are broken off" in s.log(), s.log())
            for c in streams:
                expect_broken(c)
            half.close()
            whole.close()


def expect_broken(c):
    """The client sees that its stream is not whole: an error as the last event, or a connection that breaks."""
    try:
        text = end_long(c)
        expect(b'"error"' in text and not text.endswith(b"data: [DONE]\n\n"), text[-300:])
    except (OSError, http.client.HTTPException):
        pass


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    chosen = sys.argv[3:]
    for f in tests:
        if not chosen or f.__name__ in chosen:
            began = time.monotonic()
            f()
            print(f"{f.__name__}: {time.monotonic() - began:.1f} s", flush=True)


main()
