#include "cmd/tensor_ranks.h"

#include "cmd/rank_run.h"
#include "core/log.h"
#include "task/health.h"
#include "task/same_inputs.h"

/* ---- beginning and end ---- */

static struct status check_number(const struct tensor_ranks *t, const struct command *c, bool dry_run)
{
    if (t->world.size == t->n || (dry_run && t->world.size == 1)) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "--tensor-model-parallel-size %d needs %d ranks, but %d %s: `kiln launch --num_ranks "
                        "%d kiln %s ...`, or mpirun -n %d",
                        t->n, t->n, t->world.size, t->world.size == 1 ? "was started" : "were started", t->n,
                        c->name, t->n);
}

struct status tensor_ranks_begin(struct tensor_ranks *t, const struct command *c, const void *args, int64_t n,
                                 bool dry_run)
{
    static const struct launcher_flags none = {.local_rank = -1};
    *t = (struct tensor_ranks){.n = (int)n, .world = comm_self()};
    if (n == 1) { /* each of several processes is alone, and so has its own say */
        log_set_level(LOG_INFO);
        return status_ok();
    }
    TRY(rank_run_begin(&t->world, c, args, &none));
    struct status s = check_number(t, c, dry_run);
    return failed(s) ? tensor_ranks_end(t, s) : s;
}

struct status tensor_ranks_end(struct tensor_ranks *t, struct status s)
{
    return t->n == 1 ? s : rank_run_end(&t->world, s);
}

bool tensor_ranks_prints(const struct tensor_ranks *t)
{
    return t->world.rank == 0;
}

/* ---- the model ---- */

static struct status join(struct tensor_ranks *t, struct session *s)
{
    struct comm_nccl_config config = {0};
    TRY(launcher_timeout(&config.deadline_s));
    config.deadline_s /= 2; /* the limit ends before the others give this rank up */
    TRY(comm_device_open(&t->tensors, &t->world, &s->net.x, &config));
    return comm_agree(&t->world, comm_peers_init(&t->peers, &t->tensors.comm));
}

static struct status compare_models(const struct tensor_ranks *t, struct session *s)
{
    struct same_run same = {0};
    same_inputs_add_model(&same, s->model, s->tokenizer);
    TRY(same_run_check(&same, &t->world, STATUS_DATA));
    return health_check_uncut(&t->world, &s->net, 0, true);
}

static void cut(struct tensor_ranks *t, struct session_options *o)
{
    t->peers.peers = (struct peers){.rank = t->world.rank, .size = t->n};
    o->peers = t->n > 1 ? &t->peers.peers : NULL;
}

struct status tensor_ranks_plan(struct tensor_ranks *t, const struct session_flags *f, enum answer answer,
                                struct session_options *o)
{
    cut(t, o);
    return tensor_ranks_prints(t) ? session_flags_plan_options(f, answer, o) : status_ok();
}

struct status tensor_ranks_open(struct tensor_ranks *t, struct session *s, const char *path,
                                enum answer answer, struct session_options *o)
{
    cut(t, o);
    struct status status = comm_agree(&t->world, session_open(s, path, answer_kind_of(answer)->task, o));
    if (!failed(status) && t->n > 1) {
        status = compare_models(t, s);
        status = failed(status) ? status : join(t, s);
    }
    if (failed(status)) {
        tensor_ranks_close(t, s);
    }
    return status;
}

void tensor_ranks_close(struct tensor_ranks *t, struct session *s)
{
    comm_peers_fini(&t->peers);
    comm_device_close(&t->tensors);
    session_close(s);
}

struct status tensor_ranks_compare(const struct tensor_ranks *t, const char *name, uint64_t hash)
{
    struct same_run same = {0};
    if (t->world.size == 1) {
        return status_ok();
    }
    same_run_add_hash(&same, name, hash);
    return same_run_check(&same, &t->world, STATUS_DATA);
}
