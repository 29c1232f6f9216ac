#include "report/metrics.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/host.h"
#include "core/log.h"
#include "io/file.h"
#include "dev/precision.h"
#include "nn/model_measures.h"
#include "report/report_page.h"

#include <math.h>
#include <omp.h>
#include <string.h>

struct status metrics_open(struct metrics *m, const struct metrics_options *o)
{
    *m = (struct metrics){
        .options = *o,
        .progress = progress_begin(o->progress),
        .phase = 1,
        .lines = {.every = o->lines_every},
        .start_ns = clock_ns(),
    };
    FAIL_IF(snprintf(m->directory, sizeof m->directory, "%s", o->directory) >= (int)sizeof m->directory,
            STATUS_USAGE, "the path %.60s... is longer than %zu bytes", o->directory,
            sizeof m->directory - 1);
    char path[sizeof m->directory + sizeof "/log.jsonl"];
    snprintf(path, sizeof path, "%s/log.jsonl", m->directory);
    if (o->silent) {
        m->progress = progress_begin(false);
        return status_ok();
    }
    return record_log_open(&m->log, path, true);
}

static json_int_t flag_int(const json_t *flags, const char *name)
{
    return json_integer_value(json_object_get(flags, name));
}

/* The settings that distinguish runs: flags, model, versions, machine. */
static json_t *start_fields(const struct metrics *m, const struct metrics_start *s)
{
    const struct trainer_config *c = &s->trainer->config;
    json_t *fields = json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:s, s:I, s:I}", "task", s->task,
                               "step", (json_int_t)s->step, "global_step", (json_int_t)s->global_step,
                               "last_step", (json_int_t)s->last_step, "kiln_version", KILN_VERSION, "host",
                               host_name().text, "cpu", host_cpu_name().text, "threads",
                               omp_get_max_threads(), "dtype", precision_name(c->net.precision), "parameters",
                               (json_int_t)s->trainer->plan.n_model_params, "seed", (json_int_t)c->seed);
    json_int_t n_micro = flag_int(s->flags, "gradient_accumulation_steps");
    json_int_t of_all = flag_int(s->flags, "global_batch_size"),
               of_one = flag_int(s->flags, "train_batch_size");
    json_object_set_new(fields, "micro_batch_size",
                        json_integer((of_all > 0 ? of_all : of_one) / (n_micro < 1 ? 1 : n_micro)));
    if (s->n_ranks > 1) {
        json_object_set_new(fields, "ranks", json_integer(s->n_ranks));
    }
    json_object_set(fields, "learning_rate", json_object_get(s->flags, "learning_rate"));
    json_object_set_new(fields, "tensorboard", json_boolean(m->options.tensorboard));
    json_object_set_new(fields, "model", c->net.model->type->to_json(c->net.model));
    json_object_set(fields, "flags", (json_t *)s->flags);
    if (s->command != NULL) {
        json_object_set_new(fields, "command", json_text(s->command));
    }
    if (s->data_tokens > 0) {
        json_object_set_new(fields, "data_tokens", json_real(s->data_tokens));
    }
    if (s->steps_per_epoch > 0) {
        json_object_set_new(fields, "steps_per_epoch", json_real(s->steps_per_epoch));
    }
    return fields;
}

static struct metrics_window begin_window(void)
{
    return (struct metrics_window){.start_ns = clock_ns()};
}

void metrics_start(struct metrics *m, const struct metrics_start *s)
{
    struct drop_in_options o = {
        .task = s->drop_in,
        .dllogger_file = m->options.dllogger_file,
        .tensorboard_in = m->options.tensorboard ? m->directory : NULL,
        .append = s->global_step > 0,
        .deepspeed = s->deepspeed,
        .megatron = s->megatron,
        .model = s->trainer->config.net.model,
        .step = s->step,
        .global_step = s->global_step,
    };
    m->phase = s->phase;
    m->first_step = s->step + 1;
    m->last_step = s->last_step;
    m->step = s->step;
    m->phase_offset = s->global_step - s->step;
    m->steps_per_epoch = s->steps_per_epoch;
    m->total_s = s->total_s;
    m->left_s = s->total_s - s->elapsed_s;
    m->bytes_per_token = s->bytes_per_token;
    m->started = true;
    m->model = s->trainer->config.net.model;
    if (!m->options.silent) {
        drop_in_logs_open(&m->drop_in, &o);
    }
    metrics_event(m, "start", start_fields(m, s));
    m->start_ns = clock_ns();
    m->logged = m->told = begin_window();
}

