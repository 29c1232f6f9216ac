/* Steps that ranks take together, each rank a thread, against one trainer alone, to the bit: 1F1B over 1, 2 and 4 stages,
 * and data parallel over 1, 2 and 4 ranks, which are threads, or processes if a launcher starts them; gradients, sums, norms, weights and moments of several steps, with dropout.  And
 * that one rank's error ends them all. */
#include "train/data_parallel_step.h"
#include "train/pipeline_step.h"
#include "train/zero_plan.h"

#include "core/clock.h"

#include "bert_fixture.h"
#include "ranks.h"

enum { LONGEST = 14, N_MICRO = 6, SEQUENCES = 3, STEPS = 3, MOST_FACTORS = 64 };

static const double DEADLINE_S = 60, LR = 1e-2;

struct rank_case {
    const char *name;
    struct precision precision;
    const struct optimizer_kind *optimizer;
    enum bert_task task;
    struct param_rates rates;
    int64_t recompute;
    int64_t hidden_size;     /* 0: that of the fixture */
    int64_t bucket_elements; /* 0: a bucket for each layer */
    bool has_empty;          /* a micro-batch without sequences */
    bool mean_of_micro_batches;
};

/* What a run alone holds after the gradients of a step, and after its update. */
struct state {
    float *grad, *master, *exp_avg, *exp_avg_sq;
    struct trainer_result result;
};

struct run {
    const struct rank_case *of;
    struct trainer_config config;
    struct batch_step batch;
    struct param_table params; /* of every trainer */
    struct state states[STEPS];
    int n_ranks;
};

static float *copy_of(tensor t)
{
    float *copy = malloc(tensor_bytes(t));
    EXPECT(copy != NULL, "out of memory");
    return memcpy(copy, t.data, tensor_bytes(t));
}

/* The parameters of a slice of a flat buffer, which is all that is there; what is between them is nobody's, nor are gradients of
 * frozen ones. */
static void expect_same_slice(const struct run *r, const char *what, int step, int rank, tensor got,
                              const float *wanted, struct param_shard slice)
{
    EXPECT(tensor_count(got) == slice.end - slice.begin, "%s: %lld elements", what,
           (long long)tensor_count(got));
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.params[i];
        struct param_shard part = param_shard_cut(p, slice);
        if (p->rate == 0 && strcmp(what, "gradient") == 0) {
            continue;
        }
        for (int64_t k = part.begin; k < part.end; k++) {
            const float *g = (const float *)got.data + k - slice.begin, *w = wanted + k;
            EXPECT(memcmp(g, w, sizeof *g) == 0,
                   "%s, %d ranks, step %d, rank %d: %s of %s, element %lld: %g, not %g", r->of->name,
                   r->n_ranks, step, rank, what, p->name, (long long)(k - p->offset), (double)*g, (double)*w);
        }
    }
}

static struct param_shard all_of(const struct run *r)
{
    return (struct param_shard){0, r->params.n_elements};
}

static tensor slice_of(tensor flat, struct param_shard slice)
{
    return tensor_slice(flat, slice.begin, slice.end - slice.begin);
}

static void expect_same(const struct run *r, const char *what, int step, int rank, tensor got,
                        const float *wanted)
{
    expect_same_slice(r, what, step, rank, got, wanted, all_of(r));
}

/* `weights`: those that the rank must have. */
static void expect_state(const struct run *r, int step, int rank, const struct trainer *t,
                         const struct trainer_result *result, struct param_shard weights)
{
    const struct state *wanted = &r->states[step];
    expect_same_slice(r, "weights", step, rank, slice_of(t->net.master, weights), wanted->master, weights);
    expect_same_slice(r, "first moments", step, rank, t->exp_avg, wanted->exp_avg, t->update.shard);
    expect_same_slice(r, "second moments", step, rank, t->exp_avg_sq, wanted->exp_avg_sq, t->update.shard);
    EXPECT(result->grad_norm == wanted->result.grad_norm, "norm %.17g, not %.17g", result->grad_norm,
           wanted->result.grad_norm);
    for (int i = 0; i < result->n_sums; i++) {
        EXPECT(result->sums[i].sum == wanted->result.sums[i].sum &&
                   result->sums[i].count == wanted->result.sums[i].count,
               "%s %.17g, not %.17g", result->sums[i].of->name, result->sums[i].sum,
               wanted->result.sums[i].sum);
    }
}

/* ---- alone ---- */

static void keep(struct state *s, const struct trainer *t)
{
    s->master = copy_of(t->net.master);
    s->exp_avg = copy_of(t->exp_avg);
    s->exp_avg_sq = copy_of(t->exp_avg_sq);
}

