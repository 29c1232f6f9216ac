#!/usr/bin/env python3
"""Makes tests/golden/decoder_files.safetensors: small decoders in the files of Megatron-DeepSpeed, beside the same in Hugging Face's.

The tensor "CASE/FILE" (U8) is a file.  gpt2 and bloom are directories that `transformers` wrote: two layers, four heads, an exact GELU as [G] trains it,
rows without a piece.  The others are written here as their programs write them, and hold the same weights:
  gpt2_tp2          global_step7 of microsoft/Megatron-DeepSpeed ("attention."), two ranks of tensor parallelism, fp32, with a padded table of words;
                    the second rank's copies of layer 1's input norm are 0.25 larger than the first's
  bloom_tp4         global_step7 of bigscience's ("self_attention.", word_embeddings.norm), four ranks, bfloat16
  universal         zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt of bigscience's, of gpt2
  shards            global_step7 with the fp32 of gpt2 in the bf16_zero_pp_rank_D files of twelve ranks of data parallelism
config.json and tokenizer.json lie beside all of them.

Run: python make_decoder_files.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5)
"""
import pathlib
import tempfile

import torch
from make_decoders import randomized, write_tokenizer
from safetensors.torch import save_file
from small_models import file_tensors
from transformers import BloomConfig, BloomForCausalLM, GPT2Config, GPT2LMHeadModel

H, N, L, P, V, PIECES, STEP = 16, 4, 2, 12, 264, 262, 7


def make_gpt2(hidden=H, heads=N):
    return randomized(GPT2LMHeadModel(GPT2Config(vocab_size=V, n_positions=P, n_embd=hidden, n_layer=L, n_head=heads, activation_function="gelu")))


def make_bloom():
    return randomized(BloomForCausalLM(BloomConfig(vocab_size=V, hidden_size=H, n_layer=L, n_head=N))).to(torch.bfloat16)


def by_head(qkv, heads):
    """Rows that are all of the query, then key, then value become those of a head after those of another."""
    return qkv.reshape(3, heads, -1, *qkv.shape[1:]).transpose(0, 1).reshape(qkv.shape)


