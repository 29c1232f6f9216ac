/* param_engine: steps over gradients that somebody else computes have the same bits on 1, 2 and 4 ranks, with
 * ZeRO's first stage and without, and after a checkpoint that another number of ranks wrote; AdamW's by its
 * formula; gradients that are not finite. */
#define _GNU_SOURCE
#include "train/param_engine.h"

#include "core/rng.h"
#include "io/file.h"
#include "ranks.h"

#include <limits.h>
#include <unistd.h>

enum { N_MICRO = 8, N_STEPS = 6, SAVED_AT = 3 };

static const struct param declared[] = {
    {.name = "a.weight", .n_dims = 2, .dims = {37, 50}, .decay = true},
    {.name = "a.bias", .n_dims = 1, .dims = {50}},
    {.name = "b.weight", .n_dims = 2, .dims = {3, 1500}, .decay = true},
    {.name = "c", .n_dims = 1, .dims = {1}},
};
enum { N_PARAMS = sizeof declared / sizeof declared[0] };

static struct param_table table_of(int64_t rows_of_a)
{
    struct param_table t = {0};
    for (int i = 0; i < N_PARAMS; i++) {
        struct param p = declared[i];
        p.dims[0] = i == 0 ? rows_of_a : p.dims[0];
        p.offset = param_table_slab(&t, param_count(&p));
        param_table_add(&t, p);
    }
    EXPECT_OK(param_table_status(&t));
    return t;
}

/* What a group of ranks does, and what rank 0 of it leaves. */
struct case_of_ranks {
    const char *optimizer;
    bool shares, rounds, bad_step;
    int reproducible;
    int64_t first, last;     /* steps */
    const char *load, *save; /* directories, or NULL */
    float weights[16384];
    uint16_t rounded[16384];
    double loss, norm;
    int64_t n;
};

static struct param_engine_config config_of(const struct case_of_ranks *k, int n_ranks)
{
    struct param_engine_config c = {
        .optimizer = optimizer_defaults(optimizer_find(k->optimizer)),
        .schedule = {.kind = SCHEDULE_WARMUP, .base = 1e-2, .min = 1e-3, .max = 1e-2, .warmup_steps = 4},
        .n_micro = N_MICRO / n_ranks,
        .reproducible_ranks = k->reproducible,
        .shares = k->shares,
        .rounds = k->rounds,
    };
    c.optimizer.max_grad_norm = 0.5;
    return c;
}

/* Adds the gradients of a micro-batch of two samples, as a user's backward would. */
static void add_gradients(struct param_engine *e, int64_t step, int64_t micro)
{
    for (int i = 0; i < e->trainer.net.params.n; i++) {
        tensor g = param_view(&e->trainer.net.params.params[i], e->trainer.grad);
        uint64_t key = rng_key(rng_key((uint64_t)step, (uint64_t)micro), (uint64_t)i);
        for (int64_t k = 0; k < tensor_count(g); k++) {
            for (uint64_t sample = 0; sample < 2; sample++) {
                ((float *)g.data)[k] +=
                    (float)rng_normal(key, 2 * (uint64_t)k + sample) * (i == 2 ? 0.01F : 0.1F);
            }
        }
    }
}

static void give_step(struct param_engine *e, const struct comm *c, int64_t step)
{
    int64_t n = e->config.n_micro;
    bool updated = true;
    for (int64_t i = 0; i < n; i++) {
        add_gradients(e, step, c->rank * n + i);
        EXPECT_OK(param_engine_take(e, 1.0 / (double)(step * N_MICRO + c->rank * n + i)));
        if (i < n - 1) {
            EXPECT_OK(param_engine_step(e, &updated));
            EXPECT(!updated, "a step after %lld of %lld micro-batches", (long long)i + 1, (long long)n);
        }
    }
}

/* A step in which one rank's gradient is not a number. */
static void give_bad_step(struct param_engine *e, const struct comm *c)
{
    bool updated = true;
    give_step(e, c, 99);
    if (c->rank == c->size - 1) {
        ((float *)param_view(&e->trainer.net.params.params[1], e->trainer.grad).data)[7] = NAN;
    }
    EXPECT_ERROR(param_engine_step(e, &updated), STATUS_NUMERIC,
                 "the gradient of a.bias is not finite at element 7");
    EXPECT(!updated, "an update of what is not finite");
}

