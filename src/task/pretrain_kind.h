/* pretrain_kind: what is a family's own in a run of pre-training: its settings, and where its batches come
 * from.  A new family fills one; task/ has a folder for each. */
#ifndef KILN_TASK_PRETRAIN_KIND_H
#define KILN_TASK_PRETRAIN_KIND_H

#include "data/batch_source.h"
#include "data/token_balance.h"
#include "io/token_store.h"
#include "model/model_family.h"
#include "model/training_state.h"
#include "serve/session.h"
#include "task/pretrain.h"
#include "task/run_state.h"
#include "train/evaluate.h"

struct pretrain_inputs;
struct store_check;
struct pretrain_source;

enum { PRETRAIN_PATH_BYTES = 1024 };

/* The samples of one directory, as a row of pretrain_kind.sources opened them.  Does not move while it is
 * open. */
struct pretrain_data {
    const struct pretrain_source *from; /* NULL: there is no such data */
    char place[PRETRAIN_PATH_BYTES];    /* the directory in which they lie: that of the flag, or one in it */
    struct batch_source source;         /* `self` is NULL if there is no such data */
    void *self;                         /* the row's own */
    const struct token_store *store; /* store that it draws from, checked while training begins; NULL: none */
    char store_path[PRETRAIN_PATH_BYTES]; /* the prefix of its files */
    const struct token_balance *balance;  /* balance by which sequences are dealt to ranks; NULL: none */
    char id[160];                         /* equal for equal samples; of training data it is run_state's */
    int64_t longest;                      /* tokens of a sample */
    bool has_length;                      /* the files say how long samples are, not --max_seq_length */
    double steps_per_epoch;               /* steps that take all samples once; need not be whole */
    double n_tokens;                      /* tokens of the text to train on; 0: unknown */
};

/* A kind of directory to train on. */
struct pretrain_source {
    const char *name;      /* name in messages: "token store" */
    bool needs_vocabulary; /* training needs a vocabulary */
    bool of_prefix;        /* source of commands whose data is a PREFIX (run_flag_names) */

    /* Whether the directory holds such data, to train on or held out; sets where it lies. */
    bool (*recognises)(char place[PRETRAIN_PATH_BYTES], const char *directory, bool heldout);

    /* Whether held-out data lies with the training data; sets where.  STATUS_DATA. */
    struct status (*find_heldout)(bool *found, char place[PRETRAIN_PATH_BYTES],
                                  const struct pretrain_data *train);

    /* Whether there are samples for one evaluation after the last step; sets where.  NULL: there are none. */
    struct status (*find_test)(bool *found, char place[PRETRAIN_PATH_BYTES],
                               const struct pretrain_data *train);

    /* Opens what lies in d->place, and sets the rest of *d, which is &in->train, &in->heldout or &in->test;
     * vocabulary and model are open, and so is in->train when held-out data is.  After a failure `close`
     * follows.  STATUS_USAGE names a flag that cannot be with such data. */
    struct status (*open)(struct pretrain_data *d, const struct pretrain_inputs *in,
                          const struct pretrain_options *o);

    /* Makes what only training needs, before the first step, on all ranks.  NULL: nothing. */
    struct status (*begin)(struct pretrain_data *d, const struct pretrain_options *o);

    /* Adds what it draws from to the check that runs while training begins.  NULL: d->store is all. */
    struct status (*add_checks)(const struct pretrain_data *d, struct store_check *check);

    /* Frees what only the making of batches needs, once they are made; the store stays open.
     * NULL: nothing. */
    void (*release)(struct pretrain_data *d);

    /* Frees everything, after `release` too; self may be NULL. */
    void (*close)(struct pretrain_data *d);

    /* Logs what the training data is, the flags that it overrides, and what all data takes.  NULL:
     * nothing. */
    void (*announce)(const struct pretrain_inputs *in, const struct pretrain_options *o);
};

/* What a model makes of a prompt while it learns. */
struct pretrain_sample {
    enum model_task task;  /* task of the session */
    const char *must_have; /* text that a prompt must have; NULL: any may be */

