/* served_models: the models that a server answers with, each loaded once, with a session and a lane of the
 * engine for each thing that it answers.  A set is loaded completely; requests hold the set that they began
 * with, so that another can take its place (struct service). */
#ifndef KILN_SERVICE_SERVED_MODELS_H
#define KILN_SERVICE_SERVED_MODELS_H

#include "serve/answer_kind.h"
#include "serve/text_engine.h"
#include "serve/session.h"
#include "text/chat_template.h"

#include <pthread.h>

/* Answers over HTTP: the rows of ANSWERS_PUBLIC. */
enum { SERVED_ANSWERS = ANSWER_N_PUBLIC };

/* A path that is served, and its name; NULL: the last part of the path. */
struct served_source {
    const char *name, *path;
};

/* The name of a source, on the heap; NULL: memory ran out. */
char *served_source_name(const struct served_source *source);

struct served_options {
    struct session_options session; /* options of all models; n_prompts and cache_bytes of decoders */
    struct text_engine_options engine;
};

struct served_model {
    char *name, *path;
    struct network_plan plan, plans[SERVED_ANSWERS]; /* plan of its weights; plans of its sessions */
    struct session model;                            /* holds the weights */
    struct session sessions[SERVED_ANSWERS];
    struct lane *lanes[SERVED_ANSWERS];    /* NULL: the model does not answer this, */
    struct status why_not[SERVED_ANSWERS]; /* and why */
    struct chat_template chat;             /* template of a decoder */
    bool has_chat;                         /* else: */
    struct status why_no_chat;             /* OK: it has no chat template */
    struct scratch_list *scratches;        /* unused scratches of its tokenizer */
    pthread_mutex_t lock;                  /* guards the scratches */
};

struct served_models {
    struct served_model *models; /* [n] */
    int n;
    struct served_options options; /* options, with the budget of the caches that 0 stands for */
    struct text_engine *engine;
    double loaded_s;              /* the time of the wall clock */
    int64_t n_holders;            /* guarded by service's lock, and */
    struct served_models *before; /* the set that this one replaced, until nobody holds it; NULL: none */
};

/* Reads and checks everything but weights, and plans the memory of all sessions.  STATUS_USAGE: two models of
 * one name; STATUS_MEMORY: they need more than is free; else as session_open. */
struct status served_models_open(struct served_models **set, const struct served_source *sources, int n,
                                 const struct served_options *o);

/* Reads the weights of an open set, and starts its engine. */
struct status served_models_load(struct served_models *set);

/* Appends what each model answers, and the memory that this needs: a line a model, and one for all. */
void served_models_describe(struct buf *out, const struct served_models *set);

/* Frees the set; safe on NULL.  No work may be left. */
void served_models_free(struct served_models *set);

/* The model of a name or a path; NULL: there is none. */
struct served_model *served_models_find(struct served_models *set, const char *name);

/* The first model that answers this; NULL: none does. */
struct served_model *served_models_first(struct served_models *set, enum answer a);

/* Tokens of a text that the model reads, by its files for sentences where it has them. */
int64_t served_model_length(const struct served_model *m);

/* A scratch of the model's tokenizer for the calling thread, until it is given back.  STATUS_MEMORY. */
struct status served_model_take_scratch(struct served_model *m, struct tokenizer_scratch **scratch);
void served_model_give_scratch(struct served_model *m, struct tokenizer_scratch *scratch);

#endif
