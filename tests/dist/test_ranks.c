/* Steps that ranks take together, each rank a thread, against one trainer alone, to the bit: 1F1B over 1, 2
 * and 4 stages, and data parallel over 1, 2 and 4 ranks, which are threads, or processes if a launcher starts
 * them; gradients, sums, norms, weights and moments of several steps, with dropout. */
#include "rank_steps.h"
#include "train/trainer_parts.h"
#include "task/within_step.h"

enum { MOST_FACTORS = 64 };

static float *copy_of(tensor t)
{
    float *copy = malloc(tensor_bytes(t));
    EXPECT(copy != NULL, "out of memory");
    return memcpy(copy, t.data, tensor_bytes(t));
}

/* The parameters of a slice of a flat buffer, which is all that is there; what is between them is nobody's,
 * nor are gradients of frozen ones. */
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

/* Of a master in shards: the rank's own, and of all weights what passes read, as the whole master would be
 * rounded. */
static void expect_copies(const struct run *r, int step, int rank, const struct trainer *t)
{
    const struct network *n = &t->net;
    const float *wanted = r->states[step].master;
    expect_same_slice(r, "the master's shard", step, rank, n->master, wanted, t->update.shard);
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.params[i];
        tensor working = param_view(p, n->working);
        bool in_fp32 = vector_places_has(&n->places, p);
        tensor vector = in_fp32 ? param_view(&n->places.table.params[i], n->vectors) : NULL_TENSOR;
        for (int64_t k = 0; k < param_count(p); k++) {
            uint16_t bits;
            float value = wanted[p->offset + k];
            tensor rounded = tensor_1d(&bits, working.dtype, 1);
            tensor_set(rounded, 0, (double)value);
            EXPECT(tensor_get(working, k) == tensor_get(rounded, 0),
                   "%s, %d ranks, step %d, rank %d: the copy of %s, element %lld: %g, not %g", r->of->name,
                   r->n_ranks, step, rank, p->name, (long long)k, tensor_get(working, k),
                   tensor_get(rounded, 0));
            EXPECT(!in_fp32 || memcmp((const float *)vector.data + k, &value, sizeof value) == 0,
                   "%s, step %d, rank %d: the vector %s, element %lld", r->of->name, step, rank, p->name,
                   (long long)k);
        }
    }
}

static void expect_result(const struct trainer_result *result, const struct trainer_result *wanted)
{
    EXPECT(result->grad_norm == wanted->grad_norm, "norm %.17g, not %.17g", result->grad_norm,
           wanted->grad_norm);
    for (int i = 0; i < result->n_sums; i++) {
        EXPECT(result->sums[i].sum == wanted->sums[i].sum && result->sums[i].count == wanted->sums[i].count,
               "%s %.17g, not %.17g", result->sums[i].of->name, result->sums[i].sum, wanted->sums[i].sum);
    }
}

/* `weights`: those that the rank must have. */
static void expect_state(const struct run *r, int step, int rank, const struct trainer *t,
                         const struct trainer_result *result, struct param_shard weights)
{
    const struct state *wanted = &r->states[step];
    if (network_has_master(&t->net)) {
        expect_same_slice(r, "weights", step, rank, slice_of(t->net.master, weights), wanted->master,
                          weights);
    } else {
        expect_copies(r, step, rank, t);
    }
    expect_same_slice(r, "first moments", step, rank, t->exp_avg, wanted->exp_avg, t->update.shard);
    expect_same_slice(r, "second moments", step, rank, t->exp_avg_sq, wanted->exp_avg_sq, t->update.shard);
    expect_result(result, &wanted->result);
}

/* ---- alone ---- */

static void keep(struct state *s, const struct trainer *t)
{
    s->master = copy_of(t->net.master);
    s->exp_avg = copy_of(t->exp_avg);
    s->exp_avg_sq = copy_of(t->exp_avg_sq);
}