    /* Appends what follows the prompt, or fills its gaps. */
    struct status (*draw)(struct buf *out, struct session *s, const char *prompt, uint64_t seed);
};

/* Each function finds its flags in o->own; those from `check` on may be NULL, where there is
 * nothing to do. */
struct pretrain_kind {
    const struct model_family *family;
    enum model_task foreign_task; /* task whose tensors runs of other programs have */
    unsigned may_be_new; /* 1 << part for each head that a model to start from may lack (enum names_part) */
    const struct pretrain_source *const *sources; /* sources in the order of asking; NULL ends them */

    /* Parts of the message about data that none recognises: what a directory lacks, and what it should be. */
    const char *lacks, *wants;
    /* What the data in a directory are instead, if they are too many; NULL: `lacks` says it. */
    const char *(*has_too_many)(const char *directory);

    struct pretrain_sample sample;

    enum model_task (*task)(const struct pretrain_options *o);

    /* Upper bounds of the batches that the flags alone ask for, for a dry run without data. */
    struct status (*assume)(struct batch_limits *limits, const struct pretrain_options *o);

    /* STATUS_USAGE names flags of its own that cannot be. */
    struct status (*check)(const struct pretrain_options *o);

    /* Sets what flags say of the family's configuration, in addition to its file.  STATUS_USAGE: such a model
     * cannot be trained with these flags. */
    struct status (*configure)(void *config, const struct pretrain_options *o);

    /* Sets its settings in the state of a fresh run. */
    void (*set_state)(struct run_state *state, const struct pretrain_options *o);

    /* STATUS_USAGE: a run of these flags does not resume from such a state, though the architecture is the
     * same. */
    struct status (*check_checkpoint)(const struct pretrain_options *o, const struct training_state *from);

    /* Measures what counts of n-grams of the training text lose on the first n_samples held-out samples;
     * score->n_samples stays 0 if the flags turn it off.  A thread calls it while the run trains. */
    struct status (*count_ngrams)(struct ngram_score *score, const struct pretrain_inputs *in,
                                  int64_t n_samples, const struct pretrain_options *o);

    /* Flags, as a list, with which a new model leaves the plateau of word frequencies sooner, except those
     * that are given; empty: none.  NULL: its models do not stay on a plateau. */
    void (*advise)(char *text, size_t text_bytes, const struct pretrain_options *o);
};

/* ---- what the flags of a run mean to its loop and its trainer, and which cannot go together ---- */

/* The schedule of the learning rate, and the optimizer. */
struct schedule pretrain_schedule(const struct pretrain_options *o);
struct optimizer pretrain_optimizer(const struct pretrain_options *o);

/* Layers that --checkpoint_activations recomputes together, at this --checkpoint_activations_interval. */
int64_t pretrain_recomputed_layers(int64_t interval, int64_t n_layers);
int64_t pretrain_recompute(const struct pretrain_options *o, const struct model *model);

/* The command if it is one of fine-tuning, for own_files.h; NULL: pre-training. */
const char *pretrain_tuning_command(const struct pretrain_options *o);

/* The configuration's name for people. */
const char *pretrain_config_name(const struct pretrain_options *o);

/* Held-out samples that evaluations of `eval_iters` batches have taken before step `step`. */
int64_t pretrain_validated_before(const struct pretrain_options *o, int64_t step);

/* The samples of a step, and those before it. */
struct batch_growth_step pretrain_samples_at(const struct pretrain_options *o, int64_t step);

/* State of a fresh run, without its data. */
struct run_state pretrain_state(const struct pretrain_options *o, struct precision precision);

/* In-phase step after which this run ends. */
int64_t pretrain_last_step(const struct pretrain_options *o);

/* Groups of micro-batches into which ranks divide a step. */
int64_t pretrain_groups(const struct pretrain_options *o);

/* STATUS_USAGE names flags that contradict each other. */
struct status pretrain_check(const struct pretrain_options *o);

/* STATUS_USAGE names a flag that cannot be with these ranks.  The batch is still that of one rank. */
struct status pretrain_check_ranks(const struct pretrain_options *o);

#endif