def padded(ranks):
    """Rows of Megatron's table of words."""
    return -(-PIECES // (128 * ranks)) * 128 * ranks


def megatron_of_gpt2(model, ranks=2):
    """The tensors of each module of the pipeline, matrices [out, in]."""
    t, modules, heads = model.transformer, {}, model.config.n_head
    words = torch.cat([t.wte.weight, t.wte.weight[-1:].expand(padded(ranks) - V, -1)])
    modules[1] = {"word_embeddings.weight": words, "position_embeddings.weight": t.wpe.weight}
    for i, b in enumerate(t.h):
        modules[i + 3] = {
            "input_layernorm.weight": b.ln_1.weight, "input_layernorm.bias": b.ln_1.bias,
            "attention.query_key_value.weight": by_head(b.attn.c_attn.weight.T, heads), "attention.query_key_value.bias": by_head(b.attn.c_attn.bias, heads),
            "attention.dense.weight": b.attn.c_proj.weight.T, "attention.dense.bias": b.attn.c_proj.bias,
            "post_attention_layernorm.weight": b.ln_2.weight, "post_attention_layernorm.bias": b.ln_2.bias,
            "mlp.dense_h_to_4h.weight": b.mlp.c_fc.weight.T, "mlp.dense_h_to_4h.bias": b.mlp.c_fc.bias,
            "mlp.dense_4h_to_h.weight": b.mlp.c_proj.weight.T, "mlp.dense_4h_to_h.bias": b.mlp.c_proj.bias}
    modules[L + 4] = {"weight": t.ln_f.weight, "bias": t.ln_f.bias}
    return modules


def megatron_of_bloom(model):
    t, modules = model.transformer, {}
    words = torch.cat([t.word_embeddings.weight, t.word_embeddings.weight[-1:].expand(padded(4) - V, H)])
    modules[1] = {"word_embeddings.weight": words, "word_embeddings.norm.weight": t.word_embeddings_layernorm.weight,
                  "word_embeddings.norm.bias": t.word_embeddings_layernorm.bias}
    for i, b in enumerate(t.h):
        modules[i + 3] = dict(b.named_parameters())
    modules[L + 4] = {"weight": t.ln_f.weight, "bias": t.ln_f.bias}
    return modules


BY_ROW = ("word_embeddings.weight", "query_key_value.weight", "query_key_value.bias", "dense_h_to_4h.weight", "dense_h_to_4h.bias")
BY_COL = ("attention.dense.weight", "dense_4h_to_h.weight")


def part(name, tensor, rank, ranks):
    dim = 0 if name.endswith(BY_ROW) else 1 if name.endswith(BY_COL) else None
    return (tensor if dim is None else tensor.chunk(ranks, dim)[rank]).detach().clone(memory_format=torch.contiguous_format)


def write_layers(directory, modules, ranks, drift=False):
    folder = directory / f"global_step{STEP}"
    folder.mkdir()
    for number, module in modules.items():
        for rank in range(ranks):
            state = {name: part(name, t, rank, ranks) for name, t in module.items()}
            if drift and number == 4 and rank == 1:
                state["input_layernorm.weight"] += 0.25
            torch.save(state, folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
    (directory / "latest").write_text(f"global_step{STEP}")


def state_names(modules):
    """As the states of a pipeline name the tensors."""
    for number, module in modules.items():
        for name, t in module.items():
            yield (f"tied_modules.embed.{name}" if number == 1 else f"{number}.{name}"), t.detach()


def write_universal(directory, modules):
    for name, t in state_names(modules):
        folder = directory / "zero" / name
        folder.mkdir(parents=True)
        cat_dim = {} if not name.endswith(BY_ROW + BY_COL) else {"cat_dim": int(name.endswith(BY_COL))}
        if name.endswith("word_embeddings.weight"):
            cat_dim["vocab_divisibility_padding_tensor"] = t[-1].clone()
            t = t[:PIECES]
        for kept, value in (("fp32", t), ("exp_avg", t * 0.5), ("exp_avg_sq", t * t)):
            torch.save({"param": value.clone(memory_format=torch.contiguous_format), **cat_dim}, folder / f"{kept}.pt")


def write_shards(directory, modules, ranks):
    """BF16_Optimizer's files: one group, its flat buffer in equal parts, the padding behind its end."""
    folder = directory / f"global_step{STEP}"
    folder.mkdir()
    named = dict(state_names(modules))
    flat = torch.cat([t.reshape(-1) for t in named.values()])
    size = -(-flat.numel() // (2 * ranks)) * 2
    flat = torch.cat([flat, torch.zeros(size * ranks - flat.numel())])
    torch.save({"module": None, "param_shapes": [{k: t.shape for k, t in named.items()}], "dp_world_size": ranks, "mp_world_size": 1,
                "global_steps": STEP}, folder / "mp_rank_00_model_states.pt")
    for rank in range(ranks):
        own = flat[rank * size : (rank + 1) * size].clone()
        state = {"base_optimizer_state": {"state": {0: {"step": STEP, "exp_avg": own * 0.5, "exp_avg_sq": own * own}},
                                          "param_groups": [{"lr": 1e-4, "step": STEP, "params": [0]}]},
                 "single_partition_of_fp32_groups": [own], "zero_stage": 1, "partition_count": ranks, "clip_grad": 1.0,
                 "group_paddings": [0]}
        torch.save({"optimizer_state_dict": state}, folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    (directory / "latest").write_text(f"global_step{STEP}")


def main():
    torch.manual_seed(8)
    tensors, gpt2, bloom = {}, make_gpt2(), make_bloom()
    writers = {
        "gpt2": (gpt2, lambda d: None), "bloom": (bloom, lambda d: None),
        "gpt2_tp2": (gpt2, lambda d: write_layers(d, megatron_of_gpt2(gpt2), 2, drift=True)),
        "bloom_tp4": (bloom, lambda d: write_layers(d, megatron_of_bloom(bloom), 4)),
        "universal": (gpt2, lambda d: write_universal(d, megatron_of_gpt2(gpt2))),
        "shards": (gpt2, lambda d: write_shards(d, megatron_of_gpt2(gpt2), 12))}
    for name, (model, write) in writers.items():
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            model.config.vocab_size = V if name in ("gpt2", "bloom") else PIECES
            if name in ("gpt2", "bloom"):
                model.save_pretrained(directory)
            else:
                model.config.save_pretrained(directory)
            write_tokenizer(directory, "</s>" if model is bloom else "<|endoftext|>")
            write(directory)
            tensors |= file_tensors(name, directory)
    save_file(tensors, pathlib.Path(__file__).with_name("decoder_files.safetensors"))


if __name__ == "__main__":
    main()