/* The steps of trainer_step. */
static void run_alone(struct run *r)
{
    struct trainer t;
    EXPECT_OK(trainer_init(&t, &r->config));
    for (int i = 0; i < STEPS; i++) {
        struct state *s = &r->states[i];
        EXPECT_OK(trainer_gradients(&t, &r->batch, i + 1, &s->result));
        s->grad = copy_of(t.grad);
        EXPECT_OK(trainer_step(&t, &r->batch, i + 1, i + 1, LR, &s->result));
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

/* As ranks that share gradients add up those of single micro-batches: in each round those of one of each
 * rank, and then the rounds in a row.  Sums of losses are as of other ranks. */
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

/* The same with each part of the micro-batches added up for itself, and then the parts: in a row, as ranks
 * do, or as so many ranks do that share gradients. Of factors in fp8 each rank sees the largest magnitudes
 * of the step before, and its own; the next step those of all. In a row are the micro-batches of one rank:
 * under other scales the smallest of them round otherwise. */
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
        trainer_begin_step(&t, i + 1, i + 1, LR);
        double largest[MOST_FACTORS] = {0};
        struct part parts[N_MICRO];
        for (int part = 0; part < n_parts; part++) {
            struct batch_step mine = batch_step_part(&r->batch, part, n_parts);
            if (part == 0 || how == AS_RANKS || (how > 0 && begins_rank(&r->batch, part, how))) {
                forget_maxima(&t);
            }
            trainer_queue_gradients(&t, &mine);
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
        EXPECT_OK(trainer_update(&t, &r->batch, i + 1, &s->result));
        keep(s, &t);
    }
    trainer_fini(&t);
}

/* ---- together ---- */

/* The elements of a stage's layers in the tables of all, and where they begin in its own. */
struct own_layers {
    struct param_shard of_all;
    int64_t at;
};

static struct own_layers layers_of(const struct run *r, const struct trainer *t)
{
    struct own_layers own;
    struct param_range layers = t->net.config.part.ranges[0];
    param_table_range(&r->params, layers.first, layers.end, &own.of_all.begin, &own.of_all.end);
    own.at = t->update.bounds[0];
    EXPECT(t->net.params.n_elements - own.at == own.of_all.end - own.of_all.begin,
           "a stage declares %lld elements", (long long)t->net.params.n_elements);
    return own;
}

static tensor own_slice(struct own_layers own, tensor flat)
{
    return tensor_slice(flat, own.at, own.of_all.end - own.of_all.begin);
}

/* What the heads read of the first stage's layers. */
static void expect_tied(const struct run *r, int step, const struct trainer *t)
{
    const struct param *p = param_table_find(&r->params, "bert.embeddings.word_embeddings.weight");
    tensor working = t->net.working;
    for (int64_t i = 0; t->config.net.model->tied != NULL && i < param_count(p); i++) {
        uint16_t bits;
        float wanted = r->states[step].master[p->offset + i];
        tensor rounded = tensor_1d(&bits, working.dtype, 1);
        double read = tensor_get(trainer_tied(t, tensor_is_null(working) ? t->net.master : working), i);
        if (!tensor_is_null(working)) {
            tensor_set(rounded, 0, (double)wanted);
        }
        EXPECT(read == (tensor_is_null(working) ? (double)wanted : tensor_get(rounded, 0)),
               "step %d: the tied weight, element %lld", step, (long long)i);
    }
}

/* The state of all stages, each its layers. */
static void record(const struct run *r, int step, const struct trainer *t, const float *grad,
                   const struct trainer_result *result)
{
    struct own_layers own = layers_of(r, t);
    struct state *to = &r->recorded[step];
    size_t bytes = (size_t)(own.of_all.end - own.of_all.begin) * sizeof(float);
    memcpy(to->grad + own.of_all.begin, grad, bytes);
    memcpy(to->master + own.of_all.begin, own_slice(own, t->net.master).data, bytes);
    memcpy(to->exp_avg + own.of_all.begin, t->exp_avg.data, bytes);
    memcpy(to->exp_avg_sq + own.of_all.begin, t->exp_avg_sq.data, bytes);
    if (layers_of(r, t).of_all.begin == 0) {
        to->result = *result;
    }
}

static void expect_stage(const struct run *r, int step, int rank, const struct trainer *t, const float *grad,
                         const struct trainer_result *result)
{
    struct own_layers own = layers_of(r, t);
    int64_t n = own.of_all.end - own.of_all.begin;
    const struct state *wanted = &r->states[step];
    expect_same_slice(r, "gradient", step, rank, tensor_1d((float *)grad, DTYPE_F32, n), wanted->grad,
                      own.of_all);
    expect_same_slice(r, "weights", step, rank, own_slice(own, t->net.master), wanted->master, own.of_all);
    expect_same_slice(r, "first moments", step, rank, t->exp_avg, wanted->exp_avg, own.of_all);
    expect_same_slice(r, "second moments", step, rank, t->exp_avg_sq, wanted->exp_avg_sq, own.of_all);
    expect_result(result, &wanted->result);
}

/* Where input layer and heads have a parameter in common, its gradient is another sum in a pipeline: that of
 * the first step is as near as sums in fp32 are, and those of all other parameters are the same. */
static void expect_near(const struct run *r, int rank, const struct trainer *t, const float *grad)
{
    const char *tied = t->config.net.model->tied;
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i], *all = param_table_find(&r->params, p->name);
        const float *wanted = r->states[0].grad + all->offset;
        for (int64_t k = 0; k < param_count(p) && p->rate != 0; k++) {
            float got = grad[p->offset - t->update.bounds[0] + k];
            bool same = strcmp(p->name, tied) == 0
                            ? fabsf(got - wanted[k]) <= 1e-6F + 1e-5F * fabsf(wanted[k])
                            : memcmp(&got, &wanted[k], sizeof got) == 0;
            EXPECT(same, "%s, rank %d: gradient of %s, element %lld: %g, not %g", r->of->name, rank, p->name,
                   (long long)k, (double)got, (double)wanted[k]);
        }
    }
}

