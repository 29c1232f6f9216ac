#!/usr/bin/env python3
"""Makes tests/golden/resumed.safetensors: runs that other programs began, and what their next steps give.

The tensor "CASE/FILE" (U8) is a file.  "data" has a model's configuration, its vocabulary, and one batch as an HDF5 file, so
that every step trains on the same samples.  The other cases are output directories:

    lamb      ckpt_6.pt as NVIDIA's script saves it with apex's FusedLAMB, which counts its steps in the group
    masters   the same in fp16: weights in fp16, and in fp32 as "master params"; in the format before PyTorch 1.6
    adamw     ckpt_15.pt of phase 2, which began after step 10: torch's AdamW, which counts in tensors; "module." before names
    weights   ckpt_4.pt without an optimizer
    plain_1   a folder of DeepSpeed without ZeRO, fp32, AdamW
    bf16_2    ZeRO 1, 2 ranks, bf16 with gradients in fp32, which is another class of DeepSpeed (bf16_optimizer.py)
    zero1_2   a folder of DeepSpeed with ZeRO 1, 2 ranks, bf16, AdamW; written by DeepSpeed itself, with gloo
    zero2_4   ZeRO 2, 4 ranks, bf16, AdamW
    zero2_1   ZeRO 2, one rank, fp32, AdamW, tag "global_step3"; written with a dynamic loss scale
    old_zero  the state of zero1_2 as early releases laid it out: moments without padding, in a list, the shapes of one group in
              a dict alone, "zero_pp_rank_0_mp_rank_00optim_states.pt"
    objects   a ckpt_5.pt with everything in it that a script can save: arguments, a schedule, a DataLoader

"CASE.weight.NAME", "CASE.exp_avg.NAME" and "CASE.exp_avg_sq.NAME" are the state, "CASE.losses" of the next three steps, in
float64 from that state by the updates of parity_oracle.py, the learning rate by the poly schedule.  bad_* are to be refused.

Run: python make_resumed.py   (torch 2.15, transformers 5, deepspeed 0.19.8, h5py; needs no GPU)
"""
import argparse
import collections
import io
import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("DS_ACCELERATOR", "cpu")
import h5py
import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining

GOLDEN = pathlib.Path(__file__).parent / "resumed.safetensors"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [c for c in "abcdefghijklmnopqrstuvwxyz"] + ["##" + c for c in "abcdefghijklmnopqrstuvwxyz"] + list("0123456")
SIZES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "hidden_act": "gelu",
         "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 24, "type_vocab_size": 2,
         "initializer_range": 0.02, "vocab_size": len(PIECES)}
B, S, P, BASE, MAX_STEPS, WARMUP = 4, 24, 4, 3e-3, 40, 0.1
NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")