/* Drawing report.html takes at most a hundredth of a run's time. */
static void draw_report(struct metrics *m, bool at_end)
{
    static const int64_t SHARE = 100, LEAST_NS = 2000000000;
    int64_t begun = clock_ns();
    char path[1056];
    const char *run = m->directory;
    if (!m->started || m->log.file == NULL || (!at_end && begun < m->next_report_ns)) {
        return;
    }
    snprintf(path, sizeof path, "%s/report.html", m->directory);
    struct status s = report_write(path, at_end ? report_append : report_append_running, &run, 1);
    if (failed(s)) {
        log_warning("%s; `kiln report %s` makes the page later", s.message, m->directory);
    }
    int64_t took = SHARE * (clock_ns() - begun);
    m->next_report_ns = clock_ns() + (took > LEAST_NS ? took : LEAST_NS);
}

void metrics_close(struct metrics *m)
{
    progress_end(&m->progress);
    draw_report(m, true);
    drop_in_logs_close(&m->drop_in);
    record_log_close(&m->log);
}

/* The epoch of the latest step, from 0. */
static int64_t epoch_of(const struct metrics *m)
{
    return m->steps_per_epoch > 0 && m->step > 0 ? (int64_t)((double)(m->step - 1) / m->steps_per_epoch) : 0;
}

/* Adds the memory in use to an event, at lines of steps and at the end of training. */
static void add_memory(struct metrics *m, const char *event, json_t *line)
{
    struct memory_use *memory = &m->options.memory;
    char text[MEMORY_USE_TEXT];
    bool at_end = strcmp(event, "end") == 0 || strcmp(event, "trained") == 0;
    if (memory->device == NULL || (!at_end && strcmp(event, "step") != 0)) {
        return;
    }
    memory_use_ask(memory);
    memory_use_put(line, memory);
    memory_use_text(text, memory);
    if (at_end) {
        json_object_set_new(line, "memory_usage", json_string(text));
    }
    log_info("memory: %s", text);
}

void metrics_event(struct metrics *m, const char *event, json_t *fields)
{
    json_t *line = json_pack("{s:s, s:f, s:i}", "event", event, "time", clock_wall_s(), "phase", m->phase);
    json_object_update(line, fields);
    json_decref(fields);
    add_memory(m, event, line);
    drop_in_logs_event(&m->drop_in, event, line, epoch_of(m), m->step, m->phase_offset + m->step);
    char *text = m->log.file == NULL ? NULL : json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(line);
    if (text != NULL) {
        struct buf record = {0};
        log_event(text);
        buf_printf(&record, "%s\n", text);
        int64_t n_lost = record.failed ? 0 : record_log_append(&m->log, record.data, record.n);
        buf_fini(&record);
        free(text);
        if (n_lost > 0) {
            metrics_event(m, "lost_lines", json_pack("{s:I}", "lines", (json_int_t)n_lost));
        }
    }
    draw_report(m, false);
}

static void add_result(struct metrics_window *w, const struct batch_step *batch,
                       const struct trainer_result *r)
{
    w->steps++;
    w->sequences += (double)batch->n_sequences;
    w->tokens += (double)batch->n_tokens;
    for (int i = 0; i < r->n_sums; i++) {
        w->means[i] += trainer_sum_mean(&r->sums[i]);
    }
    w->grad_norm += r->grad_norm;
}

/* Leaves the time of an evaluation out of the window, so that rates do not count it. */
static void leave_out_evaluation(struct metrics_window *w, int64_t evaluation_ns)
{
    w->start_ns = w->steps == 0 ? clock_ns() : w->start_ns + evaluation_ns;
}

/* "12.3k", for rates. */
struct rate_text {
    char text[16];
};

