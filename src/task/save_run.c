#include "task/save_run.h"

#include "core/clock.h"
#include "core/log.h"
#include "task/together.h"
#include "train/trainer_state.h"
#include "watch/profile.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"

struct status save_run_init(struct save_run *s)
{
    TRY(checkpoint_check_vocabulary(s->tokenizer->files, s->tokenizer->n_files));
    return background_save_init(&s->saver, s->trainer->plan.saving_bytes);
}

/* Bytes of all that lies in a checkpoint, which ranks may have written together; 0 if it is gone again. */
static uint64_t bytes_of(const struct save_run *s, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    uint64_t bytes = 0;
    return failed(checkpoint_path(path, "%s/ckpt_%lld", s->directory, (long long)step)) ||
                   failed(checkpoint_dir_bytes(&bytes, path))
               ? 0
               : bytes;
}

/* Logs a save: one line for people, one for programs. */
static void tell(struct save_run *s, const struct background_save_result *r)
{
    s->latest = r->status;
    if (failed(r->status) && !together_is_first(s->world)) {
        return; /* the first rank logs it */
    }
    if (failed(r->status)) {
        log_warning("%s; training continues, older checkpoints are intact", r->status.message);
        metrics_event(s->log, "save_failed",
                      json_pack("{s:I, s:o}", "global_step", (json_int_t)r->step, "message",
                                json_text(r->status.message)));
        return;
    }
    uint64_t bytes = bytes_of(s, r->step);
    double write_s = (double)(r->to_ns - r->from_ns) * 1e-9;
    log_info("saved %s/ckpt_%lld: %.1f MiB, training paused for %.3f s, written in %.2f s", s->directory,
             (long long)r->step, (double)bytes / 0x1p20, r->stall_s, write_s);
    metrics_event(s->log, "saved",
                  json_pack("{s:I, s:f, s:f, s:f, s:I}", "global_step", (json_int_t)r->step, "stall_seconds",
                            r->stall_s, "wait_seconds", r->wait_s, "write_seconds", write_s, "bytes",
                            (json_int_t)bytes));
}

/* Ends a save of several ranks: once all have written their parts, for which `wait` waits, they become a
 * checkpoint, or none. */
static void end_shared(struct save_run *s, bool wait)
{
    struct background_save *b = &s->saver;
    bool pending = false;
    if (!wait && failed(together_any(s->world, !background_save_is_done(b), &pending))) {
        return; /* the next step reports it, too */
    }
    if (pending) {
        return;
    }
    background_save_wait(b);
    struct status mine = failed(s->mine) ? s->mine : b->result.status;
    struct status status = save_ranks_end(&s->ranks, s->world, mine, &b->part, &b->contents);
    if (!failed(status) && together_is_first(s->world)) {
        status = checkpoint_dir_prune(s->directory, b->contents.step, s->keep_last, b->contents.best_step);
    }
    s->shared = false;
    b->result.status = status;
    if (!b->in_flight) { /* this rank had no part in it */
        tell(s, &(struct background_save_result){.status = status});
    }
}

static void take(struct save_run *s, bool wait)
{
    struct background_save_result result;
    if (s->shared) {
        end_shared(s, wait);
    }
    if (!s->shared && background_save_take(&s->saver, wait, &result)) {
        profile_save_ended(s->profile, result.from_ns, result.to_ns);
        tell(s, &result);
    }
}

void save_run_fini(struct save_run *s)
{
    if (s->shared) { /* the run has failed: nobody may wait for the others */
        save_ranks_abandon(&s->ranks);
        s->shared = false;
    } else {
        take(s, true);
    }
    background_save_fini(&s->saver);
}

/* Takes what the contents own.  `mine`: whether this rank can save at all. */
static struct status begin(struct save_run *s, struct checkpoint_contents *c, struct status mine,
                           int64_t since, double wait_s)
{
    struct exec *x = &s->trainer->net.x;
    if (s->world->size == 1) {
        return background_save_begin(&s->saver, s->directory, x, c, s->keep_last, since, wait_s);
    }
    struct status begun = save_ranks_begin(&s->ranks, s->world, s->directory, c, mine);
    if (failed(begun)) {
        background_save_release(c);
        return begun;
    }
    s->shared = true;
    s->mine = background_save_begin_part(&s->saver, s->directory, s->ranks.path, x, c, since, wait_s);
    return status_ok();
}

static json_t *config_of(const struct model *model, const struct tokenizer *tokenizer)
{
    json_t *config = model->type->to_json(model);
    special_tokens_put_ids(config, tokenizer);
    return config;
}

void save_run_begin(struct save_run *s, json_t *state, int64_t step, bool phase_end)
{
    struct trainer *t = s->trainer;
    const struct model *model = t->config.net.model;
    const struct tokenizer *tokenizer = s->tokenizer;
    int64_t since = clock_ns();
    take(s, true);
    megatron_log_saving(&s->log->drop_in.megatron, step);
    double wait_s = clock_since_s(since);
    struct checkpoint_contents contents = {
        .part = s->world->rank,
        .n_parts = s->world->size,
        .config = config_of(model, tokenizer),
        .tokenizer = tokenizer_files_config(tokenizer, model->max_length),
        .state = state,
        .vocabulary = tokenizer->files,
        .n_vocabulary = tokenizer->n_files,
        .vocab_hash = tokenizer->hash,
        .step = step,
        .phase_end = phase_end,
        .best_step = s->best_step,
    };
    trainer_state_slices(t, &contents);
    struct background_save_result refused = {.step = step};
    refused.status = trainer_state_extras(t, &contents);
    if (failed(refused.status)) { /* a checkpoint that would lack a part is refused */
        json_decref(state);
        contents.state = NULL;
    }
    struct status begun = begin(s, &contents, refused.status, since, wait_s);
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
