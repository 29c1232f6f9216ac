/* Two steps of each optimizer on four weights, worked by hand in double precision from the equations of
 * ops.h: w = [0.5, -1, 2, 0.25], lr 0.01, gradients [0.3, -0.4, 1.2, 0] and [-0.1, 0.2, 0.4, -0.8], moments
 * from zero, betas (0.9, 0.999), eps 1e-6.  Steps on several
 * tensors at once are by tests/golden/make_optim_vectors.py. */
#include "core/json.h"
#include "ops/ops.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "test.h"

enum { N = 4, STEPS = 2, MOST_TENSORS = 8, MOST_ELEMENTS = 40, SCRATCH_BYTES = 8192 };

static const double start[N] = {0.5, -1, 2, 0.25};
static const double gradients[STEPS][N] = {{0.3, -0.4, 1.2, 0}, {-0.1, 0.2, 0.4, -0.8}};

static const struct vector {
    const char *name;
    const struct optimizer_kind *kind;
    bool corrected;
    double decay, max_norm;
    double want[STEPS][N];
} vectors[] = {
    {"lamb, decay 0.01, clipped to 1",
     &optimizer_lamb,
     true,
     0.01,
     1,
     {{0.486780710, -0.986714928, 1.986583363, 0.249967116},
      {0.480838673, -0.983668934, 1.969496656, 0.263583813}}},
    {"lamb, no decay",
     &optimizer_lamb,
     true,
     0,
     1,
     {{0.490000043, -0.990000032, 1.990000011, 0.25}, {0.486812380, -0.988439698, 1.980892363, 0.257441355}}},
    {"lans, decay 0.01",
     &optimizer_lans,
     true,
     0.01,
     0,
     {{0.486780710, -0.986714928, 1.986583363, 0.249967116},
      {0.482645145, -0.985587711, 1.970200311, 0.263999233}}},
    {"lans, no decay",
     &optimizer_lans,
     true,
     0,
     0,
     {{0.486692753, -0.986692739, 1.986692710, 0.25}, {0.482581969, -0.985715359, 1.970468166, 0.264233133}}},
    {"adamw, uncorrected, no decay",
     &optimizer_adamw,
     false,
     0,
     0,
     {{0.468380556, -0.968379723, 1.968378057, 0.25}, {0.451374603, -0.957062287, 1.931362321, 0.281621527}}},
    {"adamw, corrected, decay 0.1",
     &optimizer_adamw,
     true,
     0.1,
     0,
     {{0.489501054, -0.989000791, 1.988000264, 0.24975},
      {0.485009768, -0.985348608, 1.977301842, 0.256941324}}},
};

/* Memory of an update of a few small tensors. */
struct state {
    double elements[4][MOST_ELEMENTS], workspace[2 * MOST_TENSORS];
    struct exec x;
    struct optim_buffers buffers;
    struct optim_span spans[MOST_TENSORS];
    int64_t n_spans, n_matrices, n;
    unsigned char scratch[SCRATCH_BYTES];
};

static void state_init(struct state *s, const struct ops *o, enum dtype dtype)
{
    *s = (struct state){.x = {.device = &device_cpu, .ops = o, .layer_index = -1}};
    s->x.workspace = s->workspace;
    s->x.workspace_bytes = sizeof s->workspace;
    s->buffers = (struct optim_buffers){tensor_1d(s->elements[0], dtype, MOST_ELEMENTS), NULL_TENSOR,
                                        tensor_1d(s->elements[1], dtype, MOST_ELEMENTS),
                                        tensor_1d(s->elements[2], dtype, MOST_ELEMENTS),
                                        tensor_1d(s->elements[3], dtype, MOST_ELEMENTS)};
}

