#!/usr/bin/env python3
"""Tokens per second of prompts and of new tokens, greedy, of peers of `kiln generate`; and the model they read.

usage: generation.py make SHAPE MODEL_DIR TEXT PROMPTS       a random gpt2 of 124M or qwen2 of 0.5B beside vocab.json and merges.txt
       generation.py transformers MODEL_DIR PROMPTS DTYPE BATCH
       generation.py llama GGUF PROMPTS DTYPE BATCH
"""
import json
import os
import sys
import time

PROMPT, NEW, MOST = 128, 128, 8


def name_all_rows(model_dir, vocab_size):
    """A piece for each row of the model: GGUF has rows for pieces alone, and a peer would read fewer bytes a token."""
    paths = [os.path.join(model_dir, name) for name in ("vocab.json", "tokenizer.json")]
    vocab, tokenizer = (json.load(open(path, encoding="utf-8")) for path in paths)
    vocab.update((f"unused{i}", i) for i in range(len(vocab), vocab_size))
    tokenizer["model"]["vocab"] = vocab
    for path, content in zip(paths, (vocab, tokenizer)):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False)


def shape_of(name):
    """Configurations of GPT-2 124M and of Qwen2-0.5B, whose words are as many as its embeddings have rows."""
    from transformers import GPT2Config, Qwen2Config

    if name == "gpt2":
        return GPT2Config()
    sizes = dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2)
    return Qwen2Config(vocab_size=151936, tie_word_embeddings=True, rope_theta=1e6, bos_token_id=None, eos_token_id=None, **sizes)


def make(shape, model_dir, text, prompts):
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    config = shape_of(shape)
    AutoModelForCausalLM.from_config(config).save_pretrained(model_dir)
    name_all_rows(model_dir, config.vocab_size)
    tokenizer = Tokenizer.from_file(os.path.join(model_dir, "tokenizer.json"))
    with open(text, encoding="utf-8") as f:
        ids = tokenizer.encode(f.read(200000).replace("\n", " ")).ids
    with open(prompts, "w", encoding="utf-8") as f, open(prompts + ".json", "w", encoding="utf-8") as g:
        rows = [ids[i * PROMPT : (i + 1) * PROMPT] for i in range(MOST)]
        f.writelines(tokenizer.decode(row).strip() + "\n" for row in rows)
        json.dump(rows, g)


def report(prompt_s, all_s, batch):
    print(f"{batch * PROMPT / prompt_s:.2f} {batch * (NEW - 1) / (all_s - prompt_s):.2f}")


def transformers(model_dir, prompts, dtype, batch):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
    ids = torch.tensor(json.load(open(prompts + ".json", encoding="utf-8"))[:batch])
    seconds = {}
    for new in (1, 1, NEW):  # the first warms up
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0
            )
        seconds[new] = time.perf_counter() - start
    report(seconds[1], seconds[NEW], batch)


def llama(path, prompts, dtype, batch):
    import llama_cpp as c
    import numpy as np

    rows = json.load(open(prompts + ".json", encoding="utf-8"))[:batch]
    c.llama_backend_init()
    how = c.llama_model_default_params()
    how.use_extra_bufts = dtype != "int8"  # weights laid out for AMX: with q8_0 release 0.3.36 reads beyond them and dies
    model = c.llama_model_load_from_file(path.encode(), how)
    params = c.llama_context_default_params()
    params.n_ctx = batch * (PROMPT + NEW)
    params.n_batch = params.n_ubatch = max(512, batch * PROMPT)
    params.n_seq_max = batch
    params.n_threads = params.n_threads_batch = os.cpu_count()
    context = c.llama_init_from_model(model, params)
    n_vocab = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    room = c.llama_batch_init(batch * PROMPT, 0, batch)

    def run(tokens, first):  # a list for each sequence; the next token of each
        room.n_tokens, last = 0, []
        for s, own in enumerate(tokens):
            for i, token in enumerate(own):
                k = room.n_tokens
                room.token[k], room.pos[k], room.n_seq_id[k], room.seq_id[k][0] = token, first + i, 1, s
                room.logits[k] = i == len(own) - 1
                room.n_tokens += 1
            last.append(room.n_tokens - 1)
        assert c.llama_decode(context, room) == 0
        return [[int(np.ctypeslib.as_array(c.llama_get_logits_ith(context, k), (n_vocab,)).argmax())] for k in last]

    run([row[:2] for row in rows], 0)  # warms up
    c.llama_memory_clear(c.llama_get_memory(context), True)
    start = time.perf_counter()
    tokens = run(rows, 0)
    prompt_s = time.perf_counter() - start
    for i in range(NEW - 1):
        tokens = run(tokens, PROMPT + i)
    report(prompt_s, time.perf_counter() - start, batch)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:6])
    else:
        {"transformers": transformers, "llama": llama}[sys.argv[1]](*sys.argv[2:5], int(sys.argv[5]))
