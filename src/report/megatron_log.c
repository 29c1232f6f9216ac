#include "report/megatron_log.h"

#include "core/buf.h"
#include "core/clock.h"
#include "io/dllog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- arguments ---- */

enum { MOST_ARGUMENTS = 300 };

struct argument {
    const char *name;
    char value[200];
};

/* Flags that the original stores as what they switch off: no_bias_gelu_fusion is bias_gelu_fusion False. */
static bool is_switched_off(const char *name, const json_t *value)
{
    static const char *const own[] = {"no_load_", "no_save_", "no_pipeline_"};
    bool is_own = false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        is_own = is_own || strncmp(name, own[i], strlen(own[i])) == 0;
    }
    return json_is_boolean(value) && strncmp(name, "no_", 3) == 0 && !is_own;
}

/* An argument with its value as Python's str() shows it. */
static struct argument argument_of(const char *name, json_t *value)
{
    struct argument a = {.name = name};
    struct buf b = {0};
    if (is_switched_off(name, value)) {
        a.name = name + strlen("no_");
        value = json_boolean(!json_is_true(value));
    }
    dllog_append_python(&b, value, false);
    snprintf(a.value, sizeof a.value, "%s", b.failed ? "" : buf_text(&b));
    buf_fini(&b);
    return a;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(((const struct argument *)a)->name, ((const struct argument *)b)->name);
}

static int list_arguments(struct argument *list, const json_t *flags)
{
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)flags, name, value)
    {
        if (n < MOST_ARGUMENTS) {
            list[n++] = argument_of(name, value);
        }
    }
    qsort(list, (size_t)n, sizeof *list, by_name);
    return n;
}

static void print_arguments(const struct argument *list, int n)
{
    enum { DOTS = 48 };
    static const char dots[] = "................................................";
    dllog_print("------------------------ arguments ------------------------");
    for (int i = 0; i < n; i++) {
        struct buf b = {0};
        size_t used = strlen(list[i].name);
        buf_printf(&b, "  %s %.*s %s", list[i].name, used < DOTS ? (int)(DOTS - used) : 0, dots,
                   list[i].value);
        dllog_put(&b);
    }
    dllog_print("-------------------- end of arguments ---------------------");
}

static void tell_arguments(struct megatron_log *l)
{
    struct argument *list = malloc(MOST_ARGUMENTS * sizeof *list);
    if (list == NULL) {
        return;
    }
    int n = list_arguments(list, l->options.flags);
    print_arguments(list, n);
    for (int i = 0; i < n; i++) {
        dllog_warn(tfevents_write_text(&l->events, 0, clock_wall_s(), list[i].name, list[i].value));
    }
    free(list);
}

/* The position of a run after a step. */
struct position {
    int64_t step, batch, samples, tokens;
};

static struct position position_after(const struct megatron_log_options *o, int64_t step)
{
    struct batch_growth_step at = batch_growth_at(&o->schedule.growth, step);
    int64_t samples = at.before + at.batch;
    return (struct position){step, at.batch, samples, samples * o->seq_length};
}

/* Tokens are the largest of the three axes that share a file, so no start forgets what is still right.  What
 * is plotted against steps and samples is left to TensorBoard's data server, which looks at each tag. */
static int64_t first_event(const struct megatron_log_options *o, int64_t step)
{
    return step > 0 ? position_after(o, step).tokens + 1 : 0;
}

void megatron_log_open(struct megatron_log *l, const struct megatron_log_options *o, int64_t step)
{
    *l = (struct megatron_log){.options = *o};
    if (!o->settings.on) {
        return;
    }
    if (o->settings.tensorboard != NULL) {
        dllog_warn(tfevents_open(&l->events, o->settings.tensorboard, first_event(o, step)));
    }
    tell_arguments(l);
    l->window.start_ns = clock_ns();
}

void megatron_log_close(struct megatron_log *l)
{
    tfevents_close(&l->events);
    l->options.settings.on = false;
}

/* ---- steps ---- */

double megatron_log_tflops(const struct megatron_log_options *o, int64_t batch, double seconds)
{
    double passes = o->recomputes ? 4 : 3, s = (double)o->seq_length, n = (double)o->n_layers,
           h = (double)o->hidden_size, v = (double)o->vocab_rows;
    double flops = 24 * passes * (double)batch * s * n * h * h * (1 + s / (6 * h) + v / (16 * n * h));
    return flops / (seconds * (double)o->n_ranks * 1e12);
}