/* The next weight of the last tensor. */
static void add_weight(struct state *s, double w)
{
    EXPECT(s->n < MOST_ELEMENTS, "too many elements");
    tensor_set(s->buffers.master, s->n++, w);
    struct optim_span *span = &s->spans[s->n_spans - 1];
    span->n++;
    span->full_cols = span->rows > 0 ? span->n / span->rows : 0;
}

/* `rows`: of a matrix, which has a span behind all others; 0: of anything else. */
static void add_tensor(struct state *s, double decay, double rate, int64_t rows)
{
    EXPECT(s->n_spans < MOST_TENSORS, "too many tensors");
    s->spans[s->n_spans] = (struct optim_span){.offset = s->n,
                                               .weight_decay = decay,
                                               .rate = rate,
                                               .first_chunk = s->n_spans,
                                               .n_chunks = 1,
                                               .rows = rows,
                                               .full_rows = rows};
    s->n_spans++;
    s->n_matrices += rows > 0;
}

/* The update of gradients that lie in the buffers. */
static void update(struct state *s, const struct optimizer_kind *kind, double scalars[OPTIM_N_SCALARS])
{
    double norm = 0, squares[MOST_TENSORS], sums[3 * MOST_TENSORS];
    EXPECT(kind->n_sums <= 3, "%d sums", kind->n_sums);
    tensor sums_t = kind->n_sums > 0 ? tensor_2d(sums, DTYPE_F64, s->n_spans, kind->n_sums) : NULL_TENSOR;
    struct optimizer_step step = {.buffers = s->buffers,
                                  .spans = s->spans,
                                  .n_spans = s->n_spans,
                                  .parted = s->spans, /* whose matrices are the last */
                                  .n_matrices = s->n_matrices,
                                  .scratch = tensor_1d(s->scratch, DTYPE_U8, SCRATCH_BYTES),
                                  .squares = tensor_1d(squares, DTYPE_F64, s->n_spans),
                                  .sums = sums_t,
                                  .own_sums = sums_t,
                                  .norm = tensor_1d(&norm, DTYPE_F64, 1),
                                  .scalars = tensor_1d(scalars, DTYPE_F64, OPTIM_N_SCALARS)};
    if (kind->scratch_bytes != NULL) {
        size_t bytes = kind->scratch_bytes(s->spans, s->n_spans, s->buffers.master.dtype);
        EXPECT(bytes <= SCRATCH_BYTES, "%zu bytes of scratch", bytes);
    }
    s->x.ops->squares(&s->x, step.squares, s->buffers.grad, s->spans, s->n_spans);
    s->x.ops->norm_of(&s->x, step.norm, step.squares);
    if (kind->n_sums > 0) {
        kind->direction(&s->x, &step);
    }
    kind->apply(&s->x, &step);
    EXPECT_OK(s->x.status);
}

static void check(const struct ops *o, enum dtype dtype, double bound, const struct vector *v)
{
    struct state s;
    state_init(&s, o, dtype);
    add_tensor(&s, v->decay, 1, 0);
    for (int i = 0; i < N; i++) {
        add_weight(&s, start[i]);
    }
    struct optimizer optimizer = optimizer_defaults(v->kind);
    optimizer.max_grad_norm = v->max_norm;
    optimizer.bias_correction = v->corrected;
    for (int t = 0; t < STEPS; t++) {
        double scalars[OPTIM_N_SCALARS];
        for (int i = 0; i < N; i++) {
            tensor_set(s.buffers.grad, i, gradients[t][i]);
        }
        optimizer_scalars(&optimizer, 0.01, t + 1, 1, scalars);
        update(&s, v->kind, scalars);
        for (int i = 0; i < N; i++) {
            double w = tensor_get(s.buffers.master, i);
            EXPECT(fabs(w - v->want[t][i]) <= bound, "%s of %s: weight %d is %.9f after step %d, not %.9f",
                   v->name, o->name, i, w, t + 1, v->want[t][i]);
        }
    }
}

