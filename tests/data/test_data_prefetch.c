/* Tests of data/prefetch: the same steps as without it, an end at any moment, and errors that reach the
 * trainer. */
#include "fixture_loader.h"

#include "data/prefetch.h"

#include <semaphore.h>

enum { VOCAB = 5000, N_STEPS = 50 };

static struct bert_loader_config config_of(const struct indexed *store, int32_t vocab_size)
{
    struct bert_loader_config c = fixture_loader(store, vocab_size);
    c.seed = 1;
    c.batch.max_seq_length = 32;
    c.max_predictions_per_seq = 5;
    c.batch.train_batch_size = 6;
    c.batch.gradient_accumulation_steps = 2;
    return c;
}

static void expect_same(const struct batch_step *a, const struct batch_step *b, int64_t number)
{
    EXPECT(a->n_tokens == b->n_tokens && memcmp(a->n_labels, b->n_labels, sizeof a->n_labels) == 0,
           "counts of step %lld", (long long)number);
    for (int64_t k = 0; k < a->n_micro; k++) {
        const struct batch *x = &a->micro[k], *y = &b->micro[k];
        EXPECT(x->n_tokens == y->n_tokens &&
                   memcmp(x->ids, y->ids, (size_t)x->n_tokens * sizeof *x->ids) == 0 &&
                   x->n_labels == y->n_labels &&
                   memcmp(x->fields[TEXT_MASKED_LABELS], y->fields[TEXT_MASKED_LABELS],
                          (size_t)x->n_labels * sizeof *x->ids) == 0,
               "step %lld", (long long)number);
    }
}

static sem_t filled;

static struct status fill_and_say(const void *loader, int64_t number, struct batch_step *out)
{
    struct status s = bert_loader_source(loader).fill(loader, number, out);
    sem_post(&filled);
    return s;
}

static void steps_are_the_same(const struct bert_loader *l)
{
    struct prefetch p;
    struct batch_step alone;
    struct batch_source source = bert_loader_source(l);
    int64_t next = 7; /* to be heard of */
    source.fill = fill_and_say;
    EXPECT(sem_init(&filled, 0, 0) == 0, "no semaphore");
    EXPECT_OK(bert_loader_init_step(&l->config, &alone));
    EXPECT_OK(prefetch_open(&p, &source, 0, 1, false, 7, 7 + N_STEPS));
    for (int64_t number = 7; number <= 7 + N_STEPS; number++) {
        const struct batch_step *step;
        EXPECT_OK(prefetch_next(&p, &step));
        /* the thread gets ahead, and must not touch the step that is held */
        for (; number % 5 == 0 && next <= number + 1 && next <= 7 + N_STEPS; next++) {
            EXPECT(sem_wait(&filled) == 0, "no step is filled");
        }
        EXPECT_OK(bert_loader_step(l, number, &alone));
        expect_same(step, &alone, number);
    }
    prefetch_close(&p);
    prefetch_close(&p);
    sem_destroy(&filled);
    batch_step_fini(&alone);
}

static void it_can_end_at_any_moment(const struct bert_loader *l)
{
    struct batch_source source = bert_loader_source(l);
    for (int64_t taken = 0; taken < 20; taken++) {
        struct prefetch p;
        EXPECT_OK(prefetch_open(&p, &source, 0, 1, false, 1, taken < 3 ? 3 : 1000000));
        for (int64_t i = 0; i < taken && i < 3; i++) {
            const struct batch_step *step;
            EXPECT_OK(prefetch_next(&p, &step));
        }
        prefetch_close(&p);
    }
    struct prefetch none;
    EXPECT_OK(prefetch_open(&none, &source, 0, 1, false, 5, 4));
    prefetch_close(&none);
}

static void errors_are_passed_on(const struct indexed *store)
{
    struct bert_loader l;
    struct prefetch p;
    const struct batch_step *step;
    EXPECT_OK(bert_loader_open(&l, config_of(store, 50)));
    struct batch_source source = bert_loader_source(&l);
    EXPECT_OK(prefetch_open(&p, &source, 0, 1, false, 1, 10));
    EXPECT_ERROR(prefetch_next(&p, &step), STATUS_DATA, "the vocabulary has 50 words");
    EXPECT_ERROR(prefetch_next(&p, &step), STATUS_DATA, "the vocabulary has 50 words");
    prefetch_close(&p);
    bert_loader_close(&l);
}

int main(void)
{
    struct indexed store;
    struct bert_loader l;
    fixture_store(&store, "store", 60, 12, 20, VOCAB);
    EXPECT_OK(bert_loader_open(&l, config_of(&store, VOCAB)));
    steps_are_the_same(&l);
    it_can_end_at_any_moment(&l);
    errors_are_passed_on(&store);
    bert_loader_close(&l);
    indexed_close(&store);
    fixture_remove();
    return 0;
}