static struct rate_text rate_text(double rate)
{
    struct rate_text t;
    if (rate >= 1e6) {
        snprintf(t.text, sizeof t.text, "%.2fM", rate / 1e6);
    } else if (rate >= 1e4) {
        snprintf(t.text, sizeof t.text, "%.1fk", rate / 1e3);
    } else {
        snprintf(t.text, sizeof t.text, "%.1f", rate);
    }
    return t;
}

/* The mean over the steps of the window. */
static double window_loss(const struct model *model, const struct metrics_window *w)
{
    double loss = 0;
    for (int i = 0; i < model->n_sums; i++) {
        loss += model->sums[i].is_loss ? w->means[i] : 0;
    }
    return loss / (double)w->steps;
}

/* " a 3.210 b 0.690 acc 0.400": every loss by the first part of its name, or the first alone, and the first
 * accuracy; means over `n` values. */
static void put_sums(char *text, size_t size, const struct model *model, const double *means, double n,
                     bool first_alone)
{
    size_t used = 0;
    int n_losses = 0, accuracy = -1;
    for (int i = 0; i < model->n_sums && used < size; i++) {
        const struct model_sum *s = &model->sums[i];
        if (!s->is_loss) {
            accuracy = accuracy < 0 ? i : accuracy;
        } else if (n_losses++ == 0 || !first_alone) {
            used += (size_t)snprintf(text + used, size - used, " %.*s %.3f", (int)strcspn(s->name, "_"),
                                     s->name, means[i] / n);
        }
    }
    if (accuracy >= 0 && used < size) {
        snprintf(text + used, size - used, " acc %.3f", means[accuracy] / n);
    }
}

/* The seconds until the run's end, as far as they can be known. */
static double left_s(const struct metrics *m, int64_t step)
{
    double seconds = clock_since_s(m->start_ns);
    if (m->total_s > 0) {
        return seconds < m->left_s ? m->left_s - seconds : 0;
    }
    return seconds / (double)(step - m->first_step + 1) * (double)(m->last_step - step);
}

/* "120/1000" or, by the clock, "120, 40 %". */
static void put_position(char *text, size_t size, const struct metrics *m, int64_t step)
{
    if (m->total_s > 0) {
        snprintf(text, size, "%lld, %.0f %%", (long long)step, 100 * (1 - left_s(m, step) / m->total_s));
    } else {
        snprintf(text, size, "%lld/%lld", (long long)step, (long long)m->last_step);
    }
}

/* The most important values come first: a terminal cuts the line. */
static void format_line(const struct metrics *m, int64_t step, double lr, char *line, size_t n)
{
    const struct metrics_window *w = &m->told;
    double steps = (double)w->steps, seconds = clock_since_s(w->start_ns);
    char heldout[64] = "", sums[160] = "", position[64];
    put_position(position, sizeof position, m, step);
    if (m->evaluated) {
        put_sums(heldout, sizeof heldout, m->model, m->heldout_means, 1, true);
    }
    put_sums(sums, sizeof sums, m->model, w->means, steps, false);
    snprintf(line, n, "phase %d %s loss %.3f %s seq/s %s tok/s lr %.2e %s left |%s%s%s norm %.2f", m->phase,
             position, window_loss(m->model, w), rate_text(w->sequences / seconds).text,
             rate_text(w->tokens / seconds).text, lr, progress_time(left_s(m, step)).text,
             m->evaluated ? " held-out" : "", heldout, sums, w->grad_norm / steps);
}

/* The losses, then what else the model adds up. */
static void put_means(json_t *fields, const struct model *model, const double *means, double n)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < model->n_sums; i++) {
            if (model->sums[i].is_loss == (pass == 0)) {
                json_object_set_new(fields, model->sums[i].name, json_real(means[i] / n));
            }
        }
    }
}