static void forget(struct run *r)
{
    for (int i = 0; i < STEPS; i++) {
        free(r->states[i].grad);
        free(r->states[i].master);
        free(r->states[i].exp_avg);
        free(r->states[i].exp_avg_sq);
        r->states[i] = (struct state){0};
    }
}

/* The steps of trainer_step. */
static void run_alone(struct run *r)
{
    struct trainer t;
    EXPECT_OK(trainer_init(&t, &r->config));
    for (int i = 0; i < STEPS; i++) {
        struct state *s = &r->states[i];
        EXPECT_OK(trainer_gradients(&t, &r->batch, i + 1, r->of->mean_of_micro_batches, &s->result));
        s->grad = copy_of(t.grad);
        EXPECT_OK(trainer_step(&t, &r->batch, i + 1, i + 1, LR, r->of->mean_of_micro_batches, &s->result));
        keep(s, &t);
    }
    trainer_fini(&t);
}

/* Of factors in fp8: the largest magnitudes of the step that runs are none yet. */
static void forget_maxima(struct trainer *t)
{
    if (!tensor_is_null(t->net.stage.histories)) {
        t->net.x.ops->fill(&t->net.x, tensor_columns(t->net.stage.histories, 1, 1), 0);
    }
}

/* largest = the larger of it and those of the step so far. */
static void raise_maxima(double *largest, const struct trainer *t)
{
    for (int64_t i = 0; !tensor_is_null(t->net.stage.histories) && i < tensor_rows(t->net.stage.histories);
         i++) {
        largest[i] = fmax(largest[i], tensor_get(t->net.stage.histories, 2 * i + 1));
    }
}

static void set_maxima(struct trainer *t, const double *largest)
{
    for (int64_t i = 0; !tensor_is_null(t->net.stage.histories) && i < tensor_rows(t->net.stage.histories);
         i++) {
        tensor_set(t->net.stage.histories, 2 * i + 1, largest[i]);
    }
}

/* What parts of a step's micro-batches gave, each for itself. */
struct part {
    float *grad; /* [n] */
    double sums[MODEL_MOST_SUMS];
};

static void add_part(struct part *to, const struct part *from, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        to->grad[k] += from->grad[k];
    }
    for (int k = 0; k < MODEL_MOST_SUMS; k++) {
        to->sums[k] += from->sums[k];
    }
}

/* All parts are added to the first: ((g0 + g1) + g2) + ..., or as ranks do, (g0 + g1) + (g2 + g3). */
static void add_parts(struct part *parts, int n_parts, bool in_a_row, int64_t n)
{
    for (int apart = 1; apart < n_parts; apart = in_a_row ? apart + 1 : 2 * apart) {
        for (int i = 0; i + apart < n_parts; i += in_a_row ? n_parts : 2 * apart) {
            add_part(&parts[i], &parts[i + apart], n);
        }
    }
}

/* As ranks that share gradients add up those of single micro-batches: in each round those of one of each rank, and then the
 * rounds in a row.  Sums of losses are as of other ranks. */
static void add_rounds(struct part *parts, const struct batch_step *batch, int n_ranks, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    struct part row[N_MICRO] = {0}, total = {.grad = calloc(1, bytes)}, of_ranks[N_MICRO] = {0};
    float *memory = malloc((size_t)n_ranks * bytes);
    EXPECT(memory != NULL && total.grad != NULL, "out of memory");
    for (int64_t round = 0; round * n_ranks < batch->n_micro; round++) {
        for (int rank = 0; rank < n_ranks; rank++) {
            struct batch_step mine = batch_step_part(batch, rank, n_ranks);
            const struct part *from = round < mine.n_micro ? &parts[mine.micro - batch->micro + round] : NULL;
            row[rank].grad = memory + rank * n;
            if (from != NULL) {
                memcpy(row[rank].grad, from->grad, bytes);
                add_part(&of_ranks[rank], from, 0);
            } else {
                memset(row[rank].grad, 0, bytes);
            }
        }
        add_parts(row, n_ranks, false, n);
        if (round == 0) {
            memcpy(total.grad, row[0].grad, bytes);
        } else {
            add_part(&total, &row[0], n);
        }
    }
    memcpy(parts[0].grad, total.grad, bytes);
    add_parts(of_ranks, n_ranks, false, 0);
    memcpy(parts[0].sums, of_ranks[0].sums, sizeof parts[0].sums);
    free(memory);
    free(total.grad);
}

/* Whether a rank's micro-batches begin with this one. */
static bool begins_rank(const struct batch_step *batch, int micro, int n_ranks)
{
    int rank = 0;
    while (rank < n_ranks && batch_step_part(batch, rank, n_ranks).first_micro != micro) {
        rank++;
    }
    return rank < n_ranks;
}

