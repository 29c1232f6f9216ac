#!/usr/bin/env python3
"""Makes tests/golden/gguf.safetensors: GGUF files of small models, written by the package `gguf` with the keys, the names and the orders of
llama.cpp's convert_hf_to_gguf.py (LlamaModel, Qwen2Model, Qwen3Model, Olmo2Model, SmolLM3Model, GPTNeoXModel), beside the directory of `transformers` that each was made of.

"CASE/model.gguf" and "CASE/hf/FILE" (U8) are files; "CASE:NAME" are the weights as the types of the file round them, under kiln's
names, which are those of `transformers` but for joined tensors; "CASE:greedy" (F64) are the ids that `transformers` puts behind PROMPT with these weights.
Cases: llama (SentencePiece's BPE with bytes, which is the only tokenizer in the file; heads that share keys, Llama 3's scaling as a tensor of
divisors, Q8_0, F16, BF16 and F32), qwen2 (byte-level BPE cut as Qwen 2's, tokens of a chat and its template, biases, tied embeddings), qwen3 (norms
of each head; tied), olmo2 (norms of all heads, and of what sublayers add), smollm3 (heads in pairs; the fourth of five layers has no positions; tied)
gpt_neox (query, key and value in one tensor, parallel sublayers, a part of a head that turns), phi3 (these in one tensor with
fewer heads of keys, gate and up in one; the window 0, which is none).

Run: python make_gguf.py   (needs torch, transformers, tokenizers, sentencepiece, safetensors, gguf)
"""
import io
import math
import pathlib
import tempfile

import gguf
import numpy as np
import sentencepiece
import torch
from safetensors.torch import save_file
from sentencepiece import sentencepiece_model_pb2
from small_models import file_tensors
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Phi3Config, Phi3ForCausalLM, SmolLM3Config, SmolLM3ForCausalLM
from transformers import LlamaConfig, LlamaForCausalLM, Olmo2Config, Olmo2ForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

TYPES = {"ffn_gate": gguf.GGMLQuantizationType.Q8_0, "ffn_up": gguf.GGMLQuantizationType.F16, "attn_v": gguf.GGMLQuantizationType.BF16}
WORDS = "the of and a to in is you that it he was for on are as with his they at be this have from one had by word".split()
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ARCHITECTURES = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
PROMPT = "the of and you"
SIZES = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 48}
torch.manual_seed(7)


def randomized(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if "norm" in name else 0.0))
    return model.eval()


