#include "corpus/sentence_learning.h"

#include "core/log.h"
#include "core/stop.h"
#include "corpus/corpus_pass.h"
#include "text/punkt_trainer.h"

#include <string.h>

struct learning {
    struct punkt_trainer trainer;
    size_t n_bytes;
    bool is_full;
};

static struct status take(void *context, const struct corpus_item *item)
{
    struct learning *l = context;
    TRY(stop_before_work());
    for (int64_t i = 0; i < item->document.n_paragraphs; i++) {
        struct paragraph p = document_paragraph(&item->document, i);
        if (l->n_bytes + p.n > SENTENCE_LEARNING_BYTES) {
            l->is_full = true; /* an error is how a sink ends a pass */
            return status_error(STATUS_INTERNAL, "sentences have been learned");
        }
        TRY(punkt_trainer_add(&l->trainer, p.text, p.n));
        l->n_bytes += p.n;
    }
    return status_ok();
}

/* The pass that learns, from the beginning; quiet, since the pass that follows warns. */
static struct status read_beginning(struct learning *l, struct corpus *c, uint64_t input_bytes)
{
    struct corpus_sink sink = {.context = l, .take = take};
    bool quiet = c->options.quiet;
    TRY(corpus_seek(c, (struct corpus_place){0}));
    c->options.quiet = true;
    c->most_unpacked_bytes = input_bytes;
    struct status s = corpus_pass_run(c, NULL, &sink);
    c->most_unpacked_bytes = 0;
    c->options.quiet = quiet;
    if (!failed(s) && !quiet && corpus_unpacked_bytes(c) >= input_bytes &&
        l->n_bytes < SENTENCE_LEARNING_LEAST_BYTES) {
        log_warning("the first %.1f MB of the input have only %.1f kB of text, too little to learn "
                    "abbreviations from; sentences are split with English ones",
                    (double)input_bytes / 1e6, (double)l->n_bytes / 1e3);
    }
    return l->is_full ? status_ok() : s;
}

struct status sentence_learning_run(struct corpus *c, struct punkt *p, uint64_t input_bytes)
{
    struct learning l = {0};
    struct corpus_place place = corpus_place(c);
    struct source_counts counts = c->counts;
    int64_t fates[DOCUMENT_N_FATES];
    memcpy(fates, c->fates, sizeof fates);
    struct status s = read_beginning(&l, c, input_bytes);
    if (!failed(s)) {
        s = corpus_seek(c, place);
    }
    if (!failed(s) && l.n_bytes >= SENTENCE_LEARNING_LEAST_BYTES) {
        s = punkt_trainer_finish(&l.trainer, p);
    }
    punkt_trainer_fini(&l.trainer);
    c->counts = counts;
    memcpy(c->fates, fates, sizeof fates);
    return s;
}
