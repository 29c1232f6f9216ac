#include "task/loop.h"

#include "core/clock.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/stop.h"
#include "io/file.h"
#include "task/together.h"

/* ---- output ---- */

static struct status join_ranks(struct loop *l)
{
    struct comm_nccl_config config = {0};
    char record[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(record, "%s/collectives_of_rank_%d.json", l->settings->common.output_dir,
                        l->ranks.world.rank));
    TRY(launcher_timeout(&config.deadline_s));
    config.deadline_s /= 2; /* the limit ends before the others give this rank up */
    config.record = record;
    return trainer_join(l->trainer, &l->ranks.world, &config);
}

/* Compares the weights that all ranks have: where the master is in shards, the copies that passes read.
 * Before the first step and before each save, whatever the flag's interval: a checkpoint has weights that all
 * ranks have. */
static struct status compare_ranks(struct loop *l, bool begins)
{
    if (!begins && l->compared_step == l->state.global_step) {
        return status_ok();
    }
    l->compared_step = l->state.global_step;
    struct network *n = &l->trainer->net;
    const struct comm *replicas = &l->ranks.data;
    TRY(health_check_uncut(&l->ranks.tensor, n, l->state.global_step, begins));
    if (network_has_master(n)) {
        return health_check_replicas(replicas, &n->x, n->master, l->state.global_step, begins);
    }
    TRY(health_check_replicas(replicas, &n->x, n->working, l->state.global_step, begins));
    return health_check_replicas(replicas, &n->x, n->vectors, l->state.global_step, begins);
}

/* The first rank of each stage of a mesh, or the first of all, writes a trace. */
static struct profile_options profile_of(const struct loop *l)
{
    struct profile_options o = l->settings->profile;
    const struct mesh *m = &l->ranks;
    bool writes =
        mesh_cuts_model(m->shape) ? m->place.tp == 0 && m->place.dp == 0 : together_is_first(&m->world);
    o.enabled = o.enabled && writes;
    o.rank = m->world.rank;
    return o;
}

struct status loop_open(struct loop *l)
{
    struct profile_options profile = profile_of(l);
    struct tensor_log_options tensors = l->settings->tensor_log;
    tensors.rank = l->ranks.world.rank;
    TRY(compare_ranks(l, true));
    TRY(join_ranks(l));
    l->save_run = (struct save_run){
        .trainer = l->trainer,
        .world = &l->ranks.world,
        .directory = l->checkpoints,
        .tokenizer = l->tokenizer,
        .keep_last = l->settings->keep_checkpoints,
        .log = l->log,
        .profile = &l->profile,
    };
    if (!l->settings->skip_checkpoint) {
        TRY(save_run_init(&l->save_run));
    }
    TRY(profile_open(&l->profile, &profile, l->settings->common.output_dir, &l->trainer->net.x));
    l->trainer->net.profile = &l->profile;
    TRY(tensor_log_open(&l->tensor_log, &tensors, l->settings->common.output_dir, l->trainer));
    l->saved_step = l->state.global_step;
    l->within =
        (struct within_step){.ranks = &l->ranks, .log = l->log, .stops = stop_requested, .start = &l->start};
    l->micro_hook = (struct micro_hook){within_step_next, &l->within};
    l->trainer->micro_hook = &l->micro_hook;
    return status_ok();
}

void loop_close(struct loop *l)
{
    slow_work_end(&l->start);
    save_run_fini(&l->save_run);
    if (l->trainer != NULL) {
        trainer_leave(l->trainer);
    }
    profile_close(&l->profile);
    tensor_log_close(&l->tensor_log);
    if (l->trainer != NULL) {
        l->trainer->net.profile = NULL;
        l->trainer->micro_hook = NULL;
    }
}

/* Saves in the background; with `wait` it waits and returns the failure. */
static struct status save(struct loop *l, bool wait)
{
    if (l->settings->skip_checkpoint) {
        return status_ok();
    }
    TRY(compare_ranks(l, false));
    bool phase_end =
        l->task->saves_at_end && (l->state.step == l->state.settings.max_steps || loop_is_over(l));
    l->save_run.best_step = l->state.early.best_step;
    l->saved_step = l->state.global_step;
    profile_phase(&l->profile, "save");
    save_run_begin(&l->save_run, run_state_to_json(&l->state), l->state.global_step, phase_end);
    struct status s = wait ? save_run_finish(&l->save_run) : status_ok();
    profile_phase(&l->profile, NULL);
    return s;
}

/* ---- steps ---- */

/* Counts are those of one replica of each part; all ranks learn whether one lacks its batch. */
static struct status count_together(const struct loop *l, struct batch_step *part, bool mine, bool *lacks,
                                    double *elapsed_s)
{
    TRY(together_count(&l->ranks.data, part, mine, lacks, elapsed_s));
    return mesh_cuts_model(l->ranks.shape)
               ? together_any_beside(&l->ranks.world, status_ok(), *lacks, lacks, elapsed_s, 1)
               : status_ok();
}