def permute(weights, n_heads):
    """LlamaModel.permute: halves of a head become pairs."""
    return weights.reshape(n_heads, 2, weights.shape[0] // n_heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def divisors(c):
    """LlamaModel.generate_extra_tensors."""
    s, dim = c.rope_parameters, c.head_dim
    freqs = 1.0 / (s["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    low, high = s["original_max_position_embeddings"] / s["low_freq_factor"], s["original_max_position_embeddings"] / s["high_freq_factor"]
    factors = []
    for freq in freqs:
        wave = 2 * math.pi / freq
        smooth = (s["original_max_position_embeddings"] / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
        factors.append(1 if wave < high else s["factor"] if wave > low else 1 / ((1 - smooth) / s["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def name_of(name, architecture, n_layers):
    stem, end = name.rsplit(".", 1)
    return gguf.get_tensor_name_map(architecture, n_layers).get_name(stem) + "." + end


def parts_of_heads(values, n_heads):
    """GPTNeoXModel.modify_tensors: [N, 3, D] becomes [3, N, D]."""
    return values.reshape(n_heads, 3, -1, *values.shape[1:]).swapaxes(0, 1).reshape(values.shape)


def put_tensors(writer, model, permutes):
    """Writes the weights, and gives the model those that the types of the file leave."""
    c = model.config
    for name, p in model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        theirs, values = name_of(name, ARCHITECTURES[architecture_of(c)], c.num_hidden_layers), p.detach().float().numpy()
        heads = {"attn_q.": c.num_attention_heads, "attn_k.": getattr(c, "num_key_value_heads", 0)}
        values = parts_of_heads(values, c.num_attention_heads) if ".query_key_value." in name else values
        kind = next((t for part, t in TYPES.items() if part in theirs and values.ndim == 2), gguf.GGMLQuantizationType.F32)
        order = (lambda v: next((permute(v, h) for part, h in heads.items() if part in theirs and permutes), v))
        data = gguf.quantize(np.ascontiguousarray(order(values)), kind)
        writer.add_tensor(theirs, data, raw_dtype=kind)
        if kind != gguf.GGMLQuantizationType.F32:
            p.data.copy_(torch.from_numpy(gguf.dequantize(data, kind).reshape(values.shape)))


def architecture_of(c):
    return c.model_type.replace("_", "")


def put_neox_sizes(writer, c):
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_rope_dimension_count(int(c.rope_parameters["partial_rotary_factor"] * (c.hidden_size // c.num_attention_heads)))
    writer.add_head_count(c.num_attention_heads)
    writer.add_parallel_residual(c.use_parallel_residual)
    writer.add_layer_norm_eps(c.layer_norm_eps)


def put_sizes(writer, c):
    if c.model_type == "gpt_neox":
        put_neox_sizes(writer, c)
        return
    writer.add_block_count(c.num_hidden_layers)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_rope_freq_base(c.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_file_type(0)
    if c.model_type == "phi3":
        writer.add_rope_dimension_count(c.hidden_size // c.num_attention_heads)
        writer.add_sliding_window(c.sliding_window or 0)


def make_llama(directory):
    out = io.BytesIO()
    texts = [" ".join(WORDS[(i * k) % len(WORDS)] for i in range(30)) for k in range(1, 40)] + ["na\u00efve \u00e9t\u00e9, 1,234 caf\u00e9s"]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, model_type="bpe", vocab_size=330, byte_fallback=True,
                                             hard_vocab_limit=False, minloglevel=2, normalization_rule_name="identity",
                                             remove_extra_whitespaces=False)
    (directory / "tokenizer.model").write_bytes(out.getvalue())
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
            "rope_theta": 500000.0}
    model = randomized(LlamaForCausalLM(LlamaConfig(
        vocab_size=len(proto.pieces), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=48, rope_parameters=rope, attn_implementation="eager")))
    writer = gguf.GGUFWriter(directory / "model.gguf", "llama")
    put_sizes(writer, model.config)
    writer.add_vocab_size(model.config.vocab_size)
    writer.add_rope_dimension_count(model.config.head_dim)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([p.piece.encode() for p in proto.pieces])
    writer.add_token_scores([p.score for p in proto.pieces])
    writer.add_token_types([p.type for p in proto.pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_tensor("rope_freqs.weight", divisors(model.config))
    put_tensors(writer, model, True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    return writer, model, [1] + processor.encode(PROMPT)


def make_bytes(directory, kind, config, permutes=False, **more):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("a", "n"), ("an", "d"), ("\u0120", "a"), ("i", "n")]
    pieces = alphabet + ["".join(m) for m in merges]
    ends = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=merges))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(ends)
    t.save(str(directory / "tokenizer.json"))
    n = len(pieces) + len(ends)
    model = randomized(kind(config(
        vocab_size=n + 6, attn_implementation="eager", bos_token_id=None, eos_token_id=None, pad_token_id=None, **(SIZES | more))))
    writer = gguf.GGUFWriter(directory / "model.gguf", architecture_of(model.config))
    put_sizes(writer, model.config)
    if "head_dim" in more:
        writer.add_key_length(more["head_dim"])
        writer.add_value_length(more["head_dim"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([p.encode() for p in pieces + ends] + [f"[PAD{i}]".encode() for i in range(n, n + 6)])
    writer.add_token_types([1] * len(pieces) + [3] * len(ends) + [5] * 6)
    writer.add_token_merges([" ".join(m) for m in merges])
    writer.add_eos_token_id(n - 1)
    writer.add_pad_token_id(n - 3)
    writer.add_bos_token_id(n - 3)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT)
    put_tensors(writer, model, permutes)
    return writer, model, t.encode(PROMPT).ids


def of_kiln(model):
    """The weights under kiln's names."""
    for k, v in model.state_dict().items():
        if ".query_key_value." in k:
            parts = parts_of_heads(v.numpy(), model.config.num_attention_heads)
            parts = torch.from_numpy(np.ascontiguousarray(parts)).chunk(3)
            yield from ((k.replace("query_key_value", name), part) for name, part in zip(("query", "key", "value"), parts))
        elif ".qkv_proj." in k:
            d = model.config.hidden_size // model.config.num_attention_heads
            rows = [d * n for n in (model.config.num_attention_heads, model.config.num_key_value_heads, model.config.num_key_value_heads)]
            yield from ((k.replace("qkv", name), part) for name, part in zip("qkv", v.split(rows)))
        elif ".gate_up_proj." in k:
            yield from ((k.replace("gate_up", name), part) for name, part in zip(("gate", "up"), v.chunk(2)))
        elif "rotary" not in k and not (k == "lm_head.weight" and model.config.tie_word_embeddings):
            yield k.replace("lm_head", "embed_out") if model.config.model_type == "gpt_neox" else k, v


def main():
    tensors = {}
    cases = {"llama": make_llama,
             "qwen2": lambda d: make_bytes(d, Qwen2ForCausalLM, Qwen2Config, num_key_value_heads=2, tie_word_embeddings=True),
             "qwen3": lambda d: make_bytes(d, Qwen3ForCausalLM, Qwen3Config, num_key_value_heads=2, tie_word_embeddings=True, head_dim=16),
             "olmo2": lambda d: make_bytes(d, Olmo2ForCausalLM, Olmo2Config, num_key_value_heads=2),
             "smollm3": lambda d: make_bytes(d, SmolLM3ForCausalLM, SmolLM3Config, permutes=True, num_key_value_heads=2, num_hidden_layers=5),
             "gpt_neox": lambda d: make_bytes(d, GPTNeoXForCausalLM, GPTNeoXConfig),
             "phi3": lambda d: make_bytes(d, Phi3ForCausalLM, Phi3Config, num_key_value_heads=2)}
    for case, make in cases.items():
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            (directory / "hf").mkdir()
            writer, model, ids = make(directory)
            for name in ("tokenizer.model", "tokenizer.json"):
                if (directory / name).exists():
                    (directory / name).rename(directory / "hf" / name)
            model.config.save_pretrained(directory / "hf")
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            tensors |= file_tensors(case, directory)
            greedy = model.double().generate(torch.tensor([ids]), do_sample=False, max_new_tokens=12, min_new_tokens=12, pad_token_id=0)
            tensors[f"{case}:greedy"] = greedy[0, len(ids):].double()
            tensors |= {f"{case}:{k}": v.float().contiguous() for k, v in of_kiln(model)}
    save_file(tensors, pathlib.Path(__file__).with_name("gguf.safetensors"))


if __name__ == "__main__":
    main()
