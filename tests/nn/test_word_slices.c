/* Ranks with a slice of the words each (dev/peers.h) compute what one rank with all of them computes: looked
 * up words, losses, correct answers, gradients and logits, in fp32 within 1e-6 of the largest element, for
 * numbers of words that no number of ranks divides, and where slices have no word at all; words with the same
 * largest logit in different slices are ranked as in one; and a chunk of rows costs two exchanges. */
#include "core/integers.h"
#include "core/rng.h"
#include "dist/comm_peers.h"
#include "nn/decoder/decoder_config.h"
#include "nn/text_batch_layout.h"
#include "nn/weights.h"
#include "nn/word_head.h"
#include "ops/ops.h"

#include "ranks.h"

#include <stdlib.h>

enum { ROWS = 37, HIDDEN = 8, MOST_VOCAB = 64, MEMORY = 1 << 20, MOST_RANKS = 4 };

static const double DEADLINE_S = 30;

static void fill(tensor t, uint64_t key, double amount)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        tensor_set(t, i, amount * rng_normal(key, (uint64_t)i));
    }
}

static tensor new_matrix(int64_t rows, int64_t cols)
{
    float *data = calloc((size_t)(rows * cols) + 1, sizeof *data);
    EXPECT(data != NULL, "no memory");
    return tensor_2d(data, DTYPE_F32, rows, cols);
}

static tensor new_vector(int64_t n)
{
    return tensor_1d(new_matrix(n, 1).data, DTYPE_F32, n);
}

static void expect_near(tensor got, tensor want, const char *what)
{
    double largest = 0;
    EXPECT(tensor_count(got) == tensor_count(want), "%s: %lld elements, not %lld", what,
           (long long)tensor_count(got), (long long)tensor_count(want));
    for (int64_t i = 0; i < tensor_count(want); i++) {
        largest = fmax(largest, fabs(tensor_get(want, i)));
    }
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double g = tensor_get(got, i), w = tensor_get(want, i);
        EXPECT(fabs(g - w) <= 1e-6 * largest, "%s %lld: %.9g, not %.9g; the largest is %g", what,
               (long long)i, g, w, largest);
    }
}

/* Rows [first, first + n) of a matrix or vector, as far as it has them. */
static tensor rows_of(tensor t, int64_t first, int64_t n)
{
    first = int_smaller(first, t.dims[0]);
    return tensor_slice(t, first, int_smaller(n, t.dims[0] - first));
}

/* The exec of a rank, which is a thread. */
static struct exec exec_of(const struct comm_peers *p)
{
    static _Thread_local _Alignas(64) char workspace[MEMORY];
    return (struct exec){.device = &device_cpu,
                         .ops = ops_cpu(),
                         .layer = "words",
                         .layer_index = -1,
                         .workspace = workspace,
                         .workspace_bytes = sizeof workspace,
                         .peers = p == NULL ? NULL : &p->peers};
}

/* ---- the head ---- */

struct head_case {
    int64_t n_words, padded, chunk;
};

/* The inputs: the same on all ranks. */
struct head_input {
    tensor z, e, b;
    int32_t labels[ROWS];
    double scale;
};

static const int64_t TWIN = 3; /* a word that the last word has the row of */

/* The last rows are whole numbers with which the twins' logits are exact, the same and the largest. */
static void make_input(struct head_input *in, const struct head_case *k)
{
    in->z = new_matrix(ROWS, HIDDEN);
    in->e = new_matrix(k->padded, HIDDEN);
    in->b = new_vector(k->padded);
    in->scale = 0.25;
    fill(in->z, 1, 1);
    fill(in->e, 2, 1);
    fill(in->b, 3, 1);
    for (int64_t i = 0; i < HIDDEN; i++) {
        tensor_set(in->e, TWIN * HIDDEN + i, 1 + i % 2);
        tensor_set(in->e, (k->n_words - 1) * HIDDEN + i, 1 + i % 2);
        for (int64_t m = ROWS - 4; m < ROWS; m++) {
            tensor_set(in->z, m * HIDDEN + i, 8);
        }
    }
    tensor_set(in->b, TWIN, -2);
    tensor_set(in->b, k->n_words - 1, -2);
    for (int64_t i = k->n_words; i < k->padded; i++) {
        tensor_set(in->b, i, 1000); /* counts for nothing */
    }
    for (int64_t m = 0; m < ROWS; m++) {
        in->labels[m] = m % 7 == 3 ? -1 : (int32_t)(m * 11 % k->n_words);
    }
    in->labels[ROWS - 2] = (int32_t)TWIN;
    in->labels[ROWS - 1] = (int32_t)k->n_words - 1;
}

