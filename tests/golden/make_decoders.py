#!/usr/bin/env python3
"""Makes tests/golden/decoders.safetensors: directories of small GPT-2, BLOOM and Llama models as `transformers` writes them, and what it computes.

The tensor "CASE/FILE" (U8) is a file of a directory; "ids" and "lengths" are the batch; "CASE:mlm" are the logits of its tokens, "CASE:loss" the
mean loss of the next token, and "CASE:grad:NAME" gradients of it, under the names of `transformers`, all computed in float64; "CASE:greedy" and
"CASE:penalized" are ids that `generate` puts behind the first ten of the second sequence.  "text" (U8) is a text of more tokens than a model has
positions, "windows" [n, 2] are contexts and strides to read it in, and "CASE:nats" [n] the mean of -log p of its tokens then.
Cases: gpt2 (tanh GELU), gpt2_exact (erf GELU, whole files without the prefix "transformer.", as the published GPT-2), bloom (six heads: not a
power of two), bloom_half (its weights in bfloat16, in shards), llama (heads that share keys and values, a decoder of its own, Llama 3's scaling of
rotary positions), mistral (heads of another size than hidden / heads; in shards), qwen2 (biases of query, key and value, tied embeddings), mistral_window (a
token sees five keys), qwen3 (a norm of each head's queries and keys; tied), olmo2 (norms of all of them, and of what the sublayers add),
smollm3 (the fourth of five layers has no positions), phi3 (query, key and value in
one tensor, and so gate and up; a window), pythia (GPT-NeoX: parallel sublayers, of a head's eight columns two turn), neox (the same in series,
with the tanh GELU and tied embeddings, in files that transformers 4 wrote).

Run: python make_decoders.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5)
"""
import json
import pathlib
import tempfile

import torch
from safetensors.torch import save_file
from small_models import file_tensors
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import BloomConfig, BloomForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers import Olmo2Config, Olmo2ForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Phi3Config, Phi3ForCausalLM, SmolLM3Config, SmolLM3ForCausalLM

LENGTHS, S, V = [9, 24, 5], 24, 263
TEXT = "In the beginning and the end: the hand, and 1,234 \u00e9t\u00e9s of the sea.\n\nThen the tenth."
WINDOWS = [(24, 24), (24, 8), (10, 3), (7, 7)]
torch.manual_seed(5)


def write_tokenizer(directory, end):
    """Byte-level BPE of all bytes, five merges and the end of a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "n"), ("an", "d")]
    pieces = alphabet + ["".join(m) for m in merges] + [end]
    tokenizer = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([end])
    tokenizer.save(str(directory / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == V - 1  # one row of the table is no piece


def randomized(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            is_norm = any(part in name for part in ("ln_", "norm")) and name.endswith("weight")
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if is_norm else 0.0))
    return model.eval()


def make_gpt2(activation):
    return randomized(GPT2LMHeadModel(GPT2Config(vocab_size=V, n_positions=S, n_embd=24, n_layer=3, n_head=3, resid_pdrop=0.0, embd_pdrop=0.0,
                                                 attn_pdrop=0.0, activation_function=activation, attn_implementation="eager")))


def make_bloom(dtype=torch.float32):
    model = BloomForCausalLM(BloomConfig(vocab_size=V, hidden_size=24, n_layer=2, n_head=6, hidden_dropout=0.0, attention_dropout=0.0,
                                         attn_implementation="eager"))
    return randomized(model).to(dtype)


def make_llama(kind, config, seed=None, **more):
    if seed is not None:
        torch.manual_seed(seed)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "max_position_embeddings": S}
    return randomized(kind(config(vocab_size=V, attn_implementation="eager", **(sizes | more))))


def make_llamas():
    scaling = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 12}
    return {"llama": make_llama(LlamaForCausalLM, LlamaConfig, num_attention_heads=6, num_key_value_heads=2, rope_theta=500.0,
                                rope_parameters=scaling | {"rope_theta": 500.0}),
            "mistral": make_llama(MistralForCausalLM, MistralConfig, num_attention_heads=4, num_key_value_heads=1, head_dim=8, sliding_window=None),
            "qwen2": make_llama(Qwen2ForCausalLM, Qwen2Config, num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True),
            "mistral_window": make_llama(MistralForCausalLM, MistralConfig, num_attention_heads=4, num_key_value_heads=2, sliding_window=5),
            "qwen3": make_llama(Qwen3ForCausalLM, Qwen3Config, num_attention_heads=4, num_key_value_heads=2, head_dim=10, tie_word_embeddings=True),
            "olmo2": make_llama(Olmo2ForCausalLM, Olmo2Config, num_attention_heads=4, num_key_value_heads=2),
            "smollm3": make_llama(SmolLM3ForCausalLM, SmolLM3Config, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2,
                                  rope_parameters={"rope_type": "default", "rope_theta": 500.0}, pad_token_id=None, seed=6),
            "phi3": make_llama(Phi3ForCausalLM, Phi3Config, num_attention_heads=4, num_key_value_heads=2, sliding_window=7, pad_token_id=None, seed=9)}


def make_neoxes():
    return {"pythia": make_llama(GPTNeoXForCausalLM, GPTNeoXConfig, seed=7, num_attention_heads=3),
            "neox": make_llama(GPTNeoXForCausalLM, GPTNeoXConfig, seed=8, num_attention_heads=2, hidden_act="gelu_fast", use_parallel_residual=False,
                               tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5})}


def as_of_transformers_4(directory):
    """Keys of config.json, and constants among the weights, as Pythia's published files have them."""
    from safetensors.torch import load_file
    path = directory / "config.json"
    config = json.loads(path.read_text())
    rotary = config.pop("rope_parameters")
    config |= {"rotary_emb_base": rotary["rope_theta"], "rotary_pct": rotary["partial_rotary_factor"]}
    path.write_text(json.dumps(config, indent=2))
    constants = {"bias": torch.ones(1, 1, S, S, dtype=torch.bool), "masked_bias": torch.tensor(-1e9), "rotary_emb.inv_freq": torch.ones(3)}
    tensors = load_file(directory / "model.safetensors") | {f"gpt_neox.layers.0.attention.{k}": v for k, v in constants.items()}
    save_file(tensors, directory / "model.safetensors")


