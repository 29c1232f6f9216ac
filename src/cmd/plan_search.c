#include "cmd/plan.h"

#include "core/array.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- all meshes ---- */

static struct status set_up_sizes(struct plan_search *s)
{
    for (int i = 0; i < PLAN_SEARCH_SIZES; i++) {
        s->setups[i] = *s->any.setup;
        s->setups[i].bench.n_sequences = 1 << i;
        TRY(step_bench_plan(&s->setups[i].bench));
    }
    return status_ok();
}

static struct status keep(struct plan_search *s, const struct plan_mesh *p)
{
    FAIL_IF(!ARRAY_RESERVE(s->found, s->capacity, s->n_found + 1), STATUS_MEMORY,
            "out of memory for %" PRId64 " meshes", s->n_found + 1);
    s->found[s->n_found++] = *p;
    return status_ok();
}

/* Counts a mesh that the model refuses, which is no error. */
static struct status count_one(struct plan_search *s, struct plan_mesh *p, bool *is_kept)
{
    struct status status = plan_mesh_count(p, false);
    *is_kept = false;
    if (status.code == STATUS_USAGE) {
        s->model_reason = s->n_model++ == 0 ? status : s->model_reason;
        return status_ok();
    }
    TRY(status);
    if (!plan_mesh_fits(p)) {
        s->n_large++;
        s->least_bytes =
            s->least_bytes == 0 || p->needed_bytes < s->least_bytes ? p->needed_bytes : s->least_bytes;
        return status_ok();
    }
    TRY(keep(s, p));
    *is_kept = true;
    return status_ok();
}

static struct status try_one(struct plan_search *s, struct mesh_shape shape, int n_chunks, int size)
{
    struct plan_mesh p = s->any;
    int64_t at_once = (int64_t)shape.dp << size;
    bool is_kept = false;
    s->n_tried++;
    if (s->batch % at_once != 0) {
        s->n_batch++;
        return status_ok();
    }
    p.setup = &s->setups[size];
    p.config = p.setup->bench.config;
    p.config.ranks = s->any.config.ranks;
    p.config.ranks.shape = shape;
    p.config.ranks.cut.n_chunks = n_chunks;
    p.config.ranks.n_micro = s->batch / at_once;
    struct status status = count_one(s, &p, &is_kept);
    if (!is_kept) {
        plan_mesh_fini(&p);
    }
    return status;
}

static struct status try_shape(struct plan_search *s, struct mesh_shape shape)
{
    for (int n_chunks = 1; n_chunks <= (shape.pp > 1 ? 2 : 1); n_chunks++) {
        for (int size = 0; size < PLAN_SEARCH_SIZES; size++) {
            TRY(try_one(s, shape, n_chunks, size));
        }
    }
    return status_ok();
}

static int by_time(const void *a, const void *b)
{
    const struct plan_mesh *x = a, *y = b;
    return (x->times.step_s > y->times.step_s) - (x->times.step_s < y->times.step_s);
}

struct status plan_search_run(struct plan_search *s)
{
    TRY(set_up_sizes(s));
    for (int tp = 1; tp <= s->world; tp++) {
        for (int pp = 1; pp <= s->world / tp; pp++) {
            if (s->world % ((int64_t)tp * pp) == 0) {
                TRY(try_shape(s, (struct mesh_shape){tp, pp, (int)(s->world / tp / pp)}));
            }
        }
    }
    if (s->n_found > 0) {
        qsort(s->found, (size_t)s->n_found, sizeof *s->found, by_time);
    }
    return status_ok();
}

void plan_search_fini(struct plan_search *s)
{
    for (int64_t i = 0; i < s->n_found; i++) {
        plan_mesh_fini(&s->found[i]);
    }
    free(s->found);
}

/* ---- the report ---- */

static int64_t n_shown(const struct plan_search *s)
{
    return s->n_found < PLAN_SEARCH_SHOWN ? s->n_found : PLAN_SEARCH_SHOWN;
}

