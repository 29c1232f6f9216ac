"""Tiny tokenizers of the forms that models have, trained on a few words, and hostile text for them: used by make_tokenizers.py and
tests/peers/check_tokenizers.py."""
import io
import json
import random
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

BLOCKS = [(0x20, 0x7e), (0x20, 0x7e), (0x41, 0x7a), (0xa0, 0x24f), (0x250, 0x36f), (0x370, 0x52f), (0x590, 0x6ff), (0x700, 0x8ff),
          (0x900, 0xd7f), (0xe00, 0xfff), (0x1000, 0x109f), (0x1100, 0x11ff), (0x1200, 0x139f), (0x1780, 0x18af), (0x1e00, 0x1fff),
          (0x2000, 0x206f), (0x2070, 0x218f), (0x2190, 0x27bf), (0x3000, 0x30ff), (0x3130, 0x33ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3),
          (0xf900, 0xfaff), (0xfb00, 0xfdff), (0xfe00, 0xfeff), (0xff00, 0xffef), (0x10000, 0x10fff), (0x1d400, 0x1d7ff),
          (0x1f100, 0x1faff), (0x20000, 0x2a6df)]
FIXED = ["\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea\U0001f1eb", "\u2764\ufe0f", "e\u0301", "\u1112\u1161\u11ab", "\ufb01",
         "\u00bd", "\u2167", "\u017f", "'S", "'LL", "'\u017f", "don't", "we'VE", " \u180e", "\u200b", "\ufeff", "\x01\x02", "\r\n", "\n\n\n", "\t\t",
         "   ", "    \n  \n", "1234567", "\u0663\u0664", "\uff11\uff12", "<s>", "</s>", "<unk>", "\u2581", "\u2581\u2581a", "<0x41>", "\u2028",
         "\x85", "\u3000", "\u0133", "\u0130", "\xdf", "\u01c5", "<|end|>", " <|end|> ", "\u0958", "\u212b", "\ufdfa", "a\u0323\u0307", "a\u0307\u0323",
         "\u0345\u0301", "\uff76\uff9e", "(x)", "f(x){\n    return;\n}\n", "https://a.b/c?d=1", "\U0001f44d\U0001f3fd", "\ud7b0", "\u0e33"]
WORDS = ("the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what all "
         "were we when your can said there use an each which she do how their if will up other about out many then them these so some her "
         "would make like him into time has look two more write go see number no way could people my than first water been call who oil "
         "Stra\xdfe \xe9t\xe9 na\xefve \u041c\u043e\u0441\u043a\u0432\u0430 \u4e2d\u6587 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 "
         "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22").split()


def hostile_texts(n_chars, each, seed=1):
    """Texts of about `each` characters, `n_chars` in all, of all scripts, marks, controls and long runs; without NUL and surrogates."""
    rng = random.Random(seed)
    texts, parts, size, total = [], [], 0, 0
    while total < n_chars:
        kind = rng.random()
        if kind < 0.5:
            part = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12)))
        elif kind < 0.62:
            part = "".join(rng.choice(FIXED) for _ in range(rng.randint(1, 6)))
        elif kind < 0.67:
            part = rng.choice(" \n\ta\xe9\u4e2d1!\u0301\u0e01\U0001f44d\u2581") * rng.randint(1, rng.choice([3, 30, 300]))
        else:
            first, last = rng.choice(BLOCKS)
            part = "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 12)))
        part += rng.choice([" ", "", " ", "\n", " ", ". "])
        part = "".join(c for c in part if not 0xd800 <= ord(c) < 0xe000)
        parts.append(part)
        size += len(part)
        if size >= each:
            texts.append("".join(parts))
            total += size
            parts, size = [], 0
    return texts


def train_texts():
    rng = random.Random(0)
    return [" ".join(rng.choice(WORDS) for _ in range(40)) for _ in range(200)] + hostile_texts(20000, 500, 2)


def byte_level(steps, normalizer=None, ignore_merges=False, n=600):
    """Byte-level BPE behind these steps of its pre_tokenizer."""
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.normalizer = normalizer
    t.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(train_texts(), trainers.BpeTrainer(
        vocab_size=n, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), special_tokens=["<|end|>"], show_progress=False))
    return t


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def bare():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def gpt2():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def byte_level_forms():
    """Of every model whose pre_tokenizer is a pattern or steps."""
    return {
        "llama3": lambda: byte_level([split(GPT4 % "{1,3}"), bare()], ignore_merges=True),
        "qwen2": lambda: byte_level([split(GPT4 % ""), bare()], normalizers.NFC()),
        "gpt4": lambda: byte_level([split(CL100K, "removed", True), bare()]),
        "gpt4o": lambda: byte_level([split(O200K), bare()]),
        "deepseek": lambda: byte_level([split(r) for r in DEEPSEEK] + [bare()]),
        "smollm": lambda: byte_level([pre_tokenizers.Digits(individual_digits=True), gpt2()]),
        "starcoder": lambda: byte_level([pre_tokenizers.Digits(individual_digits=False), gpt2()]),
        "pythia": lambda: byte_level([gpt2()], normalizers.NFC()),
        "words": lambda: byte_level([split(r"\w+|[^\w\s]+", "merged_with_previous"), bare()]),
        "merged": lambda: byte_level([split(r"[\s,.]", "merged_with_next"), split(r"\d", "contiguous"), bare()], normalizers.NFD()),
        "whole": lambda: byte_level([bare()]),
    }


