#include "train/rank_plan.h"

#include "data/prefetch.h"

/* Sizes of the parameters of a rank's part of the model. */
struct shape {
    int64_t n_elements; /* elements of a flat buffer, without copies of other ranks' parameters */
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
    struct status status = vector_places_init(&places, t, device, 0);
    s->n_vectors = places.n;
    vector_places_fini(&places);
    return status;
}

static struct status find_shape(struct shape *s, const struct trainer_config *c)
{
    struct param_table t = {.part = c->net.part};
    t.part.tied = model_part_has_heads(c->net.model, &t.part) ? c->net.model->tied : NULL;
    struct status status = c->net.model->type->declare(c->net.model, &t);
    if (!failed(status)) {
        optimizer_keep_whole(&c->optimizer, &t);
        *s = shape_of(&t, c->ranks.shape.dp);
        status = count_vectors(s, &t, c->net.device);
    }
    param_table_fini(&t);
    return status;
}

static size_t sum_of_kinds(const struct rank_plan *p)
{
    return p->master_bytes + p->working_bytes + p->gradient_bytes + p->optimizer_bytes + p->activation_bytes +
           p->scratch_bytes + p->library_bytes;
}

static void take_plan(struct rank_plan *p, const struct shape *s)
{
    const struct trainer_plan *t = &p->trainer;
    p->shard_elements = s->shard;
    p->all_elements = s->n_elements;
    p->master_bytes = t->net.master_bytes;
    p->working_bytes = t->net.weight_bytes - t->net.master_bytes;
    p->gradient_bytes = t->gradient_bytes;
    p->optimizer_bytes = t->optimizer_bytes;
    p->activation_bytes = t->net.activation_bytes;
    p->scratch_bytes = t->net.workspace_bytes + t->net.beside_bytes;
    p->library_bytes = t->net.library_bytes;
    p->host_bytes = t->saving_bytes;
    p->device_bytes = t->net.total_bytes;
    p->rest_bytes = p->device_bytes - sum_of_kinds(p);
}

/* Weights are gathered in the dtype that products read, and vectors in fp32 as well; norms need sums of
 * chunks in fp64: of squares always, and the optimizer's where ranks have parts, or slices, of a parameter
 * (train/update.h). */
static void count_exchange(struct rank_plan *p, const struct shape *s, const struct trainer_config *c)
{
    int stage = c->ranks.zero_stage;
    size_t vector = dtype_bytes(dtype_of_vectors(c->net.precision.dtype)),
           matrix = dtype_bytes(c->net.precision.dtype);
    double n = (double)s->n_elements, vectors = matrix < vector ? (double)s->n_vectors : 0;
    bool are_shared = !c->optimizer.kind->takes_matrices && (s->cuts || param_part_slices(&c->net.part) > 1);
    double sums =
        (double)(1 + c->counts_zeros + c->measures_weights + (are_shared ? c->optimizer.kind->n_sums : 0)) *
        (double)s->n_chunks * sizeof(double);
    p->reduced_bytes = n * (double)vector;
    p->n_reductions = stage > 1 ? c->ranks.n_micro : 1;
    p->gathered_bytes = stage > 0 ? n * (double)matrix + vectors * (double)vector + sums : 0;
}

/* Messages of a micro-batch: each chunk sends its output up but the last part, and a gradient down but the
 * first. */
static int messages_of(const struct trainer_ranks *r)
{
    struct pipeline_shape p = {r->shape.pp, trainer_ranks_chunks(r), r->n_micro};
    int n = 0;
    for (int chunk = 0; chunk < p.n_chunks && p.n_stages > 1; chunk++) {
        int part = pipeline_part(&p, r->place.pp, chunk);
        n += (part > 0) + (part + 1 < p.n_stages * p.n_chunks);
    }
    return n;
}

double rank_plan_message_bytes(const struct trainer_config *c)
{
    const struct network_config *n = &c->net;
    int64_t rows =
        c->ranks.cut.sequence_parallel ? n->limits.n_tokens / c->ranks.shape.tp : n->limits.n_tokens;
    return (double)rows * (double)n->model->hidden_size * (double)dtype_bytes(precision_stream(n->precision));
}

double rank_plan_exchanged(const struct rank_plan *p, const struct trainer_config *c)
{
    double sums = (double)p->n_reductions * (c->ranks.zero_stage == 0 ? 2 : 1);
    return sums * p->reduced_bytes + p->gathered_bytes;
}

/* Bytes that each of n ranks sends for a sum that all get. */
static double sum_bytes(double bytes, int n)
{
    return 2 * bytes * (n - 1) / n;
}

/* The heads' stage sends its losses to the other stages; replicas sum them. */
static void count_numbers(struct rank_plan *p, const struct trainer_ranks *r)
{
    const struct trainer_plan *t = &p->trainer;
    struct mesh_shape s = r->shape;
    double losses = MODEL_MOST_SUMS * sizeof(double);
    p->slice_number_bytes = sum_bytes(t->part_sum_bytes + t->slice_sum_bytes, s.tp);
    p->stage_number_bytes =
        sum_bytes(t->part_sum_bytes, s.pp) + (r->place.pp + 1 == s.pp ? losses * (s.pp - 1) : 0);
    p->replica_number_bytes = sum_bytes(losses, s.dp);
}

