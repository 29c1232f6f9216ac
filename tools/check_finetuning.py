#!/usr/bin/env python3
"""Fine-tunes with Hugging Face transformers by the recipe of `kiln squad`, to compare the two on the same questions.

usage: check_finetuning.py MODEL_DIR TRAIN.json DEV.json PREDICTIONS.json [--epochs 2] [--batch 16] [--rate 1e-4] [--bf16]

MODEL_DIR has a BertForQuestionAnswering; give both sides the same one, so that they start from the same head, with the
dropout probabilities of its config.json set to 0, since the two draw different masks and 5,000 questions make F1 vary by
more than a point with the masks alone:

    kiln squad --init_checkpoint BERT --do_train --train_file TRAIN.json --max_steps 1 --learning_rate 0 --output_dir start
    check_finetuning.py start/model TRAIN.json DEV.json theirs.json
    kiln squad --init_checkpoint start/model --train_file TRAIN.json --predict_file DEV.json --output_dir ours --do_train \\
        --do_predict --do_eval --num_train_epochs 2 --train_batch_size 16 --learning_rate 1e-4
    kiln score DEV.json theirs.json

Windows, schedule and the optimizer (Adam without bias correction, no decay, gradients clipped at norm 1) are those of
run_squad.py; features come in kiln's order, so that what differs is arithmetic, dropout masks and this file's own
reading of the data.
"""
import argparse
import json
import time

import torch
from kiln_order import epoch_order
from transformers import AutoTokenizer, BertForQuestionAnswering

LENGTH, STRIDE, QUERY, ANSWER = 384, 128, 64, 30
SEED = 42


def features_of(path, tokenizer):
    """Windows of STRIDE tokens' distance over each context: ids, segments, the answer's tokens, where they are in the text."""
    out = []
    for article in json.load(open(path, encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            context = paragraph["context"]
            c = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
            ids, places = c["input_ids"], c["offset_mapping"]
            for qa in paragraph["qas"]:
                question = tokenizer(qa["question"], add_special_tokens=False)["input_ids"][:QUERY]
                answer = qa["answers"][0]
                first, last = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                inside = [i for i, (a, b) in enumerate(places) if a < last and b > first]
                room = LENGTH - len(question) - 3
                start = 0
                while True:
                    end = min(start + room, len(ids))
                    head = [tokenizer.cls_token_id, *question, tokenizer.sep_token_id]
                    whole = inside and start <= inside[0] and inside[-1] < end
                    out.append({
                        "qid": qa["id"], "context": context, "places": places, "begin": start, "n": end - start,
                        "head": len(head), "total": len(ids),
                        "ids": head + ids[start:end] + [tokenizer.sep_token_id],
                        "segments": [0] * len(head) + [1] * (end - start + 1),
                        "span": (inside[0] - start + len(head), inside[-1] - start + len(head)) if whole else (0, 0),
                    })
                    if end == len(ids):
                        break
                    start += min(room, STRIDE)
    return out


def tensors_of(features):
    width = max(len(f["ids"]) for f in features)
    ids, segments, mask = (torch.zeros(len(features), width, dtype=torch.long) for _ in range(3))
    for i, f in enumerate(features):
        n = len(f["ids"])
        ids[i, :n], segments[i, :n], mask[i, :n] = torch.tensor(f["ids"]), torch.tensor(f["segments"]), 1
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}


def span_loss(logits, mask, positions):
    """Summed; the softmax is over the tokens of the sequence, not over its padding (docs/quirks.md)."""
    return torch.nn.functional.cross_entropy(logits.float().masked_fill(mask == 0, -1e30), positions, reduction="sum")


def train(model, features, n_examples, args):
    parameters = [p for p in model.parameters() if p.requires_grad]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    n, per_epoch = len(features), -(-len(features) // args.batch)
    schedule = max(n_examples // args.batch * args.epochs, 1)
    model.train()
    step, began, window = 0, time.time(), 0.0
    for epoch in range(args.epochs):
        order = epoch_order(SEED, epoch, n)
        for first in range(0, n, args.batch):
            step += 1
            batch = [features[i] for i in order[first:first + args.batch]]
            batch.sort(key=lambda f: len(f["ids"]))
            for i in range(0, len(batch), 4):
                part = batch[i:i + 4]
                inputs = tensors_of(part)
                mask = inputs["attention_mask"]
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
                    out = model(**inputs)
                spans = torch.tensor([f["span"] for f in part])
                loss = (span_loss(out.start_logits, mask, spans[:, 0]) + span_loss(out.end_logits, mask, spans[:, 1])) / 2
                loss = loss / len(batch)
                loss.backward()
                window += loss.item()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            x = min(step, schedule) / schedule
            rate = args.rate * (x / 0.1 if x < 0.1 else max((x - 1) / (0.1 - 1), 0))
            with torch.no_grad():
                for p, (m, v) in zip(parameters, moments):
                    m.lerp_(p.grad, 0.1)
                    v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                    p.addcdiv_(m, v.sqrt().add_(1e-6), value=-rate)
                    p.grad = None
            if step % 50 == 0:
                print(f"step {step}/{per_epoch * args.epochs} loss {window / 50:.4f} {time.time() - began:.0f} s", flush=True)
                window = 0.0


def predict(model, features, args):
    """The best span of each question over its windows, scored where its tokens have the most context."""
    best = {}
    model.eval()
    by_length = sorted(features, key=lambda f: len(f["ids"]))
    for i in range(0, len(by_length), 8):
        part = by_length[i:i + 8]
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            out = model(**tensors_of(part))
        for f, starts, ends in zip(part, out.start_logits.float(), out.end_logits.float()):
            a, b = starts[f["head"]:f["head"] + f["n"]], ends[f["head"]:f["head"] + f["n"]]
            scores = (a[:, None] + b[None, :]).triu().tril(ANSWER - 1)
            scores[torch.ones_like(scores).triu().tril(ANSWER - 1) == 0] = -1e9
            score, at = scores.flatten().max(0)
            s, e = divmod(at.item(), f["n"])
            if score.item() > best.get(f["qid"], (-1e30,))[0]:
                text = f["context"][f["places"][f["begin"] + s][0]:f["places"][f["begin"] + e][1]]
                best[f["qid"]] = (score.item(), text)
        if i % 1600 == 0:
            print(f"answered {i}/{len(by_length)}", flush=True)
    return {qid: text for qid, (_, text) in best.items()}


def main():
    p = argparse.ArgumentParser()
    for name in ("model", "train", "dev", "predictions"):
        p.add_argument(name)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--rate", type=float, default=1e-4)
    p.add_argument("--bf16", action="store_true")
    args = p.parse_args()
    torch.manual_seed(SEED)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = BertForQuestionAnswering.from_pretrained(args.model)
    features = features_of(args.train, tokenizer)
    n_examples = len({f["qid"] for f in features})
    print(n_examples, "questions,", len(features), "features, dropout", model.config.hidden_dropout_prob, flush=True)
    train(model, features, n_examples, args)
    predictions = predict(model, features_of(args.dev, tokenizer), args)
    json.dump(predictions, open(args.predictions, "w", encoding="utf-8"), ensure_ascii=False)


main()
