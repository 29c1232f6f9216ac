"""GGUF files that kiln writes, run by llama.cpp (the package llama-cpp-python): the greedy ids of tiny models with random weights, and the ids of
hostile text, beside kiln's own of the same file, and of the file without the tokenizer.json in it.  Its cache of keys and values is F32 here:
with the usual F16 a choice between two logits that are nearly equal falls otherwise now and then.

usage: check_llama_cpp.py KILN PYTHON [CHARACTERS [NAME ...]]; PYTHON has llama_cpp; CHARACTERS of text for each tokenizer, 100000 by default.
Needs torch, transformers, tokenizers and sentencepiece; llama.cpp does no NFC, so texts are of that form.  Its
expressions of "tekken" and "gpt-4o" are not those of the models, which kiln has: texts of scripts without case have other ids there."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unicodedata

import sentencepiece
import torch
import transformers as tf
from tokenizers import Tokenizer, models, normalizers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import tokenizer_makers as makers  # noqa: E402

KILN, PYTHON = sys.argv[1:3]
CHARACTERS = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
NAMES = sys.argv[4:]
PROMPT, N = "the of and a you", 24
PEER = """
import json, sys
from llama_cpp import Llama
m = Llama(sys.argv[1], n_ctx=256, verbose=False, n_threads=1, type_k=0, type_v=0)
texts = json.load(open(sys.argv[2]))
ids = [m.tokenize(t.encode(), add_bos=False, special=False) for t in texts]
greedy = []
for t in m.generate(m.tokenize(%r.encode(), add_bos=True, special=False), temp=0.0, top_k=1, repeat_penalty=1.0):
    greedy.append(t)
    if len(greedy) == %d:
        break
json.dump({"ids": ids, "greedy": greedy}, open(sys.argv[3], "w"))
""" % (PROMPT, N)

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
          "rope_theta": 10000.0}
SMALL = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 256}
GATED = SMALL | {"intermediate_size": 96, "num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def model(kind, **more):
    config = getattr(tf, kind + "Config")
    classes = {"GPT2": "GPT2LMHeadModel"}

    def make(rows):
        m = getattr(tf, classes.get(kind, kind + "ForCausalLM"))(config(vocab_size=rows, **more))
        with torch.no_grad():
            for name, p in m.named_parameters():
                is_norm = any(part in name for part in ("ln_", "norm")) and name.endswith("weight")
                p.copy_(torch.randn_like(p) * 0.15 + (1.0 if is_norm else 0.0))
        return m
    return make


def spm():
    return makers.trained_model("bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)[0]


def converted():
    """The tokenizer.json that transformers makes of a Llama's tokenizer.model: all merges that scores give, the best first."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm())
    vocab = {processor.IdToPiece(i): i for i in range(processor.GetPieceSize())}
    scores = {p: processor.GetScore(i) for p, i in vocab.items()}
    merges = [(p[:k], p[k:], scores[p]) for p in vocab for k in range(1, len(p)) if p[:k] in vocab and p[k:] in vocab]
    merges = [m[:2] for m in sorted(merges, key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)]
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(makers.SPACE), normalizers.Replace(" ", makers.SPACE)])
    t.decoder = makers.LLAMA_DECODER()
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t