static void train(const struct comm *c, void *context)
{
    struct case_of_ranks *k = context;
    struct param_engine_config config = config_of(k, c->size);
    struct param_table table = table_of(37);
    struct param_engine e;
    bool updated, found;
    EXPECT_OK(param_engine_init(&e, &table, &config, c));
    if (c->rank == 0) { /* the others take them */
        param_table_initialize(e.trainer.net.master, &e.trainer.net.params, 1);
        tensor_set(param_view(&e.trainer.net.params.params[0], e.trainer.net.master), 3, 0.25);
    }
    EXPECT_OK(param_engine_start(&e));
    if (k->load != NULL) {
        EXPECT_OK(param_engine_load(&e, k->load, -1, &found));
        EXPECT(found && e.step == k->first - 1, "step %lld", (long long)e.step);
    }
    for (int64_t step = k->first; step <= k->last; step++) {
        if (k->bad_step && step == SAVED_AT) {
            give_bad_step(&e, c);
        }
        give_step(&e, c, step);
        EXPECT_OK(param_engine_step(&e, &updated));
        EXPECT(updated && e.step == step && e.rate == param_engine_rate(&e, step), "step %lld",
               (long long)step);
    }
    if (k->save != NULL) {
        EXPECT_OK(param_engine_save(&e, k->save));
    }
    if (c->rank == c->size - 1) { /* all have the same */
        k->n = e.trainer.net.params.n_elements;
        EXPECT(k->n <= 16384, "%lld elements", (long long)k->n);
        memcpy(k->weights, e.trainer.net.master.data, tensor_bytes(e.trainer.net.master));
        if (k->rounds) {
            memcpy(k->rounded, e.trainer.net.working.data, tensor_bytes(e.trainer.net.working));
        }
        k->loss = e.loss;
        k->norm = e.norm;
    }
    param_engine_fini(&e);
}

static struct case_of_ranks *run(int n, struct case_of_ranks how)
{
    struct case_of_ranks *k = malloc(sizeof *k);
    EXPECT(k != NULL, "memory");
    *k = how;
    k->first = k->first == 0 ? 1 : k->first;
    k->last = k->last == 0 ? N_STEPS : k->last;
    run_ranks(n, 20, train, k);
    return k;
}

static void expect_same(const struct case_of_ranks *a, struct case_of_ranks *b, const char *what)
{
    EXPECT(a->n == b->n && memcmp(a->weights, b->weights, (size_t)a->n * sizeof(float)) == 0,
           "%s %s: other weights", a->optimizer, what);
    EXPECT(memcmp(a->rounded, b->rounded, (size_t)a->n * sizeof(uint16_t)) == 0 || !(a->rounds && b->rounds),
           "%s %s: other rounded weights", a->optimizer, what);
    EXPECT_NEAR(a->loss, b->loss, 1e-15);
    EXPECT(a->norm == b->norm, "%s %s: norm %.17g and %.17g", a->optimizer, what, a->norm, b->norm);
    free(b);
}

/* One rank, and 2 and 4, at each stage; a copy in bf16 changes nothing else. */
static void test_ranks(const char *optimizer)
{
    struct case_of_ranks how = {.optimizer = optimizer, .reproducible = 4, .rounds = true};
    struct case_of_ranks *alone = run(1, how);
    struct case_of_ranks shared = how, plain = how;
    shared.shares = true;
    plain.rounds = false;
    expect_same(alone, run(1, shared), "alone, stage 1");
    expect_same(alone, run(2, how), "2 ranks");
    expect_same(alone, run(2, shared), "2 ranks, stage 1");
    expect_same(alone, run(4, shared), "4 ranks, stage 1");
    expect_same(alone, run(4, plain), "4 ranks, fp32");
    for (int64_t i = 0; i < alone->n; i++) {
        EXPECT(alone->rounded[i] == bf16_from_f32(alone->weights[i]), "element %lld is not rounded",
               (long long)i);
    }
    EXPECT(alone->norm > 0 && alone->loss > 0, "norm %g, loss %g", alone->norm, alone->loss);
    free(alone);
}

/* Written by 4 ranks at stage 1, gone on from by 2 without it; and the other way round, by one. */
static void test_checkpoints(const char *directory)
{
    struct case_of_ranks how = {.optimizer = "lamb", .reproducible = 4};
    struct case_of_ranks *whole = run(4, how), before = how, after = how, bad = how;
    bad.bad_step = bad.shares = true;
    expect_same(whole, run(2, bad), "after a step that was not finite");
    before.last = SAVED_AT;
    before.save = after.load = directory;
    after.first = SAVED_AT + 1;
    for (int turn = 0; turn < 2; turn++) {
        before.shares = turn == 0;
        after.shares = turn == 1;
        free(run(turn == 0 ? 4 : 1, before));
        expect_same(whole, run(turn == 0 ? 2 : 4, after), "from a checkpoint");
    }
    free(whole);
}

