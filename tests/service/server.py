"""server: `kiln serve` as a process, for tests: it is started, asked and ended.  Every wait is for a line of its log or for bytes, never
for a time; PATIENCE_S ends a test that hangs."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

PATIENCE_S = 300


def expect(holds, message):
    if not holds:
        raise SystemExit(f"failed: {message}")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.path)


class Server:
    """`flags` follow `kiln serve`; `env` is added to the environment; `script`, of bash, begins the command "$@"; other arguments
    go to Popen."""

    def __init__(self, kiln, *flags, env=None, script=None, **popen):
        self.command = [str(w) for w in (kiln, "serve", *flags)]
        if script:
            self.command = ["bash", "-c", script, "bash", *self.command]
        self.lines, self.port, self.unix_socket = [], None, None
        self.changed = threading.Condition()
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                        env={**os.environ, **(env or {})}, **popen)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)  # the end
            self.changed.notify_all()

    def await_line(self, pattern, after=0):
        """The match of the first line that has the pattern, of those from `after` on."""
        def found():
            return next((m for line in self.lines[after:] if line is not None and (m := re.search(pattern, line))), None)
        with self.changed:
            self.changed.wait_for(lambda: found() or None in self.lines, PATIENCE_S)
            expect(found(), f"'{pattern}' is not said by {self.command}: {self.lines}")
            return found()

    def ready(self):
        where = self.await_line(r"serving on (?:http://\S+:(\d+)$)?(.*)")
        self.port = int(where[1]) if where[1] else None
        self.unix_socket = where[2] or None
        return self

    def connect(self):
        return (http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S) if self.port
                else UnixConnection(self.unix_socket))

    def raw(self):
        """A socket to the port."""
        s = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        s.settimeout(PATIENCE_S)
        return s

    def ask(self, path, body=None, headers=None, method=None, connection=None):
        """The status, the headers and the body, which is parsed where it is JSON.  `body`: bytes, or what becomes JSON."""
        c = connection or self.connect()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        c.request(method or ("GET" if body is None else "POST"), path, body, headers)
        return read_answer(c)

    def begin(self, path, body):
        """A request whose answer is read later by read_answer."""
        c = self.connect()
        c.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return c

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        code = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        return code

    def end(self):
        """By SIGTERM, if it lives; its exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait()

    def log(self):
        return "\n".join(line for line in self.lines if line is not None)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) << 10

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def read_answer(connection):
    answer = connection.getresponse()
    body = answer.read()
    if body and answer.headers.get_content_type() == "application/json":
        body = json.loads(body)
    return answer.status, answer.headers, body


def refused(kiln, code, text, *flags, env=None):
    """The command must end with this code before it serves, and say the text."""
    command = [str(w) for w in (kiln, "serve", *flags)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=PATIENCE_S)
    expect(run.returncode == code and text in run.stderr,
           f"{command} ends with {run.returncode}, not {code}, and says {run.stderr!r}, not {text!r}")
    expect("serving on" not in run.stderr, f"{command} has served: {run.stderr}")
    return run.stdout