/* The same with each part of the micro-batches added up for itself, and then the parts: in a row, as ranks do, or as so many ranks do
 * that share gradients.
 * Of factors in fp8 each rank sees the largest magnitudes of the step before, and its own; the next step those of all. */
enum { AS_RANKS = 0, IN_A_ROW = -1 };
static void run_alone_in_parts(struct run *r, int n_parts, int how)
{
    struct trainer t;
    EXPECT_OK(trainer_init(&t, &r->config));
    EXPECT(tensor_is_null(t.net.stage.histories) || tensor_rows(t.net.stage.histories) <= MOST_FACTORS,
           "more factors than %d", MOST_FACTORS);
    int64_t n = tensor_count(t.grad);
    for (int i = 0; i < STEPS; i++) {
        struct state *s = &r->states[i];
        struct stage_numbers numbers = trainer_numbers(&t, i + 1, i + 1, LR);
        double largest[MOST_FACTORS] = {0};
        struct part parts[N_MICRO];
        for (int part = 0; part < n_parts; part++) {
            struct batch_step mine = batch_step_part(&r->batch, part, n_parts);
            if (how <= 0 || begins_rank(&r->batch, part, how)) {
                forget_maxima(&t);
            }
            trainer_queue_gradients(&t, &mine, &numbers, r->of->mean_of_micro_batches);
            EXPECT_OK(t.net.x.status);
            raise_maxima(largest, &t);
            parts[part].grad = copy_of(t.grad);
            for (int k = 0; k < MODEL_MOST_SUMS; k++) {
                parts[part].sums[k] = tensor_get(t.sums, k);
            }
        }
        if (how > 0) {
            add_rounds(parts, &r->batch, how, n);
        } else {
            add_parts(parts, n_parts, how == IN_A_ROW, n);
        }
        s->grad = parts[0].grad;
        for (int part = 1; part < n_parts; part++) {
            free(parts[part].grad);
        }
        memcpy(t.grad.data, s->grad, (size_t)n * sizeof *s->grad);
        memcpy(t.sums.data, parts[0].sums, sizeof parts[0].sums);
        set_maxima(&t, largest);
        EXPECT_OK(trainer_update(&t, NULL, &r->batch, i + 1, &s->result));
        keep(s, &t);
    }
    trainer_fini(&t);
}

/* ---- together ---- */

/* The elements of the layers of a stage, the input with the first and the heads with the last. */
static struct param_shard layers_of(const struct run *r, const struct stage *s)
{
    int64_t n = s->model->n_layers;
    struct param_shard own;
    param_table_range(&r->params, s->first == 0 ? MODEL_INPUT_LAYER : s->first, s->end == n ? n + 1 : s->end,
                      &own.begin, &own.end);
    return own;
}

/* What the heads read of the first stage's layers. */
static void expect_tied(const struct run *r, int step, const struct trainer *t)
{
    const struct param *p = param_table_find(&r->params, "bert.embeddings.word_embeddings.weight");
    struct param_shard tied = {p->offset, p->offset + param_count(p)};
    if (t->config.model->tied != NULL) {
        expect_same_slice(r, "the tied weight", step, -1, slice_of(t->net.master, tied),
                          r->states[step].master, tied);
    }
}

static void pipeline_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_config config = r->config;
    struct trainer_result result;
    EXPECT_OK(pipeline_configure(&config, c->rank, c->size, r->batch.n_micro));
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT(t.net.stage.n_slots == c->size - c->rank, "%lld slots", (long long)t.net.stage.n_slots);
    struct param_shard own = layers_of(r, &t.net.stage);
    EXPECT(tensor_count(t.exp_avg) == own.end - own.begin, "moments of %lld elements",
           (long long)tensor_count(t.exp_avg));
    for (int i = 0; i < STEPS; i++) {
        struct stage_numbers numbers = trainer_numbers(&t, i + 1, i + 1, LR);
        pipeline_gradients(&t, c, &r->batch, &numbers, r->of->mean_of_micro_batches);
        EXPECT_OK(t.net.x.status);
        expect_same_slice(r, "gradient", i, c->rank, slice_of(t.grad, own), r->states[i].grad, own);
        EXPECT_OK(pipeline_step(&t, c, &r->batch, i + 1, i + 1, LR, r->of->mean_of_micro_batches, &result));
        expect_state(r, i, c->rank, &t, &result, own);
        if (c->rank == c->size - 1) {
            expect_tied(r, i, &t);
        }
    }
    pipeline_gather_weights(&t, c);
    EXPECT_OK(t.net.x.status);
    expect_state(r, STEPS - 1, c->rank, &t, &result, all_of(r));
    trainer_fini(&t);
}