def batch():
    """Of one size, so that every rank can train on a part of it; ids without [PAD], whose row torch does not train."""
    g = torch.Generator().manual_seed(3)
    ids = torch.randint(5, len(PIECES), (B, S), generator=g)
    ids[:, 0], ids[:, S // 2], ids[:, -1] = 2, 3, 3
    types = (torch.arange(S) > S // 2).long().repeat(B, 1)
    labels = torch.full((B, S), -100)
    for i in range(B):
        for p in (3 + i, 9, 15, 18 + i):
            labels[i, p] = ids[i, p]
            ids[i, p] = 4
    return ids, types, labels, torch.tensor([0, 1, 1, 0])


class Model(BertForPreTraining):
    def forward(self, of):
        ids, types, labels, nsp = of
        return super().forward(input_ids=ids, token_type_ids=types, labels=labels, next_sentence_label=nsp).loss


def make_model(seed=5):
    torch.manual_seed(seed)
    model = Model(BertConfig(attn_implementation="eager", **SIZES))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.15 + (1.0 if "LayerNorm.weight" in name else 0.0))
    return model


def decays(name):
    return not any(part in name for part in NO_DECAY)


def groups(model):
    named = list(model.named_parameters())
    return [{"params": [p for n, p in named if decays(n)], "weight_decay": 0.01},
            {"params": [p for n, p in named if not decays(n)], "weight_decay": 0.0}]


def in_order(model):
    """The names of the parameters in the order of an optimizer's numbers."""
    names = [n for n, _ in model.named_parameters()]
    return [n for n in names if decays(n)] + [n for n in names if not decays(n)]


class Lamb(torch.optim.Optimizer):
    """As apex's FusedLAMB keeps its state: moments of each parameter, and the steps of the group."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr, "bias_correction": True, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01,
                                  "grad_averaging": True, "max_grad_norm": 1.0})

    @torch.no_grad()
    def step(self):
        norm = torch.sqrt(sum((p.grad ** 2).sum() for g in self.param_groups for p in g["params"]))
        for g in self.param_groups:
            t = g["step"] = g.get("step", 0) + 1
            for p in g["params"]:
                s = self.state[p]
                if not s:
                    s["exp_avg"], s["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                grad = p.grad / max(1.0, norm.item())
                m, v = s["exp_avg"].mul_(0.9).add_(grad, alpha=0.1), s["exp_avg_sq"].mul_(0.999).addcmul_(grad, grad, value=0.001)
                u = m / (1 - 0.9 ** t) / (torch.sqrt(v / (1 - 0.999 ** t)) + 1e-6) + g["weight_decay"] * p
                p.sub_(g["lr"] * (p.norm() / u.norm() if g["weight_decay"] else 1.0) * u)


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch()).backward()
        optimizer.step()


def rate(step):
    return BASE * step / MAX_STEPS / WARMUP if step / MAX_STEPS < WARMUP else BASE * (1 - step / MAX_STEPS) ** 0.5


def next_losses(kind, state, step, counted=None):
    """In float64, from the state by name: (weight, exp_avg, exp_avg_sq), after so many steps, and as many counted updates."""
    import parity_oracle as oracle

    model = make_model().double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(state[name][0])
    moments = {n: (s[1].double(), s[2].double()) for n, s in state.items()}
    losses, params = [], list(model.named_parameters())
    for k in range(step + 1, step + 4):
        model.zero_grad()
        loss = model(batch())
        loss.backward()
        losses.append(loss.item())
        oracle.LR = rate(k)
        with torch.no_grad():
            oracle.update(kind, params, moments, k - step + (step if counted is None else counted))
    torch.set_default_dtype(torch.float32)
    return torch.tensor(losses, dtype=torch.float64)


def scripts_names(state, prefix=""):
    """A state dict under the names of the scripts, whose decoder has no bias of its own."""
    out = collections.OrderedDict()
    for name, t in state.items():
        for part in ("intermediate.dense", "pooler.dense", "transform.dense"):
            name = name.replace(part, part + "_act")
        if name != "cls.predictions.decoder.bias" and not name.endswith("position_ids"):
            out[prefix + name] = t
    return out


def saved(thing, **how):
    file = io.BytesIO()
    torch.save(thing, file, **how)
    return file.getvalue()


def of_optimizer(model, optimizer):
    return {n: (p.detach().clone(), optimizer.state[p]["exp_avg"].clone(), optimizer.state[p]["exp_avg_sq"].clone())
            for n, p in model.named_parameters()}


def make_scripts(add):
    model = make_model()
    lamb = Lamb(groups(model), BASE)
    train(model, lamb, 6)
    files = [3, "books_0.hdf5", "books_1.hdf5"]
    whole = {"model": scripts_names(model.state_dict()), "optimizer": lamb.state_dict(), "files": files, "epoch": 0, "data_loader": None}
    add("lamb", {"ckpt_6.pt": saved(whole)}, of_optimizer(model, lamb), next_losses("lamb", of_optimizer(model, lamb), 6))
    masters = [p.detach().clone() for g in lamb.param_groups for p in g["params"]]
    half = {"model": scripts_names({k: v.half() for k, v in model.state_dict().items()}), "optimizer": lamb.state_dict(),
            "master params": masters, "files": files, "epoch": 0, "data_loader": None}
    half["model"]["cls.predictions.decoder.weight"] = half["model"]["bert.embeddings.word_embeddings.weight"]
    add("masters", {"ckpt_6.pt": saved(half, _use_new_zipfile_serialization=False)}, of_optimizer(model, lamb),
        next_losses("lamb", of_optimizer(model, lamb), 6))

    model = make_model(6)
    query = model.bert.encoder.layer[1].attention.self.query.weight
    query.data = query.data.t().contiguous().t()  # its moments are stored column by column, too
    adamw = torch.optim.AdamW(groups(model), lr=1e-3)
    train(model, adamw, 5)
    whole = {"model": scripts_names(model.state_dict(), "module."), "optimizer": adamw.state_dict(), "files": files, "epoch": 1,
             "data_loader": None}
    add("adamw", {"ckpt_15.pt": saved(whole)}, of_optimizer(model, adamw), next_losses("adamw", of_optimizer(model, adamw), 5))

    beside = {"args": argparse.Namespace(lr=np.float64(1e-3), ids=np.arange(3)), "scheduler": torch.optim.lr_scheduler.LinearLR(adamw),
              "data_loader": torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(2)), sampler=range(2))}
    beside["grad_scaler"] = {"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 2}
    add("objects", {"ckpt_5.pt": saved({"model": scripts_names(model.state_dict()), "optimizer": adamw.state_dict()} | beside)}, None, None)

    zero = {n: (p.detach().clone(), torch.zeros_like(p), torch.zeros_like(p)) for n, p in model.named_parameters()}
    add("weights", {"ckpt_4.pt": saved({"model": scripts_names(model.state_dict()), "files": files, "epoch": 0})}, zero,
        next_losses("adamw", zero, 4, 0))
    few = adamw.state_dict()
    few["state"] = {k: v for k, v in few["state"].items() if k != 3}
    other = adamw.state_dict()
    other["param_groups"] = [dict(g) for g in other["param_groups"]]
    other["param_groups"][0]["params"] = other["param_groups"][0]["params"][:-1]
    cut = adamw.state_dict()
    cut["state"] = dict(cut["state"])
    cut["state"][2] = {"step": 5, "exp_avg": torch.zeros(3), "exp_avg_sq": torch.zeros(3)}
    steps = adamw.state_dict()
    steps["state"] = {k: dict(v) for k, v in steps["state"].items()}
    steps["state"][4]["step"] = torch.tensor(4.0)
    order = adamw.state_dict()
    order["param_groups"] = order["param_groups"] + [dict(order["param_groups"][0], params=[46])]
    order["state"] = order["state"] | {46: order["state"][0]}
    for name, optimizer in (("few", few), ("groups", other), ("shape", cut), ("steps", steps), ("order", order), ("masters", adamw.state_dict())):
        masters = {"master params": [torch.zeros(2)]} if name == "masters" else {}
        add(f"bad_{name}", {"ckpt_5.pt": saved({"model": scripts_names(model.state_dict()), "optimizer": optimizer} | masters)}, None, None)


def of_folder(folder, n_ranks):
    """What DeepSpeed's own converter finds, and the moments by the same order, from the files."""
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    states = torch.load(folder / "mp_rank_00_model_states.pt", weights_only=False)
    if not list(folder.glob("*zero_pp_rank_0_*")):
        kept = states["optimizer"]["state"]
        return {n: (states["module"][n], kept[i]["exp_avg"], kept[i]["exp_avg_sq"]) for i, n in enumerate(in_order(make_model()))}
    shapes = states["param_shapes"]
    ranks = [torch.load(next(folder.glob(f"*zero_pp_rank_{r}_*")), weights_only=False)["optimizer_state_dict"] for r in range(n_ranks)]
    weights = get_fp32_state_dict_from_zero_checkpoint(str(folder.parent), folder.name) if "zero_stage" in ranks[0] else {}
    out = {}
    for g, group in enumerate(shapes):
        flat = [torch.cat([r["base_optimizer_state"]["state"][g][k] for r in ranks]) for k in ("exp_avg", "exp_avg_sq")]
        own = torch.cat([r["single_partition_of_fp32_groups"][g] for r in ranks])
        at = 0
        for name, shape in group.items():
            weight = own[at:at + shape.numel()].view(shape)
            assert name not in weights or torch.equal(weights[name], weight), name
            out[name] = (weight, *(f[at:at + shape.numel()].view(shape) for f in flat))
            at += shape.numel()
    return out


def loss_scaler():
    """After an overflow in the first of three steps."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler

    scaler = DynamicLossScaler(init_scale=2.0 ** 19, scale_window=500, min_scale=1, delayed_shift=1, consecutive_hysteresis=False)
    scaler.last_overflow_iter, scaler.cur_iter = 0, 3
    return scaler


def old_layout(folder):
    """One group: kiln's parameters are decayed by their names, so it does not matter to it."""
    states = torch.load(folder / "mp_rank_00_model_states.pt", weights_only=False)
    ranks = [torch.load(next(folder.glob(f"*zero_pp_rank_{r}_*")), weights_only=False)["optimizer_state_dict"] for r in range(2)]
    shapes = collections.OrderedDict((n, s) for group in states["param_shapes"] for n, s in group.items())
    total = sum(s.numel() for s in shapes.values())
    kept = {}
    for key in ("weight", "exp_avg", "exp_avg_sq"):
        parts = []
        for g, group in enumerate(states["param_shapes"]):
            flat = torch.cat([r["single_partition_of_fp32_groups"][g] if key == "weight" else r["base_optimizer_state"]["state"][g][key] for r in ranks])
            parts.append(flat[:sum(s.numel() for s in group.values())])
        kept[key] = torch.cat(parts)
    part = (total + 3) // 4 * 2  # padded to a multiple of twice the ranks
    files = {"3/mp_rank_00_model_states.pt": saved({"module": states["module"], "param_shapes": shapes, "global_steps": 3, "dp_world_size": 2,
                                                    "mp_world_size": 1, "ds_version": "0.3.11"}), "latest": b"3\n"}
    for r in range(2):
        mine = {k: v[r * part:(r + 1) * part].clone() for k, v in kept.items()}
        state = {"zero_stage": 2, "partition_count": 2, "single_partition_of_fp32_groups": [mine["weight"]], "loss_scaler": loss_scaler(),
                 "base_optimizer_state": [{"step": 3, "exp_avg": mine["exp_avg"], "exp_avg_sq": mine["exp_avg_sq"]}]}
        files[f"3/zero_pp_rank_{r}_mp_rank_00optim_states.pt"] = saved({"optimizer_state_dict": state})
    return files


def bad_folders(add):
    """Of one rank and one parameter; and a rank of zero2_4 that is a step further."""
    def folder(case, shape=(2, 3), stage=2, count=1, elements=6):
        flat = {"step": 3, "exp_avg": torch.zeros(elements), "exp_avg_sq": torch.zeros(elements)}
        rank = {"zero_stage": stage, "partition_count": count, "single_partition_of_fp32_groups": [torch.zeros(elements)], "base_optimizer_state": [flat]}
        name = "bert.embeddings.word_embeddings.weight"
        states = {"module": {name: torch.zeros(2, 3)}, "param_shapes": [{name: torch.Size(shape)}], "global_steps": 3}
        add(case, {"3/mp_rank_00_model_states.pt": saved(states), "3/zero_pp_rank_0_mp_rank_00_optim_states.pt": saved({"optimizer_state_dict": rank}),
                   "latest": b"3"}, None, None)

    folder("bad_huge", (2 ** 40, 2 ** 40))
    folder("bad_large", (2 ** 20, 2 ** 20))
    folder("bad_small", (2, 1))
    folder("bad_stage", stage=3)
    folder("bad_many", count=10 ** 9)


def deepspeed_rank(rank, n_ranks, stage, bf16, steps, tag, directory, port, wide):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n_ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    import deepspeed

    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo")
    model = make_model(7)
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.AdamW(groups(model), lr=1e-3),
        config={"train_micro_batch_size_per_gpu": B // n_ranks, "train_batch_size": B, "bf16": {"enabled": bf16},
                "zero_optimization": {"stage": stage}, "data_types": {"grad_accum_dtype": "fp32" if wide or not bf16 else "bf16"}, "gradient_clipping": 1.0, "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False})
    mine = tuple(t[rank::n_ranks].contiguous() for t in batch())
    for _ in range(steps):
        engine.backward(engine(mine))
        engine.step()
    engine.save_checkpoint(directory, tag=tag, client_state={"files": [0, "a.hdf5"], "epoch": 0})
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def make_deepspeed(add):
    runs = (("plain_1", 1, 0, False, 3, "3"), ("bf16_2", 2, 1, True, 3, "3"), ("zero1_2", 2, 1, True, 3, "13"), ("zero2_4", 4, 2, True, 3, "3"), ("zero2_1", 1, 2, False, 3, None))
    for i, (case, n_ranks, stage, bf16, steps, tag) in enumerate(runs):
        with tempfile.TemporaryDirectory() as d:
            torch.multiprocessing.spawn(deepspeed_rank, (n_ranks, stage, bf16, steps, tag, d, 29510 + i, case == "bf16_2"), n_ranks)
            top = pathlib.Path(d)
            folder = top / (top / "latest").read_text()
            state = of_folder(folder, n_ranks)
            files = {f"{folder.name}/{f.name}": f.read_bytes() for f in folder.iterdir()} | {"latest": (top / "latest").read_bytes()}
            if case == "zero2_1":
                name = f"{folder.name}/zero_pp_rank_0_mp_rank_00_optim_states.pt"
                rank = torch.load(io.BytesIO(files[name]), weights_only=False)
                rank["optimizer_state_dict"]["loss_scaler"] = loss_scaler()
                files[name] = saved(rank)
            add(case, files, state, next_losses("adamw", state, steps))
            if case == "zero2_4":
                name = "3/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
                rank = torch.load(io.BytesIO(files[name]), weights_only=False)
                for kept in rank["optimizer_state_dict"]["base_optimizer_state"]["state"].values():
                    kept["step"] = 4
                add("zero_later", {name: saved(rank)}, None, None)
            if case == "zero1_2":
                add("old_zero", old_layout(folder), state, next_losses("adamw", state, steps))


def main():
    from safetensors.torch import save_file

    out = {}

    def add(case, files, state, losses):
        for name, data in files.items():
            out[f"{case}/{name}"] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        same = case in ("masters", "weights", "old_zero")  # as lamb, adamw, zero1_2
        for name, kept in ({} if same else state or {}).items():
            for what, t in zip(("weight", "exp_avg", "exp_avg_sq"), kept):
                out[f"{case}.{what}.{name}"] = t.float().contiguous().clone()
        if losses is not None:
            print(case, losses.tolist())
            out[f"{case}.losses"] = losses

    ids, types, labels, nsp = batch()
    with tempfile.TemporaryDirectory() as d:
        with h5py.File(f"{d}/training.hdf5", "w") as f:
            positions = [[p for p in range(S) if labels[i, p] >= 0] for i in range(B)]
            put = lambda name, value, dtype: f.create_dataset(name, data=np.asarray(value), dtype=dtype, compression="gzip")
            put("input_ids", ids, "i4")
            put("input_mask", np.ones((B, S)), "i1")
            put("segment_ids", types, "i1")
            put("masked_lm_positions", positions, "i4")
            put("masked_lm_ids", [[int(labels[i, p]) for p in positions[i]] for i in range(B)], "i4")
            put("next_sentence_labels", nsp, "i1")
        data = {"store/training.hdf5": pathlib.Path(f"{d}/training.hdf5").read_bytes()}
    add("data", data | {"bert_config.json": json.dumps(SIZES, indent=1).encode(),
                        "vocab.txt": "".join(p + "\n" for p in PIECES).encode()}, None, None)
    make_scripts(add)
    make_deepspeed(add)
    bad_folders(add)
    save_file(out, GOLDEN)


if __name__ == "__main__":
    main()
