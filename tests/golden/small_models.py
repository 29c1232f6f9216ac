"""What make_classify.py and make_hf_dirs.py share: small BERTs of `transformers` with random weights, their vocabulary, and a batch."""
import torch
from transformers import BertConfig

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("abcdefghijklmnop") + ["##" + c for c in "abcdefghijklmnop"]
LENGTHS, S = [9, 24, 5], 24


def make_model(cls, rows, **settings):
    """A model with `rows` rows of embeddings, with random weights, its norms about 1."""
    config = BertConfig(vocab_size=rows, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
                        max_position_embeddings=S, attn_implementation="eager", **settings)
    model = cls(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if "LayerNorm.weight" in name else 0.0))
    return model


def make_batch():
    """ids, types and mask of sequences of LENGTHS tokens, padded to S."""
    ids = torch.randint(5, len(PIECES), (len(LENGTHS), S))
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, n in enumerate(LENGTHS):
        mask[i, :n] = 1
        types[i, n // 2 : n] = 1
        ids[i, n:] = 0
    return ids, types, mask


def batch_tensors(batch):
    """What a golden file keeps of a batch."""
    tensors = {"lengths": torch.tensor(LENGTHS, dtype=torch.int32)}
    tensors["ids"], tensors["types"] = (t.to(torch.int32) for t in batch[:2])
    return tensors


def file_tensors(case, directory):
    """The files below a directory as tensors of bytes, "CASE/FILE"."""
    files = [f for f in sorted(directory.rglob("*")) if f.is_file()]
    return {f"{case}/{f.relative_to(directory)}": torch.frombuffer(bytearray(f.read_bytes()), dtype=torch.uint8) for f in files}
