"""kiln: BERT and GPT models from Python, without PyTorch.

    kiln.SentenceTransformer(dir).encode(texts)              vectors, as sentence-transformers
    kiln.CrossEncoder(dir).predict(pairs)                    scores of pairs
    kiln.pipeline("fill-mask", model=dir)(text)              answers, as transformers' pipelines
    kiln.CausalLM(dir).generate(prompt)                      what follows a text
    kiln.Tokenizer(dir).encode(text)                         ids
    kiln.classify(dir, output_dir, train_file=data)          training: also train, pretrain, tag, squad, embed_train, finetune_gpt

The program is `python -m kiln`.  Each error is a kiln.KilnError, and a ValueError, FileNotFoundError, MemoryError or OSError where it is one."""
from ._library import KilnError, set_num_threads, version
from .models import CausalLM, CrossEncoder, SentenceTransformer, Tokenizer, semantic_search
from .pipelines import pipeline
from .runs import Run, classify, embed_train, finetune_gpt, prepare, pretrain, run, squad, tag, train

__version__ = version()
__all__ = ["CausalLM", "CrossEncoder", "KilnError", "Run", "SentenceTransformer", "Tokenizer", "classify", "embed_train", "finetune_gpt",
           "pipeline", "prepare", "pretrain", "run", "semantic_search", "set_num_threads", "squad", "tag", "train"]