/* By the formulas of docs/math/optimizers.md, in double. */
static void check_adamw(const struct comm *c, void *context)
{
    struct case_of_ranks how = {.optimizer = "adamw"};
    struct param_engine_config config = config_of(&how, 1);
    struct param_table table = table_of(37);
    struct param_engine e;
    bool updated;
    (void)context;
    config.n_micro = 2;
    config.optimizer.max_grad_norm = 1;
    EXPECT_OK(param_engine_init(&e, &table, &config, c));
    EXPECT_OK(param_engine_start(&e));
    float *w = param_view(&e.trainer.net.params.params[0], e.trainer.net.master).data,
          *g = param_view(&e.trainer.net.params.params[0], e.trainer.grad).data;
    w[5] = 2;
    param_engine_restart(&e);
    for (int i = 0; i < 2; i++) {
        g[5] += 3; /* the mean of two micro-batches is 3, clipped to 1 */
        EXPECT_OK(param_engine_take(&e, i));
    }
    EXPECT_ERROR(param_engine_take(&e, 0), STATUS_USAGE, "all of its 2 micro-batches");
    EXPECT_OK(param_engine_step(&e, &updated));
    EXPECT_NEAR(e.norm, 3, 1e-6);
    EXPECT_NEAR(e.loss, 0.5, 0);
    double lr = 1e-2, want = 2 * (1 - lr * 0.01) - lr * 1 / (1 + 1e-6 / sqrt(1 - 0.999));
    EXPECT_NEAR(w[5], want, 1e-6);
    EXPECT(g[5] == 0 && w[4] == 0, "the next step begins with %g", (double)g[5]);
    EXPECT_ERROR(param_engine_step(&e, &updated), STATUS_USAGE, "without a micro-batch");
    EXPECT_OK(param_engine_take(&e, NAN));
    EXPECT_OK(param_engine_take(&e, 0));
    EXPECT_ERROR(param_engine_step(&e, &updated), STATUS_NUMERIC, "the loss is");
    EXPECT(e.step == 1 && fabs(w[5] - want) < 1e-6, "an update of a loss that is not finite");
    param_engine_fini(&e);
}

/* Ranks with other parameters would wait for each other, or add them up. */
static void check_other_table(const struct comm *c, void *context)
{
    struct case_of_ranks how = {.optimizer = "lans", .shares = true};
    struct param_engine_config config = config_of(&how, c->size);
    struct param_table table = table_of(c->rank == 1 ? 38 : 37);
    struct param_engine e;
    (void)context;
    EXPECT_OK(param_engine_init(&e, &table, &config, c));
    EXPECT_ERROR(param_engine_start(&e), STATUS_USAGE, "rank 1 of 2: its parameters or its DeepSpeed file");
    param_engine_fini(&e);
}

static void check_usage(const struct comm *c, void *context)
{
    struct case_of_ranks how = {.optimizer = "lamb"};
    struct param_engine e;
    static const int wrong[] = {3, -1, 1, 64};
    (void)context;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct param_table table = table_of(37);
        how.reproducible = wrong[i];
        struct param_engine_config config = config_of(&how, c->size);
        EXPECT_ERROR(param_engine_init(&e, &table, &config, c), STATUS_USAGE, "reproducible_ranks");
    }
}

/* What is no checkpoint of these parameters. */
static void check_load(const struct comm *c, void *context)
{
    struct case_of_ranks how = {.optimizer = "lamb", .reproducible = 4};
    struct param_engine_config config = config_of(&how, c->size);
    struct param_table table = table_of(38);
    struct param_engine e;
    bool found = true;
    EXPECT_OK(param_engine_init(&e, &table, &config, c));
    EXPECT_OK(param_engine_start(&e));
    char missing[PATH_MAX];
    snprintf(missing, sizeof missing, "%s/not_there", (const char *)context);
    EXPECT_OK(param_engine_load(&e, missing, -1, &found));
    EXPECT(!found, "a checkpoint in a directory that is not there");
    EXPECT_ERROR(param_engine_load(&e, context, -1, &found), STATUS_DATA, "a.weight");
    EXPECT_ERROR(param_engine_take(&e, 0), STATUS_DATA, "a.weight");
    param_engine_fini(&e);
}

int main(void)
{
    char directory[] = "/tmp/kiln_engine.XXXXXX";
    EXPECT(mkdtemp(directory) != NULL, "mkdtemp");
    test_ranks("lamb");
    test_ranks("lans");
    test_ranks("adamw");
    test_checkpoints(directory);
    run_ranks(1, 20, check_adamw, NULL);
    run_ranks(2, 20, check_other_table, NULL);
    run_ranks(2, 20, check_usage, NULL);
    run_ranks(2, 20, check_load, directory);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
