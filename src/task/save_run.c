#include "task/save_run.h"

#include "core/clock.h"
#include "core/log.h"
#include "train/trainer_state.h"
#include "watch/profile.h"

struct status save_run_init(struct save_run *s)
{
    TRY(checkpoint_check_vocabulary(s->tokenizer->files, s->tokenizer->n_files));
    return background_save_init(&s->saver, s->trainer->plan.saving_bytes);
}

/* Logs a save: one line for people, one for programs. */
static void tell(struct save_run *s, const struct background_save_result *r)
{
    s->latest = r->status;
    if (failed(r->status)) {
        log_warning("%s; training goes on, older checkpoints are intact", r->status.message);
        metrics_event(s->log, "save_failed",
                      json_pack("{s:I, s:o}", "global_step", (json_int_t)r->step, "message",
                                json_text(r->status.message)));
        return;
    }
    double write_s = (double)(r->to_ns - r->from_ns) * 1e-9;
    log_info("saved %s/ckpt_%lld: %.1f MiB, training paused for %.3f s, written in %.2f s", s->directory,
             (long long)r->step, (double)r->bytes / 0x1p20, r->stall_s, write_s);
    if (failed(r->average)) {
        log_warning("%s; the checkpoint itself is whole", r->average.message);
    } else if (r->n_averaged > 0) {
        log_info("saved %s/average_%lld: the mean of %lld checkpoints", s->directory, (long long)r->step,
                 (long long)r->n_averaged);
    }
    metrics_event(s->log, "saved",
                  json_pack("{s:I, s:f, s:f, s:f, s:I}", "global_step", (json_int_t)r->step, "stall_seconds",
                            r->stall_s, "wait_seconds", r->wait_s, "write_seconds", write_s, "bytes",
                            (json_int_t)r->bytes));
}

static void take(struct save_run *s, bool wait)
{
    struct background_save_result result;
    if (background_save_take(&s->saver, wait, &result)) {
        profile_save_ended(s->profile, result.from_ns, result.to_ns);
        tell(s, &result);
    }
}

void save_run_fini(struct save_run *s)
{
    take(s, true);
    background_save_fini(&s->saver);
}

void save_run_begin(struct save_run *s, json_t *state, int64_t step, bool phase_end)
{
    struct trainer *t = s->trainer;
    const struct model *model = t->config.model;
    const struct tokenizer *tokenizer = s->tokenizer;
    int64_t since = clock_ns();
    take(s, true);
    double wait_s = clock_since_s(since);
    struct checkpoint_contents contents = {
        .params = &t->net.params,
        .master = t->net.master,
        .exp_avg = t->exp_avg,
        .exp_avg_sq = t->exp_avg_sq,
        .moments_begin = t->update.shard.begin,
        .config = model->type->to_json(model),
        .tokenizer = tokenizer->kind->config(tokenizer, model->max_length),
        .state = state,
        .vocabulary = tokenizer->files,
        .n_vocabulary = tokenizer->n_files,
        .vocab_hash = tokenizer->hash,
        .step = step,
        .phase_end = phase_end,
        .best_step = s->best_step,
        .average = s->average,
    };
    struct background_save_result refused = {.step = step};
    refused.status = trainer_state_extras(t, &contents);
    if (failed(refused.status)) { /* a checkpoint that would lack a part is refused */
        json_decref(state);
        contents.state = NULL;
    }
    struct status begun =
        background_save_begin(&s->saver, s->directory, &t->net.x, &contents, s->keep_last, since, wait_s);
    refused.status = failed(refused.status) ? refused.status : begun;
    if (failed(refused.status)) {
        tell(s, &refused);
    } else {
        profile_save_begun(s->profile, step);
    }
}

void save_run_tell(struct save_run *s)
{
    take(s, false);
}

struct status save_run_finish(struct save_run *s)
{
    take(s, true);
    return s->latest;
}
