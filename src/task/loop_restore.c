/* Checkpoints that a run resumes from: one when it begins, one from before a spike, and the best at the
 * end. */
#include "task/loop.h"

#include "core/log.h"
#include "task/own_files.h"
#include "task/together.h"
#include "train/trainer_state.h"

#include <stdlib.h>
#include <string.h>

/* Checks the saved position against the run that was asked for. */
static struct status take_position(struct loop *l, const struct run_state *saved, const char *path)
{
    TRY(run_state_check_data(saved, &l->state, l->settings->allow_other_data, path,
                             l->settings->names->data));
    if (saved->phase != l->state.phase && l->task->begin_phase != NULL) {
        return l->task->begin_phase(l->self, saved, path);
    }
    run_state_warn_differences(saved, &l->state);
    l->state.step = saved->step;
    l->state.global_step = saved->global_step;
    l->state.n_skipped = saved->n_skipped;
    l->state.early = saved->early;
    l->state.n_tokens = saved->n_tokens;
    l->state.health = saved->health;
    if (l->clock != NULL) {
        run_clock_resume(l->clock, saved->elapsed_seconds, saved->step_seconds);
    }
    return status_ok();
}

static struct status resume_from(struct loop *l, const struct training_state *from)
{
    struct run_state saved;
    char phase[40] = "";
    TRY(run_state_parse(&saved, &l->state, from->position, from->path));
    if (l->task->check_checkpoint != NULL) {
        TRY(l->task->check_checkpoint(l->self, from));
    }
    TRY(take_position(l, &saved, from->path));
    run_state_resume_scale(&saved, &l->trainer->loss_scale);
    TRY(trainer_state_resume(l->trainer, from));
    if (l->task->begin_phase != NULL) {
        snprintf(phase, sizeof phase, "phase %lld, ", (long long)l->state.phase);
    }
    log_info("resumed from %s: %s%lld steps done", from->path, phase, (long long)l->state.step);
    return status_ok();
}

static struct status refuse_checkpoints(const struct loop *l, const struct training_state *from)
{
    const char *class = json_string_value(json_array_get(json_object_get(from->config, "architectures"), 0));
    return status_error(STATUS_USAGE, "%s already has checkpoints%s%s; add %s to resume, or give another %s",
                        l->checkpoints, class == NULL ? "" : " of a ", class == NULL ? "" : class,
                        l->settings->names->resume, l->settings->names->output);
}

/* Finds the directory of the run's checkpoints, and removes what interrupted saves left there. */
static struct status open_checkpoints(struct loop *l)
{
    struct status s = own_files_checkpoints(l->checkpoints, l->settings->common.output_dir, l->state.command);
    if (!failed(s) && together_is_first(&l->ranks.world)) {
        s = !l->settings->skip_checkpoint ? file_make_directories(l->checkpoints) : s;
        s = failed(s) ? s : checkpoint_dir_clean(l->checkpoints);
    }
    return comm_agree(&l->ranks.world, s);
}

struct status loop_restore(struct loop *l, bool *found)
{
    struct training_state from;
    struct training_state_place place = l->place;
    char own[CHECKPOINT_PATH_BYTES];
    TRY(open_checkpoints(l));
    place.directory = l->settings->load_dir != NULL ? l->settings->load_dir : l->settings->common.output_dir;
    TRY(own_files_checkpoints(own, place.directory, l->state.command));
    place.own = own;
    place.phase_began = l->state.global_step;
    TRY(training_state_open(&from, &place));
    struct status s = status_ok();
    *found = from.kind != NULL;
    if (*found) {
        s = l->settings->resume_from_checkpoint ? resume_from(l, &from) : refuse_checkpoints(l, &from);
    }
    training_state_close(&from);
    l->first_step = l->state.step;
    return failed(s)
               ? s
               : together_same(&l->ranks.world, l->state.global_step, "the step of the newest checkpoint");
}

/* Opens the newest complete checkpoint of this phase from before in-phase step `first`; *step is -1, and
 * nothing is open, if there is none. */
static struct status open_before(struct loop *l, struct checkpoint *c, int64_t first, int64_t *step)
{
    struct checkpoint_steps list;
    int64_t began = l->state.global_step - l->state.step;
    *step = -1;
    struct status s = checkpoint_dir_list(&list, l->checkpoints, "ckpt_");
    for (int i = 0; i < list.n && !failed(s) && *step < 0; i++) {
        if (list.steps[i] <= began || list.steps[i] >= began + first) {
            continue;
        }
        struct status opened = checkpoint_dir_open_step(c, l->checkpoints, list.steps[i]);
        if (failed(opened)) {
            log_warning("the checkpoint of step %lld is skipped: %s", (long long)list.steps[i],
                        opened.message);
        } else {
            *step = list.steps[i];
        }
    }
    free(list.steps);
    return s;
}

