/* session: a model directory ready to answer: vocabulary, tokenizer, weights and the memory of one forward pass.  It
 * belongs to one thread. */
#ifndef KILN_SERVE_SESSION_H
#define KILN_SERVE_SESSION_H

#include "text/wordpiece.h"
#include "train/trainer.h"

struct session {
    struct vocab vocab;
    struct tokenizer tokenizer;
    struct trainer model; /* not training: weights and activations only */
    struct bert_batch batch;
};

/* Opens a checkpoint or model directory: config.json, model.safetensors, vocab.txt, tokenizer_config.json. */
struct status session_open(struct session *s, const char *path);

/* Safe on a zeroed struct and after a failed open. */
void session_close(struct session *s);

/* What a session on this model needs, allocating nothing. */
struct status session_plan(struct trainer_plan *plan, const char *path);

#endif
