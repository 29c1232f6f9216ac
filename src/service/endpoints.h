/* endpoints: the paths that a service answers, by the files that do. */
#ifndef KILN_SERVICE_ENDPOINTS_H
#define KILN_SERVICE_ENDPOINTS_H

#include "service/call.h"

/* The endpoints of each file; each list ends with a row of zeros. */
extern const struct endpoint operation_endpoints[]; /* health, metrics, runs */
extern const struct endpoint page_endpoints[];      /* the page for people */
extern const struct endpoint openai_endpoints[], openai_completions_endpoints[], openai_chat_endpoints[];
extern const struct endpoint tgi_endpoints[];
extern const struct endpoint ollama_endpoints[];
extern const struct endpoint token_calls_endpoints[];
extern const struct endpoint tei_endpoints[], rerank_endpoints[];
extern const struct endpoint hub_endpoints[];

/* Answers POST / and /models/NAME for a decoder: TGI's form at the root. */
void tgi_answer(struct call *c);

/* Answers 200 and nothing else; 503 as long as there are no models. */
void tei_answer_health(struct call *c);

/* Answers POST / for a reranker: TEI's form. */
void rerank_answer_tei(struct call *c);

#endif