static void data_parallel_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_result result;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    EXPECT_OK(trainer_init(&t, &r->config));
    for (int i = 0; i < STEPS; i++) {
        struct stage_numbers numbers = trainer_numbers(&t, i + 1, i + 1, LR);
        data_parallel_gradients(&t, c, &mine, &numbers, r->of->mean_of_micro_batches);
        EXPECT_OK(t.net.x.status);
        expect_same_slice(r, "gradient", i, c->rank,
                          r->config.shares_gradients ? t.grad : slice_of(t.grad, t.update.shard),
                          r->states[i].grad, t.update.shard); /* of all, where nobody shares */
        forget_maxima(&t);
        EXPECT_OK(data_parallel_step(&t, c, &mine, i + 1, i + 1, LR, r->of->mean_of_micro_batches, &result));
        expect_state(r, i, c->rank, &t, &result, all_of(r));
    }
    trainer_fini(&t);
}

/* The same where each rank has the moments of its shard only, and updates that. */
static void sharded_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct run sharded = *r;
    sharded.config.n_shards = c->size;
    sharded.config.shard = c->rank;
    data_parallel_body(c, &sharded);
}

/* And the gradients of its shard only. */
static void sharing_body(const struct comm *c, void *context)
{
    struct run sharing = *(const struct run *)context;
    sharing.config.shares_gradients = c->size > 1;
    sharded_body(c, &sharing);
}

static void open_run(struct run *r, const struct rank_case *k)
{
    *r = (struct run){.of = k};
    fixture_step(&r->batch, N_MICRO, SEQUENCES, LONGEST);
    for (int64_t i = 0; k->task == BERT_TASK_QUESTION_ANSWERING && i < N_MICRO; i++) {
        for (int64_t j = 0; j < 2 * SEQUENCES; j++) {
            r->batch.micro[i].fields[BERT_SPAN_LABELS][j] = (int32_t)(1 + (i + j) % 3);
        }
    }
    if (k->has_empty) { /* with 4 ranks, all that the first one has */
        batch_clear(&r->batch.micro[0]);
    }
    batch_step_count(&r->batch);
    r->config = fixture_trainer(ops_cpu(), k->precision.dtype, r->batch.micro[1].limits);
    r->config.precision = k->precision;
    r->config.optimizer = optimizer_defaults(k->optimizer != NULL ? k->optimizer : &optimizer_lamb);
    r->config.recompute = k->recompute;
    r->config.bucket_elements = k->bucket_elements > 0 ? k->bucket_elements : 1;
    r->config.rates = k->rates;
    struct bert_model *bert = fixture_bert(&r->config);
    bert->config.num_hidden_layers = 4;
    bert->config.intermediate_size = 32;
    bert->config.hidden_size = k->hidden_size > 0 ? k->hidden_size : bert->config.hidden_size;
    bert->task = k->task;
    fixture_bert_changed(bert);
    EXPECT_OK(r->config.model->type->declare(r->config.model, &r->params));
    EXPECT_OK(param_rates_apply(&r->params, r->config.model->n_layers, &k->rates));
}

static void close_run(struct run *r)
{
    forget(r);
    param_table_fini(&r->params);
    batch_step_fini(&r->batch);
}

/* Of this parameter rows are looked up, and its gradient gets them one by one. */
static bool is_table(const struct param *p)
{
    return p->layer == MODEL_INPUT_LAYER && p->n_dims == 2;
}

/* What += adds is a finished sum: gradients of micro-batches that are added up one after the other in one buffer are those
 * that were made apart, and then added.  All but tables, in batches as short as these (docs/decisions/0039_ranks.md). */
static void gradients_are_finished_sums(struct run *r)
{
    float *together = copy_of(tensor_1d(r->states[0].grad, DTYPE_F32, r->params.n_elements));
    int n_same = 0;
    forget(r);
    run_alone_in_parts(r, N_MICRO, IN_A_ROW);
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.params[i];
        size_t bytes = (size_t)param_count(p) * sizeof *together;
        bool same = memcmp(together + p->offset, r->states[0].grad + p->offset, bytes) == 0;
        EXPECT(same || is_table(p), "%s: the gradient of %s is another sum", r->of->name, p->name);
        n_same += same;
    }
    EXPECT(n_same >= r->params.n - 3, "%d of %d", n_same, r->params.n);
    free(together);
}

/* Ranks that share gradients, too, in the order of theirs; with one micro-batch each that is the order of all ranks. */
static void shared_gradients_give_the_same_bits(const struct comm *world, struct run *r, int size)
{
    forget(r);
    run_alone_in_parts(r, N_MICRO, size);
    run_ranks_of(world, size, DEADLINE_S, sharing_body, r);
    struct batch_step all = r->batch;
    r->batch.micro++; /* the first may have no sequences */
    r->batch.n_micro = r->batch.n_all_micro = r->batch.n_to_fill = size;
    batch_step_count(&r->batch);
    forget(r);
    run_alone_in_parts(r, size, AS_RANKS);
    run_ranks_of(world, size, DEADLINE_S, sharing_body, r);
    r->batch = all;
}