/* Data that some rank cannot read ends the run, but the weights are saved, if the task allows it. */
static struct status next_batch(struct loop *l, struct batch_step *part)
{
    const struct batch_step *made = NULL;
    bool lacks;
    struct status s = l->task->next_batch(l->self, l->state.step + 1, &made);
    *part = failed(s) ? (struct batch_step){0} : *made;
    double elapsed_s = l->clock != NULL ? l->clock->elapsed_s : 0;
    TRY(count_together(l, part, failed(s), &lacks, &elapsed_s));
    if (l->clock != NULL) {
        run_clock_hear(l->clock, elapsed_s, l->clock->step_s); /* all ranks have the same rate */
    }
    if (lacks && l->task->before_save != NULL) {
        TRY(l->task->before_save(l->self, true, false));
    }
    if (lacks && l->state.step > l->first_step) {
        struct status saved = save(l, true);
        s = failed(saved) ? status_context(s, "%s; and then", saved.message) : s;
    }
    return lacks ? comm_agree(&l->ranks.world, s) : s;
}

/* The learning rate of the step that has begun. */
static double rate(struct loop *l, const struct batch_step *batch)
{
    int64_t scheduled = l->state.step < l->schedule.n_steps ? l->state.step : l->schedule.n_steps;
    double lr = l->clock != NULL ? schedule_rate_at(&l->schedule, run_clock_part_after_step(l->clock))
                                 : schedule_rate(&l->schedule, scheduled);
    if (l->settings->warmup_tokens == 0) {
        return lr;
    }
    l->state.n_tokens += batch->n_tokens;
    return l->state.n_tokens < l->settings->warmup_tokens
               ? lr * ((double)l->state.n_tokens / (double)l->settings->warmup_tokens)
               : lr;
}

/* Counts the time of the step that ends. */
static void end_of_step_time(struct loop *l)
{
    if (l->clock != NULL) {
        run_clock_end_step(l->clock, clock_ns());
    }
}

bool loop_is_switched_off(const struct run_settings *s)
{
    return s->exit.kill_switch != NULL && file_exists(s->exit.kill_switch);
}

/* Whether settings->exit ends the run at this step.  Ranks may see time and files a little apart, so one of
 * them is enough. */
static struct status agree_on_leaving(struct loop *l)
{
    const struct run_exit *e = &l->settings->exit;
    const struct comm *world = &l->ranks.world;
    bool by_time = false, by_file = false;
    if (loop_is_over(l)) {
        return status_ok();
    }
    if (e->minutes > 0) {
        TRY(together_any(world, clock_since_s(e->start_ns) >= 60 * e->minutes, &by_time));
    }
    if (e->kill_switch != NULL) {
        TRY(together_any(world, loop_is_switched_off(l->settings), &by_file));
    }
    l->leaving = (e->interval > 0 && l->state.step % e->interval == 0) || by_time || by_file;
    if (l->leaving && together_is_first(world)) {
        log_info("the run ends at step %lld, as %s asks", (long long)l->state.step,
                 by_file   ? "the file of the kill switch"
                 : by_time ? "the limit of its time"
                           : "the interval of exits");
    }
    return status_ok();
}

/* *stopping: some rank was asked to stop.  All ranks also take the first one's time, which decides the end of
 * the run and is all of the clock that a checkpoint has. */
static struct status agree_on_end(struct loop *l, bool *stopping)
{
    if (l->clock == NULL) {
        return together_any(&l->ranks.world, stop_requested(), stopping);
    }
    double times[] = {l->clock->elapsed_s, l->clock->step_s};
    TRY(together_any_beside(&l->ranks.world, status_ok(), stop_requested(), stopping, times, 2));
    run_clock_hear(l->clock, times[0], times[1]);
    l->state.elapsed_seconds = times[0];
    l->state.step_seconds = times[1];
    return status_ok();
}

/* Leaves out a step: no batch and no update, and the optimizer does not count it. */
static void leave_out_step(struct loop *l)
{
    l->state.step++;
    l->state.global_step++;
    l->state.n_skipped++;
    save_run_tell(&l->save_run);
}

/* The run stands where it stood before the step. */
static void give_up_step(struct loop *l, const struct run_state *before)
{
    log_info("step %lld is given up after %lld of %lld micro-batches, since the run was asked to stop",
             (long long)l->state.step, (long long)l->trainer->turn.n_done - 1, (long long)l->trainer->turn.n);
    l->log->given_up_ns += clock_ns() - l->within.begin_ns; /* rates do not count it */
    l->state = *before;
    l->abandoned = true;
    profile_phase(&l->profile, NULL);
}

