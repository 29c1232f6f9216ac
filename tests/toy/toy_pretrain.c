/* How a toy model is pre-trained: steps 7 and 8. */
#include "toy_family.h"

#include "data/text_batch.h"
#include "model/checkpoint.h"
#include "task/pretrain_inputs.h"

#include <stdlib.h>
#include <string.h>

/* ---- 7. batches: each sequence of a token store, one behind the other ---- */

struct toy_source {
    struct token_store store;
    int64_t batch_size, micro_size, longest;
};

static int64_t tokens_of(const struct toy_source *t, int64_t sequence)
{
    int64_t n = indexed_offset(&t->store.index, sequence + 1) - indexed_offset(&t->store.index, sequence);
    return n < t->longest ? n : t->longest;
}

/* Appends sample number g of the run: each token but the first is a label of the row before it. */
static void add_sample(const struct toy_source *t, int64_t g, struct batch *b)
{
    int64_t sequence = g % t->store.index.n_sequences, n = tokens_of(t, sequence);
    int32_t *ids = text_batch_add(b, n, n, -1, (int32_t)g);
    indexed_copy(&t->store.index, ids, indexed_offset(&t->store.index, sequence), n);
    for (int64_t i = 0; i + 1 < n; i++) {
        text_batch_masked_positions(b)[i] = (int32_t)i;
        text_batch_masked_labels(b)[i] = ids[i + 1];
    }
    text_batch_take_masked(b, n - 1);
}

static void add_samples(const struct toy_source *t, int64_t first, int64_t n, struct batch *b)
{
    batch_clear(b);
    for (int64_t i = 0; i < n; i++) {
        add_sample(t, first + i, b);
    }
    batch_finish(b, 0);
}

static struct status fill(const void *self, int64_t step, struct batch_step *out)
{
    const struct toy_source *t = self;
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t before = batch_step_number(out, k) * t->micro_size;
        add_samples(t, (step - 1) * t->batch_size + before, t->micro_size, &out->micro[k]);
    }
    out->n_to_fill = out->n_all_micro;
    batch_step_count(out);
    return status_ok();
}

static int64_t heldout_samples(const struct toy_source *t, int64_t n)
{
    return n < t->store.index.n_sequences ? n : t->store.index.n_sequences;
}

static int64_t heldout_batches(const void *self, int64_t n)
{
    const struct toy_source *t = self;
    return (heldout_samples(t, n) + t->micro_size - 1) / t->micro_size;
}

static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct toy_source *t = self;
    int64_t first = index * t->micro_size, left = heldout_samples(t, n) - first;
    add_samples(t, first, left < t->micro_size ? left : t->micro_size, out);
    return status_ok();
}

static struct status count_words(const void *self, double *counts, int64_t vocab_size)
{
    const struct toy_source *t = self;
    for (int64_t i = 0; i < t->store.index.n_tokens; i++) {
        int32_t id;
        indexed_copy(&t->store.index, &id, i, 1);
        counts[id] += id < vocab_size;
    }
    return status_ok();
}

static bool recognises(char place[PRETRAIN_PATH_BYTES], const char *directory, bool heldout)
{
    char path[CHECKPOINT_PATH_BYTES];
    snprintf(place, PRETRAIN_PATH_BYTES, "%s", directory);
    return !failed(checkpoint_path(path, "%s/%s.idx", directory, heldout ? "heldout" : "train")) &&
           file_exists(path);
}

static struct status find_heldout(bool *found, char place[PRETRAIN_PATH_BYTES],
                                  const struct pretrain_data *train)
{
    *found = recognises(place, train->place, true);
    return status_ok();
}

static struct status open(struct pretrain_data *d, const struct pretrain_inputs *in,
                          const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct toy_source *t = d->self = calloc(1, sizeof *t);
    TRY(t == NULL ? status_error(STATUS_MEMORY, "out of memory for samples") : status_ok());
    TRY(checkpoint_path(path, "%s/%s", d->place, d == &in->train ? "train" : "heldout"));
    TRY(token_store_open(&t->store, path));
    TRY(token_store_check_vocab(&t->store, path, in->tokenizer.hash, in->tokenizer.n));
    TRY(batch_check_cut(o->run.batch.train_batch_size, o->run.batch.gradient_accumulation_steps));
    t->batch_size = o->run.batch.train_batch_size;
    t->micro_size = o->run.batch.train_batch_size / o->run.batch.gradient_accumulation_steps;
    t->longest = o->run.batch.max_seq_length;
    d->store = &t->store;
    snprintf(d->store_path, sizeof d->store_path, "%s", path);
    d->longest = t->longest;
    d->source = (struct batch_source){.self = t,
                                      .layout = &text_batch_layout,
                                      .limits = text_batch_limits(t->micro_size, t->longest, t->longest),
                                      .n_micro = o->run.batch.gradient_accumulation_steps,
                                      .fill = fill,
                                      .heldout_batches = heldout_batches,
                                      .heldout = heldout,
                                      .count_words = count_words};
    d->steps_per_epoch = (double)t->store.index.n_sequences / (double)t->batch_size;
    snprintf(d->id, sizeof d->id, "toy store %08x-%08x", t->store.info.bin_crc, t->store.info.idx_crc);
    return status_ok();
}

static void close(struct pretrain_data *d)
{
    struct toy_source *t = d->self;
    if (t != NULL) {
        token_store_close(&t->store);
    }
    free(t);
}

static const struct pretrain_source toy_store = {.name = "token store",
                                                 .needs_vocabulary = true,
                                                 .recognises = recognises,
                                                 .find_heldout = find_heldout,
                                                 .open = open,
                                                 .close = close};

static const struct pretrain_source *const sources[] = {&toy_store, NULL};

/* ---- 8. the run, which is everybody's ---- */

static enum model_task task(const struct pretrain_options *o)
{
    (void)o;
    return MODEL_TASK_CAUSAL_LM;
}

static struct status assume(struct batch_limits *limits, const struct pretrain_options *o)
{
    *limits = text_batch_limits(o->run.batch.train_batch_size / o->run.batch.gradient_accumulation_steps,
                                o->run.batch.max_seq_length, o->run.batch.max_seq_length);
    return status_ok();
}

const struct pretrain_kind toy_pretrain = {.family = &toy_family,
                                           .foreign_task = MODEL_TASK_CAUSAL_LM,
                                           .sources = sources,
                                           .lacks = "has no train.idx",
                                           .wants = "a token store",
                                           .task = task,
                                           .assume = assume};