static void free_input(struct head_input *in)
{
    free(in->z.data);
    free(in->e.data);
    free(in->b.data);
}

/* What a rank computes; its own slice of words. */
struct head_result {
    void *memory;
    struct word_head_acts acts;
    struct word_head_gradients g;
    int64_t first, n; /* its words */
    double sums[2], measured[2], peer_bytes;
};

/* All rows of a slice are here, those behind the last of the table as zeros. */
static tensor slice_of(tensor whole, int64_t first, int64_t n)
{
    tensor here = whole.n_dims == 2 ? new_matrix(n, whole.dims[1]) : new_vector(n);
    tensor from = rows_of(whole, first, n);
    memcpy(here.data, from.data, tensor_bytes(from));
    return here;
}

static void run_head(struct head_result *r, struct exec *x, const struct head_case *k, struct head_input *in)
{
    int size = peers_size(x);
    r->n = weights_vocab_rows(k->padded, size);
    r->first = peers_rank(x) * r->n;
    r->memory = aligned_alloc(256, MEMORY);
    struct arena arena = arena_over(r->memory, MEMORY);
    word_head_carve(&r->acts, &arena,
                    (struct word_head_room){.dtype = DTYPE_F32,
                                            .n_rows = ROWS,
                                            .chunk = k->chunk,
                                            .vocab_rows = r->n,
                                            .n_slices = size,
                                            .whole_logits = true});
    struct word_head h = {.rows = in->z,
                          .word = slice_of(in->e, r->first, r->n),
                          .bias = slice_of(in->b, r->first, r->n),
                          .labels = tensor_1d(in->labels, DTYPE_I32, ROWS),
                          .scale = tensor_1d(&in->scale, DTYPE_F64, 1),
                          .n_words = k->n_words};
    r->g = (struct word_head_gradients){new_matrix(ROWS, HIDDEN), new_matrix(r->n, HIDDEN), new_vector(r->n)};
    word_head_measure(x, tensor_1d(r->measured, DTYPE_F64, 2), &r->acts, &h);
    r->peer_bytes = x->totals.peer_bytes;
    word_head_learn(x, tensor_1d(r->sums, DTYPE_F64, 2), &r->g, &r->acts, &h);
    EXPECT_OK(x->status);
    word_head_forward(x, &r->acts, &h);
    EXPECT_OK(x->status);
    free(h.word.data);
    free(h.bias.data);
}

static void free_head(struct head_result *r)
{
    free(r->memory);
    free(r->g.rows.data);
    free(r->g.word.data);
    free(r->g.bias.data);
}

/* The first words of each row of logits, of the rows of the last chunk. */
static void expect_logits(const struct head_result *r, const struct head_result *one,
                          const struct head_case *k)
{
    int64_t n = one->acts.logits.dims[0];
    for (int64_t m = 0; m < n; m++) {
        tensor got = tensor_columns(rows_of(r->acts.all_logits, m, 1), 0, k->n_words);
        tensor want = tensor_columns(rows_of(one->acts.all_logits, m, 1), 0, k->n_words);
        expect_near(tensor_1d(got.data, DTYPE_F32, k->n_words), tensor_1d(want.data, DTYPE_F32, k->n_words),
                    "logit");
    }
}

static void expect_head(const struct head_result *r, const struct head_result *one, const struct head_case *k,
                        int size)
{
    const int32_t *correct = r->acts.correct.data, *wanted = one->acts.correct.data;
    expect_near(r->acts.loss, one->acts.loss, "the loss of row");
    expect_near(r->g.rows, one->g.rows, "the gradient of z at");
    tensor word = rows_of(one->g.word, r->first, r->n), bias = rows_of(one->g.bias, r->first, r->n);
    expect_near(rows_of(r->g.word, 0, word.dims[0]), word, "the gradient of the table at");
    expect_near(rows_of(r->g.bias, 0, bias.dims[0]), bias, "the gradient of the bias at");
    for (int64_t m = 0; m < ROWS; m++) {
        EXPECT(correct[m] == wanted[m], "row %lld is %s correct", (long long)m, wanted[m] ? "" : "not");
    }
    EXPECT(correct[ROWS - 2] && !correct[ROWS - 1], "of two largest logits not the first is chosen");
    EXPECT(r->sums[1] == one->sums[1] && r->measured[0] == r->sums[0] && r->measured[1] == r->sums[1],
           "other sums: %g, %g, not %g", r->sums[1], r->measured[1], one->sums[1]);
    EXPECT_NEAR(r->sums[0], one->sums[0], 1e-6 * one->sums[0]);
    double exchanged = ROWS * (double)(sizeof(float) + 3 * sizeof(double)); /* a maximum, three sums */
    EXPECT_NEAR(r->peer_bytes, 2 * exchanged * (size - 1) / size, 1e-6);
    expect_logits(r, one, k);
}

