"""Evaluates a `kiln serve` of a decoder with lm-evaluation-harness, by tasks of its own: check_lm_eval.py URL MODEL DIR.

DIR is the model, with whose tokenizer transformers splits texts; the tokenizer of the server must give the same results.  With torch
installed too, log-likelihoods are compared with those of transformers."""

import json
import math
import os
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import lm_eval  # noqa: E402
from lm_eval.models.openai_completions import LocalCompletionsAPI  # noqa: E402

URL, MODEL, DIR = sys.argv[1:4]
DOCUMENTS = [
    {"q": "and the", "choices": [" an", " the", "x"], "gold": 1},
    {"q": "the cat and", "choices": [" dog", " the end of it", "\u00e9t\u00e9"], "gold": 0},
    {"q": "a", "choices": ["b", "c", "dd"], "gold": 2},
]


def task(name, file, **rest):
    return {
        "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": file}}, "test_split": "test",
        "doc_to_text": "{{q}}", **rest,
    }


def evaluate(file, **tokenizer):
    lm = LocalCompletionsAPI(base_url=f"{URL}/models/{MODEL}/v1/completions", model=MODEL, batch_size=4, max_retries=1, **tokenizer)
    choose = task("choose", file, output_type="multiple_choice", doc_to_choice="{{choices}}", doc_to_target="{{gold}}",
                  target_delimiter="", metric_list=[{"metric": "acc"}])
    write = task("write", file, output_type="generate_until", doc_to_target="x", metric_list=[{"metric": "exact_match"}],
                 generation_kwargs={"until": ["\n"], "max_gen_toks": 12, "do_sample": False})
    samples = lm_eval.simple_evaluate(lm, tasks=[choose, write], bootstrap_iters=0)["samples"]
    chosen = [float(r[0][0]) for s in samples["choose"] for r in s["resps"]]
    greedy = [str(r[0][1]) for s in samples["choose"] for r in s["resps"]]
    return chosen, greedy, [s["resps"][0][0] for s in samples["write"]]


def by_transformers():
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(DIR).eval()
    split = transformers.AutoTokenizer.from_pretrained(DIR)
    sums = []
    for d in DOCUMENTS:
        for choice in d["choices"]:
            ids, first = split(d["q"] + choice)["input_ids"], len(split(d["q"])["input_ids"])
            with torch.no_grad():  # kiln reads no rows of words that the tokenizer lacks
                log_p = torch.log_softmax(model(torch.tensor([ids])).logits[0, :, : len(split)].float(), -1)
            sums.append(sum(log_p[i - 1, ids[i]].item() for i in range(first, len(ids))))
    return sums


with tempfile.TemporaryDirectory() as directory:
    file = os.path.join(directory, "documents.jsonl")
    with open(file, "w") as f:
        f.writelines(json.dumps(d) + "\n" for d in DOCUMENTS)
    ours = evaluate(file)
    assert ours == evaluate(file, tokenizer=DIR, tokenizer_backend="huggingface"), "tokenizers differ"
print(f"lm_eval {lm_eval.__version__}: {len(ours[0])} log-likelihoods and {len(ours[2])} texts, with either tokenizer")
try:
    theirs = by_transformers()
except ImportError as e:
    print(f"not compared with transformers: {e}")
else:
    worst = max(abs(a - b) for a, b in zip(ours[0], theirs))
    assert worst < 1e-4 and all(math.isfinite(a) for a in ours[0]), (ours[0], theirs)
    print(f"at most {worst:.1e} from transformers")