static double number_at(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void add_tensors(struct state *s, const json_t *c)
{
    const json_t *weights = json_object_get(c, "weights"), *decays = json_object_get(c, "decays"),
                 *parts = json_object_get(c, "parts"), *rows = json_object_get(c, "rows");
    for (size_t k = 0; k < json_array_size(weights); k++) {
        const json_t *w = json_array_get(weights, k);
        add_tensor(s, number_at(decays, k), number_at(parts, k), (int64_t)number_at(rows, k));
        for (size_t i = 0; i < json_array_size(w); i++) {
            add_weight(s, number_at(w, i));
        }
    }
}

/* The rates of a case are those of kiln's schedule, where it names one. */
static void check_rate(const json_t *c, int64_t step, double rate)
{
    const json_t *named = json_object_get(c, "schedule");
    if (json_is_object(named)) {
        struct schedule s = {.kind = SCHEDULE_POLY_CONSTANT,
                             .base = number_of(named, "base"),
                             .warmup = number_of(named, "warmup"),
                             .constant = number_of(named, "constant"),
                             .degree = 1,
                             .n_steps = (int64_t)number_of(named, "steps")};
        EXPECT_NEAR(schedule_rate(&s, step), rate, 1e-15);
    }
}

/* A step of a case: its gradients, its rate, and the weights behind it. */
static void check_step(struct state *s, const struct optimizer *o, const json_t *c, size_t t, double bound)
{
    const json_t *all_gradients = json_array_get(json_object_get(c, "gradients"), t),
                 *want = json_array_get(json_object_get(c, "want"), t);
    double scalars[OPTIM_N_SCALARS], rate = number_at(json_object_get(c, "rates"), t);
    for (int64_t k = 0; k < s->n_spans; k++) {
        const json_t *g = json_array_get(all_gradients, (size_t)k);
        for (int64_t i = 0; i < s->spans[k].n; i++) {
            tensor_set(s->buffers.grad, s->spans[k].offset + i, number_at(g, (size_t)i));
        }
    }
    check_rate(c, (int64_t)t + 1, rate);
    optimizer_scalars(o, rate, (int64_t)t + 1, 1 / number_of(c, "scale"), scalars);
    update(s, o->kind, scalars);
    for (int64_t k = 0; k < s->n_spans; k++) {
        for (int64_t i = 0; i < s->spans[k].n; i++) {
            double w = tensor_get(s->buffers.master, s->spans[k].offset + i),
                   wanted = number_at(json_array_get(want, (size_t)k), (size_t)i);
            EXPECT(fabs(w - wanted) <= bound * fmax(1, fabs(wanted)),
                   "%s of %s: weight %d of tensor %d is %.9f after step %d, not %.9f", text_of(c, "name"),
                   s->x.ops->name, (int)i, (int)k, w, (int)t + 1, wanted);
        }
    }
}

static void check_case(const struct ops *ops, enum dtype dtype, double bound, const json_t *c)
{
    struct state s;
    const struct optimizer_kind *kind = optimizer_find(text_of(c, "optimizer"));
    EXPECT(kind != NULL, "no optimizer %s", text_of(c, "optimizer"));
    struct optimizer o = optimizer_defaults(kind);
    size_t steps = json_array_size(json_object_get(c, "want"));
    o.max_grad_norm = number_of(c, "limit");
    o.eps = number_of(c, "eps");
    o.bias_correction = strcmp(text_of(c, "corrected"), "nothing") != 0;
    o.corrects_steps = strcmp(text_of(c, "corrected"), "steps") == 0;
    const json_t *ratios = json_object_get(c, "ratios");
    o.min_ratio = json_is_array(ratios) ? number_at(ratios, 0) : o.min_ratio;
    o.max_ratio = json_is_array(ratios) ? number_at(ratios, 1) : o.max_ratio;
    EXPECT(steps >= 2, "%d steps", (int)steps);
    state_init(&s, ops, dtype);
    add_tensors(&s, c);
    for (size_t t = 0; t < steps; t++) {
        check_step(&s, &o, c, t, bound);
    }
}

static void cases_are_those_of_the_script(void)
{
    json_t *root;
    EXPECT_OK(json_read_object(&root, KILN_SOURCE_DIR "/tests/golden/optim_vectors.json"));
    const json_t *cases = json_object_get(root, "cases");
    EXPECT(json_array_size(cases) == 25, "%d cases", (int)json_array_size(cases));
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_case(&ops_ref, DTYPE_F64, 1e-12, json_array_get(cases, i));
        check_case(ops_cpu(), DTYPE_F32, 2e-6, json_array_get(cases, i));
    }
    json_decref(root);
}

