#include "serve/perplexity.h"

#include "core/integers.h"
#include "data/text_batch.h"

#include <math.h>
#include <string.h>

struct status perplexity_init(struct perplexity *p, const struct session *s, int64_t context, int64_t stride)
{
    *p = (struct perplexity){.context = context > 0 ? context : s->max_length};
    p->stride = stride > 0 ? stride : p->context;
    FAIL_IF(p->context > s->max_length, STATUS_USAGE,
            "--context is %lld tokens, but the model reads at most %lld", (long long)p->context,
            (long long)s->max_length);
    return p->stride <= p->context
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--stride %lld is longer than the context, %lld tokens: some would not count",
                              (long long)p->stride, (long long)p->context);
}

/* The windows of a text as a source: inputs [begin, end), which predict the token after each. */
static int64_t begin_of(const struct perplexity_job *j, int64_t i)
{
    return i * j->p->stride;
}

static int64_t end_of(const struct perplexity_job *j, int64_t i)
{
    return int_smaller(begin_of(j, i) + j->p->context, j->n - 1);
}

/* The first token that window i counts. */
static int64_t first_counted(const struct perplexity_job *j, int64_t i)
{
    return i == 0 ? 1 : end_of(j, i - 1) + 1;
}

static int64_t n_windows(const struct perplexity_job *j)
{
    int64_t behind = j->n - 1 - j->p->context;
    return behind <= 0 ? 1 : (behind + j->p->stride - 1) / j->p->stride + 1;
}

static int64_t length(const void *self, int64_t i)
{
    const struct perplexity_job *j = self;
    return end_of(j, i) - begin_of(j, i);
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct perplexity_job *j = self;
    int64_t begin = begin_of(j, i), n = length(self, i), m = 0;
    memcpy(text_batch_add(out, n, n, -1, key), j->ids + begin, (size_t)n * sizeof *j->ids);
    for (int64_t t = first_counted(j, i); t <= end_of(j, i); t++) {
        text_batch_masked_positions(out)[m] = (int32_t)(t - 1 - begin);
        text_batch_masked_labels(out)[m++] = j->ids[t];
    }
    text_batch_take_masked(out, m);
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct perplexity_job *j = self;
    tensor losses = outputs[MODEL_WORD_LOSSES];
    (void)i;
    for (int64_t k = 0; k < tensor_count(losses); k++) {
        j->p->nats += tensor_load(losses, k);
    }
    j->p->n_tokens += tensor_count(losses);
    return status_ok();
}

struct status perplexity_job_make(struct perplexity_job *j, struct perplexity *p, const int32_t *ids,
                                  int64_t n, int64_t n_bytes)
{
    *j = (struct perplexity_job){.p = p, .ids = ids, .n = n};
    FAIL_IF(
        n < 2, STATUS_DATA,
        "a text of %lld tokens has none to predict, since the first has no token before it: give 2 or more",
        (long long)n);
    j->request = (struct request){
        .source = {.name = "windows", .self = j, .n = n_windows(j), .length = length, .add = add},
        .n_asked = p->context,
        .outputs = 1U << MODEL_WORD_LOSSES,
        .take = take,
        .self = j};
    p->n_bytes += n_bytes;
    return status_ok();
}

struct status perplexity_add_ids(struct perplexity *p, struct session *s, const int32_t *ids, int64_t n,
                                 int64_t n_bytes)
{
    struct perplexity_job j;
    TRY(perplexity_job_make(&j, p, ids, n, n_bytes));
    return packer_answer(&s->packer, &j.request);
}

void perplexity_join(struct perplexity *p, const struct perplexity *other)
{
    p->n_tokens += other->n_tokens;
    p->n_bytes += other->n_bytes;
    p->nats += other->nats;
}

double perplexity_nats(const struct perplexity *p)
{
    return p->n_tokens > 0 ? p->nats / (double)p->n_tokens : 0;
}

double perplexity_bits(const struct perplexity *p)
{
    return p->n_bytes > 0 ? p->nats / log(2) / (double)p->n_bytes : 0;
}
