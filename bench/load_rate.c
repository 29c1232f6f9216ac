/* load_rate: how fast training's batches are made from a token store, or from HDF5 files, padded or packed.
 *
 * usage: load_rate VOCAB PLACE LENGTH PREDICTIONS BATCH STEPS
 *
 * PLACE is the prefix of a store (DIR/train) or a directory of HDF5 files, of this length.  Steps of BATCH
 * records are made one after the other, as the thread does that makes batches ahead of training; HDF5 files
 * are unpacked in a process of their own meanwhile. Prints sequences a second of the clock and of processor
 * time, that process's included: a shared machine changes the latter less. */
#include "core/clock.h"
#include "data/bert/bert_loader.h"
#include "data/bert/shard_loader.h"
#include "io/token_store.h"
#include "text/tokenizer_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { MAX_BATCH = 65536 };

struct wanted {
    const char *vocab, *place;
    int64_t length, predictions, batch, steps;
};

static double processor_s(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

static struct status make_steps(const struct batch_source *source, const struct wanted *w,
                                int64_t *n_sequences)
{
    struct batch_step step;
    TRY(batch_step_init(&step, source->n_micro, source->layout, source->limits));
    struct status s = status_ok();
    for (int64_t i = 1; i <= w->steps && !failed(s); i++) {
        s = source->fill(source->self, i, &step);
        *n_sequences += step.n_sequences;
    }
    batch_step_fini(&step);
    return s;
}

static struct status read_store(const struct wanted *w, const struct tokenizer *t, int64_t *n_sequences)
{
    struct token_store store;
    struct bert_loader loader;
    TRY(token_store_open(&store, w->place));
    struct bert_loader_config c = {.store = &store.index,
                                   .seed = 1,
                                   .batch.max_seq_length = w->length,
                                   .max_predictions_per_seq = w->predictions,
                                   .batch.train_batch_size = w->batch,
                                   .batch.gradient_accumulation_steps = 1,
                                   .masked_lm_prob = 0.15,
                                   .short_seq_prob = 0.1};
    struct status s = bert_loader_set_tokens(&c, t);
    s = failed(s) ? s : bert_loader_open(&loader, c);
    if (!failed(s)) {
        struct batch_source source = bert_loader_source(&loader);
        s = make_steps(&source, w, n_sequences);
        bert_loader_close(&loader);
    }
    token_store_close(&store);
    return s;
}

static struct status read_shards(const struct wanted *w, const struct tokenizer *t, int64_t *n_sequences)
{
    struct shard_loader loader;
    TRY(shard_loader_open(&loader, (struct shard_loader_config){.directory = w->place,
                                                                .word = "training",
                                                                .vocab_size = t->n,
                                                                .pad_id = t->special[SPECIAL_PAD],
                                                                .seed = 1,
                                                                .batch.train_batch_size = w->batch,
                                                                .batch.gradient_accumulation_steps = 1,
                                                                .allow_packed = true}));
    struct batch_source source = shard_loader_source(&loader);
    struct status s = make_steps(&source, w, n_sequences);
    shard_loader_close(&loader); /* its process ends, and its time is known */
    return s;
}

static struct status run(const struct wanted *w)
{
    struct tokenizer t;
    int64_t n = 0, start_ns = clock_ns();
    TRY(tokenizer_open_vocabulary(&t, w->vocab, true));
    struct status s = (file_is_directory(w->place) ? read_shards : read_store)(w, &t, &n);
    tokenizer_fini(&t);
    double here = processor_s(RUSAGE_SELF), there = processor_s(RUSAGE_CHILDREN);
    if (!failed(s)) {
        printf("%lld sequences, %.0f a second of the clock, %.0f a second of processor time (%.2f s making "
               "batches, %.2f s unpacking "
               "HDF5)\n",
               (long long)n, (double)n / clock_since_s(start_ns), (double)n / (here + there), here, there);
    }
    return s;
}

int main(int n_args, char **args)
{
    if (shard_process_is_wanted(n_args, args)) {
        return shard_process_serve();
    }
    struct wanted w = {0};
    if (n_args == 7) {
        w = (struct wanted){args[1], args[2], atoll(args[3]), atoll(args[4]), atoll(args[5]), atoll(args[6])};
    }
    if (w.batch < 1 || w.batch > MAX_BATCH || w.steps < 1) {
        fprintf(stderr, "usage: load_rate VOCAB PLACE LENGTH PREDICTIONS BATCH STEPS\n");
        return 64;
    }
    struct status s = run(&w);
    if (failed(s)) {
        fprintf(stderr, "load_rate: %s\n", s.message);
    }
    return failed(s);
}
