#!/usr/bin/env python3
"""Makes added_tokens.json: texts and the ids that BertTokenizerFast gives them with tokens that were added to a vocabulary.

usage: make_added_tokens.py > added_tokens.json      (needs transformers, from PyPI; made with the version that the file names)
"text": special tokens that a text spells are text (split_special_tokens); "special": they are found.
"""
import json
import os
import sys
import tempfile

import tokenizers
import transformers
from tokenizers import AddedToken

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the man saw a url co ##vid covid new york x ##x e1 1 [ ] < > # _ - sep mask n ##y".split()
ADDED = [
    AddedToken("<url>"),
    AddedToken("<url2>"),
    AddedToken("covid", single_word=True),
    AddedToken("New York", lstrip=True),
    AddedToken("X-1", normalized=False),
    AddedToken("<e>", single_word=True, rstrip=True),
    AddedToken("[E1]", special=True),
]
TEXTS = [
    "the <url> man", "the<url>man", "<URL> <Url2> <url2>", "<url", "covid", "covids covid_ covid-x", "COVID the covid", "new york",
    "the  New York  man", "NEW YORKnew york", "x-1 X-1 aX-1x", "[E1] the [e1]", "the [SEP] man [MASK]", "[sep] [SEP]", "[CLS][SEP][PAD]",
    "<e>", "a<e>", "<e> a", "a <e>a", "<url><url2><url>", "", "<", "the man saw a url", "-<url>-", "[E1][E1]", "1<e>1 <e>",
]

with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "vocab.txt"), "w") as f:
        f.write("\n".join(PIECES) + "\n")
    result = {"made_with": "transformers %s, tokenizers %s" % (transformers.__version__, tokenizers.__version__), "pieces": PIECES, "cases": []}
    for lower in (True, False):
        tokenizer = transformers.BertTokenizerFast(os.path.join(folder, "vocab.txt"), do_lower_case=lower)
        tokenizer.add_tokens(ADDED)
        encode = lambda text: tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.backend_tokenizer.encode_special_tokens = True
        as_text = [encode(t) for t in TEXTS]
        tokenizer.backend_tokenizer.encode_special_tokens = False
        tokenizer.save_pretrained(folder)
        with open(os.path.join(folder, "tokenizer.json")) as f:
            added = json.load(f)["added_tokens"]
        result["cases"].append({"lower_case": lower, "added_tokens": added, "texts": [
            {"text": t, "as_text": a, "special": encode(t)} for t, a in zip(TEXTS, as_text)]})
json.dump(result, sys.stdout, ensure_ascii=True, indent=None, separators=(",", ":"))
print()
