/* Log lines of a run of pre-training. */
#include "task/pretrain_run.h"

#include "core/log.h"
#include "dev/host_memory.h"
#include "task/together.h"
#include "train/memory_fit.h"

#include <string.h>

static double mib(size_t bytes)
{
    return (double)bytes / 0x1p20;
}

size_t pretrain_batch_bytes(const struct pretrain_run *r)
{
    const struct batch_source *s = &r->in.train.source;
    int64_t n_micro = (s->n_micro + r->run.loop.ranks.data.size - 1) / r->run.loop.ranks.data.size;
    return s->layout != NULL ? prefetch_bytes(s->layout, s->limits, n_micro)
                             : prefetch_bytes(&r->in.model->layout, r->in.limits, n_micro);
}

/* Logs what is going to happen. */
void pretrain_announce(const struct pretrain_run *r, const struct trainer_plan *p)
{
    const struct pretrain_options *o = r->options;
    const struct model *m = r->in.model;
    double step_flops = p->micro_flops * (double)r->in.train.source.n_micro;
    size_t batches = pretrain_batch_bytes(r);
    const char *name = o->config != NULL ? o->kind->family->name : pretrain_config_name(o);
    log_info("model: %s: %lld layers x %lld%s%s, %lld heads, feed-forward %lld, vocabulary %lld: %.2f M "
             "parameters, %s, %s",
             name, (long long)m->n_layers, (long long)m->hidden_size, m->form != NULL ? ", " : "",
             m->form != NULL ? m->form : "", (long long)m->n_heads, (long long)m->feed_forward_size,
             (long long)m->vocab_size, (double)p->n_model_params / 1e6, r->run.loop.state.dtype,
             o->optimizer);
    if (p->net.n_params < p->n_model_params) {
        log_info("mesh: the first rank has %.2f M of the parameters; memory and work are those of this rank",
                 (double)p->net.n_params / 1e6);
    }
    rank_options_announce(&o->run.ranks, o->run.batch.train_batch_size,
                          o->run.batch.gradient_accumulation_steps);
    pretrain_inputs_announce(&r->in, o);
    log_info("memory: weights %.1f + gradients %.1f + moments %.1f + activations %.1f + workspace %.1f + "
             "saving %.1f + batches %.1f + libraries %.1f = %.1f MiB",
             mib(p->net.weight_bytes), mib(p->gradient_bytes), mib(p->optimizer_bytes),
             mib(p->net.activation_bytes), mib(p->net.workspace_bytes), mib(p->saving_bytes), mib(batches),
             mib(p->net.library_bytes), mib(p->total_bytes + batches));
    if (o->total_training_time > 0) {
        log_info("work: phase %lld, %g seconds, at most %.3g GFLOP a step",
                 (long long)r->run.loop.state.phase, o->total_training_time, step_flops / 1e9);
        return;
    }
    log_info("work: phase %lld, %lld steps, at most %.3g GFLOP a step, %.3g TFLOP in all",
             (long long)r->run.loop.state.phase, (long long)o->run.max_steps, step_flops / 1e9,
             step_flops * (double)o->run.max_steps / 1e12);
}

/* Logs what dealing by length has gained: with ranks, the step takes as long as the one with the most
 * tokens. */
void pretrain_tell_balance(struct pretrain_run *r)
{
    const struct token_balance *b = r->in.train.balance;
    if (b == NULL || b->n_batches == 0) {
        return;
    }
    double with = b->fullest / b->mean, without = b->fullest_in_order / b->mean;
    log_info("balance: the fullest rank of a step had %.4f times the mean tokens, and would have %.4f "
             "without --balance_tokens (%lld steps)",
             with, without, (long long)b->n_batches);
    metrics_event(&r->run.metrics, "balance",
                  json_pack("{s:f, s:f, s:I}", "fullest_over_mean", with, "without", without, "steps",
                            (json_int_t)b->n_batches));
}

/* Logs the result of an emulated rank, one of many without the others. */
static struct status announce_emulation(struct pretrain_run *r, size_t peak, size_t planned)
{
    const struct pretrain_options *o = r->options;
    int64_t n = r->run.loop.state.step - r->run.loop.first_step;
    double between_s = (double)(r->last_step_ns - r->first_step_ns) * 1e-9;
    struct emulation_result result = {.n_steps = n,
                                      .step_s = n > 1 ? between_s / (double)(n - 1) : 0,
                                      .peak = peak,
                                      .planned = planned,
                                      .base = r->run.backend.device->is_host ? r->run.taken_bytes : 0,
                                      .traffic = r->run.loop.ranks.world.emulated->tensors,
                                      .peer_bytes = r->run.trainer.net.x.totals.peer_bytes,
                                      .message_bytes = r->run.loop.ranks.world.emulated->stages.message_bytes,
                                      .n_micro = o->run.batch.gradient_accumulation_steps /
                                                 r->run.loop.ranks.data.size,
                                      .links = o->emulation.links};
    json_t *event;
    TRY(emulation_tell(&result, &r->run.trainer.config, &r->run.loop.ranks.world, &event));
    metrics_event(&r->run.metrics, "emulation", event);
    return status_ok();
}

/* Logs the memory that the run has taken on its device, that of the rank which has taken the most, and the
 * plan. */
