#include "task/finetune_job.h"

#include "core/hash.h"
#include "core/log.h"
#include "io/file.h"
#include "io/json_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t LARGEST_SEED = INT32_MAX; /* limit of the flag --seed */

static struct status check(const struct finetune_options *o)
{
    FAIL_IF(!o->do_train || !(o->do_eval || o->eval_file != NULL), STATUS_USAGE,
            "--seeds compares the scores of runs: add --do_train, and --do_eval with --predict_file, or "
            "--eval_file");
    FAIL_IF(o->run.skip_checkpoint, STATUS_USAGE,
            "--seeds keeps the model of each seed: leave out --skip_checkpoint");
    FAIL_IF(o->run.seed > LARGEST_SEED - (o->seeds - 1), STATUS_USAGE,
            "--seed %" PRId64 " and --seeds %" PRId64 " go beyond %" PRId64 ", the largest seed", o->run.seed,
            o->seeds, LARGEST_SEED);
    return status_ok();
}

static struct status path_of(char path[FILE_PATH_BYTES], const struct finetune_options *o, int64_t seed,
                             const char *name)
{
    int n = seed < 0 ? snprintf(path, FILE_PATH_BYTES, "%s/%s", o->run.common.output_dir, name)
                     : snprintf(path, FILE_PATH_BYTES, "%s/seed_%" PRId64 "%s", o->run.common.output_dir,
                                seed, name);
    FAIL_IF(n >= FILE_PATH_BYTES, STATUS_USAGE, "the path of --output_dir is too long");
    return status_ok();
}

/* Hash of the flags that decide the scores: all but these. */
static struct status fingerprint(char text[24], const json_t *flags)
{
    static const char *const others[] = {
        "seeds",   "seed",     "output_dir",           "resume_from_checkpoint", "overwrite_output_dir",
        "dry_run", "log_freq", "disable_progress_bar", "json_summary",           "num_steps_per_checkpoint"};
    json_t *rest = json_copy((json_t *)flags);
    for (size_t i = 0; rest != NULL && i < sizeof others / sizeof others[0]; i++) {
        json_object_del(rest, others[i]);
    }
    char *all = rest != NULL ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    FAIL_IF(all == NULL, STATUS_MEMORY, "out of memory for the flags of a series");
    snprintf(text, 24, "%016" PRIx64, hash_fnv1a(all, strlen(all)));
    free(all);
    return status_ok();
}

static struct status write_result(const char *path, const char *flags, int64_t seed,
                                  const struct score_list *scores)
{
    json_t *all = json_object();
    for (int i = 0; i < scores->n; i++) {
        json_object_set_new(all, scores->scores[i].name, json_finite(scores->scores[i].value));
    }
    return json_file_write(
        path, json_pack("{s:I, s:s, s:o}", "seed", (json_int_t)seed, "flags", flags, "scores", all));
}

/* Finds the scores of a run that is done; else NULL. */
static struct status find_result(json_t **scores, const struct finetune_options *o, const char *flags,
                                 const char *path)
{
    json_t *root;
    const char *with;
    *scores = NULL;
    bool anew = o->overwrite_output_dir && !o->run.resume_from_checkpoint;
    if (anew || !file_exists(path)) {
        return status_ok();
    }
    FAIL_IF(!o->run.resume_from_checkpoint, STATUS_USAGE,
            "%s already exists; add --resume_from_checkpoint to run the seeds that are missing, "
            "--overwrite_output_dir to replace it, or give another --output_dir",
            path);
    TRY(json_read_object(&root, path));
    struct status s = json_get_string(root, path, "flags", true, &with);
    if (!failed(s) && strcmp(with, flags) != 0) {
        s = status_error(STATUS_USAGE, "%s is the result of other flags; give another --output_dir", path);
    }
    json_t *found = json_object_get(root, "scores");
    if (!failed(s) && !json_is_object(found)) {
        s = status_error(STATUS_DATA, "%s has no \"scores\"", path);
    }
    *scores = failed(s) ? NULL : json_incref(found);
    json_decref(root);
    return s;
}

/* A run of the series, which borrows `directory`; `scores` receives what it scores. */
static struct status run_with(const struct finetune_task *task, const void *options, int64_t seed,
                              const char *directory, struct score_list *scores)
{
    struct finetune_options *one = malloc(task->options_bytes);
    FAIL_IF(one == NULL, STATUS_MEMORY, "out of memory for a run");
    memcpy(one, options, task->options_bytes); /* the common ones come first */
    json_t *flags = json_copy((json_t *)one->run.flags);
    json_object_set_new(flags, "seed", json_integer(seed));
    json_object_set_new(flags, "output_dir", json_text(directory));
    one->run.seed = seed;
    one->run.common.output_dir = directory;
    one->run.flags = flags;
    one->scores = scores;
    log_info("seed %" PRId64 ": %s", seed, directory);
    struct status s = finetune_run_one(task, one);
    json_decref(flags);
    free(one);
    return s;
}

