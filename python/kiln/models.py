"""Models with the methods that sentence-transformers and transformers have."""
from __future__ import annotations

import ctypes
import json
import os
import queue
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

import numpy as np

from ._library import C, S, Model, bytes_of, encode, encode_all, error_of, lib, options, result
from ._progress import batches


def _listed(texts, name):
    """(texts as a list, whether there was one alone)."""
    if isinstance(texts, str):
        return [texts], True
    if texts is None or isinstance(texts, (bytes, dict)) or not hasattr(texts, "__iter__"):
        raise TypeError(f"{name} is {texts!r:.60}, but must be a string or a list of strings")
    return list(texts), False


def _shown(show):
    """Whether progress is shown: as in sentence-transformers, by default where the log is verbose."""
    logging = sys.modules.get("logging")  # not imported for this: nobody has set a level then
    return logging is not None and logging.getLogger("kiln").getEffectiveLevel() <= logging.INFO if show is None else show


def _tensor(array, wanted):
    """The array, or a tensor of PyTorch."""
    if not wanted:
        return array
    import torch  # asked for by the caller: kiln itself needs numpy alone

    return torch.from_numpy(array)


def _numbers(values, name):
    """Vectors as an array of fp32 [n, width]."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} is an array of {array.dtype}, but must be one of numbers")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} has the shape {array.shape}, but must be [n, width] or [width]")
    return np.atleast_2d(array.astype(np.float32, copy=False))


def read_config(path, name="config.json"):
    """A file of the model directory; {} if there is none."""
    try:
        with open(os.path.join(path, name), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def _quantized(vectors, precision):
    """Vectors as sentence-transformers quantizes them."""
    if precision in (None, "float32"):
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits - 128).astype(np.int8)
    if len(vectors) == 0:
        return vectors.astype(precision)
    if len(vectors) == 1:
        raise ValueError(f"precision is {precision!r}, whose steps are those between several vectors, but there is one text")
    least, most = vectors.min(0), vectors.max(0)
    steps = np.where(most == least, 1, (most - least) / 255)
    numbers = np.clip(np.floor((vectors - least) / steps), 0, 255)
    return numbers.astype(np.uint8) if precision == "uint8" else (numbers - 128).astype(np.int8)


class SentenceTransformer:
    """A model that makes vectors of texts.  The files of sentence-transformers beside it say how; without them a vector is the mean over all
    tokens, not scaled.  Threads may share one.

        model = kiln.SentenceTransformer("all-MiniLM-L6-v2")    # a directory
        model.encode(["a cat", "a small cat"])                  # float32 [2, 384]"""

    def __init__(self, model_name_or_path: str | os.PathLike, device: str | None = None, prompts: dict[str, str] | None = None,
                 default_prompt_name: str | None = None, similarity_fn_name: str | None = None, truncate_dim: int | None = None,
                 dtype: str | None = None):
        self._model = Model(model_name_or_path, device, dtype)
        config = read_config(self._model.path, "config_sentence_transformers.json")
        self.prompts = {**config.get("prompts", {}), **(prompts or {})}
        self.default_prompt_name = default_prompt_name or config.get("default_prompt_name")
        self.similarity_fn_name = similarity_fn_name or config.get("similarity_fn_name") or "cosine"
        self.truncate_dim = truncate_dim
        self.max_seq_length: int | None = None  # set it to read fewer tokens, or more
        self.tokenizer = Tokenizer(self._model)

    def get_sentence_embedding_dimension(self) -> int:
        """Numbers in a vector."""
        width = lib.kiln_model_width(self._model.handle)
        return min(width, self.truncate_dim or width)

    get_embedding_dimension = get_sentence_embedding_dimension

    def _prompt(self, name, prompt):
        name = None if prompt is not None else name or self.default_prompt_name
        if name is None:
            return prompt or ""
        if name not in self.prompts:
            raise ValueError(f"the model has no prompt {name!r}; it has {', '.join(map(repr, self.prompts)) or 'none'}")
        return self.prompts[name]

    def encode(self, sentences: str | list[str], prompt_name: str | None = None, prompt: str | None = None, batch_size: int = 32,
               show_progress_bar: bool | None = None, output_value: str = "sentence_embedding", precision: str = "float32",
               convert_to_numpy: bool = True, convert_to_tensor: bool = False, device: str | None = None,
               normalize_embeddings: bool = False) -> Any:
        """Vectors of texts: float32 [n, width], or [width] for a single string.

        prompt, prompt_name    text, or one of model.prompts, to put before each
        show_progress_bar      count batches of batch_size; kiln batches texts by itself
        precision              "float32"; "int8", "uint8": each number as one of 256 steps from its least to its largest value in these texts;
                               "binary", "ubinary": its sign, eight numbers in a byte
        output_value           "sentence_embedding"; "token_embeddings": a list of [tokens, hidden size], special tokens included
        convert_to_tensor      a tensor of PyTorch
        normalize_embeddings   scale vectors to length 1"""
        texts, alone = _listed(sentences, "sentences")
        if precision not in (None, "float32", "int8", "uint8", "binary", "ubinary"):
            raise ValueError(f"precision is {precision!r}, but must be float32, int8, uint8, binary or ubinary; dtype=\"bf16\" of the model "
                             "chooses what it computes in")
        if output_value not in ("sentence_embedding", "token_embeddings"):
            raise ValueError(f"output_value is {output_value!r}, but must be 'sentence_embedding' or 'token_embeddings'")
        prompt = self._prompt(prompt_name, prompt)
        if output_value == "token_embeddings":
            rows = [_tensor(token_vectors(self._model, prompt + t), convert_to_tensor) for t in map(_checked, texts)]
            return rows[0] if alone else rows
        parts = [self._vectors(part, prompt, normalize_embeddings and self.truncate_dim is None)
                 for part in batches(texts, batch_size, "Batches", _shown(show_progress_bar))]
        vectors = np.concatenate(parts)[:, :self.truncate_dim]
        if normalize_embeddings and self.truncate_dim is not None:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        vectors = _quantized(vectors, precision)
        if not convert_to_numpy and not convert_to_tensor:
            return list(vectors)
        return _tensor(vectors[0] if alone else vectors, convert_to_tensor)

    def _vectors(self, texts, prompt, normalize):
        data = encode_all(texts, "sentences")
        o = options("embed", prompt=prompt.encode(), max_tokens=self.max_seq_length, length=C.LENGTH_1 if normalize else None)
        with self._model.session(C.EMBED) as s, result("vectors", "vectors") as r:
            s.call(lib.kiln_embed, ctypes.byref(r), data, len(data), ctypes.byref(o))
            if r.n == 0:
                return np.zeros((0, lib.kiln_model_width(self._model.handle)), np.float32)
            return np.ctypeslib.as_array(r.values, (r.n, r.width)).copy()

    def similarity(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """How similar each vector of one list is to each of the other: float32 [n1, n2]; the model's own measure, or the cosine."""
        return self._similarity(_numbers(embeddings1, "embeddings1")[:, None], _numbers(embeddings2, "embeddings2")[None])

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """How similar the vectors of two lists are, one by one: float32 [n]."""
        a, b = _numbers(embeddings1, "embeddings1"), _numbers(embeddings2, "embeddings2")
        if len(a) != len(b):
            raise ValueError(f"embeddings1 has {len(a)} vectors, and embeddings2 {len(b)}")
        return self._similarity(a, b)

    def _similarity(self, a, b):
        if a.shape[-1] != b.shape[-1]:
            raise ValueError(f"embeddings1 has vectors of {a.shape[-1]} numbers, and embeddings2 of {b.shape[-1]}")
        kind = self.similarity_fn_name
        if kind in ("manhattan", "euclidean"):
            d = a - b
            return -np.abs(d).sum(-1) if kind == "manhattan" else -np.sqrt((d * d).sum(-1))
        if kind not in ("cosine", "dot"):
            raise ValueError(f"similarity_fn_name is {kind!r}, but must be cosine, dot, euclidean or manhattan")
        if kind == "cosine":
            a, b = (v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12) for v in (a, b))
        return a[:, 0] @ b[0].T if a.ndim == 3 else (a * b).sum(-1)


