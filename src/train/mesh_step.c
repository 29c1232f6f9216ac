#include "train/mesh_step.h"

#include "core/integers.h"
#include "dev/peers.h"
#include "train/data_parallel_step.h"
#include "train/pipeline_step.h"
#include "train/trainer_parts.h"
#include "watch/profile.h"

/* ---- configuration ---- */

/* Every batch has a multiple of BATCH_TOKEN_BUCKET rows, and of no other number. */
static struct status check_rows(const struct trainer_config *c, int n)
{
    const struct model *m = c->net.model;
    if (!m->type->divides_rows) {
        return status_error(STATUS_USAGE, "a %s model cannot be sequence parallel: leave out that flag",
                            m->type->name);
    }
    return BATCH_TOKEN_BUCKET % n == 0
               ? status_ok()
               : status_error(
                     STATUS_USAGE,
                     "sequence parallel over %d ranks does not divide the rows of a batch, a multiple "
                     "of %d: take a tensor-parallel size that divides %d, or leave out that flag",
                     n, BATCH_TOKEN_BUCKET, BATCH_TOKEN_BUCKET);
}

static struct status check_stages(const struct trainer_config *c, const struct pipeline_shape *p,
                                  enum pipeline_partition by)
{
    const struct model *m = c->net.model;
    int n_parts = p->n_stages * p->n_chunks;
    if (p->n_stages == 1) {
        return status_ok();
    }
    bool ends = by == PIPELINE_BY_LAYERS_AND_EMBEDDINGS;
    if (ends && m->n_layers + 2 < 2 * n_parts) { /* the first part has the input layer and nothing else */
        return status_error(
            STATUS_USAGE,
            "%lld layers and two embeddings make no %d parts that have a layer each: leave out "
            "--pp-partition-method, or take fewer stages",
            (long long)m->n_layers, n_parts);
    }
    if (n_parts > m->n_layers) {
        return status_error(
            STATUS_USAGE,
            "a pipeline of %d stages with %d chunks each needs a layer for each chunk, but the model "
            "has %lld",
            p->n_stages, p->n_chunks, (long long)m->n_layers);
    }
    if (m->hands_on_more) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages cannot run pre-LN layers: stages pass on the output of "
                            "a layer, but not its sum",
                            p->n_stages);
    }
    if (c->shares_gradients) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages keeps the gradients of all its micro-batches, so ranks "
                            "cannot share them: use ZeRO stage 0 or 1",
                            p->n_stages);
    }
    return pipeline_check(p);
}

static int64_t most_in_flight(const struct pipeline_shape *p, int stage)
{
    int64_t most = 1;
    for (int chunk = 0; chunk < p->n_chunks; chunk++) {
        most = int_larger(most, pipeline_in_flight(p, stage, chunk));
    }
    return most;
}

struct status mesh_configure(struct trainer_config *config, struct mesh_shape shape, struct mesh_place place,
                             struct mesh_cut cut, int64_t n_micro)
{
    struct pipeline_shape p = {shape.pp, shape.pp > 1 && cut.n_chunks > 0 ? cut.n_chunks : 1, n_micro};
    struct param_part *part = &config->net.part;
    TRY(network_check_slices(&config->net, shape.tp));
    TRY(check_stages(config, &p, cut.partition));
    config->net.sequence_parallel = cut.sequence_parallel && shape.tp > 1;
    TRY(config->net.sequence_parallel ? check_rows(config, shape.tp) : status_ok());
    *part = (struct param_part){0};
    if (shape.tp > 1) {
        part->slice = place.tp;
        part->n_slices = shape.tp;
    }
    for (int chunk = 0; chunk < p.n_chunks && shape.pp > 1; chunk++) {
        part->ranges[part->n_ranges++] =
            pipeline_layers(config->net.model->n_layers, pipeline_part(&p, place.pp, chunk),
                            p.n_stages * p.n_chunks, cut.partition);
    }
    config->net.n_slots = most_in_flight(&p, place.pp);
    return status_ok();
}

/* ---- a step ---- */

/* The heads' stage has them. */
void mesh_share_sums(struct trainer *t)
{
    const struct mesh *m = t->mesh;
    if (m != NULL && m->pipe.size > 1) {
        comm_broadcast(&m->pipe, &t->net.x, t->sums, m->pipe.size - 1);
    }
}

/* Where ranks divide the rows of the residual stream, what is applied to a rank's own rows has a gradient of
 * these alone.  It is summed once a step, behind the sums over replicas: then it is the least that is sent,
 * and with ZeRO only of the rank's shard. */
static void sum_gradients_of_rows(struct trainer *t)
{
    const struct param_table *params = &t->net.params;
    for (int i = 0; i < params->n && t->net.config.sequence_parallel; i++) {
        const struct param *p = &params->params[i];
        tensor own = update_own_param(&t->update, p, trainer_own_gradients(t));
        if (p->split == PARAM_OF_ROWS && !tensor_is_null(own)) {
            peers_sum(&t->net.x, own);
        }
    }
}

static void sum_passes(struct trainer *t, const struct mesh *m, const struct batch_step *part,
                       struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    if (m->pipe.size == 1) {
        data_parallel_gradients(t, &m->data, part, numbers, mean_of_micro_batches);
        return;
    }
    pipeline_gradients(t, m, part, numbers, mean_of_micro_batches);
    if (!t->turn.abandoned) {
        profile_phase(t->net.profile, "optimizer");
        data_parallel_sum(t, &m->data);
        mesh_share_sums(t);
    }
}

void mesh_gradients(struct trainer *t, const struct mesh *m, const struct batch_step *part,
                    struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    sum_passes(t, m, part, numbers, mean_of_micro_batches);
    if (!t->turn.abandoned) {
        sum_gradients_of_rows(t);
    }
}

/* Of all groups: a collective that was given up leaves anything in its tensors. */
static struct status check_groups(const struct mesh *m)
{
    TRY(comm_check(&m->tensor));
    TRY(comm_check(&m->pipe));
    TRY(comm_check(&m->ends));
    return comm_check(&m->data);
}

struct status mesh_step(struct trainer *t, const struct mesh *m, const struct batch_step *part, int64_t step,
                        int64_t update, double lr, bool mean_of_micro_batches, struct trainer_result *result)
{
    struct stage_numbers numbers = trainer_numbers(t, step, update, lr);
    mesh_gradients(t, m, part, &numbers, mean_of_micro_batches);
    if (t->turn.abandoned) {
        return trainer_abandon(t, result);
    }
    struct status s = trainer_update(t, t->config.n_shards > 1 ? &m->data : NULL, part, step, result);
    pipeline_share_tied(t, m); /* after a failure, too: the other rank makes the call */
    struct status sums = check_groups(m);
    return failed(sums) ? sums : failed(s) ? s : t->net.x.status;
}

void mesh_evaluate_batch(struct trainer *t, const struct batch *batch)
{
    if (t->mesh == NULL || t->mesh->pipe.size == 1) {
        trainer_evaluate_batch(t, batch);
    } else {
        pipeline_evaluate_batch(t, t->mesh, batch);
    }
}
