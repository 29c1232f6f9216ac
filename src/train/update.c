#include "train/update.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* Copies of other ranks' parameters, which come first, are in no shard. */
static struct status find_bounds(struct update *u, const struct param_table *params)
{
    size_t n = (size_t)u->n_ranks + 1;
    int64_t copies = param_table_end_of_copies(params);
    u->bounds = malloc(n * sizeof *u->bounds);
    u->chunk_bounds = malloc(n * sizeof *u->chunk_bounds);
    u->cut = malloc(n * sizeof *u->cut);
    FAIL_IF(u->bounds == NULL || u->chunk_bounds == NULL || u->cut == NULL, STATUS_MEMORY,
            "out of memory for the shards of %d ranks", u->n_ranks);
    u->bounds[0] = copies;
    for (int r = 0; r < u->n_ranks; r++) {
        u->bounds[r + 1] = int_larger(param_shard_of(params, r, u->n_ranks).end, copies);
    }
    for (size_t i = 0; i < n; i++) {
        u->chunk_bounds[i] = param_chunks_before(params, u->bounds[i]);
    }
    u->shard = (struct param_shard){u->bounds[u->rank], u->bounds[u->rank + 1]};
    return status_ok();
}

static bool cuts_parameters(const struct update *u, const struct param_table *params)
{
    bool cuts = false;
    for (int r = 1; r < u->n_ranks; r++) {
        cuts = cuts || param_is_cut_at(params, u->bounds[r]);
    }
    return cuts;
}

/* Chunks of a parameter; frozen ones have none. */
static int64_t chunks_of(const struct param *p)
{
    return p->rate == 0 ? 0 : param_chunks(param_count(p));
}

static bool is_counted(const struct param_table *params, const struct param *p)
{
    return p->rate != 0 && (params->part.slice == 0 || !param_is_full(p));
}

static void add_run(struct update *u, int64_t from, int64_t at, int64_t n)
{
    if (n == 0) { /* a slice may have no words */
        return;
    }
    struct update_run *last = u->n_runs > 0 ? &u->runs[u->n_runs - 1] : NULL;
    if (last != NULL && last->from + last->n == from && last->at + last->n == at) {
        last->n += n;
    } else {
        u->runs[u->n_runs++] = (struct update_run){from, at, n};
    }
}

/* Chunks of a parameter in all its slices, which have the same number each; `p` is of the largest slice. */
static int64_t chunks_of_model(const struct param *p, int n_slices)
{
    return param_is_full(p) ? chunks_of(p) : n_slices * chunks_of(p);
}

/* Adds the span of a parameter, at most one, whose chunks here begin at `from`: in the model they are the
 * n_of_model chunks from `at` on. */
static void add_model_span(struct update *u, int64_t *span, int64_t from, int64_t at, int64_t n_of_model)
{
    if (*span < u->n_spans && u->spans[*span].first_chunk == from) {
        u->model_spans[*span] = u->spans[*span];
        u->model_spans[*span].first_chunk = at;
        u->model_spans[(*span)++].n_chunks = n_of_model;
    }
}

/* Finds the runs and model_spans.  The parameters of a part are in the order of the model's table, except for
 * copies. */
static void find_places(struct update *u, const struct param_table *params, const struct param_table *model)
{
    const struct param *m = model->params;
    int64_t from = 0, at = 0, span = 0;
    int n_slices = param_part_slices(&params->part);
    for (const struct param *p = params->params; p < params->params + params->n; p++) {
        int64_t n = chunks_of(p);
        for (; !p->is_copy && strcmp(m->name, p->name) != 0; m++) {
            at += chunks_of_model(m, n_slices);
        }
        if (is_counted(params, p)) {
            add_run(u, from, param_is_full(p) ? at : at + params->part.slice * chunks_of(m), n);
        }
        if (n > 0) {
            add_model_span(u, &span, from, at, chunks_of_model(m, n_slices));
        }
        from += n;
    }
    for (; m < model->params + model->n; m++) {
        at += chunks_of_model(m, n_slices);
    }
    u->n_model_chunks = at;
}

