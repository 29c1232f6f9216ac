#include "cmd/plan.h"

#include "report/megatron_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status plan_mesh_read(struct mesh_shape *s, const char *text)
{
    char rest;
    bool reads = sscanf(text, "%4dx%4dx%4d%c", &s->tp, &s->pp, &s->dp, &rest) == 3;
    if (reads && s->tp > 0 && s->pp > 0 && s->dp > 0) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "--mesh is \"%s\", but must be three numbers from 1 to 9999, TPxPPxDP, such as 4x2x1",
                        text);
}

/* ---- what is counted ---- */

struct status plan_mesh_count(struct plan_mesh *p, bool whole)
{
    p->stages = calloc((size_t)p->config.ranks.shape.pp, sizeof *p->stages);
    FAIL_IF(p->stages == NULL, STATUS_MEMORY, "out of memory for %d stages", p->config.ranks.shape.pp);
    for (int stage = 0; stage < p->config.ranks.shape.pp && (whole || plan_mesh_fits(p)); stage++) {
        p->config.ranks.place = (struct mesh_place){.pp = stage};
        TRY(rank_plan(&p->stages[stage], &p->config));
        double needed = (double)rank_plan_needed(&p->stages[stage], p->config.net.device);
        if (needed > p->needed_bytes) {
            p->needed_bytes = needed;
            p->largest = stage;
        }
    }
    bool counts = p->has_times && (whole || plan_mesh_fits(p));
    return counts ? mesh_forecast_run(&p->times, p->setup, &p->config, p->stages) : status_ok();
}

void plan_mesh_fini(struct plan_mesh *p)
{
    free(p->stages);
    p->stages = NULL;
}

bool plan_mesh_fits(const struct plan_mesh *p)
{
    return p->needed_bytes <= p->memory_bytes;
}

static int64_t world_of(const struct plan_mesh *p)
{
    return (int64_t)p->config.ranks.shape.tp * p->config.ranks.shape.pp * p->config.ranks.shape.dp;
}

int64_t plan_mesh_batch(const struct plan_mesh *p)
{
    return p->config.ranks.n_micro * p->setup->bench.n_sequences * p->config.ranks.shape.dp;
}

double plan_mesh_tflops(const struct plan_mesh *p, bool with_recomputed)
{
    const struct model *m = p->config.net.model;
    struct megatron_log_options o = {.seq_length = p->setup->bench.length,
                                     .n_layers = m->n_layers,
                                     .hidden_size = m->hidden_size,
                                     .vocab_rows = m->vocab_size,
                                     .n_ranks = (int)world_of(p),
                                     .recomputes = with_recomputed && p->config.net.recompute > 0};
    return megatron_log_tflops(&o, plan_mesh_batch(p), p->times.step_s);
}

/* Finds the bubble: counted, with a backward of about twice the time of a forward; and by the formula. */
static struct status find_bubble(const struct trainer_ranks *r, double *counted, double *by_formula)
{
    struct pipeline_shape p = {r->shape.pp, trainer_ranks_chunks(r), r->n_micro};
    double formula = (double)(p.n_stages - 1) / ((double)p.n_chunks * (double)p.n_micro);
    TRY(pipeline_bubble(&p, 1, 2, counted));
    *counted /= 1 + *counted;
    *by_formula = formula / (1 + formula);
    return status_ok();
}

/* ---- what others have published ---- */

struct published_mesh {
    const char *family, *device; /* names of models and of ops/machines.h */
    int64_t layers, hidden, length, world;
    struct mesh_shape shape; /* shape; zeros: any */
    int64_t batch;           /* 0: of any */
    double step_s;           /* 0: not said */
    double tflops;           /* a device */
    bool with_recomputed;    /* the formula that they are of */
    const char *source;
};

/* clang-format off */
static const struct published_mesh published[] = {
    {"bloom", "a100", 70, 14336, 2048, 384, {4, 12, 8}, 2048, 105, 150, true,
     "BLOOM-176B, bigscience-workshop/bigscience, train/tr11-176B-ml: about 150 TFLOP/s"},
    {NULL, "a100", 40, 5120, 2048, 8, {0, 0, 0}, 0, 0, 185.9, false,
     "MPT-13B, mosaicml/llm-foundry, scripts/train/benchmarking: sharded weights in place of a mesh, "
     "micro-batches of 2, 48 sequences a step, nothing recomputed"},
};
/* clang-format on */

