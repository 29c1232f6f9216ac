#include "train/mesh_plan.h"

int mesh_plan_chunks(const struct mesh_job *job)
{
    return job->shape.pp > 1 && job->cut.n_chunks > 0 ? job->cut.n_chunks : 1;
}

/* Messages of a micro-batch: each chunk sends its output up but the last part, and a gradient down but the
 * first. */
static int messages_of(const struct mesh_job *job, int stage)
{
    struct pipeline_shape p = {job->shape.pp, mesh_plan_chunks(job), job->n_micro};
    int n = 0;
    for (int chunk = 0; chunk < p.n_chunks && p.n_stages > 1; chunk++) {
        int part = pipeline_part(&p, stage, chunk);
        n += (part > 0) + (part + 1 < p.n_stages * p.n_chunks);
    }
    return n;
}

double mesh_plan_message_bytes(const struct mesh_job *job)
{
    const struct network_config *n = &job->config.net;
    int64_t rows = job->cut.sequence_parallel ? n->limits.n_tokens / job->shape.tp : n->limits.n_tokens;
    return (double)rows * (double)n->model->hidden_size * (double)dtype_bytes(precision_stream(n->precision));
}

static double pipe_bytes(const struct mesh_job *job, int stage)
{
    return mesh_plan_message_bytes(job) * messages_of(job, stage) * (double)job->n_micro;
}

double mesh_plan_exchanged(const struct mesh_stage_plan *p, const struct mesh_job *job)
{
    double sums = (double)p->zero.n_reductions * (job->zero_stage == 0 ? 2 : 1);
    return sums * p->zero.reduced_bytes + p->zero.gathered_bytes;
}

/* What each of n ranks sends of a sum that all have. */
static double sum_bytes(double bytes, int n)
{
    return 2 * bytes * (n - 1) / n;
}

/* The heads' stage tells its losses to the others; replicas add them up. */
static void count_numbers(struct mesh_stage_plan *p, const struct mesh_job *job, int stage)
{
    const struct trainer_plan *t = &p->zero.trainer;
    struct mesh_shape s = job->shape;
    double losses = MODEL_MOST_SUMS * sizeof(double);
    p->slice_number_bytes = sum_bytes(t->part_sum_bytes + t->slice_sum_bytes, s.tp);
    p->stage_number_bytes =
        sum_bytes(t->part_sum_bytes, s.pp) + (stage + 1 == s.pp ? losses * (s.pp - 1) : 0);
    p->replica_number_bytes = sum_bytes(losses, s.dp);
}

struct mesh_traffic mesh_plan_traffic(const struct mesh_stage_plan *p, const struct mesh_job *job)
{
    int dp = job->shape.dp;
    return (struct mesh_traffic){.slices = p->tensor_bytes + p->slice_number_bytes,
                                 .stages = p->pipe_bytes + p->tied_bytes + p->stage_number_bytes,
                                 .replicas =
                                     mesh_plan_exchanged(p, job) * (dp - 1) / dp + p->replica_number_bytes};
}

/* Elements of the tied parameter, or of this rank's slice of it. */
static double count_tied(const struct network_config *c, const struct param_table *t)
{
    return (double)param_count(param_table_find(t, c->model->tied));
}

/* Elements of the parameters whose gradients are of a rank's own rows of the residual stream. */
static double count_of_rows(const struct network_config *c, const struct param_table *t)
{
    double n = 0;
    for (int i = 0; i < t->n && c->sequence_parallel; i++) {
        n += t->params[i].split == PARAM_OF_ROWS ? (double)param_count(&t->params[i]) : 0;
    }
    return n;
}

/* Of the parameters of a part of the model. */
static struct status count_in(double *n, const struct network_config *c, const struct param_part *part,
                              double (*count)(const struct network_config *c, const struct param_table *t))
{
    struct param_table t = {.part = *part};
    struct status s = c->model->type->declare(c->model, &t);
    if (!failed(s)) {
        *n = count(c, &t);
    }
    param_table_fini(&t);
    return s;
}

/* The exchanges of each micro-batch and of the update, and the sum of gradients of own rows once a step: with
 * ZeRO of the rank's shard. */
static struct status find_tensor_bytes(double *bytes, const struct mesh_job *job,
                                       const struct network_config *c, const struct trainer_plan *plan)
{
    double n, slices = job->shape.tp, shards = job->zero_stage > 0 ? job->shape.dp : 1;
    TRY(count_in(&n, c, &c->part, count_of_rows));
    *bytes =
        plan->peer_bytes * (double)job->n_micro + plan->update_peer_bytes +
        2 * (slices - 1) / slices * n / shards * (double)dtype_bytes(dtype_of_vectors(c->precision.dtype));
    return status_ok();
}

/* The heads' stage sends the gradient, and the input's the weights that passes read. */
static struct status find_tied_bytes(double *bytes, const struct network_config *c, int stage, int n_stages)
{
    double n = 0;
    enum dtype read = c->precision.dtype;
    *bytes = 0;
    if (c->model->tied == NULL || n_stages == 1 || (stage > 0 && stage + 1 < n_stages)) {
        return status_ok();
    }
    TRY(count_in(&n, c, &(struct param_part){.slice = c->part.slice, .n_slices = c->part.n_slices},
                 count_tied));
    *bytes = n * (double)dtype_bytes(stage > 0 ? dtype_of_vectors(read) : read);
    return status_ok();
}

struct status mesh_plan_stage(struct mesh_stage_plan *p, const struct mesh_job *job, int stage)
{
    struct trainer_config c = job->config;
    c.shares_gradients = job->zero_stage > 1 && job->shape.dp > 1;
    *p = (struct mesh_stage_plan){0};
    TRY(mesh_configure(&c, job->shape, (struct mesh_place){.pp = stage}, job->cut, job->n_micro));
    TRY(zero_plan(&p->zero, &c, job->shape.dp, job->zero_stage, job->n_micro));
    TRY(find_tensor_bytes(&p->tensor_bytes, job, &c.net, &p->zero.trainer));
    p->pipe_bytes = pipe_bytes(job, stage);
    count_numbers(p, job, stage);
    return find_tied_bytes(&p->tied_bytes, &c.net, stage, job->shape.pp);
}