static void ranks_give_the_bits_of_one(const struct comm *world, const struct rank_case *k)
{
    static const int sizes[] = {1, 2, 4};
    struct run r;
    open_run(&r, k);
    run_alone(&r);
    for (int i = 0; i < 3; i++) {
        r.n_ranks = sizes[i];
        run_ranks_of(world, sizes[i], DEADLINE_S, pipeline_body, &r);
    }
    r.n_ranks = 1;
    run_ranks_of(world, 1, DEADLINE_S, data_parallel_body, &r);
    gradients_are_finished_sums(&r);
    for (int i = 0; i < 3; i++) {
        forget(&r);
        r.n_ranks = sizes[i];
        run_alone_in_parts(&r, sizes[i], AS_RANKS);
        run_ranks_of(world, sizes[i], DEADLINE_S, data_parallel_body, &r);
        run_ranks_of(world, sizes[i], DEADLINE_S, sharded_body, &r);
        if (sizes[i] > 1) {
            shared_gradients_give_the_same_bits(world, &r, sizes[i]);
        }
    }
    close_run(&r);
    printf("%s: the same bits\n", k->name);
}

/* Shards of the wide case cut parameters, or the cases above would not tell whether norms of parts of parameters are right. */
static void shards_cut_parameters(const struct rank_case *k)
{
    struct run r;
    int n_cut = 0;
    open_run(&r, k);
    for (int i = 1; i < 4; i++) {
        int64_t at = param_shard_of(&r.params, i, 4).begin;
        for (int p = 0; p < r.params.n; p++) {
            int64_t within = at - r.params.params[p].offset;
            n_cut += within > 0 && within < param_count(&r.params.params[p]);
        }
    }
    EXPECT(n_cut >= 2, "%d parameters are cut", n_cut);
    close_run(&r);
}

/* Gathers of this rank. */
static _Thread_local int n_gathers;
static _Thread_local struct status (*gather_inside)(void *state, struct exec *x, tensor t,
                                                    const int64_t *bounds);

static struct status counting_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    n_gathers++;
    return gather_inside(state, x, t, bounds);
}

/* One step: those of the gradients' squares, of the sums of directions if shards cut parameters, and of weights that other
 * ranks need. */
static void count_gathers(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct comm counting = *c;
    struct comm_type type = *c->type;
    struct trainer_result result;
    gather_inside = type.all_gather;
    type.all_gather = counting_gather;
    counting.type = &type;
    for (int in_pipeline = 0; in_pipeline < 2; in_pipeline++) {
        struct trainer t;
        struct trainer_config config = r->config;
        struct batch_step mine = in_pipeline ? r->batch : batch_step_part(&r->batch, c->rank, c->size);
        config.n_shards = c->size;
        config.shard = c->rank;
        if (in_pipeline) {
            EXPECT_OK(pipeline_configure(&config, c->rank, c->size, r->batch.n_micro));
        }
        EXPECT_OK(trainer_init(&t, &config));
        n_gathers = 0;
        EXPECT_OK(in_pipeline ? pipeline_step(&t, &counting, &mine, 1, 1, LR, false, &result)
                              : data_parallel_step(&t, &counting, &mine, 1, 1, LR, false, &result));
        EXPECT(n_gathers == (in_pipeline ? 1 : 3), "%d gathers, %s", n_gathers,
               in_pipeline ? "in a pipeline" : "in shards");
        trainer_fini(&t);
    }
}

static void ranks_gather_what_they_need(const struct rank_case *k)
{
    struct run r;
    open_run(&r, k);
    run_ranks(4, DEADLINE_S, count_gathers, &r);
    close_run(&r);
}

/* What one rank finds wrong, and what all return. */
enum together { IN_A_PIPELINE, IN_DATA_PARALLEL, IN_SHARDS, IN_SHARED_GRADIENTS };

struct failing {
    struct run run;
    enum together how;
    int rank; /* that has the damaged batch */
    const char *wanted;
};

