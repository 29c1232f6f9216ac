#!/usr/bin/env python3
"""Texts per second of libraries that make vectors of texts in Python: kiln and its peers, each as its users call it, with all texts at once.

usage: python_vectors.py PEER MODEL_DIR TEXTS OUT.npy   PEER is kiln, sentence_transformers, onnxruntime or fastembed; TEXTS a file of lines;
                                                        MODEL_DIR has model.onnx, too, for the last two"""
import importlib
import os
import sys
import time

import numpy as np

ROUNDS = 3  # of which the fastest counts


def of_kiln(path):
    return importlib.import_module("kiln").SentenceTransformer(path).encode


def of_sentence_transformers(path):
    return importlib.import_module("sentence_transformers").SentenceTransformer(path, device="cpu").encode


def of_onnxruntime(path):
    """Texts sorted by length, batches of 32 padded to their longest: as sentence-transformers does it, without PyTorch."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    threads = onnxruntime.SessionOptions()
    threads.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = onnxruntime.InferenceSession(os.path.join(path, "model.onnx"), threads, providers=["CPUExecutionProvider"])

    def encode(texts):
        order = np.argsort([-len(t) for t in texts])
        vectors = np.zeros((len(texts), 384), np.float32)
        for at in range(0, len(texts), 32):
            batch = tokenizer.encode_batch([texts[i] for i in order[at:at + 32]])
            ids, mask = np.array([b.ids for b in batch]), np.array([b.attention_mask for b in batch])
            (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[:1]
            pooled = (hidden * mask[:, :, None]).sum(1)
            vectors[order[at:at + 32]] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors

    return encode


def of_fastembed(path):
    model = importlib.import_module("fastembed").TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=path,
                                                              threads=int(os.environ["OMP_NUM_THREADS"]))
    return lambda texts: np.array(list(model.embed(texts)))


def main(peer, path, texts, out):
    with open(texts, encoding="utf-8") as f:
        texts = f.read().splitlines()
    encode = globals()[f"of_{peer}"](path)
    encode(texts[:32])  # warms up
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        vectors = encode(texts)
        seconds.append(time.perf_counter() - start)
    np.save(out, vectors)
    print(len(texts) / min(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:5])