static void log_window(struct metrics *m, int64_t step, double lr, const struct trainer_result *r)
{
    const struct metrics_window *w = &m->logged;
    double steps = (double)w->steps, seconds = clock_since_s(w->start_ns);
    m->final_loss = window_loss(m->model, w);
    json_t *fields = json_pack("{s:I, s:I, s:f, s:f}", "step", (json_int_t)step, "global_step",
                               (json_int_t)(m->phase_offset + step), "loss", m->final_loss, "step_loss",
                               trainer_result_loss(r));
    put_means(fields, m->model, w->means, steps);
    json_t *rates = json_pack("{s:f, s:f, s:f, s:f, s:f}", "grad_norm", w->grad_norm / steps, "learning_rate",
                              lr, "seconds_per_step", seconds / steps, "sequences_per_second",
                              w->sequences / seconds, "tokens_per_second", w->tokens / seconds);
    json_object_update(fields, rates);
    json_decref(rates);
    if (r->loss_scale != 1) {
        json_object_set_new(fields, "loss_scale", json_real(r->loss_scale));
    }
    if (r->weight_norm > 0) {
        json_object_set_new(fields, "weight_norm", json_real(r->weight_norm));
    }
    if (r->n_zeros > 0) {
        json_object_set_new(fields, "zero_gradients", json_integer(r->n_zeros));
    }
    metrics_event(m, "step", fields);
}

void metrics_skipped(struct metrics *m, int64_t step, const struct trainer_result *r)
{
    m->step = step;
    log_info("step %lld: not all gradients are finite at a loss scale of %g: step skipped, scale halved",
             (long long)step, r->loss_scale);
    metrics_event(m, "step",
                  json_pack("{s:I, s:I, s:b, s:f}", "step", (json_int_t)step, "global_step",
                            (json_int_t)(m->phase_offset + step), "skipped", 1, "loss_scale", r->loss_scale));
}

/* Whether a terminal shows a line that is rewritten in place. */
static bool has_live_line(const struct metrics *m)
{
    return m->progress.terminal && m->progress.enabled;
}

bool metrics_line_is_due(struct metrics *m, int64_t step)
{
    bool is_last = step == m->last_step, is_end = is_last || step == m->first_step;
    return has_live_line(m) ? is_last || progress_due(&m->progress)
                            : line_pace_after_step(&m->lines, step, is_end, clock_ns());
}

void metrics_line(struct metrics *m, const char *text)
{
    if (has_live_line(m)) {
        progress_show(&m->progress, "%s", text);
    } else {
        log_info("%s", text);
    }
}

/* On a terminal a step that ends soon shows nothing but its result. */
void metrics_in_step(struct metrics *m, int64_t step, int64_t n_done, int64_t n, double n_tokens,
                     int64_t begin_ns)
{
    static const double LIVE_AFTER_S = 2;
    double seconds = clock_since_s(begin_ns), part = n > 0 ? (double)n_done / (double)n : 0;
    bool due = has_live_line(m) ? seconds >= LIVE_AFTER_S && progress_due(&m->progress)
                                : line_pace_in_step(&m->lines, begin_ns, clock_ns());
    char line[160];
    if (m->options.silent || !due || n_done == 0) {
        return;
    }
    snprintf(line, sizeof line, "step %lld: micro-batch %lld of %lld, %s tok/s, the step ends in %s",
             (long long)step, (long long)n_done, (long long)n, rate_text(part * n_tokens / seconds).text,
             progress_time(seconds * (1 / part - 1)).text);
    metrics_line(m, line);
}

void metrics_step(struct metrics *m, int64_t step, const struct batch_step *batch, double lr,
                  const struct trainer_result *r)
{
    m->step = step;
    m->n_sequences += (double)batch->n_sequences;
    m->n_tokens += (double)batch->n_tokens;
    drop_in_logs_step(&m->drop_in, &(struct logged_step){.epoch = epoch_of(m),
                                                         .step = step,
                                                         .wall_s = clock_wall_s(),
                                                         .loss = trainer_result_loss(r),
                                                         .lr = lr,
                                                         .grad_norm = r->grad_norm,
                                                         .loss_scale = r->loss_scale,
                                                         .weight_norm = r->weight_norm,
                                                         .n_zeros = r->n_zeros,
                                                         .skipped = r->skipped});
    if (r->skipped) {
        metrics_skipped(m, step, r);
        return;
    }
    add_result(&m->logged, batch, r);
    add_result(&m->told, batch, r);
    if (metrics_line_is_due(m, step)) {
        char line[320];
        format_line(m, step, lr, line, sizeof line);
        metrics_line(m, line);
        m->told = begin_window();
    }
    if (step % m->options.log_every == 0 || step == m->last_step) {
        log_window(m, step, lr, r);
        m->logged = begin_window();
    }
}

