/* openai_generation: what completions and chat completions of OpenAI share: fields, how tokens are spelled
 * and rated, the form of answers and of streams. */
#ifndef KILN_SERVICE_OPENAI_GENERATION_H
#define KILN_SERVICE_OPENAI_GENERATION_H

#include "service/generation_call.h"

/* The beginning of the message that a text does not fit the model's window: clients look for it and its
 * code. */
#define OPENAI_TOO_LONG "This model's maximum context length is "

struct openai_generation {
    struct generation_call q; /* first */
    bool streams, counts_at_end;
    int64_t n_log_p;    /* alternatives for each token; -1: no probabilities are reported */
    const char *prompt; /* the field that texts come from */
    const char *object; /* type of an answer, its field "object" */
    char id[48];
    int64_t created_s;

    /* Makes one of an answer's choices, a complete text. */
    json_t *(*choice)(struct call *c, struct generation_text *t);
};

/* Chooses the model, and hangs a zeroed state of `bytes` bytes on the call, which begins with a struct
 * openai_generation.  Ids begin with `prefix`. */
void *openai_generation_create(struct call *c, size_t bytes, const char *prompt, const char *object,
                               const char *prefix);

/* Reads stream, n, seed, stop, what chooses tokens, and ignore_eos of vLLM. */
bool openai_generation_read(struct call *c);

/* Hands the texts over; `told` as in generation_call_submit, where it streams. */
void openai_generation_submit(struct call *c, void (*told)(void *self, struct generation *g));

/* Sends one choice of a stream. */
void openai_generation_send(struct call *c, json_t *choice);

/* Appends the text of a token that follows `before`, or the spelling of its bytes, which are appended to
 * `bytes` unless it is NULL. */
void openai_generation_spell(struct buf *out, struct buf *bytes, const struct tokenizer *t, int32_t before,
                             int32_t id);

/* The log of a probability as JSON; null for a token without one. */
json_t *openai_generation_log_p(struct token_probability p);

/* {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal"} of the new tokens from `first` on,
 * of a text with options.rates. */
json_t *openai_generation_report(const struct tokenizer *t, const struct generation *g, size_t first);

#endif
