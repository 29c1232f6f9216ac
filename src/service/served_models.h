/* served_models: the models that a server answers with, each loaded once, with a session and a lane of the
 * engine for each thing that it answers.  A set is loaded whole; requests hold the set that they began with,
 * so that another can take its place (struct service). */
#ifndef KILN_SERVICE_SERVED_MODELS_H
#define KILN_SERVICE_SERVED_MODELS_H

#include "serve/answer_kind.h"
#include "serve/text_engine.h"
#include "serve/session.h"

#include <pthread.h>

/* What is answered over HTTP are the rows of ANSWERS_PUBLIC. */
enum { SERVED_ANSWERS = ANSWER_N_PUBLIC };

/* A model of which to serve, and its name; NULL: the last part of the path. */
struct served_source {
    const char *name, *path;
};

struct served_options {
    struct session_options session; /* of all models; of decoders n_prompts and cache_bytes */
    struct text_engine_options engine;
};

struct served_model {
    char *name, *path;
    struct session model; /* its weights */
    struct session sessions[SERVED_ANSWERS];
    struct lane *lanes[SERVED_ANSWERS];    /* NULL: it does not answer this, */
    struct status why_not[SERVED_ANSWERS]; /* and why */
    struct scratch_list *scratches;        /* of its tokenizer, that no thread uses */
    pthread_mutex_t lock;                  /* of them */
};

struct served_models {
    struct served_model *models; /* [n] */
    int n;
    struct text_engine *engine;
    double loaded_s;   /* the time of the wall clock */
    int64_t n_holders; /* guarded by service's lock */
};

/* Loads all.  STATUS_USAGE: two of a name; else as session_open. */
struct status served_models_load(struct served_models **set, const struct served_source *sources, int n,
                                 const struct served_options *o);
void served_models_free(struct served_models *set); /* safe on NULL; no work may be left */

/* The model of a name or a path; NULL: there is none. */
struct served_model *served_models_find(struct served_models *set, const char *name);

/* The first model that answers this; NULL: none does. */
struct served_model *served_models_first(struct served_models *set, enum answer a);

/* A scratch of the model's tokenizer for the calling thread, until it is given back.  STATUS_MEMORY. */
struct status served_model_take_scratch(struct served_model *m, struct tokenizer_scratch **scratch);
void served_model_give_scratch(struct served_model *m, struct tokenizer_scratch *scratch);

#endif