enum { N_PUBLISHED = sizeof published / sizeof published[0] };

static bool same_shape(struct mesh_shape a, struct mesh_shape b)
{
    return a.tp == 0 || (a.tp == b.tp && a.pp == b.pp && a.dp == b.dp);
}

/* Whether a published figure is of this plan; all are of 16-bit precision. */
static bool is_of(const struct published_mesh *f, const struct plan_mesh *p)
{
    const struct network_config *net = &p->config.net;
    const struct model *m = net->model;
    return p->has_times && net->precision.dtype != DTYPE_F32 && f->layers == m->n_layers &&
           f->hidden == m->hidden_size && f->length == p->setup->bench.length && f->world == world_of(p) &&
           same_shape(f->shape, p->config.ranks.shape) && (f->batch == 0 || f->batch == plan_mesh_batch(p)) &&
           strcmp(f->device, p->setup->machine->name) == 0 &&
           (f->family == NULL || strcmp(f->family, m->type->name) == 0);
}

static void append_published(struct buf *b, const struct plan_mesh *p)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        const struct published_mesh *f = &published[i];
        if (!is_of(f, p)) {
            continue;
        }
        double own = plan_mesh_tflops(p, f->with_recomputed);
        buf_puts(b, "published: ");
        if (f->step_s > 0) {
            buf_printf(b, "%.4g s a step (predicted / published = %.2f), ", f->step_s,
                       p->times.step_s / f->step_s);
        }
        buf_printf(b, "%.4g TFLOP/s a device %s (%.2f) [%s]\n", f->tflops,
                   f->with_recomputed ? "with what is recomputed" : "of the model", own / f->tflops,
                   f->source);
    }
}

/* ---- the report ---- */

static void append_head(struct buf *b, const struct plan_mesh *p)
{
    struct mesh_shape s = p->config.ranks.shape;
    buf_printf(b,
               "mesh: %d slices x %d stages of %d chunks x %d replicas = %" PRId64
               " devices, ZeRO stage %d; %" PRId64 " micro-batches of %" PRId64 " sequences on each replica\n"
               "Nothing of this was run: bytes are counted, times are predicted from counted work.\n\n",
               s.tp, s.pp, trainer_ranks_chunks(&p->config.ranks), s.dp, world_of(p),
               p->config.ranks.zero_stage, p->config.ranks.n_micro, p->setup->bench.n_sequences);
    buf_printf(b, "%5s%9s%10s%10s%12s%8s%9s |%9s%9s%9s%9s\n", "stage", "weights", "gradients", "moments",
               "activations", "other", "in all", "slices", "stages", "tied", "replicas");
}

static void append_stage(struct buf *b, const struct plan_mesh *p, int stage)
{
    const struct rank_plan *m = &p->stages[stage];
    struct rank_traffic sent = rank_plan_traffic(m, &p->config);
    struct plan_unit u = plan_unit_of(p->needed_bytes);
    double weights = (double)(m->master_bytes + m->working_bytes);
    double kinds = weights + (double)(m->gradient_bytes + m->optimizer_bytes + m->activation_bytes);
    buf_printf(b, "%5d%9.2f%10.2f%10.2f%12.2f%8.2f%9.2f |%9.3f%9.3f%9.3f%9.3f\n", stage, weights / u.bytes,
               (double)m->gradient_bytes / u.bytes, (double)m->optimizer_bytes / u.bytes,
               (double)m->activation_bytes / u.bytes, ((double)m->device_bytes - kinds) / u.bytes,
               (double)m->device_bytes / u.bytes, sent.slices / u.sent,
               (sent.stages - m->tied_bytes) / u.sent, m->tied_bytes / u.sent, sent.replicas / u.sent);
}

