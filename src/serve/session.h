/* session: a model directory ready for inference: vocabulary, tokenizer, weights and the memory of one
 * forward pass.  It belongs to one thread. */
#ifndef KILN_SERVE_SESSION_H
#define KILN_SERVE_SESSION_H

#include "model/model_dir.h"
#include "ops/backend.h"
#include "pass/network_files.h"
#include "serve/answer_kind.h"
#include "serve/packer.h"
#include "serve/page_pool.h"
#include "serve/sentence_model.h"
#include "text/tokenizer.h"

/* The device and the dtype that a model computes with. */
struct session_options {
    struct backend backend;
    enum dtype dtype; /* dtype of activations and, without int8, of the matrices that products read */
    bool int8; /* matrices are int8: a decoder's, or those of an encoder's layers, with all else in fp32 */
    struct model_dir_given given; /* files for a model that lacks them */
    enum batching batching;       /* others than BATCHING_BY_TASK are for the tasks that predict words */
    /* A slice of the layers and words is here, and these ranks have the others; their functions are set
     * before the first batch (network_config.peers).  NULL: all of it */
    const struct peers *peers;
    int64_t n_layers;  /* the first layers, without the others; 0: all of them */
    int64_t n_prompts; /* prompts continued at once, for MODEL_TASK_CAUSAL_LM; 0: SESSION_PROMPTS */
    /* bytes of keys and values, at least those of a text of the model's length; 0: those of n_prompts such
     * texts, in half of the free memory at most */
    size_t cache_bytes;
    const struct load_watch *watch; /* told as weights are read; NULL: nobody is */
};

enum { SESSION_PROMPTS = 8 };

/* The options of the cpu in fp32. */
struct session_options session_defaults(void);

/* Sets device and dtype by name: a device of backend_find, and "fp32", "bf16", "fp16" or "int8", which
 * computes all but products in bf16.  STATUS_USAGE says why this is not possible. */
struct status session_options_find(struct session_options *o, const char *device, const char *dtype);

/* The score that a classifier of one label makes of its logit for a pair of texts, by the words that
 * sentence-transformers and transformers leave in config.json. */
struct cross_encoder {
    /* the one of sentence_transformers.activation_fn, or of sbert_ce_default_activation_function; else a
     * sigmoid, as in sentence-transformers */
    enum sentence_activation activation;
    bool is_regression; /* "problem_type" says that the logit is the answer */
};

struct session {
    struct model_dir dir;              /* without its files; empty where the session is shared */
    const struct tokenizer *tokenizer; /* in `dir`, or in the shared model */
    struct tokenizer_scratch scratch;
    struct input_frame frame; /* special tokens around the model's input */
    int64_t max_length;       /* tokens of a sequence, special ones included */
    int64_t batch_tokens;     /* tokens of a batch, unless one text alone needs more */
    struct model *model;      /* owned */
    struct network net;
    struct packer packer;
    struct page_pool pages;                /* pages of keys and values, where texts are continued */
    int64_t text_length;                   /* the part of max_length that serve/embed reads of a text */
    struct sentence_model files;           /* viewed by `sentence`, unless the session is shared */
    const struct sentence_model *sentence; /* how the model makes vectors */
    struct cross_encoder scores;           /* scores of pairs of texts, where there is one label */
    struct status sentence_status;         /* reason why kiln cannot make vectors, from session_open_model */
};

/* Opens a checkpoint or any model directory (model/model_dir.h) for a task, whose head it must have; the
 * pooler of MODEL_TASK_ENCODER may be missing, since nothing reads it.  Of n_prompts texts that are
 * continued (BATCHING_BY_TASK of MODEL_TASK_CAUSAL_LM), keys and values are cached (serve/generate.h).  For
 * MODEL_TASK_ENCODER the files of a sentence model are read too, and refused as sentence_model_open does. */
struct status session_open(struct session *s, const char *path, enum model_task task,
                           const struct session_options *o);

/* Opens everything in a model directory, for session_open_shared, with almost no memory for activations: its
 * files, and then its weights. */
struct status session_open_model(struct session *s, const char *path, const struct session_options *o);
struct status session_open_files(struct session *s, const char *path);
struct status session_load_model(struct session *s, const struct session_options *o);

/* Opens a session for a task over the tokenizer and weights of `model`, which session_open_model opened and
 * which must outlive it; of the options, how batches are filled and the cache. Sessions over one model may
 * run in different threads; on a device each has its own context. Neither struct may be moved. STATUS_DATA:
 * the model lacks the task's head, or makes its vectors in a way that kiln does not support. */
struct status session_open_shared(struct session *s, const struct session *model, enum model_task task,
                                  const struct session_options *o);

/* Weights in memory that something else holds and may change between calls, such as a trainer. */
struct session_weights {
    const struct network *net;
    const struct model_family *family;
    const void *config; /* configuration of the family */
    const struct tokenizer *tokenizer;
};

/* Opens a session over such weights, which must outlive it, in their dtype; all layers must be here. */
struct status session_open_weights(struct session *s, const struct session_weights *w, enum model_task task,
                                   const struct session_options *o);

/* Safe on a zeroed struct and after a failed open. */
void session_close(struct session *s);

/* The plan of a session on this model, without reading weights. */
struct status session_plan(struct network_plan *plan, const char *path, enum model_task task,
                           const struct session_options *o);

/* The plan of a model whose files are open, and of a session over it; here weight_bytes stand for those of
 * the model. Fails as session_load_model and session_open_shared would. */
struct status session_plan_model(struct network_plan *plan, const struct session *model,
                                 const struct session_options *o);
struct status session_plan_shared(struct network_plan *plan, const struct session *model,
                                  enum model_task task, const struct session_options *o);

#endif
