"""Asks a `kiln serve` of a decoder by the clients that people have: check_decoder_clients.py URL MODEL CLIENT.

MODEL is its name; each CLIENT is a Python package, and is asked for what it has: texts, streams, stops, counts, probabilities,
errors, models.  The model "chat" has the same weights, and a template that says "sXuY:" of a system's X and a user's Y."""

import importlib.metadata
import json
import sys

URL, MODEL = sys.argv[1], sys.argv[2]
PROMPT = "and the"
MESSAGES, CHAT_PROMPT = [{"role": "system", "content": "an"}, {"role": "user", "content": "the"}], "sanuthe:"


def fails(kind, f, *words):
    try:
        f()
    except kind as e:
        assert all(w in str(e) for w in words), str(e)
        return e
    raise AssertionError(f"{kind.__name__} was not raised")


def openai_chat(client):
    import openai

    asked = dict(model="chat", max_tokens=6, seed=3, temperature=1)
    text = client.completions.create(prompt=CHAT_PROMPT, logprobs=2, **asked)
    chat = client.chat.completions.create(messages=MESSAGES, logprobs=True, top_logprobs=2, **asked)
    choice = chat.choices[0]
    assert choice.message.role == "assistant" and choice.message.content == text.choices[0].text
    assert choice.finish_reason == text.choices[0].finish_reason and chat.usage == text.usage
    assert [t.token for t in choice.logprobs.content] == text.choices[0].logprobs.tokens
    assert [t.logprob for t in choice.logprobs.content] == text.choices[0].logprobs.token_logprobs
    assert all(len(t.top_logprobs) == 2 and t.bytes for t in choice.logprobs.content)
    chunks = list(client.chat.completions.create(messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **asked))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].usage == chat.usage
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == choice.message.content
    assert chunks[-2].choices[0].finish_reason == choice.finish_reason and len({c.id for c in chunks}) == 1
    parts = [{"role": m["role"], "content": [{"type": "text", "text": m["content"]}]} for m in MESSAGES]
    assert client.chat.completions.create(messages=parts, **asked).choices[0].message.content == choice.message.content
    create = lambda **more: client.chat.completions.create(model="chat", messages=MESSAGES, **more)
    fails(openai.BadRequestError, lambda: create(tools=[{"type": "function", "function": {"name": "f"}}]), "tools")
    e = fails(openai.BadRequestError, lambda: create(max_completion_tokens=10**6))
    assert e.code == "context_length_exceeded" and e.param == "messages"


def openai():
    import openai

    client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
    openai_chat(client)
    asked = dict(model=MODEL, prompt=PROMPT, max_tokens=6, seed=3, temperature=1)
    whole = client.completions.create(**asked, logprobs=2, echo=True)
    choice = whole.choices[0]
    assert choice.text.startswith(PROMPT) and choice.finish_reason in ("stop", "length")
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == whole.usage.total_tokens
    assert choice.logprobs.token_logprobs[0] is None and choice.logprobs.text_offset[0] == 0
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert PROMPT + "".join(c.choices[0].text for c in chunks[:-1]) == choice.text
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    assert len({c.id for c in chunks}) == 1
    several = client.completions.create(model=MODEL, prompt=["a", "b"], n=2, max_tokens=2)
    assert [c.index for c in several.choices] == [0, 1, 2, 3]
    assert client.completions.create(model=MODEL, prompt=[1, 2, 3], max_tokens=2).usage.prompt_tokens == 3
    extra = client.completions.create(model=MODEL, prompt="x", extra_body={"top_k": 5, "ignore_eos": True})
    assert extra.usage.completion_tokens == 16
    assert [m.id for m in client.models.list()] and client.models.retrieve(MODEL).id == MODEL
    e = fails(openai.NotFoundError, lambda: client.completions.create(model="other", prompt="x"), "other")
    assert e.code == "model_not_found" and e.type == "invalid_request_error"
    fails(openai.NotFoundError, lambda: client.models.retrieve("a/b"), "a/b")
    e = fails(openai.BadRequestError, lambda: client.completions.create(model=MODEL, prompt="x", max_tokens=10**6))
    assert e.code == "context_length_exceeded" and e.param == "prompt"
    fails(openai.BadRequestError, lambda: client.completions.create(model=MODEL, prompt=[10**6]), "1000000")
    fails(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=[]), "/v1/completions")
    fails(openai.NotFoundError, lambda: client.responses.create(model=MODEL, input="x"), "/v1/completions")