static void failing_body(const struct comm *c, void *context)
{
    const struct failing *f = context;
    struct trainer t;
    struct trainer_config config = f->run.config;
    struct trainer_result result;
    struct batch_step batch = f->run.batch;
    bool in_pipeline = f->how == IN_A_PIPELINE;
    if (in_pipeline) {
        EXPECT_OK(pipeline_configure(&config, c->rank, c->size, batch.n_micro));
    }
    if (f->how == IN_SHARDS || f->how == IN_SHARED_GRADIENTS) {
        config.n_shards = c->size;
        config.shard = c->rank;
        config.shares_gradients = f->how == IN_SHARED_GRADIENTS;
    }
    EXPECT_OK(trainer_init(&t, &config));
    int64_t start = clock_ns();
    for (int64_t i = 1; i <= STEPS; i++) {
        struct batch_step mine = in_pipeline ? batch : batch_step_part(&batch, c->rank, c->size);
        struct status s = in_pipeline ? pipeline_step(&t, c, &mine, i, i, LR, false, &result)
                                      : data_parallel_step(&t, c, &mine, i, i, LR, false, &result);
        EXPECT_ERROR(s, STATUS_DATA, f->wanted);
    }
    EXPECT(clock_since_s(start) < DEADLINE_S / 2, "%g s", clock_since_s(start));
    struct trainer fresh;
    EXPECT_OK(trainer_init(&fresh, &config));
    expect_same(&f->run, "weights", 0, c->rank, t.net.master, fresh.net.master.data);
    trainer_fini(&fresh);
    trainer_fini(&t);
}

/* A token that is not in the vocabulary, which the rank with the input layer sees. */
static void one_error_ends_all_ranks(enum together how)
{
    static const struct rank_case k = {.name = "an error"};
    struct failing f = {.how = how,
                        .wanted = how == IN_A_PIPELINE ? "rank 0 of 4: embed in embeddings"
                                                       : "rank 2 of 4: embed in embeddings"};
    open_run(&f.run, &k);
    f.run.n_ranks = 4;
    f.run.batch.micro[3].ids[1] = 1 << 20; /* of rank 2 of 4, which has [3, 4) of 6 */
    run_ranks(4, DEADLINE_S, failing_body, &f);
    close_run(&f.run);
}

/* A gradient that is infinite in one rank's shard is named by all ranks, which have not summed it. */
static void infinite_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_result result;
    struct trainer_config config = r->config;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    char wanted[128];
    config.n_shards = c->size;
    config.shard = c->rank;
    EXPECT_OK(trainer_init(&t, &config));
    struct stage_numbers numbers = trainer_numbers(&t, 1, 1, LR);
    data_parallel_gradients(&t, c, &mine, &numbers, false);
    int i = 0;
    while (r->params.params[i].offset < t.update.bounds[c->size - 1]) {
        i++;
    }
    if (c->rank == c->size - 1) {
        tensor_set(t.grad, r->params.params[i].offset - (config.shares_gradients ? t.update.shard.begin : 0),
                   INFINITY);
    }
    snprintf(wanted, sizeof wanted, "the gradient of %s (element 0)", r->params.params[i].name);
    EXPECT_ERROR(trainer_update(&t, c, &mine, 1, &result), STATUS_NUMERIC, wanted);
    trainer_fini(&t);
}

static void all_ranks_name_an_infinite_gradient(void)
{
    static const struct rank_case k = {.name = "an infinite gradient"};
    struct run r;
    open_run(&r, &k);
    run_ranks(4, DEADLINE_S, infinite_body, &r);
    r.config.shares_gradients = true;
    run_ranks(4, DEADLINE_S, infinite_body, &r);
    close_run(&r);
}

/* What a rank's calls exchange in a step. */
static _Thread_local struct exchanged {
    const struct comm_type *inside;
    int rank;
    int64_t n_summed, n_scattered, n_kept, gathered_bytes;
} exchanged;

static struct status noted_sum(void *state, struct exec *x, tensor t)
{
    exchanged.n_summed += tensor_count(t);
    return exchanged.inside->all_reduce_sum(state, x, t);
}

static struct status noted_scatter(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    exchanged.n_scattered += tensor_count(t);
    exchanged.n_kept += bounds[exchanged.rank + 1] - bounds[exchanged.rank];
    return exchanged.inside->reduce_scatter_sum(state, x, t, bounds);
}

static struct status noted_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    exchanged.gathered_bytes += (int64_t)tensor_bytes(t);
    return exchanged.inside->all_gather(state, x, t, bounds);
}