/* Finds the scores of one seed, of this run or an earlier one. */
static struct status run_seed(const struct finetune_task *task, const void *options, int64_t seed,
                              const char *fingerprint_of_flags, json_t **scores)
{
    const struct finetune_options *o = options;
    struct score_list got = {0};
    char directory[FILE_PATH_BYTES], result[FILE_PATH_BYTES];
    TRY(path_of(directory, o, seed, ""));
    TRY(path_of(result, o, seed, "/result.json"));
    TRY(find_result(scores, o, fingerprint_of_flags, result));
    if (*scores != NULL) {
        log_info("seed %" PRId64 ": already has its result", seed);
        return status_ok();
    }
    TRY(run_with(task, options, seed, directory, &got));
    if (o->run.common.dry_run) {
        return status_ok();
    }
    FAIL_IF(got.n == 0, STATUS_USAGE,
            "--seeds has nothing to compare: the run scored nothing (an --eval_script must print its scores "
            "as JSON)");
    TRY(write_result(result, fingerprint_of_flags, seed, &got));
    json_t *root;
    TRY(json_read_object(&root, result)); /* a resumed series reads it too */
    *scores = json_incref(json_object_get(root, "scores"));
    json_decref(root);
    return status_ok();
}

/* ---- the table ---- */

static double value_at(const json_t *runs, size_t k, const char *name)
{
    const json_t *value = json_object_get(json_array_get(runs, k), name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The deviation of a single run is none. */
static json_t *summary_of(const json_t *runs, const char *name)
{
    size_t n = json_array_size(runs);
    json_t *values = json_array();
    double sum = 0, squares = 0;
    for (size_t k = 0; k < n; k++) {
        sum += value_at(runs, k, name);
        json_array_append_new(values, json_finite(value_at(runs, k, name)));
    }
    for (size_t k = 0; k < n; k++) {
        double off = value_at(runs, k, name) - sum / (double)n;
        squares += off * off;
    }
    return json_pack("{s:o, s:o, s:o}", "values", values, "mean", json_finite(sum / (double)n), "deviation",
                     json_finite(n > 1 ? sqrt(squares / ((double)n - 1)) : NAN));
}

static void print_line(struct buf *line)
{
    log_result("%s", buf_text(line));
    buf_clear(line);
}

/* Prints row k of the values, or that of `key`, after what the line has. */
static void print_row(struct buf *line, const json_t *metrics, const char *key, size_t k)
{
    const char *name;
    json_t *metric;
    json_object_foreach((json_t *)metrics, name, metric)
    {
        const json_t *value = json_object_get(metric, key);
        value = json_is_array(value) ? json_array_get(value, k) : value;
        if (json_is_number(value)) {
            buf_printf(line, "  %20.4f", json_number_value(value));
        } else {
            buf_printf(line, "  %20s", "-");
        }
    }
    print_line(line);
}

static void print_table(const struct finetune_options *o, const json_t *metrics)
{
    const char *name;
    json_t *ignored;
    struct buf line = {0};
    buf_printf(&line, "%-10s", "seed");
    json_object_foreach((json_t *)metrics, name, ignored)
    {
        buf_printf(&line, "  %20s", name);
    }
    print_line(&line);
    for (int64_t k = 0; k < o->seeds; k++) {
        buf_printf(&line, "%-10" PRId64, o->run.seed + k);
        print_row(&line, metrics, "values", (size_t)k);
    }
    buf_printf(&line, "%-10s", "mean");
    print_row(&line, metrics, "mean", 0);
    buf_printf(&line, "%-10s", "deviation");
    print_row(&line, metrics, "deviation", 0);
    buf_fini(&line);
}

static struct status write_table(const struct finetune_options *o, json_t *metrics)
{
    char path[FILE_PATH_BYTES];
    json_t *seeds = json_array();
    TRY(path_of(path, o, -1, "seeds.json"));
    for (int64_t k = 0; k < o->seeds; k++) {
        json_array_append_new(seeds, json_integer(o->run.seed + k));
    }
    TRY(json_file_write(path, json_pack("{s:o, s:O}", "seeds", seeds, "metrics", metrics)));
    log_info("wrote %s", path);
    return status_ok();
}

static struct status tell(const struct finetune_options *o, const json_t *runs)
{
    const char *name;
    json_t *ignored, *metrics = json_object();
    json_object_foreach(json_array_get(runs, 0), name, ignored)
    {
        json_object_set_new(metrics, name, summary_of(runs, name));
    }
    print_table(o, metrics);
    struct status s = write_table(o, metrics);
    json_decref(metrics);
    return s;
}

static struct status run_seeds(const struct finetune_task *task, const void *options,
                               const char *fingerprint_of_flags, json_t *runs)
{
    const struct finetune_options *o = options;
    for (int64_t k = 0; k < (o->run.common.dry_run ? 1 : o->seeds); k++) {
        json_t *scores = NULL;
        struct status s = run_seed(task, options, o->run.seed + k, fingerprint_of_flags, &scores);
        json_array_append_new(runs, scores);
        TRY(status_context(s, "seed %" PRId64, o->run.seed + k));
    }
    return status_ok();
}

struct status finetune_series(const struct finetune_task *task, const void *options)
{
    const struct finetune_options *o = options;
    char flags[24];
    FAIL_IF(rank_options_world(&o->run.ranks).size > 1, STATUS_UNAVAILABLE,
            "--seeds does not run on several ranks: run it alone, or one seed at a time (--seed)");
    TRY(check(o));
    TRY(fingerprint(flags, o->run.flags));
    json_t *runs = json_array();
    struct status s = run_seeds(task, options, flags, runs);
    if (!failed(s) && o->run.common.dry_run) {
        log_info("--seeds %" PRId64 ": this many such runs, one after the other", o->seeds);
    } else if (!failed(s)) {
        s = tell(o, runs);
    }
    json_decref(runs);
    return s;
}
