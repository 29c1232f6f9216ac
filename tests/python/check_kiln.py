"""Python's kiln beside the program `kiln`: the same answers, its shapes, and one clear sentence for what is wrong.

usage: check_kiln.py MODELS DECODERS DIR; KILN_LIBRARY and KILN_PROGRAM name what is tested."""
import ctypes
import gc
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import unittest
from unittest import mock

import numpy as np

import kiln
from kiln import _library

MODELS, DECODERS, DIR = sys.argv[1:4]
TEXTS = ["a mad dog", "had a man", "", "caf\u00e9, no home"]
LABELLED = [("a mad dog", "x"), ("no home", "y"), ("ice", "x"), ("a cab in a cage", "y")] * 8
TRAINED = {"max_seq_length": 16, "train_batch_size": 8, "log_freq": 1}


def model(name):
    return os.path.join(MODELS, name)


def command(*line):
    """What the program prints, as lines."""
    return subprocess.run([kiln.runs.program(), *line], capture_output=True, check=True, text=True).stdout.splitlines()


def frame(columns):
    """A data frame: pandas', or what kiln asks of one."""
    try:
        import pandas
    except ImportError:
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
        return mock.Mock(spec=["columns", "to_dict"], columns=list(columns), to_dict=lambda kind: rows)
    return pandas.DataFrame(columns)