/* What ranks exchange is what the plan says; those that share the update sum nothing whole but the losses. */
static void count_bytes(const struct comm *c, int stage, const struct run *r)
{
    struct comm noting = *c;
    struct comm_type type = *c->type;
    struct trainer t;
    struct trainer_result result;
    struct trainer_config config = r->config;
    struct zero_plan plan;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    type.all_reduce_sum = noted_sum;
    type.reduce_scatter_sum = noted_scatter;
    type.all_gather = noted_gather;
    noting.type = &type;
    int64_t most = (N_MICRO + c->size - 1) / c->size, rounds = stage == 2 ? most : 1;
    bool shares = stage > 0;
    EXPECT_OK(zero_plan(&plan, &config, c->size, stage, most));
    config.n_shards = shares ? c->size : 0;
    config.shard = shares ? c->rank : 0;
    config.shares_gradients = stage == 2;
    EXPECT_OK(trainer_init(&t, &config));
    exchanged = (struct exchanged){.inside = c->type, .rank = c->rank};
    EXPECT_OK(data_parallel_step(&t, &noting, &mine, 1, 1, LR, false, &result));
    int64_t whole = exchanged.n_summed - MODEL_MOST_SUMS, sums = shares ? exchanged.n_scattered : whole;
    EXPECT(shares ? whole == 0 : exchanged.n_scattered == 0, "stage %d: %lld elements whole, %lld in parts",
           stage, (long long)whole, (long long)exchanged.n_scattered);
    EXPECT(!shares || exchanged.n_kept == rounds * (t.update.shard.end - t.update.shard.begin),
           "stage %d: %lld elements are kept", stage, (long long)exchanged.n_kept);
    EXPECT((double)sums * sizeof(float) == plan.reduced_bytes * (double)rounds && plan.n_reductions == rounds,
           "stage %d: %lld elements, planned %lld times %g bytes", stage, (long long)sums,
           (long long)plan.n_reductions, plan.reduced_bytes);
    EXPECT((double)exchanged.gathered_bytes == plan.gathered_bytes,
           "stage %d: %lld bytes gathered, planned %g", stage, (long long)exchanged.gathered_bytes,
           plan.gathered_bytes);
    trainer_fini(&t);
}

static void count_bytes_of_stages(const struct comm *c, void *context)
{
    for (int stage = 0; stage < ZERO_STAGES; stage++) {
        count_bytes(c, stage, context);
    }
}

static void ranks_exchange_what_is_planned(const struct rank_case *k)
{
    struct run r;
    open_run(&r, k);
    run_ranks(4, DEADLINE_S, count_bytes_of_stages, &r);
    close_run(&r);
}

/* The plan of a rank that has a shard of the moments counts those alone; of one that has none, too. */
static void plans_count_shards(void)
{
    static const struct rank_case k = {.name = "plans of shards", .hidden_size = 48};
    struct run r;
    struct trainer_plan whole, part;
    size_t of_moments = 0;
    open_run(&r, &k);
    EXPECT_OK(trainer_plan(&whole, &r.config));
    size_t moments = 2 * (size_t)r.params.n_elements * sizeof(float), sums = whole.optimizer_bytes - moments;
    EXPECT(sums < moments / 40, "%zu bytes of sums", sums);
    for (int i = 0; i < 1000; i++) {
        struct trainer_config config = r.config;
        config.n_shards = i < 4 ? 4 : 1000;
        config.shard = i;
        EXPECT_OK(trainer_plan(&part, &config));
        EXPECT(part.weight_bytes == whole.weight_bytes && part.gradient_bytes == whole.gradient_bytes,
               "%zu and %zu", part.weight_bytes, part.gradient_bytes);
        of_moments += i < 4 ? part.optimizer_bytes - sums : 0;
    }
    EXPECT(of_moments == moments, "%zu of %zu bytes", of_moments, moments);
    EXPECT(part.optimizer_bytes == sums, "%zu bytes of an empty shard", part.optimizer_bytes);
    close_run(&r);
}

