#!/usr/bin/env python3
"""Makes tokenizers.json: ids that Hugging Face's `tokenizers` gives to short hostile texts, by each form of tokenizer.json that models have.

usage: make_tokenizers.py > tokenizers.json      (needs tokenizers and sentencepiece, from PyPI; made with the version that the file names)
"forms": what differs between the files of byte-level BPE, which share "model" and "added_tokens"; "ids" are those of "texts".
"documents": the files of models with SentencePiece's pieces, whole, with the same, and the ids decoded.
"models": tokenizer.model of SentencePiece's library, and its ids.
"""
import json
import sys

import sentencepiece
import tokenizers

import tokenizer_makers as makers


def main():
    texts = makers.hostile_texts(2500, 60, 7) + makers.FIXED + ["", " ", "a", "\u00e9" * 40, " " * 50 + "x", "1" * 30, "\u0301" * 30]
    forms = makers.byte_level_forms()
    base = None
    result = {"made_with": "tokenizers " + tokenizers.__version__, "texts": texts, "forms": {}, "documents": {}, "models": {}}
    for name, make in forms.items():
        document = json.loads(make().to_str())
        base = base or document
        mixed = {**base, "pre_tokenizer": document["pre_tokenizer"], "normalizer": document["normalizer"]}
        mixed["model"] = {**base["model"], "ignore_merges": document["model"]["ignore_merges"]}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(mixed))
        result["forms"][name] = {"pre_tokenizer": mixed["pre_tokenizer"], "normalizer": mixed["normalizer"],
                                 "ignore_merges": mixed["model"]["ignore_merges"],
                                 "ids": [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]}
    makers.SMALL = True
    for name, make in makers.sentencepiece_forms().items():
        tokenizer = make()
        result["documents"][name] = {"tokenizer.json": json.loads(tokenizer.to_str()),
                                     "ids": [tokenizer.encode(t, add_special_tokens=False).ids for t in texts],
                                     "decoded": [tokenizer.decode(tokenizer.encode(t, add_special_tokens=False).ids) for t in texts]}
    for name, make in makers.model_forms().items():
        content = make()
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        result["models"][name] = {"hex": content.hex(), "ids": [processor.EncodeAsIds(t) for t in texts]}
    result["model"], result["added_tokens"] = base["model"], base["added_tokens"]
    json.dump(result, sys.stdout, ensure_ascii=True, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