class Answers(unittest.TestCase):
    def test_vectors(self):
        m = kiln.SentenceTransformer(model("encoder"))
        got = m.encode(TEXTS)
        wanted = np.array([json.loads(line) for line in command("embed", "--model", model("encoder"), *TEXTS)], np.float32)
        # not to the bit: numpy may have loaded OpenBLAS for other instructions than the program chose
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
        self.assertEqual((got.shape, got.dtype), ((4, m.get_sentence_embedding_dimension()), np.float32))
        self.assertEqual(m.encode("a").shape, got.shape[1:])
        self.assertEqual(m.encode([]).shape, (0, got.shape[1]))
        np.testing.assert_allclose(np.linalg.norm(m.encode(TEXTS, normalize_embeddings=True), axis=1), 1, rtol=1e-5)
        tokens = m.encode(TEXTS, output_value="token_embeddings")
        np.testing.assert_allclose([t.mean(0) for t in tokens], got, atol=1e-5)
        np.testing.assert_allclose(m.encode(TEXTS, batch_size=3, show_progress_bar=True), got, atol=1e-6)
        np.testing.assert_allclose(np.diag(m.similarity(got, got)), 1, rtol=1e-5)
        np.testing.assert_allclose(m.similarity_pairwise(got, got[::-1]), np.diag(m.similarity(got, got[::-1])), rtol=1e-5)
        search = ["search", "--model", model("encoder"), "--index", "notes"]
        command(*search, "--add", *TEXTS)
        hits = json.loads(command(*search, "--json", "a mad dog")[0])["hits"]
        found = kiln.semantic_search(m.encode("a mad dog"), np.load("notes", mmap_mode="r"))[0]
        self.assertEqual([h["index"] for h in hits], [f["corpus_id"] for f in found])
        np.testing.assert_allclose([h["score"] for h in hits], [f["score"] for f in found], atol=1e-5)
        self.assertEqual(m.tokenizer.decode(m.tokenizer.encode("a mad dog")), "[CLS] a mad dog [SEP]")
        self.assertEqual(kiln.pipeline("feature-extraction", model("encoder"))("a mad dog")[0], tokens[0].tolist())

    def test_precision(self):
        """Steps and signs as sentence-transformers makes them, which tests/peers/check_python.py holds against it."""
        m = kiln.SentenceTransformer(model("encoder"))
        v = m.encode(TEXTS)
        signs = m.encode(TEXTS, precision="ubinary")
        np.testing.assert_array_equal(np.unpackbits(signs, axis=1)[:, :v.shape[1]], v > 0)
        np.testing.assert_array_equal(m.encode(TEXTS, precision="binary"), signs.astype(np.int16) - 128)
        steps = m.encode(TEXTS, precision="uint8")
        self.assertEqual((steps.dtype, steps.shape, steps.min(), steps.max()), (np.uint8, v.shape, 0, 255))
        np.testing.assert_array_equal(m.encode(TEXTS, precision="int8"), steps.astype(np.int16) - 128)
        half = kiln.SentenceTransformer(model("encoder"), dtype="bf16").encode(TEXTS)
        np.testing.assert_allclose(half, v, atol=0.05)
        self.assertFalse(np.array_equal(half, v))
        gpt = os.path.join(DECODERS, "gpt2")
        for dtype, most in (("bf16", 0.05), ("int8", 0.2)):
            np.testing.assert_allclose(kiln.CausalLM(gpt, dtype=dtype).score("and the king"), kiln.CausalLM(gpt).score("and the king"),
                                       atol=most)

    def test_threads_of_a_call(self):
        m = kiln.SentenceTransformer(model("encoder"))
        wanted = m.encode(TEXTS)
        kiln.set_num_threads(1)
        self.assertEqual(m.encode(TEXTS).tobytes(), wanted.tobytes())
        kiln.set_num_threads(0)

    def test_tokenizer(self):
        """It reads no weights."""
        t = kiln.Tokenizer(model("encoder"))
        self.assertEqual(t.encode("a mad dog"), kiln.SentenceTransformer(model("encoder")).tokenizer.encode("a mad dog"))
        with self.assertRaisesRegex(ValueError, "without its weights"), t._model.session(_library.C.EMBED):
            pass

    def test_decoder(self):
        for name in ("gpt2", "bloom"):
            path = os.path.join(DECODERS, name)
            lm = kiln.CausalLM(path)
            line = ("generate", "--model", path, "--prompt", "and the", "--max_new_tokens", "9", "--seed", "7", "--json")
            said = json.loads(command(*line)[0])
            self.assertEqual(lm.generate("and the", max_new_tokens=9, seed=7), said["text"])
            self.assertEqual("".join(lm.stream("and the", max_new_tokens=9, temperature=0)),
                             lm.generate("and the", max_new_tokens=9, temperature=0))
            self.assertEqual(lm.generate([], max_new_tokens=9), [])
            scores = lm.score(["and the king", "and"])
            self.assertEqual([len(s) + 1 for s in scores], [len(lm.tokenizer.encode(t)) for t in ("and the king", "and")])
            self.assertTrue(all(s < 0 for s in scores[0]))
            self.assertEqual(lm.tokenizer.decode(lm.tokenizer.encode("and the king")), "and the king")
            pipe = kiln.pipeline("text-generation", path)
            two = pipe("and the", max_new_tokens=5, num_return_sequences=2, seed=1)
            self.assertEqual(two, pipe("and the", max_new_tokens=5, num_return_sequences=2, seed=1))
            self.assertTrue(len(two) == 2 and all(t["generated_text"].startswith("and the") for t in two))

    def test_stream_closed(self):
        lm = kiln.CausalLM(os.path.join(DECODERS, "gpt2"))
        pieces = lm.stream("and", max_new_tokens=20, ignore_end=True)
        next(pieces)
        pieces.close()
        self.assertEqual(len(lm._model._idle[_library.C.GENERATE]), 1)  # the call has ended
        unread = lm.stream("and")
        del unread
        gc.collect()

    def test_stream_closed_while_waited_for(self):
        """By another thread: the one that waits for a piece sees the end."""
        lm, found = kiln.CausalLM(os.path.join(DECODERS, "gpt2")), queue.SimpleQueue()
        pieces = lm.stream("and", max_new_tokens=20, ignore_end=True)
        got = pieces._pieces
        pieces._pieces = mock.Mock(get=lambda: (found.put("waits"), found_closed.wait(), got.get())[2])
        found_closed = pieces._closed
        reader = threading.Thread(target=lambda: found.put(list(pieces)))
        reader.start()
        self.assertEqual(found.get(), "waits")
        pieces.close()
        self.assertEqual(found.get(), [])
        reader.join()

    def test_interrupted(self):
        """Ctrl-C ends a call, and the session can be used again."""
        m = kiln.SentenceTransformer(model("encoder"))._model

        def endless(handle):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            while True:
                with _library.result("tokens", "tokens") as r:
                    _library.lib.kiln_tokenize(handle, ctypes.byref(r), b"a", 1)

        with m.session(_library.C.EMBED) as s, self.assertRaises(KeyboardInterrupt):
            s.call(endless)
        self.assertEqual(len(m.tokens("a")[0]), 1)

    def test_labels(self):
        pairs = [("a mad dog", "had a man"), ("no home", "a cab")]
        for name, shape in (("regression", (2,)), ("single", (2, 3)), ("multi", (2, 4))):
            scores = kiln.CrossEncoder(model(name)).predict(pairs)
            self.assertEqual((scores.shape, scores.dtype), (shape, np.float32))
        with open(os.path.join(DIR, "pairs.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"text": t}) + "\n" for t, _ in LABELLED[:3])
        command("classify", "--init_checkpoint", model("single"), "--output_dir", os.path.join(DIR, "predicted"), "--do_predict",
                "--predict_file", f.name, "--max_seq_length", "24")
        with open(os.path.join(DIR, "predicted", "predictions.jsonl"), encoding="utf-8") as f:
            wanted = [json.loads(line)["scores"] for line in f]
        got = kiln.pipeline("text-classification", model("single"), top_k=None)([t for t, _ in LABELLED[:3]])
        for g, w in zip(got, wanted):
            self.assertEqual(len(g), len(w))
            for label in g:
                self.assertAlmostEqual(label["score"], w[label["label"]], 6)
        ranked = kiln.CrossEncoder(model("regression")).rank("a man", ["ice", "a dog", "no"], top_k=2, return_documents=True)
        self.assertEqual([sorted(r) for r in ranked], [["corpus_id", "score", "text"]] * 2)
        self.assertGreaterEqual(ranked[0]["score"], ranked[1]["score"])

    def test_masks_answers_and_tags(self):
        text = "a [MASK] had a dog"
        got = kiln.pipeline("fill-mask", model("masked_lm"), top_k=3)(text)
        wanted = json.loads(command("fill", "--model", model("masked_lm"), "--top_k", "3", "--json", text)[0])["masks"][0]
        self.assertEqual([g["token"] for g in got], [w["id"] for w in wanted])
        np.testing.assert_allclose([g["score"] for g in got], [w["probability"] for w in wanted], rtol=1e-6)
        self.assertEqual(got[0]["sequence"], text.replace("[MASK]", got[0]["token_str"]).replace(" ##", ""))
        self.assertEqual([g["token_str"] for g in kiln.pipeline("fill-mask", model("masked_lm"))(text, targets="a")], ["a"])
        context = "caf\u00e9: a man had a dog. A big dog had bad food, and a mad man had an old cab."
        answer = kiln.pipeline("question-answering", model("question_answering"))(question="had a man?", context=context)
        self.assertEqual(answer["answer"], context[answer["start"]:answer["end"]])
        tags = kiln.pipeline("token-classification", model("tokens"), ignore_labels=[])("\u00e9lan, a mad dog")
        self.assertEqual("".join("\u00e9lan, a mad dog"[t["start"]:t["end"]] for t in tags), "\u00e9lan,amaddog")
        grouped = kiln.pipeline("ner", model("tokens"), aggregation_strategy="simple", ignore_labels=[])("a mad dog")
        self.assertEqual(sorted(grouped[0]), ["end", "entity_group", "score", "start", "word"])

    def test_threads(self):
        m = kiln.SentenceTransformer(model("encoder"))
        wanted, got = m.encode(TEXTS), {}

        def work(i):
            got[i] = [m.encode(TEXTS) for _ in range(5)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertTrue(all(np.array_equal(v, wanted) for i in range(4) for v in got[i]))


class Runs(unittest.TestCase):
    def test_classify(self):
        out = os.path.join(DIR, "classifier")
        run = kiln.classify(model("encoder"), out, train_file=LABELLED, predict_file=LABELLED, do_eval=True, show_progress=False, **TRAINED)
        self.assertEqual([e["step"] for e in run.events if e["event"] == "step"], list(range(1, 13)))
        label = kiln.pipeline("text-classification", run.model)("a mad dog")[0]
        self.assertIn(label["label"], ("x", "y"))
        columns = {"text": [t for t, _ in LABELLED], "label": [k for _, k in LABELLED]}
        again = kiln.classify(model("encoder"), out, train_file=columns, show_progress=False, overwrite_output_dir=True, **TRAINED)
        framed = kiln.classify(model("encoder"), out, train_file=frame(columns), show_progress=False, overwrite_output_dir=True, **TRAINED)
        losses = [[e["step_loss"] for e in r.events if e["event"] == "step"] for r in (run, again, framed)]
        self.assertEqual(*losses[:2])
        self.assertEqual(*losses[1:])

    def test_stopped_and_resumed(self):
        out = os.path.join(DIR, "stopped")
        long = {"train_file": LABELLED, "num_train_epochs": 1000000, **TRAINED}
        run = kiln.classify(model("encoder"), out, wait=False, **long)
        for event in run:
            if event["event"] == "step":
                run.cancel()
        self.assertEqual(run.returncode, 75)
        last = [e["step"] for e in run.events if e["event"] == "step"][-1]
        resumed = kiln.classify(model("encoder"), out, wait=False, resume_from_checkpoint=True, **long)
        first = next(e["step"] for e in resumed if e["event"] == "step")
        self.assertGreater(first, last - 1)
        with mock.patch("kiln.runs.time.sleep", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            resumed.wait(show_progress=False)
        self.assertEqual(resumed.returncode, 75)

    def test_tag_squad_and_gpt(self):
        tagged = [(["a", "mad", "dog"], ["O", "O", "B-PER"]), (["no", "home"], ["O", "B-LOC"])] * 8
        run = kiln.tag(model("encoder"), os.path.join(DIR, "tagger"), train_file=tagged, num_train_epochs=1, show_progress=False, **TRAINED)
        self.assertTrue(os.path.exists(os.path.join(run.model, "config.json")))
        asked = [{"question": "who?", "context": "a mad dog had a man", "answers": ["a man"]}] * 8
        run = kiln.squad(model("encoder"), os.path.join(DIR, "asked"), train_file=asked, num_train_epochs=1, show_progress=False, doc_stride=4,
                         max_query_length=4, **TRAINED)
        self.assertEqual(run.returncode, 0)
        run = kiln.finetune_gpt(os.path.join(DECODERS, "gpt2"), os.path.join(DIR, "gpt"), ["and the king and the end of it " * 9] * 9,
                                validation_file=["and the end of the king " * 9], max_seq_length=16, num_train_epochs=1, show_progress=False)
        self.assertIsInstance(kiln.CausalLM(run.model).generate("and", max_new_tokens=3), str)
        run = kiln.finetune_gpt(os.path.join(DECODERS, "gpt2"), os.path.join(DIR, "answers"), [("the hand", " and"), {"prompt": "an end", "completion": " of"}] * 4,
                                eval_file=[("the hand", " and")], num_train_epochs=1, show_progress=False)
        self.assertIn("8 examples, ", run.messages)

    def test_program(self):
        said = subprocess.run([sys.executable, "-m", "kiln", "--version"], capture_output=True, check=True, text=True).stdout
        self.assertEqual(said.splitlines()[0], f"kiln {kiln.__version__}")


class Mistakes(unittest.TestCase):
    def refuse(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        return caught.exception

    def test_arguments(self):
        m = kiln.SentenceTransformer(model("encoder"))
        v = m.encode(TEXTS)
        self.refuse(TypeError, "sentences[1] is None", lambda: m.encode(["a", None]))
        self.refuse(TypeError, "sentences is None", lambda: m.encode(None))
        self.refuse(TypeError, "an array of float64", lambda: m.encode(np.zeros(2)))
        self.refuse(TypeError, "an array of <U1", lambda: m.similarity(np.array(["a"]), v))
        self.refuse(ValueError, "vectors of 3 numbers", lambda: m.similarity(np.zeros((2, 3)), v))
        self.refuse(ValueError, "query_embeddings has vectors of 3", lambda: kiln.semantic_search(np.zeros(3), v))
        self.refuse(ValueError, "precision is 'bf16', but must be", lambda: m.encode("a", precision="bf16"))
        self.refuse(ValueError, "there is one text", lambda: m.encode("a", precision="int8"))
        self.refuse(ValueError, "int8", lambda: kiln.SentenceTransformer(model("encoder"), dtype="int9"))
        self.refuse(ValueError, "no prompt 'query'", lambda: m.encode("a", prompt_name="query"))
        self.refuse(TypeError, "must be a pair", lambda: kiln.CrossEncoder(model("single")).predict([("a", "b", "c")]))
        self.refuse(ValueError, "the task is 'sing'", lambda: kiln.pipeline("sing", model("encoder")))
        self.refuse(ValueError, "[MASK]", lambda: kiln.pipeline("fill-mask", model("masked_lm"))("a dog"))
        lm = kiln.CausalLM(os.path.join(DECODERS, "gpt2"))
        self.refuse(ValueError, "max_new_tokens is 0", lambda: lm.generate("a", max_new_tokens=0))
        self.refuse(TypeError, "no setting nonsense", lambda: lm.stream("a", nonsense=1))
        self.refuse(ValueError, "24", lambda: lm.generate("and " * 99))
        self.refuse(ValueError, "is no id", lambda: lm.tokenizer.convert_ids_to_tokens([99999]))

    def test_models(self):
        missing = self.refuse(FileNotFoundError, "does not exist", lambda: kiln.SentenceTransformer(os.path.join(DIR, "nowhere")))
        self.assertIsInstance(missing, kiln.KilnError)
        self.refuse(kiln.KilnError, "no config.json", lambda: kiln.SentenceTransformer(DIR))
        self.refuse(kiln.KilnError, "BertModel, which does not predict the next word", lambda: kiln.CausalLM(model("encoder")))
        self.refuse(kiln.KilnError, "no cross-encoder", lambda: kiln.CrossEncoder(model("encoder")))
        self.refuse(kiln.KilnError, "GPT2LMHeadModel", lambda: kiln.pipeline("ner", os.path.join(DECODERS, "gpt2")))
        llama = os.path.join(DIR, "llama")
        os.makedirs(llama, exist_ok=True)
        with open(os.path.join(llama, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, f)
        self.refuse(kiln.KilnError, "llama", lambda: kiln.CausalLM(llama))

    def test_runs(self):
        out = os.path.join(DIR, "wrong")
        self.refuse(ValueError, "unknown flag --nonsense", lambda: kiln.classify(model("encoder"), out, LABELLED, nonsense=1))
        self.refuse(FileNotFoundError, "nowhere.csv", lambda: kiln.classify(model("encoder"), out, "nowhere.csv", **TRAINED))
        self.refuse(TypeError, "train_file[0] is 1", lambda: kiln.classify(model("encoder"), out, [1]))
        self.refuse(ValueError, "different lengths", lambda: kiln.classify(model("encoder"), out, {"text": ["a"], "label": []}))
        self.refuse(ValueError, "line 2", lambda: kiln.classify(model("encoder"), out, [("a", "x"), (None, "y")], **TRAINED))
        self.refuse(ValueError, "not in its context", lambda: kiln.squad(model("encoder"), out, [
            {"question": "who?", "context": "a dog", "answers": ["a man"]}]))

    def test_other_library(self):
        env = {**os.environ, "KILN_LIBRARY": os.path.join(DIR, "none.so")}
        said = subprocess.run([sys.executable, "-c", "import kiln"], capture_output=True, text=True, env=env).stderr
        self.assertIn("ImportError: kiln cannot open its library", said)
        with mock.patch("ctypes.CDLL", side_effect=OSError("libc.so.6: version `GLIBC_2.34' not found")), \
                mock.patch("platform.libc_ver", return_value=("glibc", "2.31")):
            self.refuse(ImportError, "kiln needs glibc 2.34 or newer, and this system has glibc 2.31", _library._load)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    unittest.main(argv=sys.argv[:1], verbosity=0)
