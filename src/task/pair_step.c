#include "task/pair_step.h"

#include "data/encoded_texts.h"
#include "task/pair_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- examples ---- */

static int64_t length(const void *self, int64_t i)
{
    const struct pair_source *s = self;
    return encoded_texts_length(s->texts, 2 * i) + encoded_texts_length(s->texts, 2 * i + 1);
}

/* The keys of a pair's dropout rows are twice its number in the batch, and one more; its score takes the
 * place of a label of pairs. */
static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct pair_source *s = self;
    for (int side = 0; side < 2; side++) {
        encoded_texts_append(s->texts, 2 * i + side, 2 * key + side, out);
        if (s->scores != NULL) {
            memcpy(&out->fields[TEXT_PAIR_LABELS][out->n_sequences - 1], &s->scores[i], sizeof(int32_t));
        }
    }
}

struct example_source pair_step_source(const struct pair_source *s)
{
    return (struct example_source){.name = "pairs",
                                   .self = s,
                                   .n = s->texts->n / 2,
                                   .max_length = s->texts->max_length,
                                   .n_sequences = 2,
                                   .length = length,
                                   .add = add};
}

/* ---- vectors ---- */

void pair_step_pool(float *v, tensor rows, enum sentence_pooling pooling)
{
    int64_t n = pooling == SENTENCE_CLS ? 1 : rows.dims[0], width = rows.dims[1];
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t r = 0; r < n; r++) {
            sum += tensor_load(rows, r * width + c);
        }
        v[c] = (float)(sum / (double)n);
    }
}

/* Rows that ranks exchange: `n_tokens` of a rank's part, then for each of its sequences its number in the
 * global batch, its pair's score and its vector. */
struct shared {
    size_t row_bytes; /* bytes of a rank's row, with space for the most sequences of a rank */
    int64_t n_slots, width;
    char *rows; /* [ranks] */
};

struct shared_sequence {
    int32_t number; /* -1: none */
    float score;
    float vector[];
};

static size_t slot_bytes(int64_t width)
{
    return sizeof(struct shared_sequence) + (size_t)width * sizeof(float);
}

static struct shared_sequence *slot_of(const struct shared *s, int rank, int64_t slot)
{
    char *row = s->rows + (size_t)rank * s->row_bytes;
    return (struct shared_sequence *)(void *)(row + sizeof(int64_t) + (size_t)slot * slot_bytes(s->width));
}

static int64_t *tokens_of(const struct shared *s, int rank)
{
    return (int64_t *)(void *)(s->rows + (size_t)rank * s->row_bytes);
}

/* Runs a micro-batch as the step will, and keeps the vectors of its sequences in slots from *slot on. */
static struct status compute(const struct pair_step *p, struct trainer *t, const struct batch *micro,
                             const struct shared *s, int rank, int64_t *slot)
{
    struct stage *stage = &t->net.stage;
    stage_begin(stage, micro, &t->numbers);
    stage_round_changed(stage);
    stage_forward(stage, true);
    tensor out = stage_output(stage);
    tensor host = tensor_2d(malloc(tensor_bytes(out)), out.dtype, out.dims[0], out.dims[1]);
    FAIL_IF(host.data == NULL, STATUS_MEMORY, "out of memory for the vectors of a micro-batch");
    exec_copy_out(&t->net.x, host.data, out.data, tensor_bytes(out));
    for (int64_t i = 0; i < micro->n_sequences && !failed(t->net.x.status); i++, ++*slot) {
        int64_t first = micro->cu_seqlens[i], n = micro->cu_seqlens[i + 1] - first;
        struct shared_sequence *to = slot_of(s, rank, *slot);
        to->number = micro->row_keys[2 * first];
        memcpy(&to->score, &micro->fields[TEXT_PAIR_LABELS][i], sizeof to->score);
        pair_step_pool(to->vector, tensor_slice(host, first, n), p->pooling);
    }
    free(host.data);
    return t->net.x.status;
}