static void pipeline_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_config config = r->config;
    struct trainer_result result;
    config.ranks = stages_of(c, r->batch.n_micro);
    open_trainer_of(&t, &config, c);
    EXPECT(t.net.config.n_slots == c->size - c->rank, "%lld slots", (long long)t.net.config.n_slots);
    struct own_layers own = layers_of(r, &t);
    EXPECT(tensor_count(t.exp_avg) == own.of_all.end - own.of_all.begin, "moments of %lld elements",
           (long long)tensor_count(t.exp_avg));
    for (int i = 0; i < STEPS; i++) {
        trainer_begin_step(&t, i + 1, i + 1, LR);
        trainer_queue_gradients(&t, &r->batch);
        EXPECT_OK(t.net.x.status);
        float *grad = copy_of(own_slice(own, t.grad));
        EXPECT_OK(trainer_step(&t, &r->batch, i + 1, i + 1, LR, &result));
        if (r->expects_same) {
            expect_stage(r, i, c->rank, &t, grad, &result);
        } else if (i == 0) {
            expect_near(r, c->rank, &t, grad);
        }
        if (r->recorded != NULL) {
            record(r, i, &t, grad, &result);
        }
        if (r->expects_same && c->rank == c->size - 1) {
            expect_tied(r, i, &t);
        }
        free(grad);
    }
    trainer_fini(&t);
}

/* Decisions of this rank until it is asked to stop. */
static _Thread_local int until_stop;

static bool stops(void)
{
    return until_stop-- == 0;
}

/* A step leaves nothing that the last rank is asked to give up: at the first decision of several ranks, at a
 * later one of a single rank. */
static void give_up_step(struct trainer *t, const struct comm *c, const struct batch_step *mine, int i)
{
    struct metrics silent = {.options.silent = true};
    struct mesh ranks = mesh_of_replicas(c);
    struct within_step within = {.ranks = &ranks, .log = &silent, .stops = stops};
    struct micro_hook hook = {within_step_next, &within};
    struct trainer_result result;
    until_stop = c->rank < c->size - 1 ? -1 : c->size > 1 ? 0 : i;
    within_step_begin(&within, i + 1, mine);
    if (within.n_rounds <= (c->size > 1 ? 1 : i + 1)) { /* there is no such place in the step */
        return;
    }
    t->micro_hook = &hook;
    EXPECT_OK(trainer_step(t, mine, i + 1, i + 1, 7 * LR, &result));
    t->micro_hook = NULL;
    EXPECT(result.abandoned, "rank %d has taken step %d", c->rank, i + 1);
}

static void data_parallel_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct trainer t;
    struct trainer_result result;
    struct batch_step mine = batch_step_part(&r->batch, c->rank, c->size);
    struct trainer_config config = r->config;
    config.ranks = replicas_of(c, r->zero_stage);
    open_trainer_of(&t, &config, c);
    for (int i = 0; i < STEPS; i++) {
        trainer_begin_step(&t, i + 1, i + 1, LR);
        trainer_queue_gradients(&t, &mine);
        EXPECT_OK(t.net.x.status);
        expect_same_slice(r, "gradient", i, c->rank,
                          trainer_shares_gradients(&t) ? t.grad : slice_of(t.grad, t.update.shard),
                          r->states[i].grad, t.update.shard); /* of all, where nobody shares */
        forget_maxima(&t);
        if (i == 1) {
            give_up_step(&t, c, &mine, i);
        }
        EXPECT_OK(trainer_step(&t, &mine, i + 1, i + 1, LR, &result));
        expect_state(r, i, c->rank, &t, &result, all_of(r));
    }
    trainer_fini(&t);
}