/* The held-out result of a decoder in the units of its field. */
struct text_measures {
    double perplexity, bits_per_byte; /* 0: unknown */
};

static struct text_measures text_measures_of(const struct metrics *m, const struct trainer_result *r)
{
    double nats = r->n_sums > 0 ? trainer_sum_mean(&r->sums[0]) : NAN;
    if (r->n_sums == 0 || r->sums[0].of->name != model_measures[MEASURE_NEXT_TOKEN].loss) {
        return (struct text_measures){0};
    }
    double bits = m->bytes_per_token > 0 ? nats / log(2) / m->bytes_per_token : 0;
    return (struct text_measures){exp(nats), bits};
}

/* "words loss 3.2100 (unigram 6.1000, 6-grams 3.6000), accuracy 0.4000 (unigram 0.0600), ..."; u may be
 * NULL. */
static void put_heldout(struct buf *b, const struct metrics *m, const struct trainer_result *r,
                        const struct unigram *u)
{
    const struct ngram_score *ngram = &m->ngram;
    struct text_measures t = text_measures_of(m, r);
    for (int i = 0; i < r->n_sums; i++) {
        const struct trainer_sum *s = &r->sums[i];
        bool of_words = i < 2; /* the first loss and its accuracy, which word frequencies have as well */
        struct trainer_sum_words words = trainer_sum_words(s);
        buf_puts(b, i > 0 ? ", " : "");
        buf_printf(b, "%s %.*f", s->of->is_loss ? words.text : "accuracy", of_words || s->of->is_loss ? 4 : 3,
                   trainer_sum_mean(s));
        bool has_counts = i == 0 && ngram->n_samples > 0, has_unigram = u != NULL && of_words;
        buf_puts(b, has_counts || has_unigram ? " (" : "");
        if (has_unigram) {
            buf_printf(b, "unigram %.4f%s", s->of->is_loss ? u->loss : u->accuracy, has_counts ? ", " : "");
        }
        if (has_counts) {
            buf_printf(b, "%d-grams %.4f", ngram->order, ngram->loss);
        }
        buf_puts(b, has_counts || has_unigram ? ")" : "");
    }
    if (t.perplexity > 0) {
        buf_printf(b, ", perplexity %.2f", t.perplexity);
    }
    if (t.bits_per_byte > 0) {
        buf_printf(b, ", %.4f bits per byte", t.bits_per_byte);
    }
}

/* Adds loss and accuracy of word frequencies under the names of the sums that are compared with them. */
static void add_unigram(json_t *event, const struct trainer_result *r, const struct unigram *u)
{
    for (int i = 0; i < 2 && i < r->n_sums; i++) {
        char name[64];
        snprintf(name, sizeof name, "unigram_%s", r->sums[i].of->name);
        json_object_set_new(event, name, json_real(r->sums[i].of->is_loss ? u->loss : u->accuracy));
    }
}

/* Takes the means of an evaluation, for its event, which is returned, and for the lines that follow. */
static json_t *take_evaluation(struct metrics *m, int64_t step, const struct trainer_result *r)
{
    json_t *event = json_pack("{s:I, s:I}", "step", (json_int_t)step, "global_step",
                              (json_int_t)(m->phase_offset + step));
    for (int i = 0; i < r->n_sums; i++) {
        m->heldout_means[i] = trainer_sum_mean(&r->sums[i]);
        json_object_set_new(event, r->sums[i].of->name, json_real(m->heldout_means[i]));
    }
    if (m->ngram.n_samples > 0) {
        char name[64];
        snprintf(name, sizeof name, "ngram_%s", r->sums[0].of->name);
        json_object_set_new(event, name, json_real(m->ngram.loss));
    }
    struct text_measures t = text_measures_of(m, r);
    if (t.perplexity > 0) {
        json_object_set_new(event, "perplexity", json_real(t.perplexity));
    }
    if (t.bits_per_byte > 0) {
        json_object_set_new(event, "bits_per_byte", json_real(t.bits_per_byte));
    }
    m->evaluated = true;
    return event;
}

