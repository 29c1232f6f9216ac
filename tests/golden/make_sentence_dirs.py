#!/usr/bin/env python3
"""Makes tests/golden/sentence_dirs.safetensors: model directories as sentence-transformers writes them, in the spelling of
its newest version and of the old ones, and the vectors that it makes with them.

One file holds them all: the tensor "CASE/FILE" (U8) is a file of a directory, "CASE:vectors" (F64) are the vectors of the
texts, "CASE:NAME" those with the prompt of that name, "texts" (U8) the texts, each with a NUL behind it.

Run: python make_sentence_dirs.py   (needs torch, transformers, sentence-transformers, safetensors; made with 2.15, 5.23, 6.2)
"""
import json
import os
import pathlib
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Dropout, Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

torch.manual_seed(9)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ":", ","] + list("abcdefghijklmno\u00e9") + ["##" + c for c in "abcdefghijklmno\u00e9"]
WIDTH, POSITIONS = 16, 40
TEXTS = ["a mad dog", "", "A man and a dog, in a big cage", "CAF\u00c9 \u00c9 ice", "a", "a big dog, " * 3, "ice cab food " * 40]


def save_bert(directory, lower_case):
    config = BertConfig(vocab_size=len(PIECES), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=20, max_position_embeddings=POSITIONS)
    model = BertModel(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.3 + (1.0 if "LayerNorm.weight" in name else 0.0))
    model.save_pretrained(directory)
    BertTokenizer(vocab={p: i for i, p in enumerate(PIECES)}, do_lower_case=lower_case,
                  model_max_length=POSITIONS).save_pretrained(directory)


def rewrite(directory, name, change):
    path = directory / name
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content) or content, indent=2))


def spell_old(directory, max_seq_length):
    """What versions up to 5.1 write: a flag for each mode, classes in models, no config of Normalize, the length here."""
    def modules(m):
        for x in m:
            x["type"] = "sentence_transformers.models." + x["type"].split(".")[-1]
    def pooling(c):
        flags = {f"pooling_mode_{k}": c["pooling_mode"] == v for k, v in
                 [("cls_token", "cls"), ("mean_tokens", "mean"), ("max_tokens", "max"),
                  ("mean_sqrt_len_tokens", "mean_sqrt_len_tokens")]}
        return {"word_embedding_dimension": c["embedding_dimension"]} | flags
    rewrite(directory, "modules.json", modules)
    rewrite(directory, "1_Pooling/config.json", pooling)
    rewrite(directory, "sentence_bert_config.json", lambda c: {"max_seq_length": max_seq_length, "do_lower_case": False})
    for normalize in directory.glob("*_Normalize/config.json"):
        normalize.unlink()


def cases(bert):
    """Name, modules, what the model is made with, the case of the tokenizer, the old length, names of prompts to use."""
    torch.manual_seed(10)
    residual = Dense(3 * WIDTH, 5, bias=False, activation_function=torch.nn.Identity(), use_residual=True)
    prompts = {"query": "big: ", "passage": "cab "}
    return [
        ("mean", [Pooling(WIDTH, "mean"), Normalize()], {}, True, 12, []),
        ("cls", [Pooling(WIDTH, "cls"), Normalize()], {"prompts": {"query": "a man: "}}, True, 30, ["query"]),
        ("max", [Pooling(WIDTH, "max")], {}, True, None, []),
        ("prompts", [Pooling(WIDTH, "mean", include_prompt=False), Normalize()],
         {"prompts": prompts, "default_prompt_name": "query"}, True, None, ["passage"]),
        ("dense", [Pooling(WIDTH, "cls"), Dense(WIDTH, 6), Normalize()], {}, True, 40, []),
        ("many", [Pooling(WIDTH, ["weightedmean", "lasttoken", "mean_sqrt_len_tokens"], include_prompt=False),
                  Dropout(0.5), residual], {"prompts": prompts}, False, None, ["query"]),
    ]


def main():
    tensors = {"texts": torch.frombuffer(bytearray(b"".join(t.encode() + b"\0" for t in TEXTS)), dtype=torch.uint8)}
    for name, modules, options, lower_case, old_length, used in cases(None):
        with tempfile.TemporaryDirectory() as d:
            directory, bert = pathlib.Path(d) / "model", pathlib.Path(d) / "bert"
            save_bert(bert, lower_case)
            SentenceTransformer(modules=[Transformer(str(bert)), *modules], device="cpu", **options).save(
                str(directory), create_model_card=False)
            if old_length:
                spell_old(directory, old_length)
            if not lower_case:
                rewrite(directory, "sentence_bert_config.json", lambda c: c | {"do_lower_case": True})
            loaded = SentenceTransformer(str(directory), device="cpu").eval().double()
            tensors[f"{name}:vectors"] = torch.tensor(loaded.encode(TEXTS, batch_size=3), dtype=torch.float64)
            for prompt in used:
                tensors[f"{name}:{prompt}"] = torch.tensor(loaded.encode(TEXTS, prompt_name=prompt), dtype=torch.float64)
            for f in sorted(directory.rglob("*")):
                if f.is_file():
                    content = bytearray(f.read_bytes())
                    tensors[f"{name}/{f.relative_to(directory)}"] = torch.frombuffer(content, dtype=torch.uint8)
    save_file(tensors, pathlib.Path(__file__).with_name("sentence_dirs.safetensors"))
    for key, t in tensors.items():
        print(f"{key:60} {str(t.dtype)[6:]:8} {list(t.shape)}")


main()
