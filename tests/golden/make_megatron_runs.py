#!/usr/bin/env python3
"""Makes tests/golden/megatron_runs.safetensors: a run of a small GPT in the checkpoints of Megatron-DeepSpeed, with the state of its optimizer.

The tensor "CASE/FILE" (U8) is a file.  gpt2, gpt2_m and gpt2_v are directories that `transformers` wrote, of the weights, and of the moments as if they were weights.  The others
hold all three as their programs write them, after 7 steps of which one was skipped:
  grid       global_step7 of two ranks of tensor parallelism, two stages and two ranks of data parallelism: bfloat16 layer files, mp_rank_KK_model_states.pt, and
             BF16_Optimizer's bf16_zero_pp_rank_D_mp_rank_KK_optim_states.pt with groups of decayed and of other parameters
  universal  global_step7_universal of bigscience's: zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt, and mp_rank_00_model_states.pt; latest_universal names it
  shards     global_step7 of one rank with a whole model, in twelve ranks of data parallelism

Run: python make_megatron_runs.py   (needs torch, transformers, tokenizers, safetensors)
"""
import argparse
import copy
import pathlib
import tempfile

import torch
from make_decoder_files import BY_COL, BY_ROW, L, N, P, PIECES, STEP, V, make_gpt2, megatron_of_gpt2, padded, part
from make_decoders import write_tokenizer
from safetensors.torch import save_file
from small_models import file_tensors

H, UPDATES = 8, STEP - 1


def moments_of(model):
    """Two models of other numbers: the second moments are small and positive."""
    m, v = copy.deepcopy(model), copy.deepcopy(model)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn_like(p) * 1e-2)
        for p in v.parameters():
            p.copy_(torch.rand_like(p) * 1e-3)
    return m, v


def modules_of_rank(kept, rank, ranks, stage, stages):
    """The parameters of a rank of a mesh, under the names of its states: of the last stage with the embeddings that are tied."""
    per, named = L // stages, {}
    for number, module in kept.items():
        of = 0 if number == 1 else stages - 1 if number == L + 4 else (number - 3) // per
        for name, t in module.items():
            if of == stage:
                named[f"tied_modules.embed.{name}" if number == 1 else f"{number}.{name}"] = part(name, t, rank, ranks)
    if stages > 1 and stage == stages - 1:
        for name, t in kept[1].items():
            named[f"tied_modules.embed.{name}"] = part(name, t, rank, ranks)
    return named


def is_decayed(name):
    return "." in name.lstrip("0123456789.") and name.endswith("weight") and "layernorm" not in name


def states(ranks, stages, replicas, shapes):
    args = argparse.Namespace(num_layers=L, hidden_size=H, num_attention_heads=N, max_position_embeddings=P, padded_vocab_size=padded(ranks),
                              tensor_model_parallel_size=ranks, pipeline_model_parallel_size=stages, consumed_train_samples=STEP * 4, iteration=STEP)
    return {"module": None, "buffer_names": [], "optimizer": None, "param_shapes": shapes, "lr_scheduler": None, "sparse_tensor_module_names": set(),
            "skipped_steps": STEP - UPDATES, "global_steps": STEP, "global_samples": STEP * 4, "dp_world_size": replicas, "mp_world_size": ranks * stages, "ds_config": {},
            "ds_version": "0.9.4", "args": args, "checkpoint_version": 3.0, "iteration": STEP, "tokens": STEP * 4 * P}


