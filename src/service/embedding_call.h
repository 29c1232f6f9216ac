/* embedding_call: texts, or the ids of texts, of a request become vectors; the endpoints of all dialects that
 * answer with vectors make one of these. */
#ifndef KILN_SERVICE_EMBEDDING_CALL_H
#define KILN_SERVICE_EMBEDDING_CALL_H

#include "serve/embed.h"
#include "service/call.h"

/* Most texts of a request: OpenAI's limit, and what a server takes at once in other dialects. */
enum { EMBEDDING_OPENAI_TEXTS = 2048, EMBEDDING_TEXTS = 16384 };

struct embedding_call {
    struct call *call;

    /* For the endpoint to set, before embedding_call_start. */
    struct embed_options options;
    const char *key;  /* field of the texts, for messages */
    int64_t most;     /* texts; EMBEDDING_TEXTS */
    bool takes_empty; /* an empty text is one without words; else it is wrong */
    bool of_tokens;   /* a vector of each token; else of each text */
    bool in_base64;   /* embedding_call_write writes base64 of the little-endian fp32 */

    /* Replies, once there are vectors. */
    void (*answer)(struct embedding_call *e);

    struct embed_plan plan;
    int64_t n;      /* texts */
    float *vectors; /* the job's */
    struct embed_job job;
    struct request *requests[1];
};

/* Hangs one on the call, with vectors that are scaled to length 1.  NULL: the call has failed. */
struct embedding_call *embedding_call_make(struct call *c);

/* Reads what call_cut does, "normalize", "prompt_name", "dimensions" and "encoding_format" as
 * far as the object has them.  False: the call has failed. */
bool embedding_call_read_options(struct embedding_call *e, const json_t *o);

/* Embeds `input`, a text, an array of ids, or an array of such, with the model of this name (call_model); the
 * call then ends by e->answer or has failed. */
void embedding_call_start(struct embedding_call *e, const char *model, const json_t *input);

/* The texts {"source_sentence", "sentences"}: replies with their cosine similarity. */
void embedding_call_compare(struct embedding_call *e, const json_t *inputs);

/* Appends the vector of a text as JSON. */
void embedding_call_write(struct buf *out, const struct embedding_call *e, int64_t text);

/* Appends the name of the model as JSON. */
void embedding_call_write_model(struct buf *out, const struct embedding_call *e);

/* Replies with a list of the vectors of all texts, or of those of their tokens. */
void embedding_call_reply_list(struct embedding_call *e);

#endif