static struct status find_runs(struct update *u, const struct param_table *params,
                               const struct param_table *model)
{
    u->runs = calloc((size_t)params->n + 1, sizeof *u->runs);
    u->model_spans = malloc(((size_t)u->n_spans + 1) * sizeof *u->model_spans);
    FAIL_IF(u->runs == NULL || u->model_spans == NULL, STATUS_MEMORY,
            "out of memory for the chunks of %d parameters", params->n);
    find_places(u, params, model);
    u->reads_slices = param_part_slices(&params->part) > 1 && !u->kind->takes_matrices;
    return status_ok();
}

struct status update_init(struct update *u, const struct optimizer *o, const struct param_table *params,
                          const struct param_table *model, int rank, int n_ranks)
{
    *u = (struct update){.kind = o->kind, .rank = rank, .n_ranks = n_ranks};
    TRY(find_bounds(u, params));
    u->cuts = !o->kind->takes_matrices && cuts_parameters(u, params);
    u->spans = optimizer_spans(o, params, u->shard, &u->n_spans);
    u->parted = u->spans == NULL ? NULL : optimizer_part_spans(u->spans, u->n_spans, &u->n_matrices);
    FAIL_IF(u->parted == NULL, STATUS_MEMORY, "out of memory for the spans of %d parameters", params->n);
    return model->n > 0 ? find_runs(u, params, model) : status_ok();
}

void update_fini(struct update *u)
{
    free(u->runs);
    free(u->model_spans);
    free(u->bounds);
    free(u->chunk_bounds);
    free(u->cut);
    free(u->spans);
    free(u->parted);
    *u = (struct update){0};
}

void update_carve(struct update *u, struct arena *a, enum dtype dtype)
{
    size_t (*scratch_bytes)(const struct optim_span *, int64_t, enum dtype) = u->kind->scratch_bytes;
    size_t scratch = scratch_bytes != NULL ? scratch_bytes(u->spans, u->n_spans, dtype) : 0;
    int64_t chunks = u->chunk_bounds[u->n_ranks], n_sums = u->kind->n_sums;
    u->squares = arena_carve_1d(a, DTYPE_F64, chunks);
    u->model_squares = u->runs != NULL ? arena_carve_1d(a, DTYPE_F64, u->n_model_chunks) : NULL_TENSOR;
    u->sums = n_sums > 0 ? arena_carve_2d(a, DTYPE_F64, chunks, n_sums) : NULL_TENSOR;
    u->model_sums =
        n_sums > 0 && u->reads_slices ? arena_carve_2d(a, DTYPE_F64, u->n_model_chunks, n_sums) : NULL_TENSOR;
    u->scratch = scratch > 0 ? arena_carve_1d(a, DTYPE_U8, (int64_t)scratch) : NULL_TENSOR;
}

void update_cut(const struct update *u, int64_t from, int64_t to)
{
    comm_cut_bounds(u->cut, u->bounds, u->n_ranks, from, to);
}

tensor update_own(const struct update *u, tensor flat)
{
    return tensor_is_null(flat) ? flat : tensor_slice(flat, u->shard.begin, u->shard.end - u->shard.begin);
}

tensor update_own_param(const struct update *u, const struct param *p, tensor flat)
{
    int64_t begin = int_larger(p->offset, u->shard.begin),
            end = int_smaller(p->offset + param_count(p), u->shard.end);
    return begin < end ? tensor_slice(flat, begin - u->shard.begin, end - begin) : NULL_TENSOR;
}

/* The part of the sums of all chunks that is this rank's shard. */
static tensor own_chunks(const struct update *u, tensor sums)
{
    int64_t begin = u->chunk_bounds[u->rank], end = u->chunk_bounds[u->rank + 1];
    return tensor_is_null(sums) ? sums : tensor_slice(sums, begin, end - begin);
}

static void gather(const struct update *u, const struct mesh *m, struct exec *x, tensor t,
                   const int64_t *bounds)
{
    if (u->n_ranks > 1) {
        comm_all_gather(&m->data, x, t, bounds);
    }
}

static void sum(const struct comm *c, struct exec *x, tensor t)
{
    if (c->size > 1) {
        comm_all_reduce_sum(c, x, t);
    }
}

