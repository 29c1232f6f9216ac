#include "report/deepspeed_log.h"

#include "core/clock.h"
#include "io/dllog.h"
#include "model/checkpoint_manifest.h"

#include <string.h>

/* The script's names of its optimizers. */
static const struct {
    const char *name, *title;
} titles[] = {
    {"lamb", "NVLamb"}, {"nvlamb_exp", "NVLamb Experimental"},
    {"lans", "LANS"},   {"ds_fused_lamb", "DeepSpeed FusedLamb"},
    {"adam", "Adam"},   {"adamw", "AdamW"},
};

static void put_ranks(const struct deepspeed_log_options *o)
{
    struct buf b = {0};
    buf_printf(&b, "Distributed training with backend=%s, device=%s, local_rank=0", o->backend, o->device);
    dllog_put(&b);
    buf_puts(&b, "[INFO] [kiln:init_distributed] Initializing ");
    buf_printf(&b, o->n_ranks == 1 ? "one rank" : o->emulates ? "%d emulated ranks" : "%d ranks", o->n_ranks);
    buf_printf(&b, " with backend %s", o->backend);
    dllog_put(&b);
}

static void put_optimizer(const struct optimizer *o)
{
    struct buf b = {0};
    const char *title = o->kind->name;
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        title = strcmp(titles[i].name, o->kind->name) == 0 ? titles[i].title : title;
    }
    buf_printf(&b, "Using %s", title);
    if (o->kind == &optimizer_nvlamb_exp) {
        buf_printf(&b, " with use_ds_lamb_bias_correction=%s", o->corrects_steps ? "True" : "False");
    }
    dllog_put(&b);
}

static void put_schedule(const struct schedule *s)
{
    const struct {
        const char *name;
        double value;
    } args[] = {{"warmup", s->warmup},
                {"total_steps", (double)s->n_steps},
                {"degree", s->degree},
                {"constant", s->constant}};
    struct buf b = {0};
    if (s->kind == SCHEDULE_LINEAR || s->kind == SCHEDULE_POLY) { /* the script has neither */
        dllog_print(s->kind == SCHEDULE_LINEAR ? "Using the linear schedule of --lr_schedule"
                                               : "Using the poly schedule of --lr_schedule");
        return;
    }
    if (s->kind != SCHEDULE_POLY_CONSTANT) {
        dllog_print("LR Scheduler is expected to be configured in deepspeed configuration file");
        return;
    }
    buf_puts(&b, "Using PolyWarmUpScheduler with args={");
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) {
        buf_printf(&b, "%s'%s': ", i == 0 ? "" : ", ", args[i].name);
        dllog_append_real(&b, args[i].value);
    }
    buf_puts(&b, "}");
    dllog_put(&b);
}

void deepspeed_log_open(struct deepspeed_log *l, const struct deepspeed_log_options *o, bool prints,
                        int64_t step)
{
    int64_t now = clock_ns();
    *l = (struct deepspeed_log){.options = *o,
                                .prints = prints,
                                .start_ns = now,
                                .window_ns = now,
                                .n_skipped = o->n_skipped,
                                .first_step = step,
                                .window_first = step};
    if (l->prints) {
        put_ranks(o);
        put_optimizer(&o->optimizer);
        put_schedule(&o->schedule);
    }
    if (o->settings.tensorboard[0] != '\0') {
        dllog_warn(tfevents_open(&l->events, o->settings.tensorboard, step * o->batch_size + 1));
    }
}

void deepspeed_log_close(struct deepspeed_log *l)
{
    tfevents_close(&l->events);
    l->options.settings.on = false;
}

void deepspeed_log_saved(struct deepspeed_log *l, int64_t global_step)
{
    struct buf b = {0};
    if (!l->options.settings.on || !l->prints) {
        return;
    }
    if (l->options.settings.zero_stage > 0) {
        char name[CHECKPOINT_NAME_BYTES];
        checkpoint_manifest_part_name(name, "optimizer", 0, l->options.n_ranks);
        buf_printf(&b, "[INFO] [kiln:_save_zero_checkpoint] zero checkpoint saved %s/ckpt_%lld/%s",
                   l->options.checkpoints, (long long)global_step, name);
        dllog_put(&b);
    }
    buf_printf(&b, "[INFO] [kiln:commit] Checkpoint %lld is ready now!", (long long)global_step);
    dllog_put(&b);
}

/* Samples per second of the steps from `first` on, in the time since `since_ns`. */
static double samples_rate(const struct deepspeed_log *l, int64_t first, int64_t step, int64_t since_ns)
{
    return (double)((step - first) * l->options.batch_size) / clock_since_s(since_ns);
}

/* The script has two groups of parameters, with decay and without; their rates and betas are the same. */
static void put_progress(struct deepspeed_log *l, const struct logged_step *s)
{
    struct buf b = {0};
    buf_printf(&b, "[INFO] [kiln:log_dist] [Rank 0] step=%lld, skipped=%lld", (long long)s->step,
               (long long)l->n_skipped);
    for (int group = 0; group < 2; group++) {
        buf_puts(&b, group == 0 ? ", lr=[" : ", ");
        dllog_append_real(&b, s->lr);
    }
    for (int group = 0; group < 2; group++) {
        buf_puts(&b, group == 0 ? "], mom=[(" : ", (");
        dllog_append_real(&b, l->options.optimizer.beta1);
        buf_puts(&b, ", ");
        dllog_append_real(&b, l->options.optimizer.beta2);
        buf_puts(&b, ")");
    }
    buf_puts(&b, "]");
    dllog_put(&b);
    buf_printf(&b, "[INFO] [kiln:stop] epoch=%lld/micro_step=%lld/global_step=%lld, RunningAvgSamplesPerSec=",
               (long long)s->epoch, (long long)(s->step * l->options.n_micro), (long long)s->step);
    dllog_append_real(&b, samples_rate(l, l->first_step, s->step, l->start_ns));
    buf_puts(&b, ", CurrSamplesPerSec=");
    dllog_append_real(&b, samples_rate(l, l->window_first, s->step, l->window_ns));
    dllog_put(&b);
    l->window_ns = clock_ns();
    l->window_first = s->step;
}

void deepspeed_log_leave_out(struct deepspeed_log *l, int64_t evaluation_ns)
{
    l->start_ns += evaluation_ns;
    l->window_ns += evaluation_ns;
}

void deepspeed_log_step(struct deepspeed_log *l, const struct logged_step *s)
{
    const struct deepspeed_log_options *o = &l->options;
    if (!o->settings.on) {
        return;
    }
    l->n_skipped += s->skipped;
    if (!s->skipped) {
        const struct tfevents_scalar scalars[] = {{"Train/Samples/train_loss", s->loss},
                                                  {"Train/Samples/lr", s->lr},
                                                  {"Train/Samples/loss_scale", s->loss_scale}};
        dllog_warn(tfevents_write(&l->events, s->step * o->batch_size, s->wall_s, scalars,
                                  o->has_loss_scale ? 3 : 2));
    }
    if (l->prints && s->step % o->settings.steps_per_print == 0) {
        put_progress(l, s);
    }
}
