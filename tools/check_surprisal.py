"""Compares the surprisal of `kiln eval --tokens` with that of transformers: of a decoder with and without the first token, of a
masked model by both pseudo-log-likelihoods.  Usage: check_surprisal.py KILN MODEL TEXTS"""
import csv
import io
import math
import subprocess
import sys

import torch
import transformers

kiln, model_dir, texts = sys.argv[1:]
lines = [line for line in open(texts, encoding="utf-8").read().split("\n") if line]
tokenizer = transformers.AutoTokenizer.from_pretrained(model_dir)
is_masked = tokenizer.mask_token is not None
kind = transformers.AutoModelForMaskedLM if is_masked else transformers.AutoModelForCausalLM
model = kind.from_pretrained(model_dir).eval()


def log_probabilities(ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().log_softmax(-1)


def decoder(line, bos):
    ids = tokenizer(line, add_special_tokens=False).input_ids
    before = [model.config.bos_token_id] if bos else []
    p = log_probabilities(before + ids)
    return ([] if bos else [None]) + [-p[i - 1, (before + ids)[i]].item() for i in range(1, len(before + ids))]


def masked(line, within_word):
    ids = tokenizer(line).input_ids
    pieces = tokenizer.convert_ids_to_tokens(ids)
    for i in range(1, len(ids) - 1):
        hidden = list(ids)
        hidden[i] = tokenizer.mask_token_id
        for k in range(i + 1, len(ids)):
            if not within_word or not pieces[k].startswith("##"):
                break
            hidden[k] = tokenizer.mask_token_id
        yield -log_probabilities(hidden)[i, ids[i]].item()


if is_masked:
    ways = [(masked, False, ["--masking", "token"]), (masked, True, ["--masking", "within_word"])]
else:
    ways = [(decoder, False, []), (decoder, True, ["--bos"])]
for score, choice, flags in ways:
    table = subprocess.run([kiln, "eval", "--model", model_dir, "--input", texts, "--tokens", *flags], check=True,
                           stdout=subprocess.PIPE, encoding="utf-8").stdout
    got = [row["surprisal"] for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)]
    want = [nats for line in lines for nats in score(line, choice)]
    assert len(got) == len(want), (len(got), len(want))
    worst = 0
    for ours, nats in zip(got, want):
        assert (ours == "NA") == (nats is None), (ours, nats)
        worst = max(worst, 0 if nats is None else abs(float(ours) - nats / math.log(2)))
    print(f"{len(got)} tokens, {' '.join(flags) or 'no flags'}: at most {worst:.1e} bits apart")
    assert worst < 1e-4, worst