/* The names of the flag are those of the rows. */
static void every_name_has_a_row(void)
{
    char names[] = OPTIMIZER_NAMES;
    int n = 0;
    for (char *name = strtok(names, "|"); name != NULL; name = strtok(NULL, "|"), n++) {
        const struct optimizer_kind *kind = optimizer_find(name);
        EXPECT(kind != NULL && strcmp(kind->name, name) == 0, "no row %s", name);
        EXPECT((kind->n_sums > 0) == (kind->direction != NULL), "%s: %d sums of what direction?", name,
               kind->n_sums);
    }
    EXPECT(n == 8 && optimizer_find("adagrad") == NULL, "%d names", n);
}

/* Spans without rows come first, matrices behind them, both in their order, from the first on. */
static void matrices_come_last(void)
{
    static const int64_t rows[] = {4, 0, 0, 7, 2}, wanted[] = {1, 2, 0, 3, 4};
    enum { N_SPANS = sizeof rows / sizeof rows[0] };
    struct optim_span spans[N_SPANS] = {0};
    int64_t n_matrices = 0;
    for (int64_t i = 0; i < N_SPANS; i++) {
        spans[i].rows = rows[i];
        spans[i].first_chunk = i;
    }
    struct optim_span *parted = optimizer_part_spans(spans, N_SPANS, &n_matrices);
    EXPECT(parted != NULL && n_matrices == 3, "%lld matrices", (long long)n_matrices);
    for (int64_t i = 0; i < N_SPANS; i++) {
        EXPECT(parted[i].first_chunk == wanted[i], "span %lld is at %lld", (long long)parted[i].first_chunk,
               (long long)i);
    }
    free(parted);
}

/* Muon takes the matrices of all layers, the first too, but neither embeddings nor heads; AdamW takes none.
 * Behind the table is a parameter of a layer that is not of it. */
static void matrices_of_layers_stay_whole(void)
{
    struct param params[] = {
        {.layer = 0, .by_product = true}, {.layer = -1, .by_product = true}, {.layer = 0},
        {.layer = 1, .by_product = true}, {.layer = 2, .by_product = true},  {.layer = 1, .by_product = true},
    };
    static const bool wanted[] = {true, false, false, true, false, false};
    struct param_table table = {.params = params, .n = 5};
    struct optimizer muon = optimizer_defaults(&optimizer_muon), adamw = optimizer_defaults(&optimizer_adamw);
    optimizer_keep_whole(&adamw, &table);
    for (int i = 0; i < 6; i++) {
        EXPECT(!params[i].whole, "adamw: parameter %d is whole", i);
    }
    optimizer_keep_whole(&muon, &table);
    for (int i = 0; i < 6; i++) {
        EXPECT(params[i].whole == wanted[i], "muon: parameter %d is %s", i,
               params[i].whole ? "whole" : "cut");
    }
}

int main(void)
{
    every_name_has_a_row();
    matrices_come_last();
    matrices_of_layers_stay_whole();
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        check(&ops_ref, DTYPE_F64, 1e-8, &vectors[i]);
        check(ops_cpu(), DTYPE_F32, 1e-6, &vectors[i]);
    }
    cases_are_those_of_the_script();
    return 0;
}
