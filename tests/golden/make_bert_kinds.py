#!/usr/bin/env python3
"""Makes tests/golden/{roberta,xlm_roberta,camembert,distilbert,modernbert}.safetensors: model directories as `transformers` writes them, and what it computes.

A file has all classes of a kind of BERT: the tensor "CASE/FILE" (U8) is a file of a directory, "tokenizer/FILE" one of each, "CASE:ids" and so on are the batch
and the outputs in float64 of the weights as they are stored.  "TEXTS" (U8) has texts, one a line with a tab in pairs; "TEXT i" its ids with special tokens.
RoBERTa's tokenizer has merges that are learned from the texts; XLM-R and CamemBERT have the same here, since their networks are what is compared.
ModernBERT's is one of GPT-NeoX's form: a tokenizer.json with NFC, byte-level BPE, and added tokens of its own, of which one is no special token.

Run: python make_bert_kinds.py   (needs torch, transformers, tokenizers, safetensors; made with torch 2.15 and transformers 5.24)
"""
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from small_models import LENGTHS, PIECES, S, batch_tensors, file_tensors
from tokenizers import AddedToken, ByteLevelBPETokenizer, decoders, normalizers, pre_tokenizers, processors

TEXTS = ["The house is old.", "the house\tIs it old?", "It's <mask>, isn't it?  Yes; 42 houses!", "déjà vu ☂  two   spaces ", "x"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ROBERTA = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, max_position_embeddings=S + 2,
               type_vocab_size=1, layer_norm_eps=1e-5)
DISTILBERT = dict(dim=16, n_layers=2, n_heads=2, hidden_dim=20, max_position_embeddings=S, dropout=0.05, attention_dropout=0.15, qa_dropout=0.25,
                  seq_classif_dropout=0.3)
MODERNBERT = dict(hidden_size=16, num_hidden_layers=5, num_attention_heads=2, intermediate_size=20, max_position_embeddings=S, local_attention=6,
                  embedding_dropout=0.05, classifier_dropout=0.1, pad_token_id=3, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
# file: the beginning of the classes' names, the configuration, and the ids of what begins, ends and pads a text
KINDS = {"roberta": ("Roberta", ROBERTA, (0, 2, 1)), "xlm_roberta": ("XLMRoberta", ROBERTA, (0, 2, 1)),
         "camembert": ("Camembert", ROBERTA, (0, 2, 1)), "distilbert": ("DistilBert", DISTILBERT, (2, 3, 0)), "modernbert": ("ModernBert", MODERNBERT, (1, 2, 3))}
CASES = [("masked_lm", "ForMaskedLM", {}), ("classifier", "ForSequenceClassification", {"num_labels": 3}),
         ("tagger", "ForTokenClassification", {"num_labels": 4}), ("answers", "ForQuestionAnswering", {}), ("encoder", "Model", {})]
OUTPUTS = {"ForMaskedLM": "mlm", "ForSequenceClassification": "texts", "ForTokenClassification": "words"}


def make_modernbert_tokenizer(directory):
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    learned = ByteLevelBPETokenizer(add_prefix_space=False, unicode_normalizer="nfc")
    learned.train_from_iterator(TEXTS * 3, vocab_size=300, min_frequency=2, special_tokens=special, show_progress=False)
    learned.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
    learned.add_tokens([AddedToken("  ", normalized=True), AddedToken("|||IP_ADDRESS|||", normalized=True)])
    tokenizer = learned._tokenizer
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]",
                                                             special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.save(str(directory / "tokenizer.json"))
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"), unk_token="[UNK]", cls_token="[CLS]",
                                                sep_token="[SEP]", pad_token="[PAD]", mask_token=AddedToken("[MASK]", lstrip=True, special=True),
                                                model_max_length=S, model_input_names=["input_ids", "attention_mask"])


def make_tokenizer(kind, directory):
    if kind == "modernbert":
        return make_modernbert_tokenizer(directory)
    if kind == "distilbert":
        (directory / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        return transformers.BertTokenizerFast.from_pretrained(directory)  # of the same pieces as DistilBertTokenizerFast
    learned = ByteLevelBPETokenizer()
    learned.train_from_iterator(TEXTS * 3, vocab_size=290, min_frequency=2, special_tokens=SPECIAL + ["<mask>"], show_progress=False)
    learned.save_model(str(directory))
    return transformers.RobertaTokenizerFast.from_pretrained(directory, mask_token=AddedToken("<mask>", lstrip=True, special=True))


def make_model(prefix, cls, words, settings):
    config = getattr(transformers, prefix + "Config")(vocab_size=words, attn_implementation="eager", **settings)
    model = getattr(transformers, prefix + cls)(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = any(n + ".weight" in name for n in ("LayerNorm", "norm"))
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if norm else 0.0))
    return model.half()


def make_batch(words, first, last, pad):
    ids, mask = torch.randint(5, words, (len(LENGTHS), S)), torch.zeros(len(LENGTHS), S, dtype=torch.long)
    for i, n in enumerate(LENGTHS):
        mask[i, :n] = 1
        ids[i, 0], ids[i, n - 1], ids[i, n:] = first, last, pad
    return ids, torch.zeros_like(ids), mask


def outputs(model, cls, batch):
    ids, _, mask = batch
    with torch.no_grad():
        out = model.double()(input_ids=ids, attention_mask=mask)
    real = mask.bool()
    if "start_logits" in out:
        return {"qa": torch.stack([out.start_logits, out.end_logits], dim=-1)[real]}
    if "last_hidden_state" in out:
        return {"hidden": out.last_hidden_state[real]} | ({"pooled": out.pooler_output} if "pooler_output" in out else {})
    return {OUTPUTS[cls]: out.logits if cls == "ForSequenceClassification" else out.logits[real]}


def make_kind(kind, prefix, settings, special):
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as d:
        tokenizer = make_tokenizer(kind, pathlib.Path(d))
    batch = make_batch(len(tokenizer), *special)
    tensors = batch_tensors(batch)
    with tempfile.TemporaryDirectory() as d:
        tokenizer.save_pretrained(d)
        tensors |= file_tensors("tokenizer", pathlib.Path(d))
    cases = CASES + [("means", "ForSequenceClassification", {"num_labels": 3, "classifier_pooling": "mean"})] * (kind == "modernbert")
    for name, cls, more in cases:
        with tempfile.TemporaryDirectory() as d:
            model = make_model(prefix, cls, len(tokenizer), settings | more)
            model.save_pretrained(d)
            tensors |= file_tensors(name, pathlib.Path(d))
            if kind == "modernbert":  # half() rounds the frequencies of its rotary positions, too
                model = type(model).from_pretrained(d, dtype=torch.float32)
        tensors |= {f"{name}:{k}": v.contiguous() for k, v in outputs(model, cls, batch).items()}
    if kind in ("roberta", "modernbert"):
        texts = [text.replace("<mask>", tokenizer.mask_token) for text in TEXTS]
        if kind == "modernbert":
            texts[-1] = "x  [MASK]  |||IP_ADDRESS|||"  # a token that takes white space, of which there is a token, too
        tensors["TEXTS"] = torch.frombuffer(bytearray("\n".join(texts).encode()), dtype=torch.uint8)
        for i, text in enumerate(texts):
            tensors[f"TEXT {i}"] = torch.tensor(tokenizer(*text.split("\t"))["input_ids"], dtype=torch.int32)
    save_file(tensors, pathlib.Path(__file__).with_name(f"{kind}.safetensors"))


for kind, row in KINDS.items():
    make_kind(kind, *row)
