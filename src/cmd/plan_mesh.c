#include "cmd/plan_mesh.h"

#include <inttypes.h>
#include <stdio.h>

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

/* Of a stage's forward and backward, which is about twice as long. */
static struct status append_bubble(struct buf *b, const struct mesh_job *job)
{
    struct pipeline_shape p = {job->shape.pp, mesh_plan_chunks(job), job->n_micro};
    double counted, formula = (double)(p.n_stages - 1) / ((double)p.n_chunks * (double)p.n_micro);
    if (p.n_stages == 1) {
        return status_ok();
    }
    TRY(pipeline_bubble(&p, 1, 2, &counted));
    buf_printf(b,
               "bubble: %.2f %% of a step by turns counted, %.2f %% by (p - 1) / (chunks m + p - 1), p = %d "
               "stages, m = %" PRId64 " micro-batches\n",
               100 * counted / (1 + counted), 100 * formula / (1 + formula), p.n_stages, p.n_micro);
    return status_ok();
}

static void append_head(struct buf *b, const struct plan_mesh *p)
{
    struct mesh_shape s = p->job.shape;
    buf_printf(b,
               "mesh: %d slices x %d stages of %d chunks x %d replicas = %" PRId64
               " devices, ZeRO stage %d; %" PRId64 " micro-batches of %" PRId64 " sequences on each replica\n"
               "All of this is counted, nothing was run, and no time is predicted.\n\n",
               s.tp, s.pp, mesh_plan_chunks(&p->job), s.dp, (int64_t)s.tp * s.pp * s.dp, p->job.zero_stage,
               p->job.n_micro, p->setup->bench.n_sequences);
    buf_printf(b, "%5s%9s%10s%10s%12s%8s%9s |%9s%9s%9s%9s\n", "stage", "weights", "gradients", "moments",
               "activations", "other", "in all", "slices", "stages", "tied", "replicas");
}

/* What a rank sends by rings, wherever the others are. */
static double replica_bytes(const struct zero_plan *z, int64_t dp, int zero_stage)
{
    struct ring_links one = {.per_node = dp, .within = 1, .between = 1};
    double sums = (double)z->n_reductions * (zero_stage == 0 ? 2 : 1);
    return sums * ring_cost_of(&one, z->reduced_bytes, dp).within_bytes +
           ring_cost_of(&one, z->gathered_bytes, dp).within_bytes;
}

static void append_stage(struct buf *b, const struct plan_mesh *p, int stage, const struct mesh_stage_plan *m)
{
    const struct zero_plan *z = &m->zero;
    double weights = (double)(z->master_bytes + z->working_bytes);
    double kinds = weights + (double)(z->gradient_bytes + z->optimizer_bytes + z->activation_bytes);
    buf_printf(b, "%5d%9.2f%10.2f%10.2f%12.2f%8.2f%9.2f |%9.3f%9.3f%9.3f%9.3f\n", stage, weights / 0x1p30,
               (double)z->gradient_bytes / 0x1p30, (double)z->optimizer_bytes / 0x1p30,
               (double)z->activation_bytes / 0x1p30, ((double)z->device_bytes - kinds) / 0x1p30,
               (double)z->device_bytes / 0x1p30, 1e-9 * m->tensor_bytes, 1e-9 * m->pipe_bytes,
               1e-9 * m->tied_bytes, 1e-9 * replica_bytes(z, p->job.shape.dp, p->job.zero_stage));
}

struct status plan_mesh_append(struct buf *b, struct plan_mesh *p)
{
    append_head(b, p);
    for (int stage = 0; stage < p->job.shape.pp; stage++) {
        struct mesh_stage_plan m;
        TRY(status_context(mesh_plan_stage(&m, &p->job, stage), "--mesh"));
        append_stage(b, p, stage, &m);
        double needed = (double)zero_plan_needed(&m.zero, p->job.config.net.device);
        if (needed > p->needed_bytes) {
            p->needed_bytes = needed;
            p->largest = stage;
        }
    }
    buf_puts(b,
             "left: GiB of a rank's memory; right: GB that a rank sends in a step to other slices, stages, "
             "the other end for the tied words, and replicas (by rings)\n");
    buf_printf(b, "largest: a rank of stage %d, %.2f GiB of the %.2f of %s\n", p->largest,
               p->needed_bytes / 0x1p30, p->memory_bytes / 0x1p30, p->setup->machine->name);
    return append_bubble(b, &p->job);
}

struct status plan_mesh_check(const struct plan_mesh *p)
{
    return p->needed_bytes <= p->memory_bytes
               ? status_ok()
               : status_error(
                     STATUS_MEMORY,
                     "a rank of stage %d needs %.2f GiB, but %s has %.2f: use more slices or stages, "
                     "--zero 1, --checkpoint_activations or smaller micro-batches",
                     p->largest, p->needed_bytes / 0x1p30, p->setup->machine->name, p->memory_bytes / 0x1p30);
}
