#include "cmd/plan.h"

#include "core/log.h"

#include <inttypes.h>
#include <string.h>

#define OF_002    "document 002 (Habana's blog, January 2023)"
#define OF_AWS    "AWS Machine Learning Blog, June 2023: DeepSpeed on DL1 instances"
#define OF_INTEL  "Intel's table of Gaudi reference models, whose generation it does not say"
#define OF_NVIDIA "NVIDIA's DeepLearningExamples, PyTorch BERT, fp16"
#define OF_PEER   "PyTorch 2.11 tuned, on one H200, forward and backward without the update"

/* A figure that others have published of training a model, to compare with a plan. */
struct published_figure {
    const char *model;                     /* model_type.name */
    const char *device;                    /* name in ops/machines.h */
    int64_t layers, hidden, length, world; /* world 0: of any number of devices */
    const char *figure, *source;
};

static const struct published_figure figures[] = {
    {"bert", "gaudi1", 48, 1600, 128, 0,
     "Figure 3: without ZeRO out of memory, with ZeRO-1 it trains; its bars and Table 1 are pictures, whose "
     "numbers the text does not have",
     OF_002},
    {"bert", "gaudi1", 48, 1600, 128, 8, "302.5 sequences/s, ZeRO-1", OF_002},
    {"bert", "gaudi1", 48, 1600, 128, 128, "scaling 82.7 %, ZeRO-1, 384 sequences a device and step", OF_AWS},
    {"bert", "gaudi1", 63, 2560, 128, 128, "trains with ZeRO-2 and checkpointed activations", "document 000"},
    {"bert", "gaudi1", 24, 1024, 128, 8, "1489 sequences/s; the rate of products is assumed from it",
     OF_INTEL},
    {"bert", "gaudi1", 24, 1024, 128, 32, "5810 sequences/s", OF_INTEL},
    {"bert", "gaudi1", 24, 1024, 512, 8, "490 sequences/s", OF_INTEL},
    {"bert", "gaudi1", 24, 1024, 512, 32, "1932 sequences/s", OF_INTEL},
    {"bert", "a100", 24, 1024, 128, 1, "580 sequences/s; the share that is reached is assumed from it",
     OF_NVIDIA},
    {"bert", "a100", 24, 1024, 128, 8, "4591 sequences/s", OF_NVIDIA},
    {"bert", "h200", 24, 1024, 128, 1, "1861 sequences/s, micro-batch 256", OF_PEER},
    {"bert", "h200", 48, 1600, 128, 1, "414 sequences/s, micro-batch 192; 307 with checkpointed activations",
     OF_PEER},
    {"bert", "h200", 63, 2560, 128, 1, "102 sequences/s, micro-batch 64, checkpointed activations", OF_PEER},
};

enum { N_FIGURES = sizeof figures / sizeof figures[0] };

/* The figure number i, from 0, for this model in 16-bit precision, or NULL after the last.  world 0: those
 * that are for no number of devices, or for all. */
static const struct published_figure *published_figure_at(int i, const struct model *model,
                                                          const char *device, int64_t length, int64_t world)
{
    for (int k = 0; k < N_FIGURES; k++) {
        const struct published_figure *f = &figures[k];
        bool same = f->layers == model->n_layers && f->hidden == model->hidden_size && f->length == length &&
                    f->world == world && strcmp(f->device, device) == 0 &&
                    strcmp(f->model, model->type->name) == 0;
        if (same && i-- == 0) {
            return f;
        }
    }
    return NULL;
}