/* of_model = the sums of all slices' chunks, gathered by a sum over ranks: each number comes from one rank,
 * the others add 0. */
static void sum_slices(const struct update *u, const struct mesh *m, struct exec *x, tensor of_model,
                       tensor here)
{
    x->ops->fill(x, of_model, 0);
    for (int64_t i = 0; i < u->n_runs; i++) {
        const struct update_run *r = &u->runs[i];
        x->ops->cast(x, tensor_slice(of_model, r->at, r->n), tensor_slice(here, r->from, r->n));
    }
    sum(&m->tensor, x, of_model);
}

/* The sums of all parts' chunks, where there are several parts. */
static tensor squares_of_model(const struct update *u, const struct mesh *m, struct exec *x)
{
    if (u->runs == NULL) {
        return u->squares;
    }
    sum_slices(u, m, x, u->model_squares, u->squares);
    sum(&m->pipe, x, u->model_squares);
    return u->model_squares;
}

/* Copies of other ranks' parameters are in no shard. */
void update_gather_flat(const struct update *u, const struct mesh *m, struct exec *x, tensor flat)
{
    int64_t from = u->bounds[0], to = u->bounds[u->n_ranks];
    update_cut(u, from, to);
    gather(u, m, x, tensor_slice(flat, from, to - from), u->cut);
}

/* The root of the sum of what u->squares has of each of this rank's chunks. */
static void add_chunks(const struct update *u, const struct mesh *m, struct exec *x, tensor root)
{
    gather(u, m, x, u->squares, u->chunk_bounds);
    x->ops->norm_of(x, root, squares_of_model(u, m, x));
}

void update_norm(const struct update *u, const struct mesh *m, struct exec *x, tensor flat, tensor norm)
{
    x->ops->squares(x, own_chunks(u, u->squares), flat, u->spans, u->n_spans);
    add_chunks(u, m, x, norm);
}

void update_zeros(const struct update *u, const struct mesh *m, struct exec *x, tensor flat, tensor root)
{
    x->ops->zeros(x, own_chunks(u, u->squares), flat, u->spans, u->n_spans);
    add_chunks(u, m, x, root);
}

/* Gathers sums of chunks from the ranks that update other parts of a parameter, or have other slices of it.
 * For complete parameters a rank has all sums that it reads. */
static void share_sums(const struct update *u, const struct mesh *m, struct exec *x)
{
    if (u->cuts || u->reads_slices) {
        gather(u, m, x, u->sums, u->chunk_bounds);
    }
    if (u->reads_slices) {
        sum_slices(u, m, x, u->model_sums, u->sums);
    }
}

void update_shard(const struct update *u, const struct mesh *m, struct exec *x, struct optim_buffers own,
                  tensor norm, tensor scalars)
{
    struct optimizer_step s = {.buffers = own,
                               .spans = u->reads_slices ? u->model_spans : u->spans,
                               .n_spans = u->n_spans,
                               .parted = u->parted,
                               .n_matrices = u->n_matrices,
                               .scratch = u->scratch,
                               .squares = u->reads_slices ? u->model_squares : u->squares,
                               .sums = u->reads_slices ? u->model_sums : u->sums,
                               .own_sums = own_chunks(u, u->sums),
                               .norm = norm,
                               .scalars = scalars};
    if (u->kind->n_sums > 0) {
        u->kind->direction(x, &s);
        share_sums(u, m, x);
    }
    u->kind->apply(x, &s);
}

static void round_weights(struct exec *x, tensor working, tensor master, int64_t begin, int64_t end)
{
    if (!tensor_is_null(working) && end > begin) {
        x->ops->cast(x, tensor_slice(working, begin, end - begin), tensor_slice(master, begin, end - begin));
    }
}

/* Working copies of the weights that other ranks updated are rounded here: sending only the master is less
 * than sending both. */
void update_gather(const struct update *u, const struct mesh *m, struct exec *x, tensor master,
                   tensor working)
{
    if (u->n_ranks > 1) {
        update_gather_flat(u, m, x, master);
        round_weights(x, working, master, u->bounds[0], u->shard.begin);
        round_weights(x, working, master, u->shard.end, u->bounds[u->n_ranks]);
    }
}
