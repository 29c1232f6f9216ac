"""Training from Python.  A run is a process of the program `kiln`, so it computes what the command computes, saves when it is stopped, and
does not end with the notebook that began it."""
from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
import weakref
from typing import Any, Iterator

from ._library import HERE, MissingError, error_of
from ._progress import progress

DATA = ("input", "train_file", "predict_file", "eval_file", "validation_file")  # flags that take lists, dicts and data frames too
SEVERAL = ("input", "prompts", "sample_prompts", "stop")  # flags that are given once for each value; other lists have commas
TUPLES = {"finetune-gpt": {2: ("prompt", "completion")}, "tag": {2: ("words", "labels")}, "embed-train": {2: ("sentence1", "sentence2"), 3: ("sentence1", "sentence2", "score")}}
LABELLED = {2: ("text", "label"), 3: ("sentence1", "sentence2", "label")}


def program() -> str:
    """The program `kiln`: KILN_PROGRAM, the one in this package, or the one in the PATH."""
    import shutil  # where a run begins, not where kiln is imported: 10 ms

    bundled = os.path.join(HERE, "program", "bin", "kiln")
    found = os.environ.get("KILN_PROGRAM") or (bundled if os.path.exists(bundled) else shutil.which("kiln"))
    if found is None:
        raise error_of(69, "the program kiln is not in this package and not in the PATH; KILN_PROGRAM names it")
    return found


# ---- data ----


def _plain(value):
    """A value of numpy or pandas as one of JSON; what is missing as null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) or type(value).__name__ in ("NAType", "NaTType") else value


def _row(row, i, name, command):
    if isinstance(row, str):
        return {"text": row}
    if isinstance(row, dict):
        return _plain(row)
    columns = TUPLES.get(command, LABELLED).get(len(row)) if isinstance(row, (list, tuple)) else None
    if columns is None:
        raise TypeError(f"{name}[{i}] is {row!r:.60}, but must be a string, a dict, or a tuple of "
                        f"{' or '.join(map(str, TUPLES.get(command, LABELLED)))} values")
    return dict(zip(columns, _plain(row)))


def _rows(data, name, command):
    """Data as a list of dicts: a data frame, a dict of columns, or a list of dicts, tuples or strings."""
    if hasattr(data, "columns"):  # of polars, pyarrow, pandas
        data = data.to_dicts() if hasattr(data, "to_dicts") else data.to_pylist() if hasattr(data, "to_pylist") else data.to_dict("records")
    elif isinstance(data, dict):
        lengths = {k: len(v) for k, v in data.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of {name} have different lengths: {lengths}")
        data = [dict(zip(data, values)) for values in zip(*data.values())]
    elif not hasattr(data, "__iter__"):
        raise TypeError(f"{name} is {data!r:.60}, but must be a path, a list, a dict of columns or a data frame")
    return [_row(row, i, name, command) for i, row in enumerate(data)]


def _questions(data, name):
    """{"question", "context", "answers"} as SQuAD's format; `answers` is a text, a list of them, or {"text", "answer_start"}."""
    paragraphs = []
    for i, row in enumerate(data):
        context, answers = row["context"], row.get("answers", [])
        if isinstance(answers, dict):
            answers = [{"text": t, "answer_start": s} for t, s in zip(answers["text"], answers["answer_start"])]
        answers = [{"text": a, "answer_start": context.find(a)} if isinstance(a, str) else a
                   for a in ([answers] if isinstance(answers, str) else answers)]
        if any(a["answer_start"] < 0 for a in answers):
            raise ValueError(f"an answer of {name}[{i}] is not in its context")
        paragraphs.append({"context": context, "qas": [{"id": str(row.get("id", i)), "question": row["question"], "answers": answers,
                                                        "is_impossible": not answers}]})
    return {"version": "2.0", "data": [{"title": name, "paragraphs": paragraphs}]}


