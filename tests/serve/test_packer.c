/* Requests that share batches: each gets the rows it gets alone, whatever becomes of the others. */
#define _GNU_SOURCE
#include "session_case.h"

#include "data/text_batch.h"
#include "serve/packer.h"

#include <math.h>

enum { MOST = 40, LONGEST = 12 };

static int64_t n_words; /* of the model */

/* A request of n sequences of different lengths, which ask for the word of their second token. */
struct asker {
    struct request request;
    int64_t n, seed;
    int64_t n_taken, fails_at; /* -1: never */
    double values[MOST];       /* of each sequence: what was taken */
};

static int64_t length(const void *self, int64_t i)
{
    const struct asker *a = self;
    return 3 + (i * 7 + a->seed) % (LONGEST - 2);
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct asker *a = self;
    int64_t n = length(self, i);
    int32_t *ids = text_batch_add(out, n, n, -1, key);
    for (int64_t k = 0; k < n; k++) {
        ids[k] = (int32_t)((5 + i * 11 + k * 3 + a->seed) % 16);
    }
    text_batch_masked_positions(out)[0] = 1;
    text_batch_masked_labels(out)[0] = ids[1];
    text_batch_take_masked(out, 1);
}

/* Of logits -log p of the label, which is the loss. */
static double read_value(const struct asker *a, int64_t i, const tensor *outputs)
{
    double sum = 0;
    if (!tensor_is_null(outputs[MODEL_WORD_LOSSES])) {
        EXPECT(tensor_is_null(outputs[MODEL_WORD_LOGITS]), "logits that nobody asked for");
        return tensor_load(outputs[MODEL_WORD_LOSSES], 0);
    }
    tensor logits = outputs[MODEL_WORD_LOGITS];
    EXPECT(logits.dims[0] == 1, "%lld rows for one asked token", (long long)logits.dims[0]);
    int64_t label = (5 + i * 11 + 3 + a->seed) % 16;
    for (int64_t k = 0; k < n_words; k++) {
        sum += exp(tensor_load(logits, k));
    }
    return log(sum) - tensor_load(logits, label);
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct asker *a = self;
    if (i == a->fails_at) {
        return status_error(STATUS_MEMORY, "no room for sequence %lld", (long long)i);
    }
    a->values[i] = read_value(a, i, outputs);
    a->n_taken++;
    return status_ok();
}

static void init(struct asker *a, int64_t n, int64_t seed, enum model_output output)
{
    *a = (struct asker){.n = n, .seed = seed, .fails_at = -1};
    a->request =
        (struct request){.source = {.name = "texts", .self = a, .n = n, .length = length, .add = add},
                         .n_asked = 1,
                         .outputs = 1U << output,
                         .take = take,
                         .self = a};
}

static void run(struct packer *p)
{
    for (bool more = true; more;) {
        EXPECT_OK(packer_step(p, &more));
    }
}

static void expect_same(const struct asker *a, const struct asker *b)
{
    EXPECT(a->n_taken == a->n && b->n_taken == a->n, "%lld of %lld", (long long)a->n_taken, (long long)a->n);
    for (int64_t i = 0; i < a->n; i++) {
        EXPECT_NEAR(a->values[i], b->values[i], 1e-5 * fabs(b->values[i]));
    }
}

static void requests_share_batches(struct packer *p)
{
    struct asker alone[2], a, b, none;
    for (int i = 0; i < 2; i++) {
        init(&alone[i], 20 + i, i, MODEL_WORD_LOSSES);
        EXPECT_OK(packer_answer(p, &alone[i].request));
    }
    init(&a, 20, 0, MODEL_WORD_LOSSES);
    init(&b, 21, 1, MODEL_WORD_LOGITS); /* other outputs begin another batch */
    init(&none, 0, 0, MODEL_WORD_LOSSES);
    packer_add(p, &a.request);
    packer_add(p, &none.request);
    packer_add(p, &b.request);
    run(p);
    expect_same(&a, &alone[0]);
    expect_same(&b, &alone[1]);
    EXPECT(a.request.ended && b.request.ended && none.request.ended && !failed(none.request.status),
           "an end");
}

