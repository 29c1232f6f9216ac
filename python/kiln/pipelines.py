"""pipeline(task, model=dir): answers with the shapes of transformers' pipelines."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable

import numpy as np

from ._library import C, Model, characters, encode, lib, options, result
from .models import CausalLM, Tokenizer, join_pieces, label_logits, sigmoid, softmax, token_vectors


class Pipeline:
    """A model and a task.  Called with a text it answers; with a list of texts it gives a list of answers."""

    kind: int
    answer: Callable[..., Any]  # to one text

    def __init__(self, model: str | os.PathLike | Model, device: str | None = None, dtype: str | None = None, **settings: Any):
        self.model = model if isinstance(model, Model) else Model(model, device, dtype)
        self.settings = settings
        with self.model.session(self.kind):  # a model that lacks the head is told now
            pass

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        settings = {**self.settings, **settings}
        if isinstance(inputs, (str, dict)):
            return self.answer(inputs, **settings)
        if inputs is None or isinstance(inputs, bytes) or not hasattr(inputs, "__iter__"):
            raise TypeError(f"inputs is {inputs!r:.60}, but must be a string or a list of strings")
        return [self.answer(i, **settings) for i in inputs]


class TextClassification(Pipeline):
    """text-classification: of a text [{"label": str, "score": float}], of a list [{"label", "score"}, ...]; with top_k a list for each text.

    top_k              how many labels; None: all
    function_to_apply  "sigmoid", "softmax", "none"; None: by the model's kind of labels

    A pair is {"text": str, "text_pair": str}."""

    kind = C.CLASSIFY
    functions = {"sigmoid": sigmoid, "softmax": softmax, "none": lambda x: x}

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        found = super().__call__(inputs, **settings)
        return [found] if isinstance(inputs, str) and "top_k" not in settings else found

    def answer(self, text: Any, top_k: Any = "", function_to_apply: str | None = None) -> Any:
        pair = text if isinstance(text, dict) else {"text": text}
        logits, problem = label_logits(self.model, [pair.get("text")], [pair["text_pair"]] if "text_pair" in pair else None)
        function = function_to_apply or ("sigmoid" if problem == C.ANY_LABELS or (logits.shape[1] == 1 and problem != C.NUMBERS)
                                         else "none" if problem == C.NUMBERS else "softmax")
        if function not in self.functions:
            raise ValueError(f"function_to_apply is {function!r}, but must be one of {', '.join(self.functions)}")
        names = self.model.labels()
        scores = sorted(zip(self.functions[function](logits[0]).tolist(), names), key=lambda s: -s[0])
        listed = [{"label": name, "score": score} for score, name in scores]
        return listed[0] if top_k == "" else listed[:top_k]


class TokenClassification(Pipeline):
    """token-classification: [{"entity": str, "score": float, "index": int, "word": str, "start": int, "end": int}] of the tokens of a text;
    with an aggregation_strategy ("simple", "first", "average", "max") "entity_group" instead of "entity", and no index.

    ignore_labels  labels that are left out; None: ["O"]

    start and end count characters of the text.  A text of any length is read."""

    kind = C.TAG

    def answer(self, text: str, aggregation_strategy: str = "none", ignore_labels: list[str] | None = None) -> list[dict]:
        if aggregation_strategy not in ("none", "simple", "first", "average", "max"):
            raise ValueError(f"aggregation_strategy is {aggregation_strategy!r}, but must be none, simple, first, average or max")
        names = self.model.labels()
        words = self._words(self._tokens(text), aggregation_strategy)
        found = [{"entity": names[w["label"]], "score": w["score"], "index": w["index"], "word": w["word"], "start": w["start"],
                  "end": w["end"]} for w in words]
        if aggregation_strategy != "none":
            found = _grouped(found)
        ignored = ["O"] if ignore_labels is None else ignore_labels
        return [f for f in found if f.get("entity", f.get("entity_group")) not in ignored]

    def _tokens(self, text):
        data = encode(text)
        with self.model.session(C.TAG) as s, result("rows", "rows") as r:
            s.call(lib.kiln_tag_tokens, ctypes.byref(r), data, len(data))
            tokens = [(t.id, t.start, t.end) for t in r.tokens[:r.n]]
            scores = softmax(np.ctypeslib.as_array(r.values, (r.n, r.width)).copy()) if r.n else []
        places = characters(text, data, [p for _, start, end in tokens for p in (start, end)])
        found = []
        for i, (token, _, _) in enumerate(tokens):
            start, end = places[2 * i:2 * i + 2]
            piece, unknown = self.model.piece(token), token == self.model.special(C.TOKEN_UNKNOWN)
            found.append({"scores": scores[i], "index": i + 1, "start": start, "end": end,
                          "word": text[start:end] if unknown else piece, "continues": not unknown and len(piece) != end - start})
        return found

    @staticmethod
    def _words(tokens, strategy):
        """Words, or tokens where they are not joined, each with its label."""
        words = []
        for t in tokens:
            if strategy in ("first", "average", "max") and words and t["continues"]:
                words[-1].append(t)
            else:
                words.append([t])
        found = []
        for word in words:
            best = max(word, key=lambda t: t["scores"].max()) if strategy == "max" else word[0]
            scores = np.mean([t["scores"] for t in word], 0) if strategy == "average" else best["scores"]
            found.append({"label": int(scores.argmax()), "score": float(scores.max()), "index": word[0]["index"],
                          "word": join_pieces([t["word"] for t in word]) if len(word) > 1 else word[0]["word"],
                          "start": word[0]["start"], "end": word[-1]["end"]})
        return found


def _grouped(words):
    """Neighbours of one type as one entity, unless a label begins an entity."""
    groups = []
    for w in words:
        begins, kind = w["entity"][:2] == "B-", w["entity"][2:] if w["entity"][:2] in ("B-", "I-") else w["entity"]
        if groups and not begins and groups[-1][0] == kind:
            groups[-1][1].append(w)
        else:
            groups.append((kind, [w]))
    return [{"entity_group": g[0]["entity"].split("-", 1)[-1], "score": float(np.mean([w["score"] for w in g])),
             "word": join_pieces([w["word"] for w in g]), "start": g[0]["start"], "end": g[-1]["end"]} for _, g in groups]


class QuestionAnswering(Pipeline):
    """question-answering: pipe(question=str, context=str) or pipe({"question": ..., "context": ...}) is {"score": float, "start": int,
    "end": int, "answer": str}, with top_k > 1 a list of these.  start and end count characters of the context.

    top_k, doc_stride, max_answer_len, max_question_len   as in transformers
    handle_impossible_answer                              "" at 0 may be the answer
    align_to_words                                        an answer begins and ends with a word"""

    kind = C.ASK

    def __call__(self, inputs: Any = None, question: Any = None, context: Any = None, **settings: Any) -> Any:
        if inputs is None:
            several = not isinstance(question, str) and question is not None
            inputs = [{"question": q, "context": c} for q, c in
                      zip(question, [context] * len(question) if isinstance(context, str) else context)] if several else \
                {"question": question, "context": context}
        return super().__call__(inputs, **settings)

    def answer(self, asked: dict, top_k: int = 1, doc_stride: int | None = None, max_answer_len: int = 15, max_question_len: int = 64,
               handle_impossible_answer: bool = False, align_to_words: bool = True) -> Any:
        context: Any = asked.get("context")
        question, data = encode(asked.get("question"), "question"), encode(context, "context")
        o = options("ask", top_k=top_k, doc_stride=doc_stride, max_answer_length=max_answer_len, max_query_length=max_question_len,
                    may_be_none=handle_impossible_answer)
        with self.model.session(C.ASK) as s, result("answers", "answers") as r:
            s.call(lib.kiln_ask, ctypes.byref(r), question, data, len(data), ctypes.byref(o))
            found = [(a.probability, max(a.start, 0), max(a.end, 0)) for a in r.answers[:r.n]]
        places = characters(context, data, [p for _, start, end in found for p in (start, end)])
        answers = []
        for i, (score, _, _) in enumerate(found):
            start, end = _aligned(context, *places[2 * i:2 * i + 2]) if align_to_words else places[2 * i:2 * i + 2]
            answers.append({"score": score, "start": start, "end": end, "answer": context[start:end]})
        return answers[0] if top_k == 1 else answers


def _aligned(text, start, end):
    """Widens [start, end) so that it neither begins nor ends within a word."""
    while 0 < start < end and text[start].isalnum() and text[start - 1].isalnum():
        start -= 1
    while start < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return start, end


class FillMask(Pipeline):
    """fill-mask: [{"score": float, "token": int, "token_str": str, "sequence": str}] for the [MASK] of a text; for several a list for each.

    top_k    how many words
    targets  the words that are compared, a string or a list; others are left out"""

    kind = C.FILL

    def answer(self, text: str, top_k: int = 5, targets: str | list[str] | None = None) -> list:
        data, wanted = encode(text), None if targets is None else self._ids([targets] if isinstance(targets, str) else targets)
        with self.model.session(C.FILL) as s, result("words", "words") as r:
            s.call(lib.kiln_fill, ctypes.byref(r), data, len(data),
                   top_k if wanted is None else lib.kiln_model_vocab_size(self.model.handle))
            masks = [[(w.id, w.probability) for w in r.words[m * r.top_k:(m + 1) * r.top_k]] for m in range(r.n_masks)]
        tokenizer, ids, places = Tokenizer(self.model), [self.model.special(C.TOKEN_CLS)], []
        for i, part in enumerate(text.split("[MASK]")):
            if i > 0:
                places.append(len(ids))
                ids.append(self.model.special(C.TOKEN_MASK))
            ids += self.model.tokens(part)[0]
        ids.append(self.model.special(C.TOKEN_SEP))
        found = []
        for place, words in zip(places, masks):
            words = [w for w in words if wanted is None or w[0] in wanted][:top_k]
            found.append([{"score": score, "token": token, "token_str": tokenizer.decode([token]), "sequence": tokenizer.decode(
                [*ids[:place], token, *ids[place + 1:]], skip_special_tokens=len(masks) == 1)} for token, score in words])
        return found[0] if len(found) == 1 else found

    def _ids(self, targets):
        """Ids of words: of the vocabulary, or the first piece of a word."""
        ids = set()
        for i, word in enumerate(targets):
            encode(word, f"targets[{i}]")
            ids.update(self.model.tokens(word)[0][:1])
        if not ids:
            raise ValueError("targets has no word that the model knows")
        return ids


class FeatureExtraction(Pipeline):
    """feature-extraction: the last layer's output for each token, [[[float] * hidden size] * tokens], special tokens included."""

    kind = C.EMBED

    def answer(self, text: str) -> list:
        return [token_vectors(self.model, text).tolist()]


