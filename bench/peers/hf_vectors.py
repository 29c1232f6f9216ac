#!/usr/bin/env python3
"""Texts per second of transformers and onnxruntime as peers of `kiln embed`, as sentence-transformers does it: texts sorted by length,
batches of 32 padded to their longest, the normalised mean over all tokens; and the model that all read.

usage: hf_vectors.py make SHAPE MODEL_DIR TEXT    a random model of the shape of BERT-base, XLM-R-base or ModernBERT-base, with a
                                                  tokenizer of its kind that was trained on TEXT
       hf_vectors.py onnx MODEL_DIR               writes MODEL_DIR/onnx/model.onnx
       hf_vectors.py transformers|onnxruntime MODEL_DIR TEXT N DTYPE   of the first N lines
"""
import os
import sys
import time

BATCH, WORDS = 32, 8192


def trained(model, trainer, text, normalizer, pre_tokenizer, frame):
    """A tokenizer with two special tokens around a text."""
    from tokenizers import Tokenizer, processors

    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.train([text], trainer)
    ends = [(token, tokenizer.token_to_id(token)) for token in frame]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{frame[0]} $A {frame[1]}", pair=f"{frame[0]} $A {frame[1]} $B {frame[1]}", special_tokens=ends
    )
    return tokenizer


def tokenizer_of(shape, text):
    from tokenizers import models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if shape == "xlm-roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special))
        trainer = trainers.UnigramTrainer(vocab_size=WORDS, special_tokens=special, unk_token="<unk>", show_progress=False)
        made = trained(models.Unigram(), trainer, text, None, pre_tokenizers.Metaspace(), ("<s>", "</s>"))
        return PreTrainedTokenizerFast(tokenizer_object=made, **names)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special))
    settings = dict(vocab_size=WORDS, special_tokens=special, show_progress=False)
    if shape == "modernbert":
        split = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **settings)
        made = trained(models.BPE(), trainer, text, normalizers.NFC(), split, ("[CLS]", "[SEP]"))
    else:
        trainer = trainers.WordPieceTrainer(**settings)
        made = trained(models.WordPiece(unk_token="[UNK]"), trainer, text, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), ("[CLS]", "[SEP]"))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def config_of(shape, tokenizer):
    from transformers import BertConfig, ModernBertConfig, XLMRobertaConfig

    if shape == "bert":
        return BertConfig(vocab_size=len(tokenizer))
    if shape == "modernbert":
        return ModernBertConfig(vocab_size=50368, **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep")})
    return XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)


def make(shape, model_dir, text):
    import torch
    from transformers import AutoModel

    torch.manual_seed(0)
    tokenizer = tokenizer_of(shape, text)
    AutoModel.from_config(config_of(shape, tokenizer)).save_pretrained(model_dir)
    tokenizer.save_pretrained(model_dir)


def load(model_dir, dtype="fp32"):
    import torch
    from transformers import AutoModel, PreTrainedTokenizerFast

    model = AutoModel.from_pretrained(model_dir).eval().to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    return PreTrainedTokenizerFast.from_pretrained(model_dir), model


def export(model_dir):
    import torch

    tokenizer, model = load(model_dir)
    batch = tokenizer(["a text", "another text that is longer"], padding=True, return_tensors="pt")
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=512)}
    os.makedirs(f"{model_dir}/onnx", exist_ok=True)
    torch.onnx.export(
        model,
        kwargs={"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]},
        f=f"{model_dir}/onnx/model.onnx",
        input_names=["input_ids", "attention_mask"],
        output_names=["hidden"],
        dynamic_shapes={"input_ids": sizes, "attention_mask": sizes},
        dynamo=True,
    )


def runner(engine, model_dir, dtype):
    """The tokenizer, and a function from a batch to its hidden states [B, S, H]."""
    import torch

    tokenizer, model = load(model_dir, dtype)
    if engine == "transformers":
        return tokenizer, lambda batch: model(**batch).last_hidden_state.float()
    import onnxruntime

    session = onnxruntime.InferenceSession(f"{model_dir}/onnx/model.onnx", providers=["CPUExecutionProvider"])
    return tokenizer, lambda batch: torch.from_numpy(session.run(None, {name: t.numpy() for name, t in batch.items()})[0])


def vectors(tokenizer, run, texts):
    import torch

    texts = sorted(texts, key=len)
    for at in range(0, len(texts), BATCH):
        batch = tokenizer(texts[at : at + BATCH], padding=True, truncation=True, max_length=512, return_tensors="pt")
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        hidden = run(batch)
        kept = batch["attention_mask"].unsqueeze(-1)
        torch.nn.functional.normalize((hidden * kept).sum(1) / kept.sum(1))


def main(engine, model_dir, path, n, dtype):
    import torch

    tokenizer, run = runner(engine, model_dir, dtype)
    with open(path, encoding="utf-8") as f:
        texts = [f.readline().rstrip("\n") for _ in range(int(n))]
    with torch.inference_mode():
        vectors(tokenizer, run, texts[:BATCH])  # warms up
        start = time.perf_counter()
        vectors(tokenizer, run, texts)
        print(len(texts) / (time.perf_counter() - start))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:5])
    elif sys.argv[1] == "onnx":
        export(sys.argv[2])
    else:
        main(*sys.argv[1:6])
