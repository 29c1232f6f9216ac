#!/usr/bin/env python3
"""Makes squad_features.json: what SQuAD questions look like as BERT features, for tests/data/test_squad_features.c.

Written from the rules (reference: BERT's run_squad.py), plainly and slowly: words, windows, best context, the span
of the answer.  Tokens are those of Hugging Face's `tokenizers`.  The file holds a made-up data set with its features
in full, and for the SQuAD files given on the command line a hash over all their features.

usage: make_squad_features.py VOCAB_FILE SQUAD_V1_DEV SQUAD_V2_DEV     (needs tokenizers; writes beside itself)
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
SPACES = " \t\r\n\u202f"
SETTINGS = [(384, 128, 64), (96, 40, 20), (64, 500, 20)]


def fnv1a(h, data):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


class WordPieces:
    def __init__(self, vocab, lower_case):
        self.vocab = {piece: i for i, piece in enumerate(vocab)}
        self.pieces = list(vocab)
        self.tokenizer = Tokenizer(models.WordPiece(self.vocab, unk_token="[UNK]", max_input_chars_per_word=100))
        self.tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
        self.tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self.known = {}

    def ids(self, text):
        if text not in self.known:
            self.known[text] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.known[text]


def split_words(context):
    """The words, and for each character the index of its word, or of the word before a space."""
    words, of_char, inside = [], [], False
    for c in context:
        if c in SPACES:
            inside = False
        else:
            if inside:
                words[-1] += c
            else:
                words.append(c)
            inside = True
        of_char.append(max(0, len(words) - 1))
    return words, of_char


def read_examples(data, training, version_2):
    """[{id, question, words, impossible, answer, first, last}] and how many were left out."""
    examples, left_out = [], 0
    for entry in data["data"]:
        for paragraph in entry["paragraphs"]:
            words, of_char = split_words(paragraph["context"])
            for qa in paragraph["qas"]:
                x = dict(id=qa["id"], question=qa["question"], words=words, context=paragraph["context"],
                         impossible=version_2 and qa.get("is_impossible", not qa["answers"]))
                if training and not x["impossible"]:
                    answer = qa["answers"][0]
                    x["answer"] = answer["text"]
                    start, last = answer["answer_start"], answer["answer_start"] + len(answer["text"]) - 1
                    wanted = " ".join(answer["text"].split())
                    if not (0 <= start <= last < len(of_char)) or not wanted:
                        left_out += 1
                        continue
                    x["first"], x["last"] = of_char[start], of_char[last]
                    if wanted not in " ".join(words[x["first"]:x["last"] + 1]):
                        left_out += 1
                        continue
                examples.append(x)
    return examples, left_out


def narrow(tokens, first, last, answer):
    for start in range(first, last + 1):
        for end in range(last, start - 1, -1):
            if end - start + 1 == len(answer) and tokens[start:end + 1] == answer:
                return start, end
    return first, last


def make_windows(n_tokens, room, stride):
    windows, start = [], 0
    while start < n_tokens:
        length = min(room, n_tokens - start)
        windows.append((start, length))
        if start + length == n_tokens:
            break
        start += min(length, stride)
    return windows


def has_most_context(windows, index, token):
    best, best_score = None, None
    for i, (start, length) in enumerate(windows):
        if start <= token < start + length:
            score = min(token - start, start + length - 1 - token) + 0.01 * length
            if best is None or score > best_score:
                best, best_score = i, score
    return best == index


def make_features(x, number, pieces, seq, stride, query_length, training):
    query = pieces.ids(x["question"])[:query_length]
    tokens, word_of, first_of = [], [], []
    for i, word in enumerate(x["words"]):
        first_of.append(len(tokens))
        for token in pieces.ids(word):
            tokens.append(token)
            word_of.append(i)
    first_of.append(len(tokens))
    if training and not x["impossible"]:
        first, last = narrow(tokens, first_of[x["first"]], first_of[x["last"] + 1] - 1, pieces.ids(x["answer"]))
    windows = make_windows(len(tokens), seq - len(query) - 3, stride)
    for index, (start, length) in enumerate(windows):
        offset = len(query) + 2
        labels = (0, 0)
        if training and not x["impossible"] and first >= start and last < start + length:
            labels = (first - start + offset, last - start + offset)
        cls, sep = pieces.vocab["[CLS]"], pieces.vocab["[SEP]"]
        yield dict(
            example=number, ids=[cls] + query + [sep] + tokens[start:start + length] + [sep], first_length=offset,
            words=[-1] * offset + word_of[start:start + length] + [-1],
            best=[0] * offset + [int(has_most_context(windows, index, start + t)) for t in range(length)] + [0],
            labels=labels)


def all_features(data, pieces, seq, stride, query_length, training, version_2):
    examples, left_out = read_examples(data, training, version_2)
    features = []
    for number, x in enumerate(examples):
        features += make_features(x, number, pieces, seq, stride, query_length, training)
    return examples, features, left_out


def hash_features(features):
    """FNV-1a of every feature as little-endian 32-bit words."""
    import array
    h = 0xCBF29CE484222325
    for f in features:
        row = [f["example"], len(f["ids"]), f["first_length"], *f["labels"], *f["ids"], *f["words"], *f["best"]]
        h = fnv1a(h, array.array("i", row).tobytes())
    return h


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "year", "born", "in", "1895", "##s", "##5", "189", "(",
          ")", "-", ".", ",", "?", "who", "was", "he", "##lium", "earl", "##y", "a", "##b", "b", "caf", "##e", "cafe",
          "paris", "\u4e2d", "\u56fd", "1943", "'", "when"]


def made_up():
    def qa(number, question, *answers):
        return dict(id=f"q{number}", question=question, answers=[dict(text=t, answer_start=s) for s, t in answers])
    birth = "The  year\the was born\u202f(1895-1943),\r\nin early Paris. "
    twice = "a a b a b ab. " * 6 + "\u4e2d\u56fdCaf\u00e9  Cafe\u0301!"
    return dict(version="v2.0", data=[dict(title="made up", paragraphs=[
        dict(context=birth, qas=[
            qa(1, "When was he born?", (birth.index("1895"), "1895")),
            qa(2, "Who was born in Paris, who was born in Paris, when, who?", (birth.index("early"), "early  Paris")),
            qa(3, "Who?"),
            qa(4, "When?", (0, "1895"), (birth.index("1895"), "1895")),
            qa(5, "Paris?", (birth.index("1943"), "1943),\r\nin early")),
            qa(6, "beyond?", (1000, "Paris")),
            qa(7, "no", (birth.index("1895") + 1, "895-"))]),
        dict(context=twice, qas=[
            qa(8, "", (2, "a b")),
            qa(9, "b?", (twice.index("Caf"), "Caf\u00e9  Cafe\u0301")),
            qa(10, "\u4e2d?", (twice.index("\u56fd"), "\u56fd")),
            qa(11, "a?", (1, "a"))]),
        dict(context="\n\u00ad the\u00a0year \u200b", qas=[qa(12, "?", (2, " the")), qa(13, "?", (0, "\n\u00ad the"))]),
    ])])


def main():
    vocab = [line.rstrip("\n") for line in open(sys.argv[1], encoding="utf-8")]
    small = WordPieces(PIECES, True)
    golden = dict(vocab=PIECES, dataset=made_up(), cases=[], hashes=[])
    for training in (True, False):
        for seq, stride, query in ((12, 3, 4), (9, 20, 4), (64, 16, 20)):
            _, features, left_out = all_features(golden["dataset"], small, seq, stride, query, training, True)
            golden["cases"].append(dict(training=training, settings=[seq, stride, query], left_out=left_out,
                                        features=features))
    for path, version_2 in ((sys.argv[2], False), (sys.argv[3], True)):
        data = json.load(open(path, encoding="utf-8"))
        for training, lower_case, (seq, stride, query) in [
                (False, True, SETTINGS[0]), (True, True, SETTINGS[0]), (True, True, SETTINGS[1]),
                (False, True, SETTINGS[2]), (False, False, SETTINGS[1])]:
            pieces = WordPieces(vocab, lower_case)
            _, features, left_out = all_features(data, pieces, seq, stride, query, training, version_2)
            golden["hashes"].append(dict(
                file=pathlib.Path(path).name, version_2=version_2, training=training, lower_case=lower_case,
                settings=[seq, stride, query], left_out=left_out, n_features=len(features),
                hash=f"{hash_features(features):016x}"))
            print(golden["hashes"][-1], flush=True)
    rows = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in golden.items())
    (HERE / "squad_features.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