class TextGeneration(Pipeline):
    """text-generation: [{"generated_text": str}] of a prompt, num_return_sequences long; a list of such lists for a list.

    max_new_tokens                        at most, by default 256 or as many as the model reads
    do_sample, temperature, top_k, top_p  as in transformers: by default it samples at temperature 0.7
    return_full_text                      False: without the prompt
    seed                                  the same texts again"""

    kind = C.GENERATE

    def answer(self, text: str, max_new_tokens: int | None = None, do_sample: bool = True, temperature: float = 0.7, top_k: int = 50,
               top_p: float = 1.0, repetition_penalty: float = 1.0, num_return_sequences: int = 1, return_full_text: bool = True,
               stop_strings: Any = None, seed: int | None = None) -> list[dict]:
        encode(text)
        if max_new_tokens is None:
            room = lib.kiln_model_max_tokens(self.model.handle) - len(self.model.tokens(text)[0])
            max_new_tokens = max(1, min(256, room))
        texts = CausalLM(self.model).generate(
            [text] * num_return_sequences, max_new_tokens, temperature if do_sample else 0.0, top_k, top_p,
            repetition_penalty=repetition_penalty, seed=int.from_bytes(os.urandom(7), "little") if seed is None else seed, stop=stop_strings)
        return [{"generated_text": (text if return_full_text else "") + t} for t in texts]