def write_rank(folder, named, k, replicas, ranks, stages):
    """`named`: of weights and both moments, the parameters of one rank of a mesh."""
    groups = [[n for n in named[0] if is_decayed(n) == decayed] for decayed in (True, False)]
    torch.save(states(ranks, stages, replicas, [{n: named[0][n].shape for n in g} for g in groups]), folder / f"mp_rank_{k:02d}_model_states.pt")
    flat = []
    for g in groups:
        of_group = []
        for kept in named:
            x = torch.cat([kept[n].reshape(-1) for n in g]).float()
            size = -(-x.numel() // (2 * replicas)) * 2
            of_group.append(torch.cat([x, torch.zeros(size * replicas - x.numel())]).reshape(replicas, size))
        flat.append(of_group)
    for d in range(replicas):
        state = {i: {"step": UPDATES, "exp_avg": f[1][d].clone(), "exp_avg_sq": f[2][d].clone()} for i, f in enumerate(flat)}
        torch.save({"optimizer_state_dict": {
            "base_optimizer_state": {"state": state, "param_groups": [{"lr": 1e-4, "step": UPDATES, "params": [i]} for i in range(2)]},
            "single_partition_of_fp32_groups": [f[0][d].clone() for f in flat], "zero_stage": 1, "partition_count": replicas, "clip_grad": 1.0,
            "group_paddings": [0, 0]}}, folder / f"bf16_zero_pp_rank_{d}_mp_rank_{k:02d}_optim_states.pt")


def write_mesh(directory, kept, ranks, stages, replicas, layers):
    folder = directory / f"global_step{STEP}"
    folder.mkdir()
    for k in range(ranks * stages):
        write_rank(folder, [modules_of_rank(m, k % ranks, ranks, k // ranks, stages) for m in kept], k, replicas, ranks, stages)
    for number, module in kept[0].items() if layers else ():
        for rank in range(ranks):
            state = {name: part(name, t, rank, ranks).to(torch.bfloat16) for name, t in module.items()}
            torch.save(state, folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
    (directory / "latest").write_text(f"global_step{STEP}")


def write_universal(directory, kept):
    folder = directory / f"global_step{STEP}_universal"
    named = [modules_of_rank(m, 0, 1, 0, 1) for m in kept]
    for name in named[0]:
        (folder / "zero" / name).mkdir(parents=True)
        cat_dim = {} if not name.endswith(BY_ROW + BY_COL) else {"cat_dim": int(name.endswith(BY_COL))}
        for file, m in zip(("fp32", "exp_avg", "exp_avg_sq"), named):
            t, more = m[name], dict(cat_dim)
            if name.endswith("word_embeddings.weight"):
                more["vocab_divisibility_padding_tensor"] = t[-1].clone()
                t = t[:PIECES]
            torch.save({"param": t.clone(memory_format=torch.contiguous_format), **more}, folder / "zero" / name / f"{file}.pt")
    torch.save(states(1, 1, 3, [{n: t.shape for n, t in named[0].items()}]), folder / "mp_rank_00_model_states.pt")
    (directory / "latest_universal").write_text(folder.name)


def main():
    torch.manual_seed(9)
    tensors, gpt2 = {}, make_gpt2(H, N)
    m, v = moments_of(gpt2)
    of_two, of_one = ([{n: {k: t.detach() for k, t in module.items()} for n, module in megatron_of_gpt2(x, ranks).items()} for x in (gpt2, m, v)]
                      for ranks in (2, 1))
    writers = {
        "gpt2": (gpt2, None), "gpt2_m": (m, None), "gpt2_v": (v, None),
        "grid": (gpt2, lambda d: write_mesh(d, of_two, 2, 2, 2, True)),
        "universal": (gpt2, lambda d: write_universal(d, of_one)),
        "shards": (gpt2, lambda d: write_mesh(d, of_one, 1, 1, 12, False))}
    for name, (model, write) in writers.items():
        with tempfile.TemporaryDirectory() as d:
            directory = pathlib.Path(d)
            model.config.vocab_size = V
            if write is None:
                model.save_pretrained(directory)
                write_tokenizer(directory, "<|endoftext|>")
            else:
                write(directory)
            tensors |= file_tensors(name, directory)
    save_file(tensors, pathlib.Path(__file__).with_name("megatron_runs.safetensors"))


if __name__ == "__main__":
    main()
