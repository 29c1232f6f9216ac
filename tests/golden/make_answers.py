#!/usr/bin/env python3
"""Makes tests/golden/answers.safetensors: what PyTorch's AdamW makes of the small GPT-2 of decoders.safetensors in four steps on answers.

"answers/pairs.jsonl" and "answers/chats.jsonl" (U8) are examples, "answers/pairs_held.jsonl" and "answers/chats_held.jsonl" those held out,
"answers/chat_template.jinja" a template that marks what the assistant says, "answers/plain.jinja" the same without its marks.  A prompt and its completion are
encoded apart, the end of the text follows, and labels of the prompt are -100; of a chat, labels are those of transformers'
return_assistant_tokens_mask.  A step takes all examples; each loss is the mean over the tokens with a label.  "KIND_losses" [4] are those of the
steps, "KIND_nats" [2] those of what is held out before and after, in float64 from weights in float32; "KIND_counts" [3] examples, tokens, tokens with a loss.
Rate, clipping and decay are those of make_finetuned.py.

Run: python make_answers.py   (needs torch, transformers, jinja2, safetensors; made with torch 2.15 and transformers 5.24)
"""
import json
import pathlib
import tempfile

import torch
from safetensors.torch import load_file, save_file
from small_models import file_tensors
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

S, STEPS, RATE, DECAY = 24, 4, 1e-3, 0.01
HERE = pathlib.Path(__file__).resolve().parent
WORDS = "the hand and the sea of the end then an other path thins on land".split()
MARKED = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}a\n{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}"
    "{% else %}{{ message['role'][0] + '\n' + message['content'] + '\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}a\n{% endif %}"
)


def words(first, n):
    return " ".join(WORDS[(first + 3 * k + k * k) % len(WORDS)] for k in range(n))


def pair(i):
    return {"prompt": words(i, 1 + i % 3), "completion": " " + words(i + 5, 1 + i % 2)}


def chat(i):
    turns = [("user", words(i, 1)), ("assistant", words(i + 2, 1 + i % 2))]
    return {"messages": [{"role": r, "content": c} for r, c in (turns if i % 3 else turns + [("user", "on"), ("assistant", words(i, 1))])]}


def encode_pair(tokenizer, row):
    prompt, completion = tokenizer.encode(row["prompt"]), tokenizer.encode(row["completion"]) + [tokenizer.eos_token_id]
    return prompt + completion, [-100] * len(prompt) + completion


def encode_chat(tokenizer, row):
    made = tokenizer.apply_chat_template(row["messages"], chat_template=MARKED, return_dict=True, return_assistant_tokens_mask=True)
    return made["input_ids"], [i if m else -100 for i, m in zip(made["input_ids"], made["assistant_masks"])]


def loss_of(model, examples, pieces):
    losses = [
        torch.nn.functional.cross_entropy(model(torch.tensor([ids])).logits[0, :-1, :pieces], torch.tensor(labels[1:]), reduction="sum")
        for ids, labels in examples
    ]
    return sum(losses) / sum(label != -100 for _, labels in examples for label in labels[1:])


def train(directory, examples, held, pieces):
    model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").double().train()
    decayed, other = [[p for p in model.parameters() if (p.dim() > 1) == wide] for wide in (True, False)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": other, "weight_decay": 0.0}], lr=RATE, eps=1e-8)
    losses, nats = [], [loss_of(model, held, pieces).item()]
    for k in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - k / STEPS)
        loss = loss_of(model, examples, pieces)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, nats + [loss_of(model, held, pieces).item()]


def main():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for key, value in load_file(HERE / "decoders.safetensors").items():
            if key.startswith("gpt2/"):
                (root / key.split("/")[1]).write_bytes(value.numpy().tobytes())
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(root / "tokenizer.json"), eos_token="<|endoftext|>")
        texts = root / "texts"
        texts.mkdir()
        (texts / "chat_template.jinja").write_text(MARKED)
        (texts / "plain.jinja").write_text(MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", ""))
        tensors = {}
        for kind, make, encode in (("pairs", pair, encode_pair), ("chats", chat, encode_chat)):
            rows, held = [make(i) for i in range(12)], [make(i) for i in range(20, 25)]
            for file, data in ((kind, rows), (f"{kind}_held", held)):
                (texts / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
            examples = [encode(tokenizer, row) for row in rows]
            assert max(len(ids) for ids, _ in examples) <= S, max(len(ids) for ids, _ in examples)
            losses, nats = train(root, examples, [encode(tokenizer, row) for row in held], len(tokenizer))
            counts = [len(rows), sum(len(ids) for ids, _ in examples), sum(label != -100 for _, labels in examples for label in labels)]
            print(kind, counts, losses, nats)
            for key, value in (("losses", losses), ("nats", nats), ("counts", counts)):
                tensors[f"{kind}_{key}"] = torch.tensor(value, dtype=torch.float64)
        save_file(file_tensors("answers", texts) | tensors, HERE / "answers.safetensors")


main()