static void put_step(struct megatron_log *l, const struct logged_step *s, struct position at, double lr)
{
    const struct megatron_log_options *o = &l->options;
    const struct megatron_window *w = &l->window;
    int64_t n_taken = w->n_steps - w->n_skipped;
    double seconds = l->seconds_per_step, loss = w->loss / (double)(n_taken > 0 ? n_taken : 1);
    struct buf b = {0};
    buf_printf(&b, " iteration %8lld/%8lld | consumed samples: %12lld | consumed tokens: %12lld |",
               (long long)at.step, (long long)o->n_steps, (long long)at.samples, (long long)at.tokens);
    buf_printf(&b,
               " elapsed time per iteration (ms): %.1f | learning rate: %.3E | global batch size: %5lld |",
               1e3 * seconds, lr, (long long)at.batch);
    if (loss > 0) {
        buf_printf(&b, " lm loss: %.6E |", loss);
    }
    buf_printf(&b, " loss scale: %.1f | grad norm: %.3f | num zeros: %.1f |",
               o->has_loss_scale ? s->loss_scale : 0, s->grad_norm, (double)s->n_zeros);
    if (o->has_weight_norm) {
        buf_printf(&b, " params norm: %.3f |", s->weight_norm);
    }
    buf_printf(&b, " number of skipped iterations: %3lld | number of nan iterations: %3d |",
               (long long)w->n_skipped, 0);
    buf_printf(&b, " samples per second: %.3f | TFLOPs: %.2f |", (double)at.batch / seconds,
               megatron_log_tflops(o, at.batch, seconds));
    dllog_put(&b);
    buf_printf(&b, "time (ms) | batch-generator: %.2f", 1e-6 * (double)w->batch_ns / (double)w->n_steps);
    dllog_put(&b);
}

/* The axis that a scalar is plotted against. */
enum axis { AXIS_STEPS, AXIS_SAMPLES, AXIS_TOKENS, N_AXES };

enum { MOST_SCALARS = 10 };

struct plots {
    struct {
        const char *tag;
        double value;
        bool without_tokens;
    } rows[MOST_SCALARS];
    int n;
};

static void add(struct plots *p, bool wanted, const char *tag, double value)
{
    if (wanted) {
        p->rows[p->n].tag = tag;
        p->rows[p->n++].value = value;
    }
}

static int64_t axis_at(struct position at, enum axis axis)
{
    return axis == AXIS_STEPS ? at.step : axis == AXIS_SAMPLES ? at.samples : at.tokens;
}

static void plot_on(struct megatron_log *l, const struct plots *p, struct position at, enum axis axis,
                    double wall_s)
{
    static const char *const suffixes[N_AXES] = {"", " vs samples", " vs tokens"};
    struct tfevents_scalar scalars[MOST_SCALARS];
    char tags[MOST_SCALARS][80];
    size_t n = 0;
    for (int i = 0; i < p->n; i++) {
        if (axis != AXIS_TOKENS || !p->rows[i].without_tokens) {
            snprintf(tags[n], sizeof tags[n], "%s%s", p->rows[i].tag, suffixes[axis]);
            scalars[n] = (struct tfevents_scalar){tags[n], p->rows[i].value};
            n++;
        }
    }
    if (n > 0) {
        dllog_warn(tfevents_write(&l->events, axis_at(at, axis), wall_s, scalars, n));
    }
}

static void plot(struct megatron_log *l, const struct plots *p, struct position at, double wall_s)
{
    for (int axis = 0; axis < N_AXES; axis++) {
        plot_on(l, p, at, (enum axis)axis, wall_s);
    }
}

/* The steps against samples and tokens, and the other way round. */
static void plot_progress(struct megatron_log *l, struct position at, double wall_s)
{
    const struct {
        const char *tag;
        int64_t x, y;
    } rows[] = {{"steps-vs-samples/y=steps,x=samples", at.samples, at.step},
                {"steps-vs-samples/y=samples,x=steps", at.step, at.samples},
                {"steps-vs-tokens/y=steps,x=tokens", at.tokens, at.step},
                {"steps-vs-tokens/y=tokens,x=steps", at.step, at.tokens}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tfevents_scalar scalar = {rows[i].tag, (double)rows[i].y};
        dllog_warn(tfevents_write(&l->events, rows[i].x, wall_s, &scalar, 1));
    }
}