def next_token_loss(logits, ids):
    """Without the row that is no piece: kiln keeps such rows out of the softmax."""
    return torch.nn.functional.cross_entropy(logits[:-1, : V - 1], ids[1:], reduction="sum")


def outputs(model, ids):
    """Sequence by sequence, so that nothing is padded."""
    model = model.double()
    rows, total = [], 0
    for i, n in enumerate(LENGTHS):
        logits = model(ids[i : i + 1, :n]).logits[0]
        rows.append(logits.detach())
        total = total + next_token_loss(logits, ids[i, :n])
    loss = total / (sum(LENGTHS) - len(LENGTHS))
    loss.backward()
    found = {"mlm": torch.cat(rows), "loss": loss.detach().reshape(1)}
    return found | {f"grad:{k}": p.grad for k, p in model.named_parameters() if p.grad is not None}


def continuations(model, ids):
    """What follows the first ten tokens of the second sequence: greedily, and with a penalty for what was there."""
    prompt = ids[1:2, :10]
    kinds = {"greedy": 1.0, "penalized": 1.5}
    return {k: model.generate(prompt, do_sample=False, max_new_tokens=12, min_new_tokens=12, repetition_penalty=p, pad_token_id=0,
                              suppress_tokens=[V - 1])[0, 10:].to(torch.int32) for k, p in kinds.items()}


def nats(model, ids, context, stride):
    """The mean of -log p of all tokens but the first, each in the first window of `context` inputs that predicts it."""
    total, seen = 0.0, 1
    for begin in range(0, len(ids), stride):
        window = ids[begin : begin + context + 1]
        log_p = model(window[None, :-1]).logits[0, :, : V - 1].log_softmax(-1)
        new = slice(seen - 1 - begin, None)
        total -= log_p.gather(1, window[1:, None])[new].sum().item()
        seen = begin + len(window)
        if seen == len(ids):
            return total / (len(ids) - 1)


def all_nats(model, directory):
    ids = torch.tensor(Tokenizer.from_file(str(directory / "tokenizer.json")).encode(TEXT).ids)
    assert len(ids) > 2 * S
    with torch.no_grad():
        return torch.tensor([nats(model, ids, *w) for w in WINDOWS], dtype=torch.float64)


def without_prefix(directory):
    from safetensors.torch import load_file
    tensors = load_file(directory / "model.safetensors")
    save_file({k.removeprefix("transformer."): t for k, t in tensors.items()} | {"h.0.attn.bias": torch.ones(1, 1, S, S)},
              directory / "model.safetensors")


def main():
    ids = torch.randint(0, V - 1, (len(LENGTHS), S))
    tensors = {"ids": ids.to(torch.int32), "types": torch.zeros(len(LENGTHS), S, dtype=torch.int32),
               "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
               "text": torch.tensor(list(TEXT.encode()), dtype=torch.uint8), "windows": torch.tensor(WINDOWS, dtype=torch.int32)}
    cases = {"gpt2": make_gpt2("gelu_new"), "gpt2_exact": make_gpt2("gelu"), "bloom": make_bloom(), "bloom_half": make_bloom(torch.bfloat16)} | make_llamas() | make_neoxes()
    trained = ("gpt2", "bloom", "llama", "qwen2", "mistral_window", "qwen3", "olmo2", "smollm3", "phi3", "pythia")
    for name, model in cases.items():
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            model.save_pretrained(directory, **({"max_shard_size": "20KB"} if name in ("bloom_half", "mistral") else {}))
            write_tokenizer(directory, "</s>" if name.startswith("bloom") else "<|endoftext|>")
            if name == "gpt2_exact":
                without_prefix(directory)
            if name == "neox":
                as_of_transformers_4(directory)
            tensors |= file_tensors(name, directory)
            if name in trained:
                tensors[f"{name}:nats"] = all_nats(model.double(), directory)
        keep = {k: v for k, v in outputs(model, ids).items() if not k.startswith("grad:") or name in trained}
        tensors |= {f"{name}:{k}": v.float().contiguous() for k, v in keep.items()}
        if name in trained:
            tensors |= {f"{name}:{k}": v.contiguous() for k, v in continuations(model, ids).items()}
    save_file(tensors, pathlib.Path(__file__).with_name("decoders.safetensors"))


if __name__ == "__main__":
    main()