static struct status append_bubble(struct buf *b, const struct trainer_ranks *r)
{
    double counted, formula;
    if (r->shape.pp == 1) {
        return status_ok();
    }
    TRY(find_bubble(r, &counted, &formula));
    buf_printf(b,
               "bubble: %.2f %% of a step by turns counted, %.2f %% by (p - 1) / (chunks m + p - 1), p = %d "
               "stages, m = %" PRId64 " micro-batches\n",
               100 * counted, 100 * formula, r->shape.pp, r->n_micro);
    return status_ok();
}

static void append_time(struct buf *b, const struct plan_mesh *p, const char *what, double seconds)
{
    buf_printf(b, "%-56s%12.4f%9.1f %%\n", what, seconds, 100 * seconds / p->times.step_s);
}

static void append_times(struct buf *b, const struct plan_mesh *p)
{
    const struct mesh_forecast *t = &p->times;
    const struct ring_links *l = &p->setup->links;
    double n = (double)p->config.ranks.n_micro, batch = (double)plan_mesh_batch(p);
    buf_printf(b, "\n%-56s%12s%11s\n", "time of a step, s (predicted)", "", "of it");
    append_time(b, p, "ops of the slowest stage", n * t->slowest.passes_s);
    append_time(b, p, "exchange of its slices", n * t->slowest.slices_s);
    append_time(b, p, "waits for other stages: bubble and messages",
                mesh_forecast_idle(t, &p->config) * t->step_s);
    append_time(b, p, "tied words, between the first and the last stage", t->tied_s);
    append_time(b, p, "replicas: sums of gradients, and weights to all", t->replicas_s);
    append_time(b, p, "update", t->update_s);
    append_time(b, p, "step", t->step_s);
    buf_printf(b,
               "expected: %.4g sequences/s, %.4g tokens/s a device; %.1f TFLOP/s a device of the model, %.1f "
               "with what is recomputed, by 24 f B s l h^2 (1 + s / 6h + V / 16 l h), f = 3 and %d\n",
               batch / t->step_s, batch * (double)p->setup->bench.length / t->step_s / (double)world_of(p),
               plan_mesh_tflops(p, false), plan_mesh_tflops(p, true), p->config.net.recompute > 0 ? 4 : 3);
    buf_printf(b,
               "nothing overlaps but messages of stages; %.0f %% of %.4g GB/s in a node of %" PRId64
               ", %.4g between nodes: %s\nrates: %s\n",
               100 * MACHINE_LINK_SHARE, 1e-9 * l->within / MACHINE_LINK_SHARE, l->per_node,
               1e-9 * l->between / MACHINE_LINK_SHARE, p->setup->machine->links_source,
               p->setup->machine->rates_source);
}

struct status plan_mesh_append(struct buf *b, const struct plan_mesh *p)
{
    append_head(b, p);
    for (int stage = 0; stage < p->config.ranks.shape.pp; stage++) {
        append_stage(b, p, stage);
    }
    struct plan_unit u = plan_unit_of(p->needed_bytes);
    buf_printf(b,
               "left: %s of a rank's memory; right: %s that a rank sends in a step to other slices, stages, "
               "the other end for the tied words, and replicas (by rings)\n",
               u.name, u.sent_name);
    buf_printf(b, "besides: %.2f MiB of a rank's host memory for the batches of two steps\n",
               (double)p->stages[0].batch_bytes / 0x1p20);
    buf_printf(b, "largest: a rank of stage %d, %.2f %s of the %.2f GiB of %s\n", p->largest,
               p->needed_bytes / u.bytes, u.name, p->memory_bytes / 0x1p30, p->setup->machine->name);
    TRY(append_bubble(b, &p->config.ranks));
    if (p->has_times) {
        append_times(b, p);
    }
    append_published(b, p);
    return status_ok();
}

/* ---- the same as JSON ---- */