static void others_go_on(struct packer *p)
{
    struct asker alone, gone, wrong, late, b;
    bool more;
    init(&alone, 15, 1, MODEL_WORD_LOSSES);
    EXPECT_OK(packer_answer(p, &alone.request));
    init(&gone, MOST, 3, MODEL_WORD_LOSSES);
    init(&wrong, 9, 4, MODEL_WORD_LOSSES);
    init(&b, 15, 1, MODEL_WORD_LOSSES);
    init(&late, 15, 5, MODEL_WORD_LOSSES);
    wrong.fails_at = 4;
    packer_add(p, &gone.request);
    packer_add(p, &wrong.request);
    packer_add(p, &b.request);
    packer_add(p, &late.request);
    EXPECT_OK(packer_step(p, &more));
    EXPECT_OK(packer_step(p, &more));
    EXPECT(gone.n_taken > 0 && gone.n_taken < MOST && !gone.request.ended, "%lld", (long long)gone.n_taken);
    int64_t before = gone.n_taken;
    gone.request.cancelled = late.request.cancelled = true;
    EXPECT_OK(packer_step(p, &more));
    EXPECT(late.request.ended && late.n_taken == 0, "a request that waits leaves at once");
    run(p);
    EXPECT(gone.n_taken == before && gone.request.ended, "rows of a request that was cancelled");
    EXPECT_ERROR(gone.request.status, STATUS_PREEMPTED, "cancelled");
    EXPECT_ERROR(wrong.request.status, STATUS_MEMORY, "sequence 4");
    EXPECT(wrong.request.ended && wrong.n_taken == 4, "%lld taken", (long long)wrong.n_taken);
    expect_same(&b, &alone);
}

/* A short request that came behind a long one has its turn after a batch of the long one's. */
static void a_short_one_does_not_wait(struct packer *p)
{
    struct asker long_one, short_one, alone;
    bool more;
    init(&alone, 1, 1, MODEL_WORD_LOSSES);
    EXPECT_OK(packer_answer(p, &alone.request));
    init(&long_one, MOST, 0, MODEL_WORD_LOSSES);
    init(&short_one, 1, 1, MODEL_WORD_LOSSES);
    packer_add(p, &long_one.request);
    packer_add(p, &short_one.request);
    for (int i = 0; i < 3; i++) { /* the rows of a batch are taken in the step after it */
        EXPECT_OK(packer_step(p, &more));
    }
    EXPECT(short_one.request.ended && !long_one.request.ended, "%lld of the long one's sequences came back",
           (long long)long_one.n_taken);
    run(p);
    expect_same(&short_one, &alone);
    EXPECT(long_one.n_taken == MOST, "%lld taken", (long long)long_one.n_taken);
}

/* Ends all: what runs, what waits. */
static bool yes(const void *context)
{
    (void)context;
    return true;
}

static void a_failure_of_the_device_ends_all(struct packer *p)
{
    struct asker a, b;
    bool more;
    init(&a, 20, 0, MODEL_WORD_LOSSES);
    init(&b, 20, 1, MODEL_WORD_LOSSES);
    packer_add(p, &a.request);
    packer_add(p, &b.request);
    p->net->x.interrupted = yes;
    EXPECT_OK(packer_step(p, &more));
    EXPECT_ERROR(packer_step(p, &more), STATUS_PREEMPTED, "");
    EXPECT(a.request.ended && b.request.ended && failed(a.request.status) && failed(b.request.status) &&
               !more,
           "an end");
    p->net->x.interrupted = NULL;
    p->net->x.status = status_ok();
    init(&a, 20, 0, MODEL_WORD_LOSSES);
    EXPECT_OK(packer_answer(p, &a.request));
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    struct session_options options = session_defaults();
    struct session s;
    struct packer p;
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    snprintf(path, sizeof path, "%s/masked_lm", directory);
    options.batching = BATCHING_FEW_ASKED;
    EXPECT_OK(session_open(&s, path, MODEL_TASK_MASKED_LM, &options));
    n_words = s.model->n_words;
    struct batch_limits limits = packer_limits(2 * BATCH_TOKEN_BUCKET, LONGEST);
    limits.n_labels = BATCH_LABEL_BUCKET;
    EXPECT_OK(packer_init(&p, &s.net, limits, tokenizer_tail_id(s.tokenizer),
                          1U << MODEL_WORD_LOGITS | 1U << MODEL_WORD_LOSSES));
    requests_share_batches(&p);
    others_go_on(&p);
    a_short_one_does_not_wait(&p);
    a_failure_of_the_device_ends_all(&p);
    packer_fini(&p);
    session_close(&s);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