class ZeroShotClassification(Pipeline):
    """zero-shot-classification with an NLI model: {"sequence": str, "labels": [str], "scores": [float]}, the best label first.

    candidate_labels     a list, or a string with commas
    hypothesis_template  the sentence that says a label, with {}
    multi_label          any number of labels may hold: a probability for each by itself"""

    kind = C.CLASSIFY

    def __call__(self, inputs: Any, candidate_labels: Any = None, **settings: Any) -> Any:
        if candidate_labels is not None:
            settings["candidate_labels"] = candidate_labels
        return super().__call__(inputs, **settings)

    def answer(self, text: str, candidate_labels: Any = (), hypothesis_template: str = "This example is {}.",
               multi_label: bool = False) -> dict:
        labels = [p.strip() for p in candidate_labels.split(",") if p.strip()] if isinstance(candidate_labels, str) else \
            list(candidate_labels)
        if not labels:
            raise ValueError("candidate_labels is empty: give at least one label")
        if hypothesis_template.format(labels[0]) == hypothesis_template:
            raise ValueError(f"hypothesis_template is {hypothesis_template!r}, which has no {{}} for the label")
        logits, _ = label_logits(self.model, [text] * len(labels), [hypothesis_template.format(k) for k in labels])
        names = self.model.labels()
        entails = next((i for i, name in enumerate(names) if name.lower().startswith("entail")), None)
        if entails is None:
            raise ValueError(f"zero-shot-classification needs an NLI model with a label \"entailment\"; this one has {', '.join(names)}")
        contradicts = -1 if entails == 0 else 0
        scores = softmax(logits[:, [contradicts, entails]])[:, 1] if multi_label or len(labels) == 1 else softmax(logits[:, entails])
        order = np.argsort(-scores, kind="stable")
        return {"sequence": text, "labels": [labels[i] for i in order], "scores": [float(scores[i]) for i in order]}


TASKS = {"text-classification": TextClassification, "sentiment-analysis": TextClassification,
         "token-classification": TokenClassification, "ner": TokenClassification, "question-answering": QuestionAnswering,
         "fill-mask": FillMask, "feature-extraction": FeatureExtraction, "text-generation": TextGeneration,
         "zero-shot-classification": ZeroShotClassification}


def pipeline(task: str, model: str | os.PathLike | Model | None = None, device: str | None = None, dtype: str | None = None,
             **settings: Any) -> Pipeline:
    """A pipeline of a task: text-classification, token-classification, question-answering, fill-mask, feature-extraction,
    text-generation, zero-shot-classification.  The settings are defaults of its calls.

        pipe = kiln.pipeline("fill-mask", model="bert-base-uncased")    # a directory
        pipe("The cat [MASK] on the mat.", top_k=3)"""
    if task not in TASKS:
        raise ValueError(f"the task is {task!r}, but must be one of {', '.join(TASKS)}")
    if model is None:
        raise ValueError(f"pipeline({task!r}) needs model=, a directory: kiln chooses none")
    return TASKS[task](model, device, dtype, **settings)
