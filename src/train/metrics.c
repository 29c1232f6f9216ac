#include "train/metrics.h"

#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <string.h>

struct status metrics_open(struct metrics *m, const char *path, int phase, int64_t first_step,
                           int64_t last_step, int64_t log_every, bool progress)
{
    *m = (struct metrics){
        .progress = progress_begin(progress),
        .phase = phase,
        .first_step = first_step,
        .last_step = last_step,
        .log_every = log_every,
        .start_ns = clock_ns(),
        .window_start_ns = clock_ns(),
    };
    if (path == NULL) {
        return status_ok();
    }
    snprintf(m->path, sizeof m->path, "%s", path);
    m->file = fopen(path, "a");
    if (m->file == NULL) {
        return status_error(STATUS_IO, "cannot append to %s: %s", path, strerror(errno));
    }
    return status_ok();
}

void metrics_close(struct metrics *m)
{
    progress_end(&m->progress);
    if (m->file != NULL) {
        fclose(m->file);
        m->file = NULL;
    }
}

void metrics_event(struct metrics *m, const char *event, json_t *fields)
{
    json_t *line = json_pack("{s:s, s:f, s:i}", "event", event, "time", clock_wall_s(), "phase", m->phase);
    json_object_update(line, fields);
    json_decref(fields);
    char *text = m->file == NULL ? NULL : json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(line);
    if (text != NULL && (fprintf(m->file, "%s\n", text) < 0 || fflush(m->file) != 0)) {
        log_warning("cannot write %s: %s; training goes on without this log", m->path, strerror(errno));
        fclose(m->file);
        m->file = NULL;
    }
    free(text);
}

static void add_result(struct trainer_result *sum, const struct trainer_result *r)
{
    sum->mlm_loss += r->mlm_loss;
    sum->mlm_accuracy += r->mlm_accuracy;
    sum->nsp_loss += r->nsp_loss;
    sum->nsp_accuracy += r->nsp_accuracy;
    sum->grad_norm += r->grad_norm;
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

/* What matters first: a terminal shows only as much as fits. */
static void format_line(const struct metrics *m, int64_t step, double lr, char *line, size_t n)
{
    double steps = (double)m->window_steps;
    double seconds = clock_since_s(m->window_start_ns);
    double run_s = clock_since_s(m->start_ns) / (double)(step - m->first_step + 1);
    char heldout[48] = "";
    if (m->evaluated) {
        snprintf(heldout, sizeof heldout, " held-out mlm %.3f acc %.3f", m->latest_evaluation.mlm_loss,
                 m->latest_evaluation.mlm_accuracy);
    }
    snprintf(line, n,
             "phase %d %lld/%lld loss %.3f %s seq/s %s tok/s lr %.2e %s left |%s mlm %.3f nsp %.3f acc %.3f "
             "norm %.2f",
             m->phase, (long long)step, (long long)m->last_step,
             (m->window.mlm_loss + m->window.nsp_loss) / steps, rate_text(m->window_sequences / seconds).text,
             rate_text(m->window_tokens / seconds).text, lr,
             progress_time(run_s * (double)(m->last_step - step)).text, heldout, m->window.mlm_loss / steps,
             m->window.nsp_loss / steps, m->window.mlm_accuracy / steps, m->window.grad_norm / steps);
}

static void log_window(struct metrics *m, int64_t step, double lr)
{
    double steps = (double)m->window_steps, seconds = clock_since_s(m->window_start_ns);
    json_t *fields =
        json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step, "loss",
                  (m->window.mlm_loss + m->window.nsp_loss) / steps, "mlm_loss", m->window.mlm_loss / steps,
                  "nsp_loss", m->window.nsp_loss / steps, "mlm_accuracy", m->window.mlm_accuracy / steps,
                  "nsp_accuracy", m->window.nsp_accuracy / steps, "grad_norm", m->window.grad_norm / steps,
                  "learning_rate", lr, "sequences_per_second", m->window_sequences / seconds,
                  "tokens_per_second", m->window_tokens / seconds);
    metrics_event(m, "step", fields);
}

void metrics_step(struct metrics *m, int64_t step, const struct bert_step *batch, double lr,
                  const struct trainer_result *r)
{
    m->n_sequences += (double)batch->n_sequences;
    m->n_tokens += (double)batch->n_tokens;
    m->window_sequences += (double)batch->n_sequences;
    m->window_tokens += (double)batch->n_tokens;
    m->window_steps++;
    add_result(&m->window, r);
    bool at_line = step % m->log_every == 0 || step == m->last_step;
    bool live = m->progress.terminal && progress_due(&m->progress);
    if (!at_line && !live) {
        return;
    }
    char line[320];
    format_line(m, step, lr, line, sizeof line);
    if (at_line) {
        log_window(m, step, lr);
    }
    if (m->progress.terminal) {
        progress_show(&m->progress, "%s", line);
    } else if (at_line) {
        log_info("%s", line);
    }
    if (at_line) {
        m->window = (struct trainer_result){0};
        m->window_steps = 0;
        m->window_sequences = m->window_tokens = 0;
        m->window_start_ns = clock_ns();
    }
}

void metrics_evaluation(struct metrics *m, int64_t step, const struct trainer_result *r,
                        const struct unigram *u)
{
    m->latest_evaluation = *r;
    m->evaluated = true;
    metrics_event(m, "evaluation",
                  json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step, "mlm_loss",
                            r->mlm_loss, "mlm_accuracy", r->mlm_accuracy, "nsp_loss", r->nsp_loss,
                            "nsp_accuracy", r->nsp_accuracy, "unigram_mlm_loss", u->mlm_loss,
                            "unigram_mlm_accuracy", u->mlm_accuracy));
    log_info("phase %d step %lld held-out: mlm loss %.4f (unigram %.4f), accuracy %.4f (unigram %.4f), nsp "
             "loss %.4f, "
             "accuracy %.3f",
             m->phase, (long long)step, r->mlm_loss, u->mlm_loss, r->mlm_accuracy, u->mlm_accuracy,
             r->nsp_loss, r->nsp_accuracy);
}

void metrics_summary(struct metrics *m, int64_t step)
{
    double seconds = clock_since_s(m->start_ns);
    progress_end(&m->progress);
    metrics_event(m, "end",
                  json_pack("{s:I, s:f, s:f, s:f}", "step", (json_int_t)step, "seconds", seconds,
                            "sequences_per_second", m->n_sequences / seconds, "tokens_per_second",
                            m->n_tokens / seconds));
    log_info("phase %d: %lld steps of this run in %s, %s sequences/s, %s tokens/s", m->phase,
             (long long)(step - m->first_step + 1), progress_time(seconds).text,
             rate_text(m->n_sequences / seconds).text, rate_text(m->n_tokens / seconds).text);
}