def _written(data, name, command, directory):
    """The path of a file in the directory that has the data."""
    path = os.path.join(directory, f"{name}.json" if command == "squad" else f"{name}.jsonl")
    os.makedirs(directory, exist_ok=True)
    whole = isinstance(data, dict) and "data" in data and command == "squad"
    rows = None if whole else _rows(data, name, command)
    with open(path, "w", encoding="utf-8") as f:
        if command == "squad":
            json.dump(data if whole else _questions(rows, name), f)
        else:
            f.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def _paths(data, name, command, directory):
    """The paths that data is, or the one of a file that has it."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(d, os.PathLike) or (isinstance(d, str) and os.path.exists(d))
                                                        for d in data):
        return list(map(os.fspath, data))
    return [_written(data, name, command, directory)]


# ---- runs ----


class Run:
    """A run that has begun.  Iterating over it gives its events as they come, the lines of OUTPUT_DIR/log.jsonl as dicts, and ends with it:

        run = kiln.classify("bert", "out", train_file=texts, wait=False)
        for event in run:
            if event["event"] == "step": print(event["step"], event["step_loss"])

    events      those read so far
    output_dir  its directory, with log.jsonl and report.html
    model       the directory of the model that it makes
    text        what it has printed: scores, or generated text
    returncode  None while it goes on; 0; 75 if it was stopped and can be resumed"""

    def __init__(self, command: str, flags: dict, arguments: tuple = ()):
        import subprocess
        import tempfile

        self.command = command
        self.events: list[dict] = []
        self.returncode: int | None = None
        self.output_dir = flags.get("output_dir")
        directory = os.fspath(self.output_dir or tempfile.mkdtemp(prefix="kiln-"))
        self._paths, line = [], [program(), command]
        for name, value in flags.items():
            if name in DATA and value is not None:
                value = _paths(value, name, command, directory)
                self._paths += value
            line += _flag(name, value, name in SEVERAL or (name in DATA and command == "finetune-gpt"))
        for i, value in enumerate(arguments):
            line += _paths(value, f"text_{i}", command, directory)
        self._log, self._at, self._rest = os.path.join(directory, "log.jsonl"), 0, b""
        self._at = os.path.getsize(self._log) if os.path.exists(self._log) else 0
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        for file in (self._out, self._err):
            weakref.finalize(self, file.close)
        self._asked = False
        # its own session: the terminal's Ctrl-C reaches Python, which passes it on once
        self._process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err, start_new_session=True)

    @property
    def model(self) -> str | None:
        return self.output_dir and os.path.join(self.output_dir, "model")

    @property
    def text(self) -> str:
        return _content(self._out)

    @property
    def messages(self) -> str:
        """What it has said on standard error."""
        return _content(self._err)

    def _new_events(self):
        try:
            with open(self._log, "rb") as f:
                f.seek(self._at)
                *lines, rest = f.read().split(b"\n")
                self._at = f.tell() - len(rest)
        except FileNotFoundError:
            lines = []
        found = [json.loads(line) for line in lines if line]
        self.events += found
        return found

    def __iter__(self) -> Iterator[dict]:
        while True:
            code = self._process.poll()  # before the log: nothing is written after the end
            yield from self._new_events()
            if code is not None:
                break
            time.sleep(0.05)
        self.returncode = code
        if code != 0 and not (code == 75 and self._asked):
            raise self._error(code)

    def _error(self, code):
        said = re.findall(r"^kiln: error: (.*)$", self.messages, re.MULTILINE)
        message = said[-1] if said else f"kiln {self.command} ended with {code}: {self.messages[-200:]}"
        if code in (65, 74) and any(not os.path.exists(p) for p in self._paths):
            return MissingError(message)
        return error_of(code, message)

    def cancel(self) -> None:
        """Asks it to stop: it saves the last whole step, and resume_from_checkpoint=True resumes it."""
        if not self._asked and self._process.poll() is None:  # a second signal would end it at once
            self._asked = True
            self._process.send_signal(signal.SIGTERM)

    def wait(self, show_progress: bool = True) -> "Run":
        """Shows progress until it ends.  Ctrl-C stops it, with its state saved."""
        bar = None
        try:
            for event in self:
                if event.get("event") == "start" and bar is None and event.get("last_step"):
                    bar = progress(event["last_step"], self.command, show_progress)
                elif event.get("event") == "step" and bar is not None:
                    bar.set_postfix_str(f"loss {event.get('step_loss', math.nan):.4f}")
                    bar.update(event["step"] - bar.n)
        except KeyboardInterrupt:
            self.cancel()
            self.returncode = self._process.wait()
            if self.returncode == 75:
                print(f"\nkiln: stopped; resume_from_checkpoint=True resumes {self.output_dir}", file=sys.stderr)
            raise
        finally:
            if bar is not None:
                bar.close()
        return self


def _content(file):
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")


def _flag(name, value, is_repeated):
    """--name=value; None leaves the default."""
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--{name}=false"]
    values = [value] if isinstance(value, (str, os.PathLike)) or not hasattr(value, "__iter__") else list(value)
    values = [os.fspath(v) if isinstance(v, os.PathLike) else str(v) for v in values]
    return [f"--{name}={v}" for v in (values if is_repeated else [",".join(values)])]


def run(command: str, *arguments: Any, wait: bool = True, show_progress: bool = True, **flags: Any) -> Run:
    """Runs a command of kiln: its flags as keywords, `python -m kiln help COMMAND all` lists them.

    wait  until it has ended; False: returns at once, and the Run gives its events"""
    begun = Run(command, flags, arguments)
    return begun.wait(show_progress) if wait else begun


def _finetune(command, init_checkpoint, output_dir, train_file, predict_file, flags):
    if train_file is not None and command != "finetune-gpt":
        flags.setdefault("do_train", True)
    if predict_file is not None and "do_eval" not in flags:
        flags.setdefault("do_predict", True)
    return run(command, init_checkpoint=init_checkpoint, output_dir=output_dir, train_file=train_file, predict_file=predict_file, **flags)


def train(*texts: Any, output_dir: str | os.PathLike, **flags: Any) -> Run:
    """From text to a model, by `kiln train`: files, folders, or lists of texts; hours=1, kind="gpt" or "bert"."""
    return run("train", *texts, output_dir=output_dir, **flags)


def prepare(input: Any, output_dir: str | os.PathLike | None = None, **flags: Any) -> Run:
    """Text as what training reads, by `kiln prepare`; input is a path, or a list of texts."""
    return run("prepare", input=input, output_dir=output_dir, **flags)


def pretrain(input_dir: str | os.PathLike, output_dir: str | os.PathLike, config_file: str | os.PathLike, **flags: Any) -> Run:
    """Pre-trains BERT, GPT-2 or BLOOM, by `kiln pretrain`; input_dir is what `prepare` wrote, config_file a file or a name such as "mini"."""
    return run("pretrain", input_dir=input_dir, output_dir=output_dir, config_file=config_file, **flags)


def classify(init_checkpoint: str | os.PathLike, output_dir: str | os.PathLike, train_file: Any = None, predict_file: Any = None,
             **flags: Any) -> Run:
    """Fine-tunes a classifier of texts, by `kiln classify`; the model is in run.model.

    train_file, predict_file   a path; or [(text, label)], [{"text": ..., "label": ...}], {"text": [...], "label": [...]}, a data frame"""
    return _finetune("classify", init_checkpoint, output_dir, train_file, predict_file, flags)


def tag(init_checkpoint: str | os.PathLike, output_dir: str | os.PathLike, train_file: Any = None, predict_file: Any = None,
        **flags: Any) -> Run:
    """Fine-tunes a classifier of words, by `kiln tag`.

    train_file, predict_file   a path; or [(words, labels)], [{"words": [...], "labels": [...]}], a data frame"""
    return _finetune("tag", init_checkpoint, output_dir, train_file, predict_file, flags)


def squad(init_checkpoint: str | os.PathLike, output_dir: str | os.PathLike, train_file: Any = None, predict_file: Any = None,
          **flags: Any) -> Run:
    """Fine-tunes a model to find answers in a text, by `kiln squad`.

    train_file, predict_file   a path, SQuAD's JSON; or [{"question": str, "context": str, "answers": [str]}]"""
    return _finetune("squad", init_checkpoint, output_dir, train_file, predict_file, flags)


def embed_train(init_checkpoint: str | os.PathLike, output_dir: str | os.PathLike, train_file: Any = None, predict_file: Any = None,
                **flags: Any) -> Run:
    """Fine-tunes a model's vectors, by `kiln embed-train`.

    train_file, predict_file   a path; or [(text, text)], [(text, text, score)], a data frame"""
    return _finetune("embed-train", init_checkpoint, output_dir, train_file, predict_file, flags)


def finetune_gpt(init_checkpoint: str | os.PathLike, output_dir: str | os.PathLike, train_file: Any, **flags: Any) -> Run:
    """Fine-tunes GPT-2 or BLOOM on texts or answers, by `kiln finetune-gpt`.

    train_file   paths; or [text], [(prompt, completion)], [{"prompt": ..., "completion": ...}], [{"messages": [...]}], a data frame"""
    return _finetune("finetune-gpt", init_checkpoint, output_dir, train_file, None, flags)
