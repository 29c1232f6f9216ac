#include "train/trainer_ranks.h"

#include "core/integers.h"
#include "pass/network.h"

int trainer_ranks_shards(const struct trainer_ranks *r)
{
    return r->zero_stage > 0 && r->shape.dp > 1 ? r->shape.dp : 1;
}

int trainer_ranks_shard(const struct trainer_ranks *r)
{
    return trainer_ranks_shards(r) > 1 ? r->place.dp : 0;
}

bool trainer_ranks_share_gradients(const struct trainer_ranks *r)
{
    return r->zero_stage > 1 && r->shape.dp > 1;
}

struct gradient_blocks trainer_ranks_blocks(const struct trainer_ranks *r)
{
    return r->reproducible > 0 ? gradient_blocks_of(r->reproducible, r->place.dp, r->shape.dp)
                               : (struct gradient_blocks){0};
}

int trainer_ranks_chunks(const struct trainer_ranks *r)
{
    return r->shape.pp > 1 && r->cut.n_chunks > 0 ? r->cut.n_chunks : 1;
}

/* Batches have multiples of BATCH_TOKEN_BUCKET rows; a divisor of it divides all of them. */
static struct status check_rows(const struct model *m, int n)
{
    FAIL_IF(!m->type->divides_rows, STATUS_USAGE,
            "a %s model cannot be sequence parallel: leave out that flag", m->type->name);
    return BATCH_TOKEN_BUCKET % n == 0
               ? status_ok()
               : status_error(
                     STATUS_USAGE,
                     "sequence parallel over %d ranks does not divide the rows of a batch, a multiple "
                     "of %d: take a tensor-parallel size that divides %d, or leave out that flag",
                     n, BATCH_TOKEN_BUCKET, BATCH_TOKEN_BUCKET);
}

static struct status check_stages(const struct trainer_ranks *r, const struct model *m,
                                  const struct pipeline_shape *p)
{
    int n_parts = p->n_stages * p->n_chunks;
    if (p->n_stages == 1) {
        return status_ok();
    }
    bool ends = r->cut.partition == PIPELINE_BY_LAYERS_AND_EMBEDDINGS;
    /* the first part has the input layer and nothing else */
    FAIL_IF(ends && m->n_layers + 2 < 2 * n_parts, STATUS_USAGE,
            "%lld layers and two embeddings make no %d parts that have a layer each: leave out "
            "--pp-partition-method, or take fewer stages",
            (long long)m->n_layers, n_parts);
    FAIL_IF(n_parts > m->n_layers, STATUS_USAGE,
            "a pipeline of %d stages with %d chunks each needs a layer for each chunk, but the model "
            "has %lld",
            p->n_stages, p->n_chunks, (long long)m->n_layers);
    FAIL_IF(m->hands_on_more, STATUS_USAGE,
            "a pipeline of %d stages cannot run pre-LN layers: stages pass on the output of "
            "a layer, but not its sum",
            p->n_stages);
    FAIL_IF(trainer_ranks_share_gradients(r), STATUS_USAGE,
            "a pipeline of %d stages keeps the gradients of all its micro-batches, so ranks "
            "cannot share them: use ZeRO stage 0 or 1",
            p->n_stages);
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

struct status trainer_ranks_place(struct trainer_ranks *r, struct network_config *net)
{
    r->shape.tp += r->shape.tp == 0;
    r->shape.pp += r->shape.pp == 0;
    r->shape.dp += r->shape.dp == 0;
    struct mesh_shape shape = r->shape;
    struct pipeline_shape p = {shape.pp, trainer_ranks_chunks(r), r->n_micro};
    struct param_part *part = &net->part;
    TRY(network_check_slices(net, shape.tp));
    TRY(check_stages(r, net->model, &p));
    net->sequence_parallel = r->cut.sequence_parallel && shape.tp > 1;
    TRY(net->sequence_parallel ? check_rows(net->model, shape.tp) : status_ok());
    *part = (struct param_part){0};
    if (shape.tp > 1) {
        part->slice = r->place.tp;
        part->n_slices = shape.tp;
    }
    for (int chunk = 0; chunk < p.n_chunks && shape.pp > 1; chunk++) {
        part->ranges[part->n_ranges++] =
            pipeline_layers(net->model->n_layers, pipeline_part(&p, r->place.pp, chunk),
                            p.n_stages * p.n_chunks, r->cut.partition);
    }
    net->n_slots = most_in_flight(&p, r->place.pp);
    return status_ok();
}
