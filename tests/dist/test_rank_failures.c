/* Errors of one rank: they end the step of all, with the same message and not that of the deadline, and no
 * weight has changed. */
#include "rank_steps.h"

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
    config.ranks = in_pipeline ? stages_of(c, batch.n_micro)
                               : replicas_of(c, f->how == IN_SHARED_GRADIENTS ? 2 : f->how == IN_SHARDS);
    open_trainer_of(&t, &config, c);
    for (int64_t i = 1; i <= STEPS; i++) {
        struct batch_step mine = in_pipeline ? batch : batch_step_part(&batch, c->rank, c->size);
        EXPECT_ERROR(trainer_step(&t, &mine, i, i, LR, &result), STATUS_DATA, f->wanted);
    }
    struct trainer fresh;
    EXPECT_OK(trainer_init(&fresh, &config));
    for (int i = 0; i < t.net.params.n; i++) {
        const struct param *p = &t.net.params.params[i];
        tensor now = tensor_slice(t.net.master, p->offset, param_count(p));
        tensor before = tensor_slice(fresh.net.master, p->offset, param_count(p));
        EXPECT(memcmp(now.data, before.data, tensor_bytes(now)) == 0, "%s has changed", p->name);
    }
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
    config.ranks = replicas_of(c, r->zero_stage);
    open_trainer_of(&t, &config, c);
    trainer_begin_step(&t, 1, 1, LR);
    trainer_queue_gradients(&t, &mine);
    int i = 0;
    while (r->params.params[i].offset < t.update.bounds[c->size - 1]) {
        i++;
    }
    if (c->rank == c->size - 1) {
        tensor_set(t.grad,
                   r->params.params[i].offset - (trainer_shares_gradients(&t) ? t.update.shard.begin : 0),
                   INFINITY);
    }
    snprintf(wanted, sizeof wanted, "the gradient of %s (element 0)", r->params.params[i].name);
    EXPECT_ERROR(trainer_update(&t, &mine, 1, &result), STATUS_NUMERIC, wanted);
    trainer_fini(&t);
}

static void all_ranks_name_an_infinite_gradient(void)
{
    static const struct rank_case k = {.name = "an infinite gradient"};
    struct run r;
    open_run(&r, &k);
    for (r.zero_stage = 1; r.zero_stage <= 2; r.zero_stage++) {
        run_ranks(4, DEADLINE_S, infinite_body, &r);
    }
    close_run(&r);
}

int main(void)
{
    all_ranks_name_an_infinite_gradient();
    one_error_ends_all_ranks(IN_A_PIPELINE);
    one_error_ends_all_ranks(IN_DATA_PARALLEL);
    one_error_ends_all_ranks(IN_SHARDS);
    one_error_ends_all_ranks(IN_SHARED_GRADIENTS);
    return 0;
}
