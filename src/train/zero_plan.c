#include "train/zero_plan.h"

#include "data/prefetch.h"

/* What the stage needs to know of the model's parameters. */
struct shape {
    int64_t n_elements; /* of a flat buffer, without copies of other ranks' parameters */
    int64_t n_vectors;  /* elements of vectors that passes read in fp32 (pass/vector_places.h) */
    int64_t n_chunks;
    int64_t shard, rank; /* the largest shard, and whose it is */
    bool cuts;           /* some parameter is in several shards */
};

static struct shape shape_of(const struct param_table *t, int64_t world)
{
    int64_t copies = param_table_end_of_copies(t);
    struct shape s = {.n_elements = t->n_elements - copies,
                      .n_chunks = param_chunks_before(t, t->n_elements) - param_chunks_before(t, copies)};
    for (int rank = 0; rank < world; rank++) {
        struct param_shard shard = param_shard_of(t, rank, (int)world);
        s.cuts = s.cuts || param_is_cut_at(t, shard.begin);
        if (shard.end - shard.begin > s.shard) {
            s.shard = shard.end - shard.begin;
            s.rank = rank;
        }
    }
    return s;
}

static struct status count_vectors(struct shape *s, const struct param_table *t, const struct device *device)
{
    struct vector_places places;
    struct status status = vector_places_init(&places, t, device);
    s->n_vectors = places.n;
    vector_places_fini(&places);
    return status;
}

static struct status find_shape(struct shape *s, const struct trainer_config *c, int64_t world)
{
    struct param_table t = {.part = c->net.part};
    t.part.tied = model_part_has_heads(c->net.model, &t.part) ? c->net.model->tied : NULL;
    struct status status = c->net.model->type->declare(c->net.model, &t);
    if (!failed(status)) {
        optimizer_keep_whole(&c->optimizer, &t);
        *s = shape_of(&t, world);
        status = count_vectors(s, &t, c->net.device);
    }
    param_table_fini(&t);
    return status;
}

static size_t sum_of_kinds(const struct zero_plan *z)
{
    return z->master_bytes + z->working_bytes + z->gradient_bytes + z->optimizer_bytes + z->activation_bytes +
           z->scratch_bytes + z->library_bytes;
}

static void take_plan(struct zero_plan *z, const struct shape *s)
{
    const struct trainer_plan *p = &z->trainer;
    z->shard_elements = s->shard;
    z->all_elements = s->n_elements;
    z->master_bytes = p->net.master_bytes;
    z->working_bytes = p->net.weight_bytes - p->net.master_bytes;
    z->gradient_bytes = p->gradient_bytes;
    z->optimizer_bytes = p->optimizer_bytes;
    z->activation_bytes = p->net.activation_bytes;
    z->scratch_bytes = p->net.workspace_bytes + p->net.beside_bytes;
    z->library_bytes = p->net.library_bytes;
    z->host_bytes = p->saving_bytes;
    z->device_bytes = p->net.total_bytes;
    z->rest_bytes = z->device_bytes - sum_of_kinds(z);
}

/* Weights are gathered in the dtype that products read, and vectors in fp32 as well; norms need sums of
 * chunks in fp64: of squares always, and the optimizer's where ranks have parts, or slices, of a parameter
 * (train/update.h). */
static void count_traffic(struct zero_plan *z, const struct shape *s, const struct trainer_config *c,
                          int stage, int64_t n_micro)
{
    size_t vector = dtype_bytes(dtype_of_vectors(c->net.precision.dtype)),
           matrix = dtype_bytes(c->net.precision.dtype);
    double n = (double)s->n_elements, vectors = matrix < vector ? (double)s->n_vectors : 0;
    bool are_shared = !c->optimizer.kind->takes_matrices && (s->cuts || param_part_slices(&c->net.part) > 1);
    double sums =
        (double)(1 + c->counts_zeros + c->measures_weights + (are_shared ? c->optimizer.kind->n_sums : 0)) *
        (double)s->n_chunks * sizeof(double);
    z->reduced_bytes = n * (double)vector;
    z->n_reductions = stage > 1 ? n_micro : 1;
    z->gathered_bytes = stage > 0 ? n * (double)matrix + vectors * (double)vector + sums : 0;
}

struct status zero_plan(struct zero_plan *z, const struct trainer_config *config, int64_t world, int stage,
                        int64_t n_micro)
{
    struct shape s = {0};
    struct trainer_config c = *config;
    *z = (struct zero_plan){0};
    CHECK(stage >= 0 && stage < ZERO_STAGES && world > 0 && world <= INT32_MAX, "stage %d of %lld", stage,
          (long long)world);
    TRY(find_shape(&s, config, world));
    bool shares = stage > 0 && world > 1;
    c.n_shards = shares ? (int)world : 0;
    c.shard = shares ? (int)s.rank : 0;
    c.shares_gradients = shares && stage > 1;
    c.n_savers = (int)world; /* each writes its slice of a checkpoint, whatever it has */
    c.saver = (int)s.rank;
    TRY(trainer_plan(&z->trainer, &c));
    take_plan(z, &s);
    z->batch_bytes = prefetch_bytes(&c.net.model->layout, c.net.limits, n_micro);
    count_traffic(z, &s, &c, stage, n_micro);
    return status_ok();
}

size_t zero_plan_needed(const struct zero_plan *z, const struct device *device)
{
    return z->device_bytes + (device->is_host ? z->host_bytes + z->batch_bytes : 0);
}

struct status zero_plan_smallest(const struct trainer_config *config, int64_t n_micro, double bytes,
                                 int64_t *world, int *stage)
{
    struct zero_plan z;
    for (*world = 1; *world <= ZERO_MOST_WORLD; *world *= 2) {
        for (*stage = 0; *stage < (*world > 1 ? ZERO_STAGES : 1); (*stage)++) {
            TRY(zero_plan(&z, config, *world, *stage, n_micro));
            if ((double)zero_plan_needed(&z, config->net.device) <= bytes) {
                return status_ok();
            }
        }
    }
    *world = 0;
    return status_ok();
}
