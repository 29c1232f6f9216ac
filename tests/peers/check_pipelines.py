"""What kiln serve answers to huggingface_hub's client, beside the pipelines of transformers on the same models.

usage: check_pipelines.py URL MODELS, MODELS the directory of the models that the server at URL has."""
import json
import sys
import urllib.request
import warnings

import torch
from huggingface_hub import InferenceClient
from transformers import pipeline

URL, MODELS = sys.argv[1:3]
TEXTS = ["a mad dog, had.", "\u00c9lan pied; q a", "ice", "a a b b"]
warnings.filterwarnings("ignore")


def client(name):
    return InferenceClient(model=f"{URL}/models/{name}", provider="hf-inference")


def pipe(task, name):
    return pipeline(task, model=f"{MODELS}/{name}", device="cpu", dtype=torch.float32)


def post(name, body):
    request = urllib.request.Request(f"{URL}/models/{name}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def plain(value):
    """The client's and numpy's types as those of JSON, without what is None."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    return value.item() if hasattr(value, "item") else value


def expect(got, wanted, what):
    got, wanted = plain(got), plain(wanted)
    if isinstance(wanted, float):
        assert abs(got - wanted) < 1e-4, (what, got, wanted)
    elif isinstance(wanted, dict):
        assert set(got) == set(wanted), (what, got, wanted)
        for k in wanted:
            expect(got[k], wanted[k], f"{what}.{k}")
    elif isinstance(wanted, list):
        assert len(got) == len(wanted), (what, got, wanted)
        for i, (g, w) in enumerate(zip(got, wanted)):
            expect(g, w, f"{what}[{i}]")
    else:
        assert got == wanted, (what, got, wanted)


def check_tags():
    tagger = pipe("token-classification", "tokens")
    for strategy in ["none", "simple", "first", "average", "max"]:
        for ignored in [{}, {"ignore_labels": []}, {"ignore_labels": ["PER", "B-LOC"]}]:
            aggregated = pipeline("token-classification", model=tagger.model, tokenizer=tagger.tokenizer,
                                  aggregation_strategy=strategy, **ignored)
            for text in TEXTS:
                got = client("tokens").token_classification(text, aggregation_strategy=strategy, **ignored)
                expect(got, aggregated(text), f"{strategy}: {text}")


def check_fill():
    filler = pipe("fill-mask", "masked_lm")
    for text in ["a [MASK] had a dog.", "[MASK] e"]:
        expect(client("masked_lm").fill_mask(text), filler(text), text)
        targets = {"top_k": 3, "targets": ["a", "b", "cab"]}
        expect(client("masked_lm").fill_mask(text, **targets), filler(text, **targets), f"{text} of three")
    two = "a [MASK] had a [MASK]."
    expect(post("masked_lm", {"inputs": two}), filler(two), two)


def check_labels():
    for name in ["single", "multi", "regression"]:
        classifier = pipe("text-classification", name)
        for function in [{}, {"function_to_apply": "none"}, {"function_to_apply": "sigmoid"},
                         {"function_to_apply": "softmax"}]:
            for text in TEXTS:
                for top_k in [None, 2]:
                    got = client(name).text_classification(text, top_k=top_k, **function)
                    expect(got, classifier(text, top_k=top_k, **function), f"{name}: {text}")
        pair = {"text": "a dog", "text_pair": "a man"}
        expect(post(name, {"inputs": pair})[0], classifier(pair, top_k=None), f"{name}: a pair")


def check_zero_shot():
    classifier = pipe("zero-shot-classification", "entailment")
    for labels in [["a", "bad", "dog"], ["dog"]]:
        for multi in [False, True]:
            wanted = classifier(TEXTS[3], labels, hypothesis_template="a {}", multi_label=multi)
            got = client("entailment").zero_shot_classification(TEXTS[3], labels, hypothesis_template="a {}",
                                                                multi_label=multi)
            expect([{"label": g.label, "score": g.score} for g in got],
                   [{"label": k, "score": s} for k, s in zip(wanted["labels"], wanted["scores"])], str(labels))


def check_vectors():
    """Mean of the last layer, by transformers, at any batch and order."""
    features = pipe("feature-extraction", "encoder")
    means = [torch.nn.functional.normalize(torch.tensor(features(t)[0]).mean(0), dim=0) for t in TEXTS]
    for texts in [[t] for t in TEXTS] + [TEXTS, TEXTS[::-1], TEXTS * 9]:
        got = torch.tensor(client("encoder").feature_extraction(texts))
        wanted = torch.stack([means[TEXTS.index(t)] for t in texts])
        assert (got * wanted).sum(1).min() > 0.99999, texts
    got = client("encoder").sentence_similarity(TEXTS[0], other_sentences=TEXTS)
    expect(got, [float(means[0] @ m) for m in means], "similarity")


for check in [check_tags, check_fill, check_labels, check_zero_shot, check_vectors]:
    check()
    print(check.__name__, "as transformers' pipelines")
