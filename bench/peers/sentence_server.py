#!/usr/bin/env python3
"""sentence-transformers behind HTTP, as people write it: an endpoint of OpenAI's embeddings that encodes the texts of each
request. usage: sentence_server.py MODEL PORT"""
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()


class Request(BaseModel):
    input: list[str]
    model: str = ""
    encoding_format: str = "float"


@app.get("/health")
def health():
    return {}


@app.post("/v1/embeddings")
def embeddings(request: Request):
    vectors = model.encode(request.input, normalize_embeddings=True)
    return {"object": "list", "data": [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
