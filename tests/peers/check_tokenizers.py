"""The ids and texts of `kiln tokenize` beside those of Python's tokenizers and sentencepiece, on hostile text, for a tokenizer of every form
that models have.

usage: check_tokenizers.py KILN [CHARACTERS [NAME ...]]; CHARACTERS of text for each tokenizer, 300000 by default."""
import os
import subprocess
import sys
import tempfile

import sentencepiece

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import tokenizer_makers as makers  # noqa: E402

KILN = sys.argv[1]
CHARACTERS = int(sys.argv[2]) if len(sys.argv) > 2 else 300000
NAMES = sys.argv[3:]


def kiln_ids(files, texts):
    """Ids of each text, by as many runs as command lines have room for."""
    ids = []
    for at in range(0, len(texts), 200):
        run = subprocess.run([KILN, "tokenize", *files, "--"] + texts[at:at + 200], capture_output=True, check=False)
        if run.returncode != 0:
            raise SystemExit(f"kiln tokenize {files}: {run.stderr.decode()}")
        ids += [[int(i) for i in line.split()] for line in run.stdout.decode().splitlines()]
    return ids


def compare(name, wanted, got, texts, show):
    wrong = [i for i in range(len(texts)) if wanted[i] != got[i]]
    for i in wrong[:3]:
        k = next(k for k in range(len(wanted[i]) + 1) if wanted[i][:k + 1] != got[i][:k + 1])
        print(f"{name}: text {i}, token {k}: {[show(x) for x in wanted[i][max(k - 3, 0):k + 4]]} wanted, "
              f"{[show(x) for x in got[i][max(k - 3, 0):k + 4]]} got, after {show.decode(wanted[i][:k])[-20:]!r}")
    print(f"{name}: {len(texts) - len(wrong)} of {len(texts)} texts have the same ids")
    return len(wrong)


class Shower:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, i):
        return self.tokenizer.id_to_token(i)

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)


def check_json(name, make, texts):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make()
        tokenizer.save(f"{folder}/tokenizer.json")
        wanted = [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
        return compare(name, wanted, kiln_ids(["--model", folder], texts), texts, Shower(tokenizer))


class PieceShower:
    def __init__(self, processor):
        self.processor = processor

    def __call__(self, i):
        return self.processor.IdToPiece(i)

    def decode(self, ids):
        return self.processor.Decode(ids)


def check_model(name, content, texts):
    """tokenizer.model beside the library."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/tokenizer.model", "wb") as file:
            file.write(content)
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        wanted = [processor.EncodeAsIds(t) for t in texts]
        got = kiln_ids(["--model", folder, "--no_parse_special_tokens"], texts)
        return compare(name, wanted, got, texts, PieceShower(processor))


def main():
    texts = makers.hostile_texts(CHARACTERS, 1500)
    n_wrong = 0
    forms = {**makers.byte_level_forms(), **makers.sentencepiece_forms()}
    for name, make in forms.items():
        if not NAMES or name in NAMES:
            n_wrong += check_json(name, make, texts)
    for name, make in makers.model_forms().items():
        if not NAMES or name in NAMES:
            n_wrong += check_model(name, make(), texts)
    return 1 if n_wrong > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
