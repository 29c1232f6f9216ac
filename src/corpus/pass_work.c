#include "corpus/pass_work.h"

#include "core/log.h"
#include "io/temporary.h"

#include <unistd.h>

static struct status what_path(char path[FILE_PATH_BYTES], const struct pass_work *w)
{
    return file_make_path(path, "%s/run.json", w->directory);
}

/* A run that is killed meanwhile leaves all of the work, or a temporary's name. */
static struct status remove_work(const struct pass_work *w)
{
    return file_exists(w->directory) ? temporary_remove_directory(w->directory) : status_ok();
}

/* Replaces the work, if there is any, by a directory that has only run.json. */
static struct status put_new(const struct pass_work *w)
{
    struct temporary t;
    char what[TEMPORARY_PATH_BYTES + 16];
    TRY(temporary_create_directory(&t, w->directory));
    snprintf(what, sizeof what, "%s/run.json", t.path);
    struct status s = pass_state_write_run(what, w->settings, w->inputs);
    s = failed(s) ? s : temporary_put_directory(&t, w->directory);
    if (failed(s)) {
        temporary_remove(&t);
    }
    return s;
}

static struct status begin_anew(const struct pass_work *w, struct pass_state *at)
{
    char what[FILE_PATH_BYTES];
    *at = (struct pass_state){0};
    TRY(what_path(what, w));
    FAIL_IF(file_exists(w->directory) && !file_exists(what) && rmdir(w->directory) != 0, STATUS_USAGE,
            "%s exists, but kiln did not make it: remove it, or choose another place", w->directory);
    return put_new(w);
}

static double percent_done(const struct pass_work *w, const struct pass_state *at)
{
    return 100 * (double)at->done_bytes / (double)w->inputs->total_bytes;
}

/* Begins anew without a state, unless the run to resume was killed when it was already done. */
static struct status begin_without_state(const struct pass_work *w, struct pass_state *at, bool *is_done)
{
    struct status s = w->check_outputs(w->context);
    *is_done = failed(s) && w->resume && w->done[0] != '\0' && file_exists(w->done) &&
               !failed(pass_state_check_run(w->done, w->settings, w->inputs));
    if (*is_done) {
        log_info("%s already has all output of these flags and inputs", w->output);
        return remove_work(w);
    }
    TRY(s);
    if (w->resume) {
        log_info("nothing to resume in %s: starting from the beginning", w->output);
    }
    return begin_anew(w, at);
}

struct status pass_work_begin(const struct pass_work *w, struct pass_state *at, bool *is_done)
{
    bool found;
    char what[FILE_PATH_BYTES];
    *is_done = false;
    temporary_clean(w->directory);
    if (w->overwrite && !w->resume) {
        TRY(w->check_outputs(w->context));
        return begin_anew(w, at);
    }
    struct status s = pass_state_load(at, w->directory, &found);
    if (failed(s)) {
        return status_error(s.code, "%s; --overwrite starts over", s.message);
    }
    FAIL_IF(found && !w->resume, STATUS_USAGE,
            "%s holds an unfinished run, after %.1f %% of the text: --resume continues it, --overwrite "
            "starts over",
            w->directory, percent_done(w, at));
    if (!found) {
        return begin_without_state(w, at, is_done);
    }
    TRY(what_path(what, w));
    TRY(pass_state_check_run(what, w->settings, w->inputs));
    TRY(at->stage >= PASS_MADE ? status_ok() : w->check_outputs(w->context));
    log_info("resumed after %.1f %% of the text", percent_done(w, at));
    return status_ok();
}

struct status pass_work_save_stage(const struct pass_work *w, struct pass_state *at, enum pass_stage stage)
{
    struct buf nothing = {0};
    at->stage = stage;
    return pass_state_save(at, w->directory, &nothing);
}

struct status pass_work_end(const struct pass_work *w)
{
    TRY(w->done[0] == '\0' ? status_ok() : pass_state_write_run(w->done, w->settings, w->inputs));
    return remove_work(w);
}

/* Whether a later run can resume, from the state that is then in *at. */
static bool can_resume(const struct pass_work *w, struct pass_state *at, struct status s)
{
    bool found = false;
    bool may = s.code == STATUS_PREEMPTED || s.code == STATUS_IO || s.code == STATUS_MEMORY;
    return may && !failed(pass_state_load(at, w->directory, &found)) && found;
}

bool pass_work_keep(const struct pass_work *w, struct pass_state *at, struct status s, bool was_resumed)
{
    if (can_resume(w, at, s)) {
        log_info("%s is kept: --resume continues from %.1f %% of the text", w->directory,
                 percent_done(w, at));
        return true;
    }
    if (was_resumed) { /* the work of earlier runs is not ours to remove */
        return true;
    }
    struct status removed = remove_work(w);
    if (failed(removed)) {
        log_warning("%s", removed.message);
    }
    return false;
}