struct status pretrain_announce_peak(struct pretrain_run *r)
{
    const struct device *d = r->run.backend.device;
    const struct trainer_plan *p = &r->run.trainer.plan;
    size_t left = d->free_bytes();
    size_t peak = d->is_host ? host_memory_peak() : r->run.free_before > left ? r->run.free_before - left : 0;
    size_t planned =
        d->is_host ? p->total_bytes + r->run.taken_bytes + pretrain_batch_bytes(r) + r->ngram.score.most_bytes
                   : memory_fit_device_bytes(p, d);
    double most, most_planned;
    TRY(together_largest(&r->run.loop.ranks.world, mib(peak), &most));
    TRY(together_largest(&r->run.loop.ranks.world, mib(planned), &most_planned));
    log_info("memory: %s%s %.1f MiB, planned %.1f MiB%s", d->is_host ? "" : d->name,
             d->is_host ? "peak" : " took", most, most_planned,
             r->run.loop.ranks.world.size > 1 && r->run.loop.ranks.world.emulated == NULL
                 ? ", on the rank with the most"
                 : "");
    return r->run.loop.ranks.world.emulated != NULL ? announce_emulation(r, peak, planned) : status_ok();
}

/* Logs what the ranks of a mesh have sent in a step, as `kiln plan --mesh` counts it: to the byte. */
struct status pretrain_announce_traffic(struct pretrain_run *r)
{
    const struct loop *l = &r->run.loop;
    double n = (double)(l->state.step - l->first_step), slices, stages, replicas;
    if (!mesh_cuts_model(l->ranks.shape) || n == 0 || mesh_sent(&r->run.trainer.mesh).stages < 0) {
        return status_ok();
    }
    TRY(together_largest(&r->run.loop.ranks.world, (double)r->run.trainer.sent.slices / n, &slices));
    TRY(together_largest(&r->run.loop.ranks.world, (double)r->run.trainer.sent.stages / n, &stages));
    TRY(together_largest(&r->run.loop.ranks.world, (double)r->run.trainer.sent.replicas / n, &replicas));
    log_info("traffic: a rank sent %.6f MB to other slices in a step, %.6f to other stages and %.6f to "
             "replicas, each on the rank with the most",
             1e-6 * slices, 1e-6 * stages, 1e-6 * replicas);
    metrics_event(&r->run.metrics, "traffic",
                  json_pack("{s:f, s:f, s:f}", "slices_bytes", slices, "stages_bytes", stages,
                            "replicas_bytes", replicas));
    return status_ok();
}

static struct deepspeed_log_options deepspeed_log_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    const struct trainer_config *c = &r->run.trainer.config;
    return (struct deepspeed_log_options){
        .settings = o->deepspeed_log,
        .device = c->net.device->name,
        .backend = r->run.loop.ranks.world.type->name,
        .checkpoints = o->run.common.output_dir,
        .optimizer = c->optimizer,
        .schedule = r->run.loop.schedule,
        .batch_size = o->run.batch.train_batch_size,
        .n_micro = (o->run.batch.gradient_accumulation_steps + r->run.loop.ranks.data.size - 1) /
                   r->run.loop.ranks.data.size,
        .n_skipped = r->run.loop.state.n_skipped,
        .n_ranks = r->run.loop.ranks.world.size,
        .emulates = r->run.loop.ranks.world.emulated != NULL,
        .has_loss_scale = c->net.precision.dtype == DTYPE_F16,
    };
}

static struct megatron_log_options megatron_log_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    const struct model *m = r->in.model;
    return (struct megatron_log_options){
        .settings = o->megatron_log,
        .checkpoints = o->run.common.output_dir,
        .flags = o->run.flags,
        .schedule = r->run.loop.schedule,
        .n_steps = o->run.max_steps,
        .log_every = o->run.log_freq,
        .seq_length = o->run.batch.max_seq_length,
        .n_layers = m->n_layers,
        .hidden_size = m->hidden_size,
        .vocab_rows = m->vocab_size,
        .n_params = r->run.trainer.plan.n_model_params,
        .n_ranks = r->run.loop.ranks.world.size,
        .recomputes = o->checkpoint_activations,
        .has_loss_scale = r->run.trainer.config.net.precision.dtype == DTYPE_F16,
        .has_weight_norm = r->run.trainer.config.measures_weights,
    };
}

struct status pretrain_open_logs(struct pretrain_run *r)
{
    struct deepspeed_log_options deepspeed = deepspeed_log_of(r);
    struct megatron_log_options megatron = megatron_log_of(r);
    struct metrics_start start = run_start(&r->run);
    start.task = "pre-training";
    start.drop_in = DROP_IN_PRETRAINING;
    start.deepspeed = deepspeed.settings.on ? &deepspeed : NULL;
    start.megatron = megatron.settings.on ? &megatron : NULL;
    start.total_s = r->progress.clock.total_s;
    start.elapsed_s = r->progress.clock.elapsed_s;
    start.steps_per_epoch = r->in.train.steps_per_epoch;
    start.data_tokens = r->in.train.n_tokens;
    start.bytes_per_token = r->bytes_per_token;
    TRY(run_open_logs(&r->run));
    metrics_start(&r->run.metrics, &start);
    return status_ok();
}

void pretrain_tell_complete(const struct loop *l)
{
    if (l->clock != NULL) {
        log_info("phase %lld is complete: %lld steps in %.1f of %g seconds", (long long)l->state.phase,
                 (long long)l->state.step, l->clock->elapsed_s, l->clock->total_s);
        return;
    }
    log_info("phase %lld is complete: %lld of %lld steps done", (long long)l->state.phase,
             (long long)l->state.step, (long long)l->last_step);
}
