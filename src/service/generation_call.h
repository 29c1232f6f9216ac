/* generation_call: what all calls to a decoder share: prompts of text or ids, n texts of each, the limits of
 * the model's window, stops, seeds, what is new of a text that is streamed, and counts.
 *
 * A dialect's state of a call begins with a struct generation_call.  generation_call_create makes it; the
 * dialect reads its fields into it, by the functions below and its own; generation_call_submit encodes the
 * prompts and hands the texts over.  Every function that returns false or NULL has failed the call.
 *
 * The rules:
 *   - Text i of prompt p is text p * n + i of the call.  With a seed it depends on the prompt, the seed and i
 *     alone, and text 0 is that of `kiln generate --seed`.
 *   - The part of a text that is sent is complete characters of UTF-8, and nothing that a stop may begin
 *     with. */
#ifndef KILN_SERVICE_GENERATION_CALL_H
#define KILN_SERVICE_GENERATION_CALL_H

#include "service/call.h"

struct generation_prompt {
    struct text_bytes text; /* borrowed from the body; bytes NULL: ids were given */
    struct id_list ids;     /* ids as given, or of the text */
    bool is_framed;         /* the text has the special tokens that begin it */
};

struct generation_text {
    struct generation g; /* first */
    struct generate_options options;
    const struct generation_prompt *prompt;
    int64_t number;               /* number of the text in the call */
    size_t n_sent, n_sent_tokens; /* bytes of its text, and tokens, that the client has */
    bool has_begun;               /* whether something was sent */
    int64_t n_characters;         /* characters of those tokens; their bytes of an incomplete character */
    struct buf uncounted;
};

struct generation_call {
    struct served_model *m;
    struct generate_options options; /* options of all texts; max_new_tokens is the dialect's default */
    bool has_limit;                  /* max_new_tokens was asked for; else it is cut to what fits */
    int64_t n;                       /* texts of each prompt */
    int64_t most_prompt_tokens;      /* most tokens read of a prompt, its last ones; 0: all */

    struct generation_prompt *prompts; /* [n_prompts] */
    size_t n_prompts;
    struct buf own_text;           /* text of a prompt that was made here */
    struct generation_text *texts; /* [n_texts] once they are handed over */
    struct generation **list;      /* [n_texts] */
    int64_t n_texts;
    const char **stops;
    struct token_bias *biases;

    /* Fails a call of which a prompt and its text are longer than the model's window of `most` tokens. */
    void (*fail_length)(struct call *c, int64_t most, int64_t n_prompt, int64_t n_new);
};

/* Chooses the model that generates, and hangs a zeroed state of `bytes` bytes on the call, with the options
 * of a choice by probability alone. */
void *generation_call_create(struct call *c, size_t bytes, const char *model);

/* Reads prompts: a string, an array of strings, of ids, or of arrays of ids; absent: an empty one. */
bool generation_call_read_prompts(struct call *c, const json_t *o, const char *key);

/* The one prompt is this text, which is taken over and has its special tokens, such as one that begins it. */
bool generation_call_take_prompt(struct call *c, struct buf *text);

/* Reads stops: a string or an array of strings; absent: none. */
bool generation_call_read_stops(struct call *c, const json_t *o, const char *key);

/* Reads the seed; absent: a number that nobody can guess. */
bool generation_call_read_seed(struct call *c, const json_t *o, const char *key);

/* Reads the most new tokens of a text, at least `min`; absent: the dialect's default, or what fits. */
bool generation_call_read_limit(struct call *c, const json_t *o, const char *key, int64_t min);

/* Encodes the prompts, checks what they ask for and hands the texts over.  `told` is called with the call and
 * a text that has a new token or has ended; NULL: the texts are not streamed. */
void generation_call_submit(struct call *c, void (*told)(void *self, struct generation *g),
                            void (*finish)(struct call *c));

/* Whether there is something of the text to be sent: new characters, or its end. */
bool generation_text_has_news(const struct generation_text *t);

/* The part of its text that was not sent, as a JSON string; it counts as sent from now on.  NULL: memory ran
 * out. */
json_t *generation_text_take(struct generation_text *t);

/* Appends the text of a token that follows `before`; before -1: at the beginning of a text. */
void generation_token_says(struct buf *out, const struct tokenizer *t, int32_t before, int32_t id);

/* Whether no text has failed; else the call fails as the first that did. */
bool generation_call_is_whole(struct call *c);

/* "stop" or "length", as OpenAI and Ollama say why a text ended. */
const char *generation_end_name(enum generation_end end);

#endif