/* The plan counts every slot, and only the layers of the range. */
static void plans_count_slots_and_layers(void)
{
    static const struct rank_case k = {.name = "plans"};
    struct run r;
    struct trainer_plan whole, one, two, last;
    open_run(&r, &k);
    struct trainer_config config = r.config;
    EXPECT_OK(trainer_plan(&whole, &config));
    EXPECT_OK(pipeline_configure(&config, 0, 2, 1));
    EXPECT_OK(trainer_plan(&one, &config));
    EXPECT_OK(pipeline_configure(&config, 0, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&two, &config));
    EXPECT_OK(pipeline_configure(&config, 1, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&last, &config));
    EXPECT(two.activation_bytes == 2 * one.activation_bytes, "%zu and %zu", two.activation_bytes,
           one.activation_bytes);
    EXPECT(one.activation_bytes < whole.activation_bytes && last.activation_bytes < whole.activation_bytes,
           "%zu and %zu of %zu", one.activation_bytes, last.activation_bytes, whole.activation_bytes);
    size_t sums = whole.optimizer_bytes - 2 * (size_t)r.params.n_elements * sizeof(float);
    EXPECT(one.optimizer_bytes + last.optimizer_bytes == whole.optimizer_bytes + sums,
           "%zu and %zu bytes of moments, of %zu", one.optimizer_bytes, last.optimizer_bytes,
           whole.optimizer_bytes);
    EXPECT(one.micro_flops + last.micro_flops < 1.001 * whole.micro_flops &&
               one.micro_flops + last.micro_flops > 0.999 * whole.micro_flops,
           "%g and %g of %g", one.micro_flops, last.micro_flops, whole.micro_flops);
    config.precision =
        (struct precision){.dtype = DTYPE_BF16, .fp8 = true}; /* all slots read the same weights in fp8 */
    EXPECT_OK(pipeline_configure(&config, 0, 2, 1));
    EXPECT_OK(trainer_plan(&one, &config));
    EXPECT_OK(pipeline_configure(&config, 0, 2, N_MICRO));
    EXPECT_OK(trainer_plan(&two, &config));
    EXPECT(two.weight_bytes == one.weight_bytes, "%zu and %zu", two.weight_bytes, one.weight_bytes);
    EXPECT_ERROR(pipeline_configure(&config, 0, 5, 1), STATUS_USAGE, "5 stages for a model of 4 layers");
    struct bert_model *bert = fixture_bert(&config);
    bert->config.layer_norm_large_model = true;
    fixture_bert_changed(bert);
    EXPECT_ERROR(pipeline_configure(&config, 0, 2, 1), STATUS_USAGE, "2 stages for a model of pre-LN layers");
    EXPECT_OK(pipeline_configure(&config, 0, 1, 1));
    close_run(&r);
}

/* Without an argument all cases; else the case of this name, in processes if a launcher starts several. */
int main(int argc, char **argv)
{
    struct comm world;
    static const struct rank_case cases[] = {
        {.name = "fp32, lamb", .optimizer = &optimizer_lamb},
        {.name = "fp32, lans", .optimizer = &optimizer_lans},
        {.name = "fp32, nvlamb_exp", .optimizer = &optimizer_nvlamb_exp},
        {.name = "fp32, ds_fused_lamb", .optimizer = &optimizer_ds_fused_lamb},
        {.name = "fp32, adam", .optimizer = &optimizer_adam},
        {.name = "bf16, lans", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_lans},
        {.name = "fp32, adamw", .optimizer = &optimizer_adamw, .mean_of_micro_batches = true},
        {.name = "bf16, lamb", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_lamb},
        {.name = "bf16, adamw", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_adamw},
        {.name = "fp8, lamb", .precision = {.dtype = DTYPE_BF16, .fp8 = true}, .optimizer = &optimizer_lamb},
        {.name = "questions", .task = BERT_TASK_QUESTION_ANSWERING},
        {.name = "recomputed", .recompute = 1},
        {.name = "buckets of some layers", .bucket_elements = 20000},
        {.name = "one bucket", .bucket_elements = 1 << 30},
        {.name = "rates of layers, lamb", .rates = {.layer_decay = 0.7}, .optimizer = &optimizer_lamb},
        {.name = "frozen, lans",
         .rates = {"embeddings,0-1,bert.encoder.layer.2.output", 0.7},
         .optimizer = &optimizer_lans},
        {.name = "frozen, wide, adamw",
         .rates = {"embeddings,*.attention.*.bias,cls", 0.7},
         .optimizer = &optimizer_adamw,
         .hidden_size = 48},
        {.name = "the end of an epoch", .has_empty = true},
        {.name = "wide, adamw", .optimizer = &optimizer_adamw, .hidden_size = 48},
        {.name = "wide, lans", .optimizer = &optimizer_lans, .hidden_size = 48},
        {.name = "wide, bf16, lamb", .precision = {.dtype = DTYPE_BF16}, .hidden_size = 48},
    };
    const size_t n_cases = sizeof cases / sizeof cases[0];
    EXPECT_OK(world_open(&world));
    for (size_t i = 0; i < n_cases; i++) {
        if (argc == 1 || strcmp(argv[1], cases[i].name) == 0) {
            ranks_give_the_bits_of_one(&world, &cases[i]);
        }
    }
    world_close(&world, status_ok());
    if (argc > 1) {
        return 0;
    }
    shards_cut_parameters(&cases[n_cases - 1]);
    ranks_gather_what_they_need(&cases[n_cases - 1]);
    ranks_exchange_what_is_planned(&cases[n_cases - 2]);
    all_ranks_name_an_infinite_gradient();
    one_error_ends_all_ranks(IN_A_PIPELINE);
    one_error_ends_all_ranks(IN_DATA_PARALLEL);
    one_error_ends_all_ranks(IN_SHARDS);
    one_error_ends_all_ranks(IN_SHARED_GRADIENTS);
    plans_count_slots_and_layers();
    plans_count_shards();
    return 0;
}