static void head_body(const struct comm *c, void *context)
{
    const struct head_case *k = context;
    struct comm_peers p;
    struct head_input in;
    struct head_result one = {0}, mine = {0};
    EXPECT_OK(comm_peers_init(&p, c));
    struct exec alone = exec_of(NULL), x = exec_of(&p);
    make_input(&in, k);
    run_head(&one, &alone, k, &in);
    run_head(&mine, &x, k, &in);
    expect_head(&mine, &one, k, c->size);
    free_head(&one);
    free_head(&mine);
    free_input(&in);
    comm_peers_fini(&p);
}

/* ---- a decoder's input layer and head ---- */

enum { TOKENS = 21, LABELS = 9 };

static struct decoder_config small(bool alibi)
{
    return (struct decoder_config){.vocab_size = 45,
                                   .n_words = 43,
                                   .n_positions = 16,
                                   .hidden_size = 12,
                                   .n_layers = 1,
                                   .n_heads = 4,
                                   .feed_forward_size = 24,
                                   .embedding_dropout = alibi ? 0 : 0.1,
                                   .initializer_range = 0.3,
                                   .norm_eps = 1e-5,
                                   .positions = alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                   .embedding_norm = alibi};
}

/* A batch of one sequence. */
struct tokens {
    int32_t ids[TOKENS], positions[TOKENS], keys[2 * TOKENS], cu[2], rows[LABELS], labels[LABELS];
    struct stream stream;
};

static void make_tokens(struct tokens *t)
{
    for (int32_t i = 0; i < TOKENS; i++) {
        t->ids[i] = i * 17 % 45;
        t->positions[i] = i % 16;
        t->keys[2 * i] = 1;
        t->keys[2 * i + 1] = i;
    }
    for (int32_t i = 0; i < LABELS; i++) {
        t->rows[i] = 2 * i;
        t->labels[i] = i == 4 ? -1 : i * 29 % 43;
    }
    t->ids[3] = t->ids[1]; /* its gradient is a sum */
    t->stream = (struct stream){.ids = tensor_1d(t->ids, DTYPE_I32, TOKENS),
                                .positions = tensor_1d(t->positions, DTYPE_I32, TOKENS),
                                .row_keys = tensor_2d(t->keys, DTYPE_I32, TOKENS, 2)};
    t->stream.fields[TEXT_MASKED_ROWS] = tensor_1d(t->rows, DTYPE_I32, LABELS);
    t->stream.fields[TEXT_MASKED_LABELS] = tensor_1d(t->labels, DTYPE_I32, LABELS);
}

/* A slice of a model, and what its passes leave. */
struct slice {
    struct param_table params;
    tensor weights, grads;
    void *w, *g, *acts, *memory;
    tensor in, dx;
    double sums[2];
};

static void carve(struct slice *s, const struct model *m)
{
    struct batch sizes = {.n_tokens = TOKENS, .n_labels = LABELS, .n_sequences = 1};
    struct model_memory memory = {.dtype = DTYPE_F32, .kept = true, .device = &device_cpu};
    s->memory = aligned_alloc(256, MEMORY);
    struct arena arena = arena_over(s->memory, MEMORY);
    m->type->carve_output(m, s->acts, MODEL_INPUT_LAYER, &arena, memory, &sizes);
    m->type->carve_output(m, s->acts, 0, &arena, memory, &sizes);
    m->type->carve_heads(m, s->acts, &arena, memory, &sizes);
    m->type->carve_scratch(m, s->acts, &arena, memory, &sizes);
}

/* The input layer, then random numbers in the place of the layer's, the heads, and both backwards. */
static void run_slice(struct slice *s, struct exec *x, const struct model *m, const struct tokens *t)
{
    double scale = 0.5;
    s->params.part = (struct param_part){.slice = peers_rank(x), .n_slices = peers_size(x)};
    EXPECT_OK(m->type->declare(m, &s->params));
    s->weights = new_vector(s->params.n_elements);
    s->grads = new_vector(s->params.n_elements);
    param_table_initialize(s->weights, &s->params, 11);
    EXPECT_OK(m->type->create_weights(m, &s->w, &s->params, s->weights, s->weights, s->weights));
    EXPECT_OK(m->type->create_weights(m, &s->g, &s->params, s->grads, s->grads, s->grads));
    EXPECT_OK(m->type->create_acts(m, &s->params.part, &s->acts));
    carve(s, m);
    s->in = new_matrix(TOKENS, m->hidden_size);
    s->dx = new_matrix(TOKENS, m->hidden_size);
    struct model_pass p = {.x = x,
                           .model = m,
                           .acts = s->acts,
                           .weights = s->w,
                           .grads = s->g,
                           .stream = &t->stream,
                           .loss_scales = tensor_1d(&scale, DTYPE_F64, 1),
                           .training = true,
                           .adds = true};
    m->type->input_forward(&p);
    EXPECT_OK(x->status);
    memcpy(s->in.data, m->type->output(s->acts, MODEL_INPUT_LAYER).data, tensor_bytes(s->in));
    fill(m->type->output(s->acts, 0), 12, 1);
    m->type->heads_learn(&p, s->dx, tensor_1d(s->sums, DTYPE_F64, 2));
    tensor din = new_matrix(TOKENS, m->hidden_size);
    fill(din, 13, 1);
    m->type->input_backward(&p, din);
    EXPECT_OK(x->status);
    free(din.data);
}

