"""libkiln.so.0 as Python calls it: where it is, its functions by kiln.h, its errors as exceptions, and texts in its form."""
import contextlib
import ctypes
import functools
import os
import platform
import queue
import threading
import weakref
from typing import Any

from ._header import Header

HERE = os.path.dirname(os.path.abspath(__file__))


class KilnError(Exception):
    """An error of kiln's; `code` is its number, an exit code of the program (75: cancelled).  Errors of a kind that Python has are that
    kind too: ValueError (an argument, a text, a file that does not fit), FileNotFoundError, MemoryError, OSError (a disk, a lock)."""

    code = 70


def _kind(name, code, *bases):
    return type(name, (KilnError, *bases), {"code": code, "__module__": "kiln", "__doc__": KilnError.__doc__})


_KINDS = {kind.code: kind for kind in (
    _kind("UsageError", 64, ValueError), _kind("DataError", 65, ValueError), _kind("MemoryExhausted", 71, MemoryError),
    _kind("InputOutputError", 74, OSError), _kind("Cancelled", 75), _kind("NotFiniteError", 99, ArithmeticError))}
MissingError = _kind("MissingError", 65, FileNotFoundError)


def error_of(code, message):
    """The exception of a code."""
    kind = _KINDS.get(code)
    error = (kind or KilnError)(message)
    error.code = code
    return error


def _first(*paths):
    return next((path for path in paths if path and os.path.exists(path)), None)


def _load():
    header = _first(os.path.join(HERE, "kiln.h"), os.path.join(HERE, "..", "..", "include", "kiln", "kiln.h"))
    name = os.environ.get("KILN_LIBRARY") or _first(os.path.join(HERE, "libkiln.so.0")) or "libkiln.so.0"
    try:
        library = ctypes.CDLL(name)
    except OSError as e:
        libc, version = platform.libc_ver()
        needs = f"kiln needs glibc 2.34 or newer, and this system has {libc or 'another C library'} {version}".rstrip()
        raise ImportError(needs if "GLIBC_" in str(e) or libc != "glibc" else f"kiln cannot open its library: {e}") from e
    with open(header, encoding="utf-8") as f:
        declared = Header(f.read())
    for function, (result, arguments) in declared.functions.items():
        call = getattr(library, function, None)
        if call is None:
            raise ImportError(f"{name} is older than this package: it has no {function}")
        call.restype, call.argtypes = result, arguments
        if result is declared.structs["kiln_status"]:
            call.errcheck = _check
    return library, declared


def _check(status, function, arguments):
    if status.code:
        raise error_of(status.code, status.message.decode(errors="replace"))


lib, _declared = _load()
C: Any = type("C", (), {name.removeprefix("KILN_"): value for name, value in _declared.values.items()})
S: Any = type("S", (), {name.removeprefix("kiln_"): struct for name, struct in _declared.structs.items()})


def version():
    """The version of the library."""
    return ctypes.string_at(lib.kiln_version()).decode()


def options(name, **values):
    """The defaults of an option struct, with these values; None leaves the default."""
    o = getattr(S, f"{name}_options")()
    getattr(lib, f"kiln_{name}_options_init")(ctypes.byref(o), ctypes.sizeof(o))
    for key, value in values.items():
        if value is not None:
            setattr(o, key, value)
    return o


# ---- texts ----