static void plot_step(struct megatron_log *l, const struct logged_step *s, struct position at, double lr)
{
    const struct megatron_log_settings *o = &l->options.settings;
    struct plots p = {.n = 0};
    add(&p, o->learning_rate, "learning-rate/learning-rate", lr);
    p.rows[p.n].without_tokens = true;
    add(&p, o->batch_size, "batch-size/batch-size", (double)at.batch);
    p.rows[p.n].without_tokens = false;
    add(&p, !s->skipped, "lm-loss-training/lm loss", s->loss);
    add(&p, o->loss_scale, "loss-scale/loss-scale", l->options.has_loss_scale ? s->loss_scale : 0);
    add(&p, true, "grad-norm/grad-norm", s->grad_norm);
    add(&p, true, "num-zeros/num-zeros", (double)s->n_zeros);
    add(&p, l->options.has_weight_norm, "params-norm/params-norm", s->weight_norm);
    plot(l, &p, at, s->wall_s);
    plot_progress(l, at, s->wall_s);
}

/* Once a line: its times. */
static void plot_times(struct megatron_log *l, struct position at, double wall_s)
{
    struct plots p = {.n = 0};
    const struct megatron_window *w = &l->window;
    struct tfevents_scalar timer = {"batch-generator-time", 1e-9 * (double)w->batch_ns / (double)w->n_steps};
    add(&p, true, "iteration-time/iteration-time", l->seconds_per_step);
    plot(l, &p, at, wall_s);
    dllog_warn(tfevents_write(&l->events, at.step, wall_s, &timer, 1));
}

void megatron_log_step(struct megatron_log *l, const struct logged_step *s)
{
    const struct megatron_log_options *o = &l->options;
    struct megatron_window *w = &l->window;
    if (!o->settings.on) {
        return;
    }
    struct position at = position_after(o, s->step);
    double lr = schedule_rate(&o->schedule, s->step + 1);
    w->n_steps++;
    w->n_skipped += s->skipped;
    w->loss += s->skipped ? 0 : s->loss;
    if (s->step % o->settings.events_every == 0) {
        plot_step(l, s, at, lr);
    }
    if (s->step % o->log_every == 0) {
        l->seconds_per_step = clock_since_s(w->start_ns) / (double)w->n_steps;
        put_step(l, s, at, lr);
        if (o->settings.timers) {
            plot_times(l, at, s->wall_s);
        }
        *w = (struct megatron_window){.start_ns = clock_ns()};
    }
}

/* ---- held-out samples, checkpoints ---- */

void megatron_log_validation(struct megatron_log *l, int64_t step, double wall_s, const char *of, double loss,
                             bool plots, int64_t ns)
{
    double perplexity = exp(fmin(20, loss));
    struct buf line = {0}, dashes = {0};
    struct plots p = {.n = 0};
    if (!l->options.settings.on) {
        return;
    }
    buf_printf(&line, " validation loss at %s | lm loss value: %.6E | lm loss PPL: %.6E | ", of, loss,
               perplexity);
    for (size_t i = 0; i < line.n + 1; i++) {
        buf_puts(&dashes, "-");
    }
    dllog_print(buf_text(&dashes));
    dllog_put(&line);
    dllog_put(&dashes);
    add(&p, plots, "lm-loss-validation/lm loss validation", loss);
    add(&p, plots && l->options.settings.perplexity, "lm-loss-validation/lm loss validation ppl", perplexity);
    plot(l, &p, position_after(&l->options, step), wall_s);
    l->window.start_ns += ns;
}

void megatron_log_saving(struct megatron_log *l, int64_t step)
{
    struct buf b = {0};
    if (l->options.settings.on) {
        buf_printf(&b, "saving checkpoint at iteration %7lld to %s", (long long)step, l->options.checkpoints);
        dllog_put(&b);
    }
}

/* Appends a number rounded to 1 / parts, as Python prints it. */
static void put_rounded(struct buf *b, const char *before, double value, double parts)
{
    buf_puts(b, before);
    dllog_append_real(b, round(value * parts) / parts);
}

void megatron_log_saved(struct megatron_log *l, int64_t step, double seconds)
{
    double gb = 14e-9 * (double)l->options.n_params; /* bytes a parameter: its copies and moments */
    struct buf b = {0};
    if (!l->options.settings.on) {
        return;
    }
    buf_printf(&b, "  successfully saved checkpoint at iteration %7lld to %s", (long long)step,
               l->options.checkpoints);
    dllog_put(&b);
    put_rounded(&b, "Checkpoint Save GB: ", gb, 1e3);
    put_rounded(&b, ", GB/Sec: ", gb / seconds, 1e2);
    put_rounded(&b, ", Latency(second): ", seconds, 1e3);
    dllog_put(&b);
    buf_printf(&b, "time (ms) | save-checkpoint: %.2f", 1e3 * seconds);
    dllog_put(&b);
}