def semantic_search(query_embeddings: Any, corpus_embeddings: Any, *, top_k: int = 10) -> list[list[dict[str, Any]]]:
    """The vectors of a corpus with the largest cosines to each query, the best first: {"corpus_id", "score"}, as
    sentence_transformers.util.semantic_search.  The vectors of `kiln search --index FILE` are np.load(FILE, mmap_mode="r")."""
    queries, corpus = _numbers(query_embeddings, "query_embeddings"), _numbers(corpus_embeddings, "corpus_embeddings")
    if queries.shape[1] != corpus.shape[1]:
        raise ValueError(f"query_embeddings has vectors of {queries.shape[1]} numbers, and corpus_embeddings of {corpus.shape[1]}")
    lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(corpus, axis=1))
    scores = queries @ corpus.T / np.maximum(lengths, 1e-12)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return [[{"corpus_id": int(i), "score": float(row[i])} for i in ids] for row, ids in zip(scores, best)]


def _checked(text):
    encode(text)
    return text


def token_vectors(model, text):
    """The last layer's output for each token, special ones included: float32 [tokens, hidden size]."""
    data = encode(text)
    with model.session(C.EMBED) as s, result("rows", "rows") as r:
        s.call(lib.kiln_embed_tokens, ctypes.byref(r), data, len(data))
        return np.ctypeslib.as_array(r.values, (r.n, r.width)).copy()