struct rank_traffic rank_plan_traffic(const struct rank_plan *p, const struct trainer_config *c)
{
    int dp = c->ranks.shape.dp;
    return (struct rank_traffic){.slices = p->tensor_bytes + p->slice_number_bytes,
                                 .stages = p->pipe_bytes + p->tied_bytes + p->stage_number_bytes,
                                 .replicas =
                                     rank_plan_exchanged(p, c) * (dp - 1) / dp + p->replica_number_bytes};
}

/* Elements of the tied parameter, or of this rank's slice of it. */
static double count_tied(const struct network_config *c, const struct param_table *t)
{
    return (double)param_count(param_table_find(t, c->model->tied));
}

/* Elements of the parameters of whose gradients slices of the layers have parts. */
static double count_in_parts(const struct network_config *c, const struct param_table *t)
{
    double n = 0;
    for (int i = 0; i < t->n; i++) {
        bool sums = param_sums_parts(&t->params[i], c->sequence_parallel);
        n += sums ? (double)param_count(&t->params[i]) : 0;
    }
    return n;
}

/* Sets *n to what `count` counts in the parameters of a part of the model. */
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

/* Counts the exchanges of each micro-batch and of the update, and once a step the sum of gradients of own
 * rows, with ZeRO those of the rank's shard. */
static struct status find_tensor_bytes(struct rank_plan *p, const struct trainer_config *c)
{
    const struct trainer_ranks *r = &c->ranks;
    double n, slices = r->shape.tp, shards = r->zero_stage > 0 ? r->shape.dp : 1;
    TRY(count_in(&n, &c->net, &c->net.part, count_in_parts));
    p->tensor_bytes = p->trainer.peer_bytes * (double)r->n_micro + p->trainer.update_peer_bytes +
                      2 * (slices - 1) / slices * n / shards *
                          (double)dtype_bytes(dtype_of_vectors(c->net.precision.dtype));
    return status_ok();
}

/* The heads' stage sends the gradient, and the input's the weights that passes read. */
static struct status find_tied_bytes(struct rank_plan *p, const struct trainer_config *c)
{
    double n = 0;
    const struct param_part *part = &c->net.part;
    enum dtype read = c->net.precision.dtype;
    int stage = c->ranks.place.pp, n_stages = c->ranks.shape.pp;
    if (c->net.model->tied == NULL || n_stages == 1 || (stage > 0 && stage + 1 < n_stages)) {
        return status_ok();
    }
    TRY(count_in(&n, &c->net, &(struct param_part){.slice = part->slice, .n_slices = part->n_slices},
                 count_tied));
    p->tied_bytes = n * (double)dtype_bytes(stage > 0 ? dtype_of_vectors(read) : read);
    return status_ok();
}

struct status rank_plan(struct rank_plan *p, const struct trainer_config *config)
{
    struct shape s = {0};
    struct trainer_config c = *config;
    struct trainer_ranks *r = &c.ranks;
    *p = (struct rank_plan){0};
    CHECK(r->zero_stage >= 0 && r->zero_stage < ZERO_STAGES, "stage %d", r->zero_stage);
    TRY(trainer_ranks_place(r, &c.net));
    TRY(find_shape(&s, &c));
    r->place.dp = (int)s.rank;
    TRY(trainer_plan(&p->trainer, &c));
    take_plan(p, &s);
    p->batch_bytes = prefetch_bytes(&c.net.model->layout, c.net.limits, r->n_micro);
    count_exchange(p, &s, &c);
    TRY(find_tensor_bytes(p, &c));
    p->pipe_bytes = rank_plan_message_bytes(&c) * messages_of(r) * (double)r->n_micro;
    count_numbers(p, r);
    return find_tied_bytes(p, &c);
}

size_t rank_plan_needed(const struct rank_plan *p, const struct device *device)
{
    return p->device_bytes + (device->is_host ? p->host_bytes + p->batch_bytes : 0);
}

struct status rank_plan_smallest(const struct trainer_config *config, double bytes, int64_t *world,
                                 int *stage)
{
    struct rank_plan p;
    struct trainer_config c = *config;
    for (*world = 1; *world <= RANK_PLAN_MOST_WORLD; *world *= 2) {
        for (*stage = 0; *stage < (*world > 1 ? ZERO_STAGES : 1); (*stage)++) {
            c.ranks.shape = (struct mesh_shape){1, 1, (int)*world};
            c.ranks.zero_stage = *stage;
            TRY(rank_plan(&p, &c));
            if ((double)rank_plan_needed(&p, config->net.device) <= bytes) {
                return status_ok();
            }
        }
    }
    *world = 0;
    return status_ok();
}