FORMS = makers.byte_level_forms()
DEFAULT = [r"[\p{P}\$\+<=>\^~\|]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)", r"\p{N}+", "[0-9][0-9][0-9]"]
NONE = {"bos_token_id": None, "eos_token_id": None}
CASES = {
    "gpt2": (model("GPT2", n_embd=64, n_layer=3, n_head=4, n_positions=256, **NONE), lambda: makers.byte_level([makers.gpt2()])),
    "bloom": (model("Bloom", hidden_size=64, n_layer=3, n_head=4, **NONE), lambda: makers.byte_level([makers.gpt2()])),
    "llama": (model("Llama", rope_parameters=LLAMA3, **GATED), FORMS["llama3"]),
    "llama_tied": (model("Llama", tie_word_embeddings=True, **GATED), FORMS["smollm"]),
    "llama_spm": (model("Llama", **GATED), None),
    "llama_json": (model("Llama", **GATED), converted),
    "mistral": (model("Mistral", sliding_window=None, head_dim=32, **GATED), FORMS["llama3"]),
    "qwen2": (model("Qwen2", tie_word_embeddings=True, **GATED), FORMS["qwen2"]),
    "qwen3": (model("Qwen3", head_dim=32, **GATED), FORMS["qwen2"]),
    "smollm3": (model("SmolLM3", **GATED | {"num_hidden_layers": 4}), FORMS["llama3"]),
    "gptneox": (model("GPTNeoX", intermediate_size=128, rotary_pct=0.25, **SMALL, **NONE), lambda: makers.byte_level([makers.gpt2()])),
    "dbrx": (model("Llama", **GATED), lambda: makers.byte_level([makers.split(makers.GPT4 % "{1,3}"), makers.bare()])),
    "default": (model("Llama", **GATED), lambda: makers.byte_level([makers.split(r) for r in DEFAULT] + [makers.bare()])),
    "olmo2": (model("Olmo2", **GATED), FORMS["smollm"]),
}


def write_tokenizer(directory, make):
    if make is None:
        content = spm()
        (directory / "tokenizer.model").write_bytes(content)
        return sentencepiece.SentencePieceProcessor(model_proto=content).GetPieceSize()
    tokenizer = make()
    tokenizer.save(str(directory / "tokenizer.json"))
    return tokenizer.get_vocab_size()


def kiln(*args):
    run = subprocess.run([KILN, *args], capture_output=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"kiln {args[:4]}: {run.stderr.decode()}")
    return run.stdout.decode()


def kiln_ids(file, texts):
    return [[int(i) for i in line.split()] for at in range(0, len(texts), 200)
            for line in kiln("tokenize", "--model", str(file), "--no_parse_special_tokens", "--", *texts[at:at + 200]).splitlines()]


def check(name, make_model, make_tokenizer, texts):
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        (d / "hf").mkdir()
        make_model(write_tokenizer(d / "hf", make_tokenizer)).save_pretrained(d / "hf")
        kiln("convert", "--to", "gguf", "--model", str(d / "hf"), "--output_dir", str(d / "gguf"))
        file, alone = d / "gguf/model.gguf", d / "alone.gguf"
        alone.write_bytes(file.read_bytes().replace(b"tokenizer.huggingface.json", b"tokenizer.huggingface.jsom"))
        (d / "texts.json").write_text(json.dumps(texts))
        subprocess.run([PYTHON, "-c", PEER, str(file), str(d / "texts.json"), str(d / "out.json")], check=True, stderr=subprocess.DEVNULL)
        peer = json.loads((d / "out.json").read_text())
        wrong = 0
        for path in (file, alone, d / "hf"):
            greedy = [int(i) for i in kiln("generate", "--model", str(path), "--prompt", PROMPT, "--max_new_tokens", str(N), "--temperature", "0",
                                           "--ignore_eos", "--ids").split()]
            ids = kiln_ids(path, texts)
            same = sum(a == b for a, b in zip(ids, peer["ids"]))
            wrong += greedy != peer["greedy"] or same < len(texts)
            print(f"{name}, {path.name}: {'the same' if greedy == peer['greedy'] else 'OTHER'} {N} greedy ids, "
                  f"{same} of {len(texts)} texts have the same ids")
            for i in [i for i in range(len(texts)) if ids[i] != peer["ids"][i]][:2]:
                k = next(k for k in range(len(ids[i]) + 1) if ids[i][:k + 1] != peer["ids"][i][:k + 1])
                print(f"  text {i}, token {k}: {ids[i][max(k - 2, 0):k + 4]} by kiln, {peer['ids'][i][max(k - 2, 0):k + 4]} by llama.cpp: {texts[i][:60]!r}")
        return wrong


def main():
    torch.manual_seed(1)
    texts = [unicodedata.normalize("NFC", t) for t in makers.hostile_texts(CHARACTERS, 300)]
    sys.exit(sum(check(name, *case, texts) for name, case in CASES.items() if not NAMES or name in NAMES) > 0)


if __name__ == "__main__":
    main()