/* Weights, moments and position are those of c again, except what is left out from now on. */
static struct status go_back(struct loop *l, const struct checkpoint *c, const struct health_state *known)
{
    struct training_state from = training_state_of(c);
    int64_t spike = l->state.global_step;
    TRY(resume_from(l, &from));
    l->state.health.n_left_out = known->n_left_out;
    memcpy(l->state.health.left_out, known->left_out, sizeof known->left_out);
    l->compared_step = 0; /* the same steps come with other weights */
    l->saved_step = -1;   /* the checkpoint does not know what is left out */
    return together_is_first(&l->ranks.world)
               ? checkpoint_dir_remove_between(l->checkpoints, l->state.global_step, spike)
               : status_ok();
}

static void tell_spike(const struct loop *l, struct health_score score, const struct health_range *left_out,
                       int64_t to)
{
    if (together_is_first(&l->ranks.world)) {
        log_warning(
            "step %lld: a spike: log(loss) is %.2f, the gradient's norm %.2f deviations above the last %lld "
            "steps; rolling back to ckpt_%lld and leaving out the batches of steps %lld to %lld",
            (long long)l->state.step, score.log_loss, score.grad_norm,
            (long long)l->settings->health.spike_window, (long long)to, (long long)left_out->first,
            (long long)left_out->last);
    }
    metrics_event(l->log, "spike",
                  json_pack("{s:f, s:f, s:I, s:I, s:I}", "log_loss_z", score.log_loss, "grad_norm_z",
                            score.grad_norm, "left_out_from", (json_int_t)left_out->first, "left_out_to",
                            (json_int_t)left_out->last, "back_to_global_step", (json_int_t)to));
}

static struct status roll_back(struct loop *l, struct health_score score)
{
    struct health_state known = l->state.health;
    struct checkpoint c;
    int64_t to;
    FAIL_IF(!health_leave_out(&known, &l->settings->health, l->state.step), STATUS_NUMERIC,
            "step %lld is a spike (log(loss) %.2f, the gradient's norm %.2f deviations above the mean), "
            "after %lld rollbacks (--spike_rollbacks): lower the learning rate, look at the data, or raise "
            "--spike_z %g",
            (long long)l->state.step, score.log_loss, score.grad_norm, (long long)known.n_left_out,
            l->settings->health.spike_z);
    const struct health_range *left_out = &known.left_out[known.n_left_out - 1];
    save_run_finish(&l->save_run); /* the checkpoint in flight may be the one; a failure was logged */
    TRY(comm_agree(&l->ranks.world, open_before(l, &c, left_out->first, &to)));
    struct status s = together_same(&l->ranks.world, to, "the step of the checkpoint before a spike");
    FAIL_IF(!failed(s) && to < 0, STATUS_NUMERIC,
            "step %lld is a spike (log(loss) %.2f, the gradient's norm %.2f deviations above the mean), and "
            "%s has no checkpoint of this phase from before step %lld to roll back to: save more often "
            "(--num_steps_per_checkpoint), or raise --spike_z %g",
            (long long)l->state.step, score.log_loss, score.grad_norm, l->checkpoints,
            (long long)left_out->first, l->settings->health.spike_z);
    if (!failed(s)) {
        tell_spike(l, score, left_out, to);
        s = go_back(l, &c, &known);
    }
    if (to >= 0) {
        checkpoint_close(&c);
    }
    return comm_agree(&l->ranks.world, s);
}

struct status loop_look_for_spike(struct loop *l, const struct trainer_result *result, bool *back)
{
    double loss = trainer_result_loss(result);
    *back = false;
    if (!(l->settings->health.spike_z > 0) || result->skipped > 0) {
        return status_ok();
    }
    struct health_score score = health_score(&l->state.health, &l->settings->health, loss, result->grad_norm);
    TRY(together_any(&l->ranks.world, health_is_spike(&l->settings->health, score), back));
    if (*back) {
        return roll_back(l, score);
    }
    health_add(&l->state.health, &l->settings->health, loss, result->grad_norm);
    return status_ok();
}

struct status loop_take_best(struct loop *l)
{
    struct checkpoint c;
    int64_t best = l->state.early.best_step;
    if (l->settings->early.patience == 0 || best == 0 || best == l->state.global_step) {
        return status_ok();
    }
    TRY(checkpoint_dir_open_step(&c, l->checkpoints, best));
    struct training_state best_state = training_state_of(&c);
    struct status s = trainer_state_resume(l->trainer, &best_state);
    checkpoint_close(&c);
    if (!failed(s)) {
        log_info("the best weights come from step %lld, with a held-out loss of %.6g", (long long)best,
                 l->state.early.best_loss);
    }
    return s;
}
