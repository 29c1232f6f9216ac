"""What official clients make of kiln serve's vectors, ranks and answers.

usage: check_encoder_clients.py URL, of a server with the models that tests/cli/test_serve_encoders.sh names."""
import sys

import cohere
import numpy as np
import openai
from huggingface_hub import InferenceClient
from langchain_openai import OpenAIEmbeddings

URL = sys.argv[1]
TEXTS = ["a mad dog", "ice", "a big bag"]


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), (part, error)
        return error
    raise AssertionError(f"no {kind}: {part}")


def check_openai():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    answer = client.embeddings.create(model="encoder", input=TEXTS)  # base64, unless told otherwise
    floats = client.embeddings.create(model="encoder", input=TEXTS, encoding_format="float")
    vectors = np.array([d.embedding for d in answer.data])
    assert np.array_equal(vectors.astype("f4"), np.array([d.embedding for d in floats.data], "f4"))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert [d.index for d in answer.data] == [0, 1, 2] and answer.model == "encoder"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    one = client.embeddings.create(model="", input=TEXTS[1]).data[0].embedding
    assert np.dot(one, vectors[1]) > 0.99999
    short = np.array(client.embeddings.create(model="encoder", input=TEXTS[0], dimensions=5).data[0].embedding)
    assert np.allclose(short, vectors[0][:5] / np.linalg.norm(vectors[0][:5]), atol=1e-6)
    raises(openai.BadRequestError, lambda: client.embeddings.create(model="encoder", input=""), "empty")
    raises(openai.BadRequestError, lambda: client.embeddings.create(model="encoder", input=[[5, 70000]]), "70000")
    raises(openai.BadRequestError, lambda: client.embeddings.create(model="encoder", input="a", dimensions=17), "16")
    error = raises(openai.NotFoundError, lambda: client.embeddings.create(model="none", input="a"), "none")
    assert error.code == "model_not_found" and error.type == "invalid_request_error"
    return openai


def check_langchain():
    """By default this client sends ids of another tokenizer, which are told to be none of the model's."""
    options = {"base_url": f"{URL}/v1", "api_key": "none", "model": "encoder", "max_retries": 0}
    vectors = OpenAIEmbeddings(check_embedding_ctx_length=False, **options)
    documents = np.array(vectors.embed_documents(TEXTS))
    assert np.dot(vectors.embed_query(TEXTS[2]), documents[2]) > 0.99999
    import langchain_openai
    return langchain_openai


def check_cohere():
    for client in [cohere.ClientV2(base_url=URL, api_key="none"), cohere.Client(base_url=URL, api_key="none")]:
        all_texts = client.rerank(model="regression", query="a dog", documents=TEXTS)
        best = client.rerank(model="regression", query="a dog", documents=TEXTS, top_n=1)
        assert sorted(r.index for r in all_texts.results) == [0, 1, 2]
        scores = [r.relevance_score for r in all_texts.results]
        assert scores == sorted(scores, reverse=True) and 0 < scores[-1] and scores[0] < 1
        assert best.results[0].index == all_texts.results[0].index and len(best.results) == 1
    raises(cohere.errors.BadRequestError, lambda: client.rerank(model="single", query="a", documents=["a"]), "rank")
    return cohere


def check_hub():
    def client(name):
        return InferenceClient(model=f"{URL}/models/{name}", provider="hf-inference")

    context = "\u00c4 man had a dog. A big dog"
    answer = client("question_answering").question_answering(question="had a man?", context=context)
    assert context[answer.start:answer.end] == answer.answer and 0 < answer.score <= 1
    three = client("question_answering").question_answering(question="had a man?", context=context, top_k=3)
    assert [context[a.start:a.end] for a in three] == [a.answer for a in three] and three[0] == answer
    for a in three:  # whole words
        assert not context[a.start - 1:a.start].isalpha() and not context[a.end:a.end + 1].isalpha()
    assert client("encoder").health_check() and client("encoder").get_endpoint_info()["max_input_length"] == 24
    assert client("encoder").feature_extraction("a", dimensions=3, normalize=False).shape == (1, 3)
    import huggingface_hub
    return huggingface_hub


for check in [check_openai, check_langchain, check_cohere, check_hub]:
    module = check()
    print(module.__name__, getattr(module, "__version__", ""), "ok")
