/* checkpoint_dir: the checkpoints of one output directory.  The newest is the one with the highest step in
 * its name, never the one with the latest time: clocks jump. */
#include "core/log.h"
#include "model/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_STEP_DIGITS = 18 }; /* fits int64_t */

/* The step N of a name that is PREFIX, N without leading zeros, then `*rest`; -1 for any other name. */
static int64_t step_of_name(const char *name, const char *prefix, const char **rest)
{
    size_t prefix_bytes = strlen(prefix);
    if (strncmp(name, prefix, prefix_bytes) != 0) {
        return -1;
    }
    const char *digits = name + prefix_bytes;
    size_t n = strspn(digits, "0123456789");
    *rest = digits + n;
    return n == 0 || n > MAX_STEP_DIGITS || (digits[0] == '0' && n > 1) ? -1 : strtoll(digits, NULL, 10);
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Calls visit(name, context) for each entry until it fails.  A directory that does not exist has none. */
static struct status for_each_name(const char *directory, struct status (*visit)(const char *, void *),
                                   void *context)
{
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return errno == ENOENT
                   ? status_ok()
                   : status_error(STATUS_IO, "cannot read the directory %s: %s", directory, strerror(errno));
    }
    struct status s = status_ok();
    for (const struct dirent *e; !failed(s) && (e = readdir(dir)) != NULL;) {
        s = visit(e->d_name, context);
    }
    closedir(dir);
    return s;
}

struct listing {
    const char *prefix;
    struct checkpoint_steps *list;
};

static struct status add_step(const char *name, void *context)
{
    const struct listing *listing = context;
    struct checkpoint_steps *list = listing->list;
    const char *rest;
    int64_t step = step_of_name(name, listing->prefix, &rest);
    if (step < 0 || *rest != '\0') {
        return status_ok();
    }
    int64_t *steps = realloc(list->steps, (size_t)(list->n + 1) * sizeof *steps);
    FAIL_IF(steps == NULL, STATUS_MEMORY, "out of memory for the list of %d checkpoints", list->n);
    steps[list->n++] = step;
    list->steps = steps;
    return status_ok();
}

struct status checkpoint_dir_list(struct checkpoint_steps *list, const char *directory, const char *prefix)
{
    struct listing listing = {prefix, list};
    *list = (struct checkpoint_steps){0};
    TRY(for_each_name(directory, add_step, &listing));
    if (list->n > 0) {
        qsort(list->steps, (size_t)list->n, sizeof *list->steps, descending);
    }
    return status_ok();
}

struct status checkpoint_dir_open_step(struct checkpoint *c, const char *directory, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/ckpt_%" PRId64, directory, step));
    TRY(checkpoint_open(c, path));
    if (c->manifest.step != step) {
        struct status s = status_error(STATUS_DATA, "%s is misnamed: its manifest says step %" PRId64, path,
                                       c->manifest.step);
        checkpoint_close(c);
        return s;
    }
    return status_ok();
}

struct status checkpoint_dir_open_newest(struct checkpoint *c, const char *directory, bool *found)
{
    struct checkpoint_steps list;
    *c = (struct checkpoint){0};
    *found = false;
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s) && !*found; i++) {
        struct status opened = checkpoint_dir_open_step(c, directory, list.steps[i]);
        *found = !failed(opened);
        if (opened.code == STATUS_MEMORY) {
            s = opened;
        } else if (failed(opened)) {
            log_warning("the checkpoint of step %" PRId64 " is skipped: %s", list.steps[i], opened.message);
        }
    }
    if (!failed(s) && list.n > 0 && !*found) {
        s = status_error(
            STATUS_NO_CHECKPOINT,
            "none of the %d checkpoints in %s is whole; restore one of them, or use another directory",
            list.n, directory);
    }
    free(list.steps);
    return s;
}

/* Removes what an interrupted save or prune left under this name, or moves it back.  Older versions named it
 * .ckpt_STEP.tmp.PID and .ckpt_STEP.old; their processes are dead, since we hold the directory's lock. */