def label_logits(model, texts, pairs=None):
    """What a classifier computes, float64 [n, labels] in the order of its labels, and the kind of these, of enum kiln_problem."""
    first = encode_all(texts, "texts")
    second = None if pairs is None else encode_all(pairs, "pairs")
    with model.session(C.CLASSIFY) as s, result("labels", "labels") as r:
        s.call(lib.kiln_classify, ctypes.byref(r), first, second, len(first))
        logits = np.zeros((r.n, r.n_labels))
        for i in range(r.n * r.n_labels):
            logits[i // r.n_labels, r.labels[i].id] = r.labels[i].logit
        return logits, r.problem


def join_pieces(pieces):
    """Pieces of WordPiece as a text."""
    return "".join(p[2:] if p.startswith("##") and i else p if i == 0 or p in (".", "?", "!", ",") else " " + p
                   for i, p in enumerate(pieces))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class CrossEncoder:
    """A model that scores pairs of texts, as rerankers and NLI models do.  Threads may share one.

        model = kiln.CrossEncoder("ms-marco-MiniLM-L6-v2")      # a directory
        model.predict([("who?", "a man"), ("who?", "a cat")])   # float32 [2]
        model.rank("who?", ["a man", "a cat"])                  # [{"corpus_id": 0, "score": 0.9}, ...]"""

    def __init__(self, model_name_or_path: str | os.PathLike, device: str | None = None, dtype: str | None = None):
        self._model = Model(model_name_or_path, device, dtype)
        self.config = read_config(self._model.path)
        self.num_labels = len(self._model.labels())
        if self.num_labels == 0:
            raise error_of(65, f"{self._model.path} is no cross-encoder: the model has no classifier of texts")
        named = self.config.get("sentence_transformers", {}).get("activation_fn") or \
            self.config.get("sbert_ce_default_activation_function") or ("Sigmoid" if self.num_labels == 1 else "Identity")
        activation = {"Sigmoid": sigmoid, "Identity": lambda x: x}.get(str(named).rsplit(".", 1)[-1])
        if activation is None:
            raise error_of(65, f"the model's activation is {named}, but kiln has Sigmoid and Identity")
        self._activation: Callable = activation

    def predict(self, sentences: Any, batch_size: int = 32, show_progress_bar: bool | None = None,
                activation_fct: Callable | None = None, apply_softmax: bool = False, convert_to_numpy: bool = True,
                convert_to_tensor: bool = False) -> Any:
        """Scores of pairs: float32 [n], or [n, labels] for a model of several labels; of a single pair without the first dimension.

        activation_fct   a function of the logits, [n, labels], instead of the model's: a sigmoid for one label
        apply_softmax    for several labels: probabilities"""
        pairs, alone = _listed(sentences, "sentences")
        if pairs and all(isinstance(p, str) for p in pairs) and len(pairs) == 2:
            pairs, alone = [pairs], True
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise TypeError(f"sentences[{i}] is {pair!r:.60}, but must be a pair of strings")
        parts = [label_logits(self._model, [p[0] for p in part], [p[1] for p in part])[0]
                 for part in batches(pairs, batch_size, "Batches", _shown(show_progress_bar))]
        scores = (activation_fct or self._activation)(np.concatenate(parts).astype(np.float32))
        if apply_softmax and self.num_labels > 1:
            scores = softmax(scores)
        scores = np.asarray(scores, np.float32)
        scores = scores[:, 0] if self.num_labels == 1 else scores
        scores = scores[0] if alone else scores
        return _tensor(scores, True) if convert_to_tensor else scores if convert_to_numpy else list(scores)

    def rank(self, query: str, documents: list[str], top_k: int | None = None, return_documents: bool = False, batch_size: int = 32,
             show_progress_bar: bool | None = None, activation_fct: Callable | None = None, apply_softmax: bool = False) -> list[dict]:
        """Documents by their score for a query, the best first: [{"corpus_id": int, "score": float, "text": str if return_documents}]."""
        if self.num_labels != 1:
            raise ValueError(f"rank needs a model of one label, and this one has {self.num_labels}")
        documents, _ = _listed(documents, "documents")
        scores = self.predict([(query, d) for d in documents], batch_size, show_progress_bar, activation_fct, apply_softmax)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [{"corpus_id": int(i), "score": float(scores[i]), **({"text": documents[i]} if return_documents else {})}
                for i in order]


class CausalLM:
    """A decoder: GPT-2 or BLOOM.  Threads may share one.

        lm = kiln.CausalLM("gpt2")                               # a directory
        lm.generate("The king", max_new_tokens=20)               # " of ..."
        for piece in lm.stream("The king"): print(piece, end="")
        lm.score(["The king slept."])                            # [[-3.2, -1.1, -2.5]]"""

    def __init__(self, path: str | os.PathLike | Model, device: str | None = None, dtype: str | None = None):
        self._model = path if isinstance(path, Model) else Model(path, device, dtype)
        self.tokenizer = Tokenizer(self._model)
        with self._model.session(C.GENERATE):  # a model of another family is told now
            pass

    @staticmethod
    def _options(stop, **values):
        unknown = sorted(set(values) - {name for name, _ in S.generate_options._fields_})
        if unknown:
            raise TypeError(f"there is no setting {unknown[0]}; generate has them all")
        o = options("generate", **values)
        stops = [encode(s, "stop") for s in _listed(stop or [], "stop")[0]]
        o.stops, o.n_stops = (ctypes.c_char_p * len(stops))(*stops), len(stops)
        return o

    def generate(self, prompts: str | list[str], max_new_tokens: int = 64, temperature: float = 1.0, top_k: int = 50, top_p: float = 1.0,
                 min_p: float = 0.0, repetition_penalty: float = 1.0, seed: int = 42, stop: str | list[str] | None = None,
                 ignore_end: bool = False, context_shift: bool = False) -> Any:
        """What follows each prompt: a string, or a list of strings for a list.

        temperature         divides the logits; 0: always the most probable token
        top_k, top_p        the most probable tokens that may be chosen; 0, 1: all
        min_p               tokens at least this part as probable as the most probable
        repetition_penalty  makes tokens that were there less probable; 1: off
        stop                a string, or several, before which a text ends
        seed                each prompt of a call has its own stream of choices
        context_shift       where the model's window is full, go on without the older half"""
        texts, alone = _listed(prompts, "prompts")
        o = self._options(stop, max_new_tokens=max_new_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                          repetition_penalty=repetition_penalty, seed=seed, ignore_end=ignore_end, context_shift=context_shift)
        data = encode_all(texts, "prompts")
        with self._model.session(C.GENERATE) as s, result("continuations", "continuations") as r:
            s.call(lib.kiln_generate, ctypes.byref(r), data, len(data), ctypes.byref(o))
            out = [bytes_of(t, "text", t.n).decode("utf-8", "replace") for t in r.texts[:r.n]]
        return out[0] if alone else out

    def stream(self, prompt: str, stop: str | list[str] | None = None, **settings: Any) -> Stream:
        """What follows a prompt, piece by piece as it is made; the settings are those of generate.  close() ends the text."""
        return Stream(self._model, encode_all([prompt], "prompt"), self._options(stop, **settings))

    def score(self, texts: str | list[str], begin: bool = False) -> Any:
        """The log-probabilities of tokens 2 to n of each text: a list of floats, or a list of lists for a list.

        begin  read the token that begins a text first, so that the text's own first one counts"""
        listed, alone = _listed(texts, "texts")
        data, o = encode_all(listed, "texts"), options("score", begin=begin)
        with self._model.session(C.GENERATE) as s, result("scores", "scores") as r:
            s.call(lib.kiln_score, ctypes.byref(r), data, len(data), ctypes.byref(o))
            out = [t.log_probabilities[:t.n - 1] if t.n > 1 else [] for t in r.texts[:r.n]]
        return out[0] if alone else out


class Stream:
    """An iterator over the pieces of a text that a thread of its own continues.  Any thread may close it, also while another waits for a
    piece: the iterator ends, and the text after its next token.  One that is not used any more closes itself."""

    def __init__(self, model, data, o):
        pieces, closed = queue.SimpleQueue(), threading.Event()

        def told(_context, _text, _token, bytes_, n):
            if n:
                pieces.put(ctypes.string_at(bytes_, n).decode("utf-8", "replace"))
            return not closed.is_set()

        def work():
            try:
                with model.session(C.GENERATE) as s, result("continuations", "continuations") as r:
                    lib.kiln_generate(s.handle, ctypes.byref(r), data, 1, ctypes.byref(o))
                pieces.put(None)
            except Exception as e:  # raised where the pieces are read
                pieces.put(e)

        o.told = type(o.told)(told)
        self._pieces, self._closed = pieces, closed
        self._worker = threading.Thread(target=work, daemon=True)
        self._worker.start()
        weakref.finalize(self, closed.set)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = None if self._closed.is_set() else self._pieces.get()
        if isinstance(piece, str) and not self._closed.is_set():
            return piece
        ended = self._closed.is_set()
        self._closed.set()
        if isinstance(piece, Exception) and not ended:
            raise piece
        raise StopIteration

    def close(self) -> None:
        """Ends the text."""
        self._closed.set()
        self._worker.join()


class Tokenizer:
    """The tokenizer of a model directory.

        t = kiln.Tokenizer("gpt2")
        t.tokenize("The king")       # ["The", "Ġking"]
        t.encode("The king")         # [464, 5822]
        t.decode([464, 5822])        # "The king" """

    def __init__(self, model: str | os.PathLike | Model):
        self._model = model if isinstance(model, Model) else Model(model, without_weights=True)

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return lib.kiln_model_vocab_size(self._model.handle)

    def __len__(self) -> int:
        return self.vocab_size

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text, without special tokens."""
        return self.convert_ids_to_tokens(self._model.tokens(text)[0])

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text; an encoder's with [CLS] and [SEP]."""
        return self(text, add_special_tokens)["input_ids"]

    def __call__(self, text: str | list[str], add_special_tokens: bool = True) -> dict:
        """{"input_ids": [int], "offset_mapping": [(int, int)]} of a text: the characters of each token, (0, 0) for special tokens; a list
        of texts gives a list of each."""
        if not isinstance(text, str):
            rows = [self(t, add_special_tokens) for t in _listed(text, "text")[0]]
            return {key: [row[key] for row in rows] for key in ("input_ids", "offset_mapping")}
        ids, places = self._model.tokens(text)
        if add_special_tokens and not self._model.answers(C.GENERATE):
            ids = [self._model.special(C.TOKEN_CLS), *ids, self._model.special(C.TOKEN_SEP)]
            places = [(0, 0), *places, (0, 0)]
        return {"input_ids": ids, "offset_mapping": places}

    def decode(self, token_ids: Any, skip_special_tokens: bool = False) -> str:
        """The text of ids, as tokenizers spaces it."""
        ids = [int(i) for i in np.atleast_1d(token_ids)]
        if self._model.is_wordpiece:
            special = self._model.all_special if skip_special_tokens else ()
            return join_pieces([self._model.piece(i) for i in ids if i not in special])
        with result("string", "string") as r:
            lib.kiln_decode(self._model.handle, ctypes.byref(r), (ctypes.c_int32 * len(ids))(*ids), len(ids), skip_special_tokens)
            return bytes_of(r, "bytes", r.n).decode("utf-8", "replace")

    def convert_ids_to_tokens(self, ids: Any) -> Any:
        """The piece of an id, or of each of a list."""
        return self._model.piece(ids) if isinstance(ids, int) else [self._model.piece(int(i)) for i in ids]