static struct status share(const struct pair_step *p, struct trainer *t, const struct batch_step *batch,
                           int64_t step, const struct comm *world, const struct shared *s)
{
    struct status status = status_ok();
    int64_t slot = 0;
    trainer_begin_step(t, step, 1, 0); /* sets the key of the dropout */
    for (int64_t k = 0; k < batch->n_micro && !failed(status); k++) {
        *tokens_of(s, world->rank) += batch->micro[k].n_real_tokens;
        if (batch->micro[k].n_sequences > 0) {
            status = compute(p, t, &batch->micro[k], s, world->rank, &slot);
        }
    }
    for (; slot < s->n_slots; slot++) {
        slot_of(s, world->rank, slot)->number = -1;
    }
    TRY(comm_agree(world, status));
    return comm_share_rows(world, s->rows, s->row_bytes);
}

/* ---- gradients ---- */

/* Lays the gradients of the vectors into the micro-batches: those of a mean over the rows of each. */
static void put_gradients(const struct pair_step *p, struct batch_step *batch, const double *gradients,
                          int64_t width, double factor)
{
    for (int64_t k = 0; k < batch->n_micro; k++) {
        struct batch *b = &batch->micro[k];
        for (int64_t i = 0; i < b->n_sequences; i++) {
            int64_t first = b->cu_seqlens[i], n = b->cu_seqlens[i + 1] - first;
            const double *g = gradients + b->row_keys[2 * first] * width;
            for (int64_t r = 0; r < n; r++) {
                bool counts = p->pooling != SENTENCE_CLS || r == 0;
                double share = counts ? factor / (double)(p->pooling == SENTENCE_CLS ? 1 : n) : 0;
                for (int64_t c = 0; c < width; c++) {
                    float value = (float)(share * g[c]);
                    memcpy(&b->fields[TEXT_CLASS_LABELS][(first + r) * width + c], &value, sizeof value);
                }
            }
        }
    }
    batch_step_count(batch);
}

/* Collects the vectors of the global batch in its order, and computes its loss. */
static struct status compute_loss(struct pair_step *p, struct batch_step *batch, const struct comm *world,
                                  const struct shared *s, int64_t n_pairs)
{
    size_t width = (size_t)s->width, n_most = (size_t)n_pairs;
    float *vectors = malloc(2 * n_most * width * sizeof *vectors), *scores = malloc(n_most * sizeof *scores);
    double *gradients = malloc(2 * n_most * width * sizeof *gradients);
    int64_t n = 0, n_tokens = 0;
    struct status status =
        status_error(STATUS_MEMORY, "out of memory for the vectors of %lld pairs", (long long)n_pairs);
    if (vectors != NULL && scores != NULL && gradients != NULL) {
        for (int rank = 0; rank < world->size; rank++) {
            n_tokens += *tokens_of(s, rank);
            for (int64_t k = 0; k < s->n_slots; k++) {
                const struct shared_sequence *x = slot_of(s, rank, k);
                if (x->number >= 0) {
                    memcpy(vectors + (size_t)x->number * width, x->vector, width * sizeof *vectors);
                    scores[x->number / 2] = x->score;
                    n++;
                }
            }
        }
        struct pair_vectors v = {vectors, p->is_scored ? scores : NULL, n / 2, s->width, p->scale};
        status = pair_loss(&p->loss, gradients, &v);
        if (!failed(status) && !isfinite(p->loss)) {
            status = status_error(STATUS_NUMERIC, "the loss of the pairs is not finite");
        }
    }
    if (!failed(status)) { /* scaled for nn/vector_head.h */
        put_gradients(p, batch, gradients, s->width, -0.5 * (double)n_tokens * (double)s->width);
    }
    free(vectors);
    free(scores);
    free(gradients);
    return status;
}

struct status pair_step_prepare(struct pair_step *p, struct trainer *t, struct batch_step *batch,
                                int64_t step, const struct comm *world, int64_t n_pairs)
{
    int64_t n_most = (batch->n_all_micro + world->size - 1) / world->size; /* micro-batches of a rank */
    struct shared s = {.width = t->config.net.model->hidden_size,
                       .n_slots = 2 * n_most * (n_pairs / batch->n_all_micro)};
    s.row_bytes = sizeof(int64_t) + (size_t)s.n_slots * slot_bytes(s.width);
    s.rows = calloc((size_t)world->size, s.row_bytes);
    struct status status = comm_agree(
        world, s.rows != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for vectors"));
    status = failed(status) ? status : share(p, t, batch, step, world, &s);
    status = failed(status) ? status : compute_loss(p, batch, world, &s, n_pairs);
    free(s.rows);
    return status;
}