def encode(text, name="text"):
    """A text as bytes.  TypeError names what is no text."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r:.60}, but must be a string" if text is None or not hasattr(text, "dtype")
                        else f"{name} is an array of {text.dtype}, but must be a string")
    return text.encode("utf-8", "surrogatepass")


def encode_all(texts, name="texts"):
    """Texts as an array of struct kiln_text."""
    data = [encode(t, f"{name}[{i}]") for i, t in enumerate(texts)]
    return (S.text * len(data))(*[(d, len(d)) for d in data])


def bytes_of(struct, field, n):
    """The n bytes of a text in a result, which may hold NULs."""
    return ctypes.string_at(ctypes.c_void_p.from_buffer(struct, getattr(type(struct), field).offset).value, n)


def characters(text, data, places):
    """Places in the bytes of a text as places in its characters."""
    if len(text) == len(data):
        return list(places)
    at, n, known = 0, 0, {}
    for place in sorted(set(places)):
        n += sum(byte & 0xC0 != 0x80 for byte in data[at:place])
        at = place
        known[place] = n
    return [known[place] for place in places]


@contextlib.contextmanager
def result(name, free):
    """A result struct that is freed after it was read."""
    r = getattr(S, name)()
    try:
        yield r
    finally:
        getattr(lib, f"kiln_{free}_free")(ctypes.byref(r))


# ---- models and sessions ----

_n_threads = 0


def set_num_threads(n: int) -> None:
    """Calls that begin from now on use at most n threads of the cpu each; 0: as many as OMP_NUM_THREADS says, or all.  Results stay the same."""
    global _n_threads
    _n_threads = n


class Session:
    """A session, which one thread uses at a time."""

    def __init__(self, model, task):
        self.handle = ctypes.c_void_p()
        lib.kiln_session_open(ctypes.byref(self.handle), model, task)
        self.jobs = queue.SimpleQueue()
        self.worker = None
        weakref.finalize(self, _close_session, self.handle, self.jobs)

    def call(self, function, *arguments):
        """Calls a function on the session.  Ctrl-C ends the call before the model's next layer: the main thread, which alone gets signals,
        waits while another computes."""
        if threading.current_thread() is not threading.main_thread():
            return function(self.handle, *arguments)
        if self.worker is None:
            self.worker = threading.Thread(target=_work, args=(self.jobs,), daemon=True)
            self.worker.start()
        done = queue.SimpleQueue()
        self.jobs.put((function, self.handle, arguments, done))
        try:
            error = _patiently(done)
        except BaseException:
            lib.kiln_session_cancel(self.handle)
            done.get()
            lib.kiln_session_resume(self.handle)
            raise
        if error is not None:
            raise error
        return None


def _patiently(done):
    """What comes from a queue.  A signal just before the wait would not end it: the wait ends twice a second."""
    while True:
        try:
            return done.get(timeout=0.5)
        except queue.Empty:
            pass


def _work(jobs):
    while (job := jobs.get()) is not None:
        function, handle, arguments, done = job
        try:
            function(handle, *arguments)
            error = None
        except Exception as e:  # of any kind: it is raised where the call was made
            error = e
        done.put(error)
        del job, function, handle, arguments, done, error


def _close_session(handle, jobs):
    jobs.put(None)
    lib.kiln_session_close(handle)


class Model:
    """A model directory: kiln's, or one that `transformers` or sentence-transformers wrote.

    path    the directory, a checkpoint of kiln or the output directory of a run, a .pt file, or the prefix of a TensorFlow checkpoint
    device  "cpu", "cuda"; None: "auto"
    dtype   "fp32", "bf16"; on cuda "fp16", on the cpu "int8"; None: "fp32"
    without_weights  read the vocabulary and the configuration alone

    Threads may share a model; each call takes a session of its own, which is kept for the next."""

    def __init__(self, path, device=None, dtype=None, without_weights=None):
        self.path = os.fspath(path)
        self.handle = ctypes.c_void_p()
        self._idle = {}
        o = options("model", device=device and device.encode(), dtype=dtype and dtype.encode(), without_weights=without_weights)
        try:
            lib.kiln_model_open_on(ctypes.byref(self.handle), os.fsencode(self.path), ctypes.byref(o))
        except KilnError as e:
            folder, name = os.path.split(self.path)
            there = os.path.exists(self.path) or (os.path.isdir(folder or ".") and name and
                                                  any(f.startswith(name) for f in os.listdir(folder or ".")))
            raise e if there else MissingError(f"{self.path} does not exist") from None
        weakref.finalize(self, lib.kiln_model_close, self.handle)

    @contextlib.contextmanager
    def session(self, task):
        """Lends a session of a task."""
        idle = self._idle.setdefault(task, [])
        try:
            session = idle.pop()
        except IndexError:
            session = Session(self.handle, task)
        lib.kiln_session_set_threads(session.handle, _n_threads)
        try:
            yield session
        finally:
            idle.append(session)

    def piece(self, token):
        """The piece of the vocabulary with this id, as a string."""
        n = ctypes.c_size_t()
        at = lib.kiln_model_piece(self.handle, token, ctypes.byref(n))
        if at is None:
            raise ValueError(f"{token} is no id: they are 0 to {lib.kiln_model_vocab_size(self.handle) - 1}")
        return ctypes.string_at(at, n.value).decode("utf-8", "replace")

    def special(self, which):
        """The id of a special token, of enum kiln_special; -1: there is none."""
        return lib.kiln_model_special(self.handle, which)

    @functools.cached_property
    def all_special(self):
        """The ids of all special tokens."""
        return {self.special(which) for which in range(C.TOKEN_PAD, C.TOKEN_END + 1)}

    @functools.cached_property
    def is_wordpiece(self):
        """Whether the vocabulary is WordPiece's, not byte-level BPE's: the one marks inner pieces, the other spaces."""
        pieces = map(self.piece, range(lib.kiln_model_vocab_size(self.handle)))
        return next((p for p in pieces if p.startswith(("##", "\u0120"))), "").startswith("##")

    def answers(self, task):
        """Whether the model has the head of a task."""
        return bool(lib.kiln_model_tasks(self.handle) >> task & 1)

    def labels(self):
        """The names of the labels, in their order; [] if there is no classifier."""
        names = []
        while (at := lib.kiln_model_label(self.handle, len(names))) is not None:
            names.append(ctypes.string_at(at).decode("utf-8", "replace"))
        return names

    def tokens(self, text):
        """(ids, places): the text's tokens without special ones, and the characters [start, end) of each."""
        data = encode(text)
        with result("tokens", "tokens") as r:
            lib.kiln_model_tokenize(self.handle, ctypes.byref(r), data, len(data))
            found = [(t.id, t.start, t.end) for t in r.tokens[:r.n]]
        places = characters(text, data, [p for _, start, end in found for p in (start, end)])
        return [t[0] for t in found], list(zip(places[::2], places[1::2]))