static void end_evaluation(struct metrics *m, int64_t evaluation_ns)
{
    m->evaluation_ns += evaluation_ns;
    leave_out_evaluation(&m->logged, evaluation_ns);
    leave_out_evaluation(&m->told, evaluation_ns);
    deepspeed_log_leave_out(&m->drop_in.deepspeed, evaluation_ns);
}

void metrics_ngram(struct metrics *m, const struct ngram_score *score)
{
    m->ngram = *score;
    metrics_event(m, "ngram",
                  json_pack("{s:f, s:i, s:I, s:I, s:f}", "loss", score->loss, "order", score->order,
                            "counted_tokens", (json_int_t)score->n_counted, "samples",
                            (json_int_t)score->n_samples, "seconds", score->seconds));
    log_info("counts of n-grams up to %d tokens (Kneser-Ney), of %lld tokens of the training text, lose %.4f "
             "nats a "
             "token on %lld held-out samples: perplexity %.2f (%.1f s)",
             score->order, (long long)score->n_counted, score->loss, (long long)score->n_samples,
             exp(score->loss), score->seconds);
}

void metrics_sample(struct metrics *m, int64_t step, const char *prompt, const char *text, size_t n)
{
    metrics_event(m, "sample",
                  json_pack("{s:I, s:I, s:o, s:o}", "step", (json_int_t)step, "global_step",
                            (json_int_t)(m->phase_offset + step), "prompt", json_text(prompt), "text",
                            json_stringn(text, n)));
    log_info("step %lld, \"%s\": %.*s", (long long)step, prompt, (int)n, text);
}

void metrics_evaluation(struct metrics *m, int64_t step, const struct trainer_result *r,
                        const struct unigram *u, int64_t evaluation_ns)
{
    json_t *event = take_evaluation(m, step, r);
    struct buf text = {0};
    add_unigram(event, r, u);
    metrics_event(m, "evaluation", event);
    put_heldout(&text, m, r, u);
    log_info("phase %d step %lld held-out: %s", m->phase, (long long)step, buf_text(&text));
    buf_fini(&text);
    end_evaluation(m, evaluation_ns);
}

void metrics_validation(struct metrics *m, int64_t step, const struct trainer_result *r, const char *of,
                        int64_t n_samples, bool plots, int64_t evaluation_ns)
{
    json_t *event = take_evaluation(m, step, r);
    struct buf text = {0};
    json_object_set_new(event, "samples", json_integer(n_samples));
    metrics_event(m, plots ? "evaluation" : "test", event);
    put_heldout(&text, m, r, NULL);
    log_info("%s: %lld held-out samples: %s", of, (long long)n_samples, buf_text(&text));
    buf_fini(&text);
    end_evaluation(m, evaluation_ns);
    megatron_log_validation(&m->drop_in.megatron, step, clock_wall_s(), of, trainer_result_loss(r), plots,
                            evaluation_ns);
}

void metrics_summary(struct metrics *m, int64_t step)
{
    if (step < m->first_step) { /* stopped before the first step was complete: there are no rates */
        progress_end(&m->progress);
        return;
    }
    double seconds = clock_since_s(m->start_ns), evaluation = (double)m->evaluation_ns * 1e-9,
           training = seconds - evaluation - (double)m->given_up_ns * 1e-9;
    progress_end(&m->progress);
    metrics_event(m, "end",
                  json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step,
                            "global_step", (json_int_t)(m->phase_offset + step), "seconds", seconds,
                            "training_seconds", training, "evaluation_seconds", evaluation, "process_seconds",
                            clock_since_s(m->options.process_start_ns), "sequences_per_second",
                            m->n_sequences / training, "tokens_per_second", m->n_tokens / training,
                            "seconds_per_step", training / (double)(step - m->first_step + 1), "final_loss",
                            m->final_loss));
    char evaluated[64] = "";
    if (m->evaluation_ns > 0) {
        snprintf(evaluated, sizeof evaluated, " and %s of evaluation", progress_time(evaluation).text);
    }
    log_info("phase %d: %lld steps of this run in %s%s, %s sequences/s, %s tokens/s", m->phase,
             (long long)(step - m->first_step + 1), progress_time(training).text, evaluated,
             rate_text(m->n_sequences / training).text, rate_text(m->n_tokens / training).text);
}
