"""What the makers of parity goldens share: a batch, the optimizers, and the file.

The file holds the weights under their Hugging Face names, one batch (padded, with its attention mask), the logits, the
gradients of the total loss with respect to some weights, and the losses of 10 steps of LAMB and of AdamW, which are written
out below from their equations (docs/math/optimizers.md), since torch has no LAMB and another epsilon in AdamW.
"""
import pathlib
import torch
from safetensors.torch import save_file

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
LENGTHS, S, V = [13, 24, 7, 18], 24, 61
STEPS, LR, BETA1, BETA2, EPS, DECAY, MAX_NORM = 10, 3e-3, 0.9, 0.999, 1e-6, 0.01, 1.0


def randomize(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.15 + (1.0 if "LayerNorm.weight" in name else 0.0))
            p.copy_(p.float().double())  # exactly what the file can hold
    return model


def make_batch(n_words):
    b = len(LENGTHS)
    ids = torch.randint(1, V, (b, S))  # no 0: nn.Embedding drops the input gradient of its padding row
    types = torch.zeros(b, S, dtype=torch.long)
    mask, labels = torch.zeros(b, S, dtype=torch.long), torch.full((b, S), -100)
    for i, n in enumerate(LENGTHS):
        mask[i, :n] = 1
        types[i, n // 2 : n] = 1
        ids[i, n:] = 0
        for position in range(1 + i % 2, n, 4):
            labels[i, position] = torch.randint(0, n_words, ())
    return ids, types, mask, labels, torch.tensor([0, 1, 1, 0])


def decays(name):
    return not any(part in name for part in ("bias", "LayerNorm"))


def update(kind, params, state, t):
    norm = torch.sqrt(sum((p.grad ** 2).sum() for _, p in params)).item()
    divisor = norm / MAX_NORM if norm > MAX_NORM else 1.0
    c1, c2 = 1 - BETA1 ** t, 1 - BETA2 ** t
    for name, p in params:
        m, v = state.setdefault(name, (torch.zeros_like(p), torch.zeros_like(p)))
        g = p.grad / divisor
        m.mul_(BETA1).add_(g, alpha=1 - BETA1)
        v.mul_(BETA2).add_(g * g, alpha=1 - BETA2)
        wd = DECAY if decays(name) else 0.0
        if kind == "lamb":
            u = (m / c1) / (torch.sqrt(v / c2) + EPS) + wd * p
            ratio = (p.norm() / u.norm()).item() if wd != 0 and p.norm() > 0 and u.norm() > 0 else 1.0
            p.sub_(LR * ratio * u)
        else:
            p.mul_(1 - LR * wd).sub_(LR * c2 ** 0.5 / c1 * m / (torch.sqrt(v) + EPS))


def losses(kind, make_model, initial, batch):
    """model(batch) gives the loss, and the logits of both heads."""
    model = make_model()
    model.load_state_dict(initial)
    params, state, history = list(model.named_parameters()), {}, []
    for t in range(1, STEPS + 1):
        model.zero_grad()
        loss = model(batch)[0]
        loss.backward()
        history.append(loss.item())
        with torch.no_grad():
            update(kind, params, state, t)
    return torch.tensor(history)


def write(name, maker, make_model, n_words=V):
    model, batch = make_model(), make_batch(n_words)
    initial = {k: v.clone() for k, v in model.state_dict().items()}
    ids, types, mask, labels, nsp = batch
    loss, mlm_logits, nsp_logits = model(batch)
    loss.backward()
    tensors = {name: p.detach().float().contiguous() for name, p in model.named_parameters()}
    golden = {
        "golden.input_ids": ids.int(), "golden.token_type_ids": types.int(), "golden.lengths": torch.tensor(LENGTHS).int(),
        "golden.labels": labels.clamp(min=-1).int(), "golden.next_sentence_label": nsp.int(),
        "golden.prediction_logits": mlm_logits.detach()[labels >= 0].contiguous(),
        "golden.seq_relationship_logits": nsp_logits.detach().contiguous(),
        "golden.lamb_losses": losses("lamb", make_model, initial, batch),
        "golden.adamw_losses": losses("adamw", make_model, initial, batch),
    }
    for name_of, p in model.named_parameters():
        if name_of.endswith(("word_embeddings.weight", "layer.0.attention.self.query.weight", "pooler.dense.bias")):
            golden["golden.grad." + name_of] = p.grad.clone()
    save_file({**tensors, **golden}, pathlib.Path(__file__).with_name(name), metadata={"made_by": "tests/golden/" + maker})
    print(golden["golden.lamb_losses"].tolist(), golden["golden.adamw_losses"].tolist())