static json_t *json_of_stage(const struct plan_mesh *p, const struct rank_plan *m)
{
    struct rank_traffic sent = rank_plan_traffic(m, &p->config);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "weight_bytes",
                     (json_int_t)(m->master_bytes + m->working_bytes), "gradient_bytes",
                     (json_int_t)m->gradient_bytes, "optimizer_bytes", (json_int_t)m->optimizer_bytes,
                     "activation_bytes", (json_int_t)m->activation_bytes, "device_bytes",
                     (json_int_t)m->device_bytes, "host_bytes", (json_int_t)m->host_bytes, "batch_bytes",
                     (json_int_t)m->batch_bytes, "slices_send_bytes", sent.slices, "stages_send_bytes",
                     sent.stages - m->tied_bytes, "tied_send_bytes", m->tied_bytes, "replicas_send_bytes",
                     sent.replicas);
}

/* Nothing is put in where there are no times. */
static json_t *json_of_times(const struct plan_mesh *p)
{
    const struct mesh_forecast *t = &p->times;
    double n = (double)p->config.ranks.n_micro;
    return !p->has_times
               ? json_object()
               : json_pack("{s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}, s:f, s:f, s:f, s:s}", "predicted_seconds",
                           "ops", n * t->slowest.passes_s, "slices", n * t->slowest.slices_s, "waits",
                           mesh_forecast_idle(t, &p->config) * t->step_s, "tied", t->tied_s, "replicas",
                           t->replicas_s, "update", t->update_s, "step", t->step_s, "sequences_per_second",
                           (double)plan_mesh_batch(p) / t->step_s, "model_tflops", plan_mesh_tflops(p, false),
                           "hardware_tflops", plan_mesh_tflops(p, true), "rates",
                           p->setup->machine->rates_source);
}

static json_t *json_of_published(const struct plan_mesh *p)
{
    json_t *all = json_array();
    for (int i = 0; i < N_PUBLISHED; i++) {
        const struct published_mesh *f = &published[i];
        if (is_of(f, p)) {
            json_array_append_new(all, json_pack("{s:o, s:f, s:b, s:s}", "step_seconds",
                                                 f->step_s > 0 ? json_real(f->step_s) : json_null(), "tflops",
                                                 f->tflops, "with_recomputed", f->with_recomputed, "source",
                                                 f->source));
        }
    }
    return all;
}

json_t *plan_mesh_json(const struct plan_mesh *p)
{
    const struct trainer_ranks *r = &p->config.ranks;
    json_t *stages = json_array(), *times = json_of_times(p);
    double counted, formula;
    json_t *bubble = failed(find_bubble(r, &counted, &formula))
                         ? NULL
                         : json_pack("{s:f, s:f}", "counted", counted, "formula", formula);
    for (int i = 0; i < r->shape.pp && p->stages != NULL; i++) {
        json_array_append_new(stages, json_of_stage(p, &p->stages[i]));
    }
    json_t *o = json_pack(
        "{s:o, s:s, s:f, s:[i, i, i], s:i, s:i, s:b, s:s, s:I, s:I, s:f, s:i, s:b, s:o*, s:o}", "config",
        json_text(p->setup->config), "device", p->setup->machine->name, "device_memory_bytes",
        p->memory_bytes, "mesh", r->shape.tp, r->shape.pp, r->shape.dp, "chunks", trainer_ranks_chunks(r),
        "zero", (int)r->zero_stage, "checkpoint_activations", p->config.net.recompute > 0, "precision",
        precision_name(p->config.net.precision), "micro_batch_size", (json_int_t)p->setup->bench.n_sequences,
        "micro_batches", (json_int_t)r->n_micro, "needed_bytes", p->needed_bytes, "largest_stage", p->largest,
        "fits", plan_mesh_fits(p), "bubble", bubble, "stages", stages);
    json_object_update(o, times);
    json_object_set_new(o, "published", json_of_published(p));
    json_decref(times);
    return o;
}

struct status plan_mesh_check(const struct plan_mesh *p)
{
    return plan_mesh_fits(p)
               ? status_ok()
               : status_error(
                     STATUS_MEMORY,
                     "a rank of stage %d needs %.2f GiB, but %s has %.2f: use more slices or stages, "
                     "--zero 1, --checkpoint_activations or smaller micro-batches",
                     p->largest, p->needed_bytes / 0x1p30, p->setup->machine->name, p->memory_bytes / 0x1p30);
}