static void append_row(struct buf *b, const struct plan_mesh *p, struct plan_unit u)
{
    const struct trainer_ranks *j = &p->config.ranks;
    buf_printf(b, "%5d%5d%6d%8d%13" PRId64 "%8" PRId64 "%9.2f%8.2f %%%13.4g%14.4g%10.4g%10.4g\n", j->shape.tp,
               j->shape.pp, j->shape.dp, trainer_ranks_chunks(j), p->setup->bench.n_sequences, j->n_micro,
               p->needed_bytes / u.bytes, 100 * mesh_forecast_idle(&p->times, &p->config), p->times.step_s,
               (double)plan_mesh_batch(p) / p->times.step_s, plan_mesh_tflops(p, false),
               plan_mesh_tflops(p, true));
}

void plan_search_append(struct buf *b, const struct plan_search *s)
{
    struct plan_unit u = plan_unit_of(s->n_found > 0 ? s->found[0].needed_bytes : s->any.memory_bytes);
    buf_printf(
        b,
        "%" PRId64 " devices of %s, %" PRId64 " sequences of %" PRId64
        " tokens a step, ZeRO stage %d: %" PRId64 " meshes with chunks and micro-batches, of which\n"
        "%7" PRId64 " do not divide the batch\n%7" PRId64 " do not divide the model%s%s\n%7" PRId64
        " need more than %.2f GiB of a device\n%7" PRId64
        " remain, the fastest first. Nothing of this was run: times are predicted from counted work.\n\n",
        s->world, s->any.setup->machine->name, s->batch, s->any.setup->bench.length,
        s->any.config.ranks.zero_stage, s->n_tried, s->n_batch, s->n_model, s->n_model > 0 ? ": first, " : "",
        s->n_model > 0 ? s->model_reason.message : "", s->n_large, s->any.memory_bytes / 0x1p30, s->n_found);
    buf_printf(b, "%5s%5s%6s%8s%13s%8s%9s%10s%13s%14s%10s%10s\n", "TP", "PP", "DP", "chunks", "micro-batch",
               "number", u.name, "waits", "s a step", "sequences/s", "model", "hardware");
    for (int64_t i = 0; i < n_shown(s); i++) {
        append_row(b, &s->found[i], u);
    }
    buf_printf(
        b,
        "%s: of the rank with the most; waits: bubble and messages; model, hardware: TFLOP/s a device, "
        "hardware with what is recomputed; --mesh TPxPPxDP has more of one of them\n",
        u.name);
}

json_t *plan_search_json(const struct plan_search *s)
{
    json_t *best = json_array();
    for (int64_t i = 0; i < n_shown(s); i++) {
        json_array_append_new(best, plan_mesh_json(&s->found[i]));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "world", (json_int_t)s->world, "batch",
                     (json_int_t)s->batch, "tried", (json_int_t)s->n_tried, "batch_not_divided",
                     (json_int_t)s->n_batch, "model_not_divided", (json_int_t)s->n_model, "too_large",
                     (json_int_t)s->n_large, "left", (json_int_t)s->n_found, "best", best);
}

struct status plan_search_check(const struct plan_search *s)
{
    if (s->n_found > 0) {
        return status_ok();
    }
    FAIL_IF(s->n_large > 0, STATUS_MEMORY,
            "no mesh of %" PRId64 " devices holds the model: the least that a rank needs is %.2f GiB, but %s "
            "has %.2f; use --zero 1, --checkpoint_activations or more devices",
            s->world, s->least_bytes / 0x1p30, s->any.setup->machine->name, s->any.memory_bytes / 0x1p30);
    return status_error(
        STATUS_USAGE, "no mesh of %" PRId64 " devices divides the model and %" PRId64 " sequences%s%s",
        s->world, s->batch, s->n_model > 0 ? ": " : "", s->n_model > 0 ? s->model_reason.message : "");
}