static void free_slice(struct slice *s, const struct model *m)
{
    m->type->destroy_weights(s->w);
    m->type->destroy_weights(s->g);
    m->type->destroy_acts(s->acts);
    param_table_fini(&s->params);
    free(s->weights.data);
    free(s->grads.data);
    free(s->memory);
    free(s->in.data);
    free(s->dx.data);
}

static void expect_slice(const struct slice *s, const struct slice *one)
{
    expect_near(s->in, one->in, "the input layer's output at");
    expect_near(s->dx, one->dx, "the gradient of the last layer's output at");
    EXPECT_NEAR(s->sums[0], one->sums[0], 1e-6 * one->sums[0]);
    EXPECT(s->sums[1] == one->sums[1], "%g correct, not %g", s->sums[1], one->sums[1]);
    for (int i = 0; i < s->params.n; i++) {
        const struct param *p = &s->params.params[i], *whole = param_table_find(&one->params, p->name);
        if (p->layer == 0 || param_count(p) == 0) {
            continue; /* of the layer, which does not run */
        }
        tensor wanted = rows_of(param_view(whole, one->grads), p->first[0], p->dims[0]);
        expect_near(param_view(p, s->grads), wanted, p->name);
    }
}

static void decoder_body(const struct comm *c, void *context)
{
    const struct model *m = context;
    struct comm_peers p;
    struct tokens t;
    struct slice one = {0}, mine = {0};
    EXPECT_OK(comm_peers_init(&p, c));
    struct exec alone = exec_of(NULL), x = exec_of(&p);
    uint64_t key = rng_key(3, 4);
    alone.dropout_key = x.dropout_key = &key;
    make_tokens(&t);
    run_slice(&one, &alone, m, &t);
    run_slice(&mine, &x, m, &t);
    expect_slice(&mine, &one);
    free_slice(&one, m);
    free_slice(&mine, m);
    comm_peers_fini(&p);
}

/* An id that no rank has is an error of all, by its number. */
static void strange_body(const struct comm *c, void *context)
{
    struct comm_peers p;
    int32_t id = 45;
    float table[MOST_VOCAB * HIDDEN] = {0}, out[HIDDEN];
    (void)context;
    EXPECT_OK(comm_peers_init(&p, c));
    struct exec x = exec_of(&p);
    x.ops->gather_slice(&x, tensor_2d(out, DTYPE_F32, 1, HIDDEN), tensor_2d(table, DTYPE_F32, 24, HIDDEN),
                        tensor_1d(&id, DTYPE_I32, 1), 24 * c->rank, 45);
    peers_sum(&x, tensor_2d(out, DTYPE_F32, 1, HIDDEN));
    EXPECT_ERROR(x.status, STATUS_DATA, "row 45 at row 0 is outside of [0, 45)");
    comm_peers_fini(&p);
}

int main(void)
{
    static const struct head_case cases[] = {{45, 48, 7}, {45, 48, 64}, {24, 24, 16}, {5, 8, 16}};
    struct model *models[2];
    struct decoder_config gpt2 = small(false), bloom = small(true);
    EXPECT_OK(gpt2_model_create(&models[0], &gpt2, MODEL_TASK_CAUSAL_LM));
    EXPECT_OK(bloom_model_create(&models[1], &bloom, MODEL_TASK_CAUSAL_LM));
    for (int size = 1; size <= MOST_RANKS; size *= 2) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            run_ranks(size, DEADLINE_S, head_body, (void *)&cases[i]);
        }
        for (int i = 0; i < 2; i++) {
            run_ranks(size, DEADLINE_S, decoder_body, models[i]);
        }
    }
    run_ranks(2, DEADLINE_S, strange_body, NULL);
    for (int i = 0; i < 2; i++) {
        free(models[i]);
    }
    return 0;
}
