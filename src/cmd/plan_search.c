#include "cmd/plan.h"

#include "core/array.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- all meshes ---- */

static struct status set_up_sizes(struct plan_search *s)
{
    for (int i = 0; i < 2 * PLAN_SEARCH_SIZES; i++) {
        bool recomputed = i >= PLAN_SEARCH_SIZES;
        struct world_setup *setup = &s->setups[recomputed][i % PLAN_SEARCH_SIZES];
        *setup = *s->any.setup;
        setup->bench.n_sequences = 1 << (i % PLAN_SEARCH_SIZES);
        if (recomputed) {
            setup->bench.config.net.recompute = s->recomputed_layers;
        }
        TRY(step_bench_plan(&setup->bench));
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
static struct status count_one(struct plan_search *s, struct plan_mesh *p, bool *is_kept, bool *is_large)
{
    struct status status = plan_mesh_count(p, false);
    *is_kept = *is_large = false;
    if (status.code == STATUS_USAGE) {
        s->model_reason = s->n_model++ == 0 ? status : s->model_reason;
        return status_ok();
    }
    TRY(status);
    if (!plan_mesh_fits(p)) {
        s->n_large++;
        *is_large = true;
        s->least_bytes =
            s->least_bytes == 0 || p->needed_bytes < s->least_bytes ? p->needed_bytes : s->least_bytes;
        return status_ok();
    }
    TRY(keep(s, p));
    *is_kept = true;
    return status_ok();
}

static struct status try_one(struct plan_search *s, const struct trainer_ranks *ranks, int size,
                             bool recomputed, bool *is_large)
{
    struct plan_mesh p = s->any;
    bool is_kept = false;
    s->n_tried++;
    p.setup = &s->setups[recomputed][size];
    p.config = p.setup->bench.config;
    p.config.ranks = *ranks;
    struct status status = count_one(s, &p, &is_kept, is_large);
    s->n_fit[recomputed][ranks->zero_stage] += is_kept;
    if (!is_kept) {
        plan_mesh_fini(&p);
    }
    return status;
}

/* Without replicas no stage of ZeRO differs from another, and pipelines have no stage 2.  Where activations
 * fit, recomputing them only takes time. */
static struct status try_choices(struct plan_search *s, struct trainer_ranks ranks, int size)
{
    int64_t at_once = (int64_t)ranks.shape.dp << size;
    bool recomputes = s->any.config.net.recompute > 0;
    if (s->batch % at_once != 0) {
        s->n_tried++;
        s->n_batch++;
        return status_ok();
    }
    ranks.n_micro = s->batch / at_once;
    for (int least = ranks.zero_stage; ranks.zero_stage < ZERO_STAGES; ranks.zero_stage++) {
        bool is_large;
        if (ranks.zero_stage > least &&
            (ranks.shape.dp == 1 || (ranks.zero_stage > 1 && ranks.shape.pp > 1))) {
            break;
        }
        TRY(try_one(s, &ranks, size, false, &is_large));
        if (is_large && !recomputes) {
            TRY(try_one(s, &ranks, size, true, &is_large));
        }
    }
    return status_ok();
}

static struct status try_shape(struct plan_search *s, struct mesh_shape shape)
{
    struct trainer_ranks ranks = s->any.config.ranks;
    ranks.shape = shape;
    for (ranks.cut.n_chunks = 1; ranks.cut.n_chunks <= (shape.pp > 1 ? 2 : 1); ranks.cut.n_chunks++) {
        for (int size = 0; size < PLAN_SEARCH_SIZES; size++) {
            TRY(try_choices(s, ranks, size));
        }
    }
    return status_ok();
}

static int by_time(const void *a, const void *b)
{
    const struct plan_mesh *x = a, *y = b;
    int zero = x->config.ranks.zero_stage - y->config.ranks.zero_stage;
    return x->times.step_s == y->times.step_s ? zero : x->times.step_s > y->times.step_s ? 1 : -1;
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
    buf_printf(b, "%5d%5d%6d%8d%13" PRId64 "%8" PRId64 "%9.2f%8.2f %%%13.4g%14.4g%10.4g%10.4g%6d%12s\n",
               j->shape.tp, j->shape.pp, j->shape.dp, trainer_ranks_chunks(j), p->setup->bench.n_sequences,
               j->n_micro, p->needed_bytes / u.bytes, 100 * mesh_forecast_idle(&p->times, &p->config),
               p->times.step_s, (double)plan_mesh_batch(p) / p->times.step_s, plan_mesh_tflops(p, false),
               plan_mesh_tflops(p, true), (int)j->zero_stage, p->config.net.recompute > 0 ? "yes" : "no");
}

/* Which choices let more meshes fit. */
static void append_choices(struct buf *b, const struct plan_search *s)
{
    for (int recomputed = 0; recomputed < 2; recomputed++) {
        buf_puts(b, recomputed ? "\nonly with --checkpoint_activations" : "of these fit");
        for (int zero = s->any.config.ranks.zero_stage; zero < ZERO_STAGES; zero++) {
            buf_printf(b, "%s%" PRId64 " with --zero %d",
                       zero > s->any.config.ranks.zero_stage ? ", "
                       : recomputed                          ? ": "
                                                             : " ",
                       s->n_fit[recomputed][zero], zero);
        }
    }
    buf_puts(b, "\n\n");
}

void plan_search_append(struct buf *b, const struct plan_search *s)
{
    struct plan_unit u = plan_unit_of(s->n_found > 0 ? s->found[0].needed_bytes : s->any.memory_bytes);
    buf_printf(
        b,
        "%" PRId64 " devices of %s, %" PRId64 " sequences of %" PRId64
        " tokens a step, ZeRO stage %d or more: %" PRId64
        " meshes with chunks, micro-batches, stages of ZeRO "
        "and recomputation, of which\n"
        "%7" PRId64 " do not divide the batch\n%7" PRId64 " do not divide the model%s%s\n%7" PRId64
        " need more than %.2f GiB of a device\n%7" PRId64
        " remain, the fastest first. Nothing of this was run: times are predicted from counted work.\n",
        s->world, s->any.setup->machine->name, s->batch, s->any.setup->bench.length,
        s->any.config.ranks.zero_stage, s->n_tried, s->n_batch, s->n_model, s->n_model > 0 ? ": first, " : "",
        s->n_model > 0 ? s->model_reason.message : "", s->n_large, s->any.memory_bytes / 0x1p30, s->n_found);
    append_choices(b, s);
    buf_printf(b, "%5s%5s%6s%8s%13s%8s%9s%10s%13s%14s%10s%10s%6s%12s\n", "TP", "PP", "DP", "chunks",
               "micro-batch", "number", u.name, "waits", "s a step", "sequences/s", "model", "hardware",
               "ZeRO", "recomputes");
    for (int64_t i = 0; i < n_shown(s); i++) {
        append_row(b, &s->found[i], u);
    }
    buf_printf(
        b,
        "%s: of the rank with the most; waits: bubble and messages; model, hardware: TFLOP/s a device, "
        "hardware with what is recomputed; --mesh TPxPPxDP, with --zero and --checkpoint_activations as its "
        "row has them, says more of one of "
        "them\n",
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
            "has %.2f; with all of ZeRO and recomputation tried; use more devices",
            s->world, s->least_bytes / 0x1p30, s->any.setup->machine->name, s->any.memory_bytes / 0x1p30);
    return status_error(
        STATUS_USAGE, "no mesh of %" PRId64 " devices divides the model and %" PRId64 " sequences%s%s",
        s->world, s->batch, s->n_model > 0 ? ": " : "", s->n_model > 0 ? s->model_reason.message : "");
}
