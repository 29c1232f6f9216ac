"""kiln: BERT and GPT models from Python, without PyTorch.

    kiln.SentenceTransformer(dir).encode(texts)              vectors, as sentence-transformers
    kiln.CrossEncoder(dir).predict(pairs)                    scores of pairs
    kiln.CausalLM(dir).generate(prompt)                      what follows a text
    kiln.Tokenizer(dir)                                      ids of texts"""
from ._library import KilnError
from .models import CausalLM, CrossEncoder, SentenceTransformer, Tokenizer
from .pipelines import pipeline