/* A kind of memory, by its member of struct rank_plan. */
static const struct kind {
    const char *key, *title;
    size_t offset;
} kinds[] = {
    {"working_bytes", "weights, the copy that products read", offsetof(struct rank_plan, working_bytes)},
    {"master_bytes", "weights, fp32", offsetof(struct rank_plan, master_bytes)},
    {"gradient_bytes", "gradients, fp32", offsetof(struct rank_plan, gradient_bytes)},
    {"optimizer_bytes", "moments, fp32, and sums for norms", offsetof(struct rank_plan, optimizer_bytes)},
    {"activation_bytes", "activations of a micro-batch", offsetof(struct rank_plan, activation_bytes)},
    {"scratch_bytes", "scratch of ops", offsetof(struct rank_plan, scratch_bytes)},
    {"library_bytes", "libraries", offsetof(struct rank_plan, library_bytes)},
    {"rest_bytes", "results and ends of buffers", offsetof(struct rank_plan, rest_bytes)},
    {"device_bytes", "in all", offsetof(struct rank_plan, device_bytes)},
    {"host_bytes", "host memory, to save from", offsetof(struct rank_plan, host_bytes)},
    {"batch_bytes", "host memory, batches of two steps", offsetof(struct rank_plan, batch_bytes)},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static size_t bytes_of(const struct kind *k, const struct rank_plan *z)
{
    return *(const size_t *)((const char *)z + k->offset);
}

static struct plan_unit unit_of(const struct plan_report *r)
{
    return plan_unit_of((double)r->stages[0].rank.device_bytes);
}

static bool fits(const struct plan_report *r, const struct world_plan *p)
{
    return (double)rank_plan_needed(&p->rank, r->setup->bench.config.net.device) <= r->memory_bytes;
}

static const struct published_figure *figure_at(const struct plan_report *r, int i, int64_t world)
{
    const struct step_bench *b = &r->setup->bench;
    return b->config.net.precision.dtype == DTYPE_F32 || b->config.net.precision.fp8
               ? NULL
               : published_figure_at(i, b->config.net.model, r->setup->machine->name, b->length, world);
}

static void append_head(struct buf *b, const struct plan_report *r)
{
    const struct step_bench *s = &r->setup->bench;
    const struct model *m = s->config.net.model;
    const struct machine *d = r->setup->machine;
    const struct world_plan *p = &r->stages[r->stage];
    buf_puts(b, "model    ");
    log_append_text(b, r->setup->config);
    buf_printf(b,
               ": %" PRId64 " layers x %" PRId64 "%s%s, %" PRId64 " heads, feed-forward %" PRId64
               ", vocabulary %" PRId64 ": %.2f M parameters\n",
               m->n_layers, m->hidden_size, m->form != NULL ? ", " : "", m->form != NULL ? m->form : "",
               m->n_heads, m->feed_forward_size, m->vocab_size, (double)p->rank.trainer.net.n_params / 1e6);
    buf_printf(b, "device   %s, %s: %.2f GiB (%s)\n", d->name, d->title, r->memory_bytes / 0x1p30,
               d->memory_source);
    buf_printf(b,
               "step     world %" PRId64 ", ZeRO stage %d, %s, %s: %" PRId64 " sequences of %" PRId64
               " tokens, %" PRId64 " predicted; micro-batches of %" PRId64 ", %" PRId64 " on each device%s\n",
               p->world, p->stage, precision_name(s->config.net.precision), s->config.optimizer.kind->name,
               p->world * p->n_micro * s->n_sequences, s->length, s->n_masked, s->n_sequences, p->n_micro,
               s->config.net.recompute > 0 ? ", checkpointed activations" : "");
    buf_puts(
        b, "Nothing of this was run: bytes come from the plan that a run allocates, times are predicted.\n");
}

static void append_memory(struct buf *b, const struct plan_report *r)
{
    struct plan_unit u = unit_of(r);
    buf_printf(b, "\na device's memory, %-21s%10s%10s%10s\n", u.name, "ZeRO 0", "ZeRO 1", "ZeRO 2");
    for (int k = 0; k < N_KINDS; k++) {
        buf_printf(b, "%-40s", kinds[k].title);
        for (int i = 0; i < ZERO_STAGES; i++) {
            buf_printf(b, "%10.2f", (double)bytes_of(&kinds[k], &r->stages[i].rank) / u.bytes);
        }
        buf_putc(b, '\n');
    }
    buf_printf(b, "fits into %-30.2f", r->memory_bytes / u.bytes);
    for (int i = 0; i < ZERO_STAGES; i++) {
        buf_printf(b, "%10s", fits(r, &r->stages[i]) ? "yes" : "no");
    }
    buf_putc(b, '\n');
    if (r->stages[0].world > 1 && r->stages[0].rank.working_bytes == 0) {
        buf_puts(b, "In fp32, products read the master weights, so each device has all of them; with "
                    "--autocast they are sharded.\n");
    }
}

static void append_traffic(struct buf *b, const struct plan_report *r)
{
    const struct world_plan *p = &r->stages[r->stage];
    const struct ring_links *l = &r->setup->links;
    double flops = r->setup->bench.useful_flops * (double)p->n_micro;
    buf_printf(b,
               "\nwork of a step: %.4g TFLOP a device, %.4g in all (products of tokens and predictions%s)\n",
               1e-12 * flops, 1e-12 * flops * (double)p->world,
               r->setup->bench.config.net.recompute > 0 ? "; some twice" : "");
    buf_printf(b, "%-40s%10s%10s%10s\n", "a device sends in a step, GB", "in node", "between", "s");
    buf_printf(b, "%-40s%10.3f%10.3f%10.4f\n", "sums of gradients, fp32", 1e-9 * p->reduce.within_bytes,
               1e-9 * p->reduce.between_bytes, p->reduce.seconds);
    buf_printf(b, "%-40s%10.3f%10.3f%10.4f\n", "weights, and sums for norms, to all",
               1e-9 * p->gather.within_bytes, 1e-9 * p->gather.between_bytes, p->gather.seconds);
    buf_printf(b, "by rings, at %.0f %% of %.4g GB/s in a node of %" PRId64 ", %.4g between nodes: %s\n",
               100 * MACHINE_LINK_SHARE, 1e-9 * l->within / MACHINE_LINK_SHARE, l->per_node,
               1e-9 * l->between / MACHINE_LINK_SHARE, r->setup->machine->links_source);
}

static void append_time_row(struct buf *b, const char *what, double fast, double slow,
                            const struct world_plan *p)
{
    buf_printf(b, "%-40s%10.4f%10.4f%9.1f %%\n", what, fast, slow, 100 * fast / p->step_s.fast);
}

/* Appends the times of a step; task/world_plan.h says what overlaps. */
static void append_times(struct buf *b, const struct plan_report *r)
{
    const struct world_plan *p = &r->stages[r->stage];
    double n = (double)p->n_micro, rest = p->gather.seconds;
    double rate = r->setup->bench.useful_flops * n / p->step_s.fast;
    buf_printf(b, "\n%-40s%10s%10s%11s\n", "time of a step, s (predicted)", "fast", "slow", "of fast");
    append_time_row(b, "forward and backward", n * p->passes_s, n * p->passes_s, p);
    append_time_row(b, "sums that the backward does not hide", p->left_s, p->reduce.seconds, p);
    append_time_row(b, "update", p->update_s, p->update_s, p);
    append_time_row(b, "weights to all", rest, rest, p);
    append_time_row(b, "step", p->step_s.fast, p->step_s.slow, p);
    buf_printf(b,
               "expected: %.1f to %.1f sequences/s, %.1f to %.1f a device; %.4g TFLOP/s a device at "
               "best\nfast: the sums overlap with the last backward%s; slow: nothing overlaps, as with "
               "kiln's ranks today\nrates: %s\n",
               p->sequences.slow, p->sequences.fast, p->sequences.slow / (double)p->world,
               p->sequences.fast / (double)p->world, 1e-12 * rate, p->stage > 1 ? " of each micro-batch" : "",
               r->setup->machine->rates_source);
}

/* Rate of a device as a fraction of its rate in one node. */
static double scaling(const struct plan_report *r, const struct world_plan *p)
{
    for (int i = 0; i < r->n_rows; i++) {
        const struct world_plan *node = &r->rows[i].stages[p->stage];
        if (r->rows[i].has_times && node->world == r->setup->links.per_node) {
            return p->sequences.fast / (double)p->world / (node->sequences.fast / (double)node->world);
        }
    }
    return 0;
}

static void append_row(struct buf *b, const struct plan_report *r, const struct plan_row *row)
{
    const struct world_plan *p = &row->stages[r->stage];
    buf_printf(b, "%7" PRId64, p->world);
    for (int i = 0; i < ZERO_STAGES; i++) {
        buf_printf(b, "%9.2f%c", (double)row->stages[i].rank.device_bytes / unit_of(r).bytes,
                   fits(r, &row->stages[i]) ? ' ' : '!');
    }
    if (row->has_times) {
        double scale = scaling(r, p);
        buf_printf(b, "%12.1f%10.2f", p->sequences.fast, p->sequences.fast / (double)p->world);
        scale > 0 ? buf_printf(b, "%9.1f %%", 100 * scale) : buf_printf(b, "%11s", "-");
    } else {
        buf_printf(b, "%12s%10s%11s", "-", "-", "-");
    }
    const struct published_figure *f = figure_at(r, 0, p->world);
    if (f != NULL) {
        buf_printf(b, "   %s [%s]", f->figure, f->source);
    }
    buf_putc(b, '\n');
}

static void append_rows(struct buf *b, const struct plan_report *r)
{
    buf_printf(b, "\n%7s%9s %9s %9s %12s%10s%11s   published\n", "devices", "ZeRO 0", "ZeRO 1", "ZeRO 2",
               "sequences/s", "a device", "scaling");
    for (int i = 0; i < r->n_rows; i++) {
        append_row(b, r, &r->rows[i]);
    }
    buf_printf(b,
               "%s of a device by stage, ! if they do not fit; sequences/s at stage %d, at best; scaling: "
               "the rate of a device in percent of its rate in one node\n",
               unit_of(r).name, r->stage);
    const struct published_figure *f;
    for (int i = 0; (f = figure_at(r, i, 0)) != NULL; i++) {
        buf_printf(b, "published: %s [%s]\n", f->figure, f->source);
    }
}

void plan_report_append(struct buf *b, const struct plan_report *r)
{
    append_head(b, r);
    append_memory(b, r);
    append_traffic(b, r);
    if (r->has_times) {
        append_times(b, r);
    }
    append_rows(b, r);
}

/* ---- the same as JSON ---- */

static json_t *json_of_memory(const struct plan_report *r, const struct world_plan *p)
{
    json_t *o = json_pack("{s:i}", "zero", p->stage);
    for (int k = 0; k < N_KINDS; k++) {
        json_object_set_new(o, kinds[k].key, json_integer((json_int_t)bytes_of(&kinds[k], &p->rank)));
    }
    json_object_set_new(o, "fits", json_boolean(fits(r, p)));
    return o;
}

static json_t *json_of_stages(const struct plan_report *r, const struct world_plan stages[ZERO_STAGES])
{
    json_t *all = json_array();
    for (int i = 0; i < ZERO_STAGES; i++) {
        json_array_append_new(all, json_of_memory(r, &stages[i]));
    }
    return all;
}

static json_t *json_of_ring(struct ring_cost c)
{
    return json_pack("{s:f, s:f, s:f}", "within_bytes", c.within_bytes, "between_bytes", c.between_bytes,
                     "seconds", c.seconds);
}

static json_t *json_of_range(struct world_range r)
{
    return json_pack("[f, f]", r.fast, r.slow);
}

static json_t *json_of_world(const struct plan_report *r, const struct plan_row *row)
{
    json_t *published = json_array();
    const struct world_plan *p = &row->stages[r->stage];
    const struct published_figure *f;
    double scale = row->has_times ? scaling(r, p) : 0;
    for (int i = 0; (f = figure_at(r, i, p->world)) != NULL; i++) {
        json_array_append_new(published, json_pack("{s:s, s:s}", "figure", f->figure, "source", f->source));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "devices", (json_int_t)p->world, "memory",
                     json_of_stages(r, row->stages), "sequences_per_second",
                     row->has_times ? json_of_range(p->sequences) : json_null(), "scaling",
                     scale > 0 ? json_real(scale) : json_null(), "published", published);
}

json_t *plan_report_json(const struct plan_report *r)
{
    const struct world_plan *p = &r->stages[r->stage];
    const struct step_bench *s = &r->setup->bench;
    const struct machine *d = r->setup->machine;
    bool times = r->has_times;
    json_t *rows = json_array();
    for (int i = 0; i < r->n_rows; i++) {
        json_array_append_new(rows, json_of_world(r, &r->rows[i]));
    }
    return json_pack(
        "{s:o, s:I, s:s, s:f, s:I, s:i, s:s, s:s, s:I, s:I, s:f, s:o, s:o, s:o, s:o*, s:o*, s:o*, s:o*, "
        "s:s*, s:o}",
        "config", json_text(r->setup->config), "parameters", (json_int_t)p->rank.trainer.net.n_params,
        "device", d->name, "device_memory_bytes", r->memory_bytes, "world", (json_int_t)p->world, "zero",
        p->stage, "precision", precision_name(s->config.net.precision), "optimizer",
        s->config.optimizer.kind->name, "micro_batch_size", (json_int_t)s->n_sequences, "micro_batches",
        (json_int_t)p->n_micro, "flops", s->useful_flops * (double)p->n_micro, "memory",
        json_of_stages(r, r->stages), "reduce", json_of_ring(p->reduce), "gather", json_of_ring(p->gather),
        "passes_seconds", times ? json_real(p->passes_s) : NULL, "update_seconds",
        times ? json_real(p->update_s) : NULL, "step_seconds", times ? json_of_range(p->step_s) : NULL,
        "sequences_per_second", times ? json_of_range(p->sequences) : NULL, "rates",
        times ? d->rates_source : NULL, "worlds", rows);
}