SPACE = "\u2581"
SMALL = False  # models for golden files: of fewer pieces, with a table of a few characters
RULES = {"\ufb01": "fi", "\u00a0": " ", "\u3000": " ", "e\u0301": "\xe9", "\t": " ", "\u200b": "", "\uff76\uff9e": "\u30ac", "\uff76": "\u30ab"}
LLAMA_DECODER = lambda: decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
BYTES = ["<0x%02X>" % b for b in range(256)]


def sentencepiece_bpe(normalizer, splits, byte_fallback=True, fuse_unk=True, n=900, specials=("<unk>", "<s>", "</s>")):
    """BPE of characters, whose pieces are learned on words that begin with U+2581."""
    learner = Tokenizer(models.BPE(unk_token="<unk>"))
    learner.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always", True)
    extra = list(specials) + (BYTES if byte_fallback else [])
    n, alphabet = (len(extra) + 150, 60) if SMALL else (n, 150)
    learner.train_from_iterator(train_texts()[:210], trainers.BpeTrainer(
        vocab_size=n, special_tokens=extra, limit_alphabet=alphabet, show_progress=False))
    document = json.loads(learner.to_str())["model"]
    merges = [tuple(m) for m in document["merges"]]
    t = Tokenizer(models.BPE(vocab=document["vocab"], merges=merges, unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=byte_fallback))
    t.normalizer, t.decoder = normalizer, LLAMA_DECODER()
    if splits is not None:
        t.pre_tokenizer = splits
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in specials])
    return t


def trained_model(kind, **settings):
    """Bytes of a tokenizer.model, and what they say."""
    out = io.BytesIO()
    options = {"vocab_size": 1300, "character_coverage": 0.98, "normalization_rule_name": "nmt_nfkc", "hard_vocab_limit": False, "minloglevel": 2}
    texts = [t.replace("\n", " ") for t in train_texts()]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        if SMALL:
            for wanted, content in sorted(RULES.items()):
                rules.write("\t".join(" ".join("%X" % ord(c) for c in text) for text in (wanted, content)) + "\n")
            rules.flush()
            del options["normalization_rule_name"]
            settings = {k: v for k, v in settings.items() if k != "normalization_rule_name"}
            options.update(vocab_size=500 if settings.get("byte_fallback") else 250, normalization_rule_tsv=rules.name)
            texts = texts[:200]
        options.update(settings)
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, model_type=kind, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    return out.getvalue(), proto


def unigram(splits, normalizer="charsmap", byte_fallback=False):
    """XLM-R's form: SentencePiece's pieces behind <s>, <pad>, </s>, <unk>."""
    _, proto = trained_model("unigram", byte_fallback=byte_fallback)
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + [(p.piece, p.score) for p in proto.pieces[3:]] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=byte_fallback))
    charsmap_step = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    t.normalizer = charsmap_step if normalizer == "charsmap" else normalizer and normalizers.Sequence([charsmap_step, normalizer])
    t.pre_tokenizer = splits
    t.decoder = decoders.Metaspace(SPACE, "always")
    t.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    return t


def sentencepiece_forms():
    """Of every model with SentencePiece's pieces."""
    meta, white = pre_tokenizers.Metaspace, pre_tokenizers.WhitespaceSplit
    return {
        "llama": lambda: sentencepiece_bpe(normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]), None),
        "llama_first": lambda: sentencepiece_bpe(None, meta(SPACE, "first", False)),
        "mistral": lambda: sentencepiece_bpe(None, meta(SPACE, "always", False)),
        "gemma": lambda: sentencepiece_bpe(normalizers.Replace(" ", SPACE), pre_tokenizers.Split(" ", "merged_with_previous")),
        "bpe_unknown": lambda: sentencepiece_bpe(None, meta(SPACE, "always", True), byte_fallback=False),
        "bpe_unfused": lambda: sentencepiece_bpe(None, meta(SPACE, "never", True), byte_fallback=False, fuse_unk=False),
        "xlmr": lambda: unigram(pre_tokenizers.Sequence([white(), meta(SPACE, "always")])),
        "xlmr_spaces": lambda: unigram(meta(SPACE, "always"), normalizers.Replace(Regex(" {2,}"), " ")),
        "camembert": lambda: unigram(pre_tokenizers.Sequence([white(), meta(SPACE, "always", True)]), normalizers.Strip()),
        "unigram_whole": lambda: unigram(meta(SPACE, "first", False), None),
        "unigram_bytes": lambda: unigram(meta(SPACE, "always"), byte_fallback=True),
    }


def model_forms():
    """tokenizer.model of each type, by SentencePiece's library."""
    exact = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True, "vocab_size": 500 if SMALL else 1500}
    return {
        "model_llama": lambda: trained_model("bpe", **exact)[0],
        "model_bpe": lambda: trained_model("bpe")[0],
        "model_unigram": lambda: trained_model("unigram")[0],
        "model_unigram_bytes": lambda: trained_model("unigram", byte_fallback=True, add_dummy_prefix=False)[0],
    }