def langchain_openai():
    from langchain_openai import ChatOpenAI, OpenAI

    llm = OpenAI(base_url=URL + "/v1", api_key="none", model=MODEL, max_tokens=6, seed=3, max_retries=0)
    assert "".join(llm.stream(PROMPT)) == llm.invoke(PROMPT)
    answer = llm.generate([PROMPT, "a"])
    assert len(answer.generations) == 2 and answer.llm_output["token_usage"]["total_tokens"] > 0
    chat = ChatOpenAI(base_url=URL + "/v1", api_key="none", model="chat", max_tokens=6, seed=3, max_retries=0)
    assert "".join(c.content for c in chat.stream(MESSAGES)) == chat.invoke(MESSAGES).content


def huggingface_hub():
    from huggingface_hub import InferenceClient
    from huggingface_hub.errors import HfHubHTTPError

    for url in URL, f"{URL}/models/{MODEL}":
        client = InferenceClient(model=url)
        asked = dict(max_new_tokens=6, do_sample=True, seed=3)
        text = client.text_generation(PROMPT, **asked)
        assert "".join(client.text_generation(PROMPT, stream=True, **asked)) == text
        told = client.text_generation(PROMPT, details=True, decoder_input_details=True, top_n_tokens=2, **asked)
        assert told.generated_text == text and told.details.seed == 3
        assert len(told.details.tokens) == told.details.generated_tokens == len(told.details.top_tokens)
        assert told.details.prefill[0].logprob is None and told.details.prefill[1].logprob < 0
        last = list(client.text_generation(PROMPT, stream=True, details=True, **asked))[-1]
        assert last.generated_text == text and last.details.finish_reason in ("length", "eos_token")
        assert client.text_generation(PROMPT, return_full_text=True, **asked) == PROMPT + text
        fails(HfHubHTTPError, lambda: client.text_generation("x", max_new_tokens=10**6), "max_new_tokens")
        fails(HfHubHTTPError, lambda: client.chat_completion([{"role": "user", "content": "x"}]), "/v1/completions")
    client = InferenceClient(model=f"{URL}/models/chat")
    asked = dict(max_tokens=6, seed=3)
    text = client.chat_completion(MESSAGES, **asked).choices[0].message.content
    assert "".join(c.choices[0].delta.content or "" for c in client.chat_completion(MESSAGES, stream=True, **asked)) == text


def langchain_huggingface():
    from langchain_huggingface import HuggingFaceEndpoint

    llm = HuggingFaceEndpoint(endpoint_url=URL + "/", max_new_tokens=6, seed=3, huggingfacehub_api_token="none")
    assert "".join(llm.stream(PROMPT)) == llm.invoke(PROMPT)


def ollama():
    import ollama

    client = ollama.Client(host=URL)
    asked = dict(model=MODEL, prompt=PROMPT, options={"seed": 3, "num_predict": 6})
    whole = client.generate(**asked)
    lines = list(client.generate(**asked, stream=True))
    assert "".join(l.response for l in lines) == whole.response
    assert lines[-1].done and lines[-1].eval_count == whole.eval_count and whole.done_reason in ("stop", "length")
    assert whole.total_duration > 0 and whole.prompt_eval_count > 0
    assert MODEL in [m.model for m in client.list().models] and MODEL in [m.name for m in client.ps().models]
    assert "completion" in client.show(MODEL).capabilities
    assert client.show(MODEL + ":latest").details.family
    fails(ollama.ResponseError, lambda: client.generate(model="other", prompt="x"), "other")
    fails(ollama.ResponseError, lambda: client.generate(model=MODEL, prompt="x", system="y"), "system")


def langchain_ollama():
    from langchain_ollama import OllamaLLM

    llm = OllamaLLM(base_url=URL, model=MODEL, num_predict=6, seed=3, validate_model_on_init=True)
    assert "".join(llm.stream(PROMPT)) == llm.invoke(PROMPT)


client = sys.argv[3]
globals()[client]()
print(f"{client} {importlib.metadata.version(client.replace('_', '-'))}: ok")