/* *back: see loop_look_for_spike. */
static struct status one_step(struct loop *l, bool *back)
{
    struct run_state before = l->state;
    struct batch_step part;
    struct trainer_result result;
    *back = false;
    if (health_leaves_out(&l->state.health, l->state.step + 1)) {
        leave_out_step(l);
        return status_ok();
    }
    if (l->clock != NULL) {
        run_clock_begin_step(l->clock, l->state.step + 1, clock_ns());
    }
    profile_micro_step(&l->profile);
    profile_phase(&l->profile, "batch");
    TRY(next_batch(l, &part));
    l->state.step++;
    l->state.global_step++;
    double lr = rate(l, &part);
    within_step_begin(&l->within, l->state.step, &part);
    TRY(trainer_step(l->trainer, &part, l->state.global_step, l->state.step - l->state.n_skipped, lr,
                     &result));
    if (result.abandoned) {
        give_up_step(l, &before);
        return status_ok();
    }
    run_state_keep_scale(&l->state, &l->trainer->loss_scale, &result);
    end_of_step_time(l);
    profile_phase(&l->profile, NULL);
    l->task->on_result(l->self, &part, lr, &result);
    save_run_tell(&l->save_run);
    return loop_look_for_spike(l, &result, back);
}

static bool is_every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

static bool is_last_step(const struct loop *l)
{
    return l->state.step >= l->last_step || (l->clock != NULL && run_clock_is_over(l->clock));
}

bool loop_is_over(const struct loop *l)
{
    return is_last_step(l) || early_stop_is_over(&l->state.early, &l->settings->early);
}

static struct status before_save(struct loop *l, bool due, bool stopping)
{
    return l->task->before_save != NULL ? l->task->before_save(l->self, due, stopping) : status_ok();
}

/* *best: no evaluation before had a loss as low. */
static struct status evaluate(struct loop *l, bool *best)
{
    double loss;
    TRY(l->task->evaluate(l->self, &loss));
    *best = early_stop_take(&l->state.early, &l->settings->early, l->state.global_step, loss);
    if (early_stop_is_over(&l->state.early, &l->settings->early) && !is_last_step(l)) {
        log_info("step %lld: the held-out loss has not fallen for %lld evaluations, so the run ends; the "
                 "lowest was %.6g at step %lld",
                 (long long)l->state.step, (long long)l->settings->early.patience, l->state.early.best_loss,
                 (long long)l->state.early.best_step);
    }
    return status_ok();
}

/* Does what is due after a step: evaluation, checkpoint.  The best checkpoint, and that of a run that ends
 * early, are due too. */
static struct status end_step(struct loop *l, bool stopping)
{
    bool last = is_last_step(l), best = false;
    TRY(is_every(l->state.step, l->settings->ranks.replica_check_steps) ? compare_ranks(l, false)
                                                                        : status_ok());
    bool due =
        (last && l->task->saves_at_end) || is_every(l->state.step, l->settings->num_steps_per_checkpoint);
    TRY(before_save(l, due, stopping));
    if (l->task->evaluate != NULL && (last || is_every(l->state.step, l->settings->eval_steps))) {
        TRY(evaluate(l, &best));
    }
    bool at_end = l->task->saves_at_end && loop_is_over(l);
    if ((best || at_end || l->leaving) && !due) {
        due = true;
        TRY(before_save(l, due, stopping));
    }
    return due || stopping ? save(l, at_end || stopping || l->leaving) : status_ok();
}

/* Saves the checkpoint of the last complete step, unless it is there, or this run resumed from it and has
 * come no further. */
static struct status save_whole_step(struct loop *l)
{
    bool lacks, failed_before = failed(save_run_finish(&l->save_run));
    TRY(together_any(&l->ranks.world, failed_before || l->saved_step != l->state.global_step, &lacks));
    if (!lacks) {
        return status_ok();
    }
    TRY(before_save(l, false, true));
    return save(l, true);
}

static struct status stopped(const struct loop *l)
{
    FAIL_IF(l->state.step == 0, STATUS_PREEMPTED,
            "stopped by %s within the first step; start the same command again", stop_cause());
    return status_error(STATUS_PREEMPTED, "stopped by %s after step %lld; the same command with %s resumes",
                        stop_cause(), (long long)l->state.step, l->settings->names->resume);
}

struct status loop_run(struct loop *l)
{
    bool stopping = false, back;
    stop_begin_work();
    slow_work_phase(&l->start, "making the first batch");
    while (!loop_is_over(l) && !stopping && !l->abandoned && !l->leaving) {
        TRY(one_step(l, &back));
        slow_work_end(&l->start);
        if (l->abandoned) {
            TRY(save_whole_step(l));
            continue;
        }
        TRY(agree_on_end(l, &stopping));
        TRY(agree_on_leaving(l));
        TRY(back && !stopping ? status_ok()
                              : end_step(l, stopping)); /* the work due at a checkpoint was done before */
    }
    save_run_finish(&l->save_run); /* a failure was logged; only a failed save at the end fails the run */
    profile_close(&l->profile);
    return l->abandoned || (stopping && !loop_is_over(l)) ? stopped(l) : status_ok();
}