/* The same where each rank has the moments of its shard only, and updates that. */
static void sharded_body(const struct comm *c, void *context)
{
    const struct run *r = context;
    struct run sharded = *r;
    sharded.zero_stage = 1;
    data_parallel_body(c, &sharded);
}

/* And the gradients of its shard only. */
static void sharing_body(const struct comm *c, void *context)
{
    struct run sharing = *(const struct run *)context;
    sharing.zero_stage = 2;
    data_parallel_body(c, &sharing);
}

/* Of this parameter rows are looked up, and its gradient gets them one by one. */
static bool is_table(const struct param *p)
{
    return p->layer == MODEL_INPUT_LAYER && p->n_dims == 2;
}

/* What += adds is a finished sum: gradients of micro-batches that are added up one after the other in one
 * buffer are those that were made apart, and then added.  All but tables, in batches as short as these
 * (docs/decisions/0039_ranks.md). */
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

/* Ranks that share gradients, too, in the order of theirs; with one micro-batch each that is the order of all
 * ranks. */
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

/* One stage has the bits of a trainer alone, several have them where nothing is tied, and four always have
 * those of two. */
static void pipelines_give_the_bits_of_one(const struct comm *world, struct run *r)
{
    static struct state of_two[STEPS]; /* of ranks that are threads; processes each have their own */
    r->n_ranks = 1;
    r->expects_same = true;
    run_ranks_of(world, 1, DEADLINE_S, pipeline_body, r);
    r->n_ranks = 2;
    r->expects_same = r->of->task == MODEL_TASK_QUESTION_ANSWERING;
    bool threads = world->size == 1;
    for (int i = 0; i < STEPS && threads; i++) {
        size_t n = (size_t)r->params.n_elements;
        of_two[i] = (struct state){.grad = calloc(n, sizeof(float)),
                                   .master = calloc(n, sizeof(float)),
                                   .exp_avg = calloc(n, sizeof(float)),
                                   .exp_avg_sq = calloc(n, sizeof(float))};
    }
    r->recorded = threads ? of_two : NULL;
    run_ranks_of(world, 2, DEADLINE_S, pipeline_body, r);
    r->recorded = NULL;
    if (threads) {
        forget(r);
        memcpy(r->states, of_two, sizeof of_two);
        r->expects_same = true;
    }
    r->n_ranks = 4;
    run_ranks_of(world, 4, DEADLINE_S, pipeline_body, r);
    forget(r);
    run_alone(r);
}

static void ranks_give_the_bits_of_one(const struct comm *world, const struct rank_case *k)
{
    static const int sizes[] = {1, 2, 4};
    struct run r;
    open_run(&r, k);
    run_alone(&r);
    pipelines_give_the_bits_of_one(world, &r);
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

/* Shards of the wide case cut parameters, or the cases above would not tell whether norms of parts of
 * parameters are right. */
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
        {.name = "fp32, sgd", .optimizer = &optimizer_sgd},
        {.name = "bf16, lans", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_lans},
        {.name = "fp32, adamw", .optimizer = &optimizer_adamw, .mean_of_micro_batches = true},
        {.name = "bf16, lamb", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_lamb},
        {.name = "bf16, adamw", .precision = {.dtype = DTYPE_BF16}, .optimizer = &optimizer_adamw},
        {.name = "fp8, lamb", .precision = {.dtype = DTYPE_BF16, .fp8 = true}, .optimizer = &optimizer_lamb},
        {.name = "questions", .task = MODEL_TASK_QUESTION_ANSWERING},
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
        {.name = "fp32, muon", .optimizer = &optimizer_muon},
        {.name = "frozen, bf16, muon",
         .precision = {.dtype = DTYPE_BF16},
         .rates = {"embeddings,bert.encoder.layer.1.output", 0.7},
         .optimizer = &optimizer_muon},
        {.name = "wide, muon", .optimizer = &optimizer_muon, .hidden_size = 48},
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
    if (argc == 1) {
        shards_cut_parameters(&cases[n_cases - 1]);
    }
    return 0;
}