static struct status clean_name(const char *name, void *context)
{
    const char *directory = context;
    const char *rest;
    char path[CHECKPOINT_PATH_BYTES];
    char final[CHECKPOINT_PATH_BYTES];
    int64_t step = step_of_name(name, ".ckpt_", &rest);
    if (step < 0) {
        return status_ok();
    }
    bool is_aside = strcmp(rest, ".old") == 0;
    TRY(checkpoint_path(path, "%s/%s", directory, name));
    TRY(checkpoint_path(final, "%s/ckpt_%" PRId64, directory, step));
    if (!is_aside && strncmp(rest, ".tmp.", 5) != 0) {
        temporary_clean(final);
        return status_ok();
    }
    if (is_aside && !file_exists(final)) {
        log_info("restoring %s, which an interrupted save had moved aside", final);
        return rename(path, final) == 0
                   ? status_ok()
                   : status_error(STATUS_IO, "cannot rename %s to %s: %s", path, final, strerror(errno));
    }
    log_info("removing %s, left by a run that died", path);
    return file_remove_tree(path);
}

struct status checkpoint_dir_clean(const char *directory)
{
    return for_each_name(directory, clean_name, (void *)directory);
}

struct adding {
    const char *directory;
    uint64_t *bytes;
};

static struct status add_bytes(const char *name, void *context)
{
    const struct adding *a = context;
    char path[CHECKPOINT_PATH_BYTES];
    struct stat st;
    TRY(checkpoint_path(path, "%s/%s", a->directory, name));
    *a->bytes += stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return status_ok();
}

struct status checkpoint_dir_bytes(uint64_t *bytes, const char *path)
{
    struct adding a = {path, bytes};
    *bytes = 0;
    return for_each_name(path, add_bytes, &a);
}

static struct status note_foreign(const char *name, void *newest)
{
    const char *rest = "";
    int64_t step = step_of_name(name, "ckpt_", &rest);
    if (step > *(int64_t *)newest && strcmp(rest, ".pt") == 0) {
        *(int64_t *)newest = step;
    }
    return status_ok();
}

struct status checkpoint_dir_newest_file(int64_t *step, const char *directory)
{
    *step = -1;
    return for_each_name(directory, note_foreign, step);
}

static struct status prune_step(const char *directory, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint_manifest manifest;
    TRY(checkpoint_path(path, "%s/ckpt_%" PRId64 "/manifest.json", directory, step));
    struct status s = checkpoint_manifest_read(&manifest, path);
    if (failed(s)) {
        log_warning("the old checkpoint of step %" PRId64 " is kept: %s", step, s.message);
        return status_ok();
    }
    bool phase_end = manifest.phase_end;
    checkpoint_manifest_fini(&manifest);
    TRY(checkpoint_path(path, "%s/ckpt_%" PRId64, directory, step));
    return phase_end ? status_ok() : temporary_remove_directory(path);
}

struct status checkpoint_dir_prune(const char *directory, int64_t step, int64_t keep_last, int64_t best_step)
{
    struct checkpoint_steps list;
    int64_t kept = 0;
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s) && keep_last > 0; i++) {
        if (list.steps[i] <= step && kept++ >= keep_last && list.steps[i] != best_step) {
            s = prune_step(directory, list.steps[i]);
        }
    }
    free(list.steps);
    return s;
}

struct status checkpoint_dir_remove_between(const char *directory, int64_t after, int64_t last)
{
    struct checkpoint_steps list;
    char path[CHECKPOINT_PATH_BYTES];
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s); i++) {
        if (list.steps[i] > after && list.steps[i] <= last) {
            s = checkpoint_path(path, "%s/ckpt_%" PRId64, directory, list.steps[i]);
            s = failed(s) ? s : temporary_remove_directory(path);
        }
    }
    free(list.steps);
    return s;
}
