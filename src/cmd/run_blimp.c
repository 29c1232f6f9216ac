/* kiln blimp: whether a model finds the right sentence of a minimal pair more likely than the wrong one.
 * Pairs are those of BLiMP (Warstadt et al. 2020, arXiv:1912.00582) or of other tables (data/table_open.h).
 *
 * A paradigm is the pair's "UID" or, without one, the name of its file; "linguistics_term" and "field" may be
 * missing.  A tie is wrong. */
#define _GNU_SOURCE /* basename */
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/rng.h"
#include "corpus/input_files.h"
#include "data/table_open.h"
#include "io/file.h"
#include "io/json_file.h"
#include "model/checkpoint.h"
#include "serve/likelihood.h"
#include "serve/predict.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct blimp_args {
    struct session_flags session;
    const char *run, *input, *good_field, *bad_field, *masking, *json, *scores;
    int64_t limit;
    bool no_bos;
};

#define AT(field) offsetof(struct blimp_args, field)

static const struct option options[] = {
    OPTION_STRING_ROW("model", AT(session.model), NULL, "PATH",
                      "a checkpoint or model directory of a decoder or a masked model"),
    OPTION_STRING_ROW(
        "run", AT(run), NULL, "DIR",
        "instead of --model, all checkpoints of this run: a table of tab-separated values, with "
        "the step of each, its percentages and their 95 % intervals by bootstrap"),
    OPTION_ROWS_OF(session_flags, AT(session)),
    OPTION_INPUT_ROW(
        "input", AT(input), "PATH...",
        "read pairs from these files (.jsonl, .csv, .tsv), or directories of them; more paths may follow",
        true),
    OPTION_STRING_ROW("good_field", AT(good_field), "sentence_good", "NAME", "key of the right sentence"),
    OPTION_STRING_ROW("bad_field", AT(bad_field), "sentence_bad", "NAME", "key of the wrong sentence"),
    MASKING_ROW(AT(masking)),
    OPTION_FLAG_ROW("no_bos", AT(no_bos),
                    "put no token that begins a text before the sentences of a decoder; their first tokens "
                    "then do not count"),
    OPTION_INT_ROW("limit", AT(limit), NULL, 1, 1e9,
                   "score only the first N pairs of each paradigm, for a quick look"),
    OPTION_STRING_ROW("json", AT(json), NULL, "FILE", "write the table as JSON"),
    OPTION_STRING_ROW(
        "scores", AT(scores), NULL, "FILE",
        "write a line of JSON for each pair: file, line, and the log-likelihood of both sentences"),
    PROGRESS_BAR_ROW(AT(session.common.disable_progress_bar)),
    {0},
};

/* Groups of pairs: BLiMP's keys, and their words in tables.  The group of all pairs is the result. */
enum { PARADIGM, CLASS, FIELD, ALL, N_LEVELS };
static const char *const keys[ALL] = {"UID", "linguistics_term", "field"};
static const char *const words[ALL] = {"paradigm", "class", "field"};

enum { GOOD, BAD, N_SIDES };

struct pair {
    const char *path; /* borrowed */
    int64_t line;
    json_t *groups[N_LEVELS]; /* borrowed from the result; NULL: none */
};

struct blimp {
    const struct blimp_args *args;
    struct session session;
    struct likelihood texts; /* sentences of pair i: the right one is text 2 i, the wrong one 2 i + 1 */
    struct buf pairs;        /* struct pair [n] */
    int64_t n;
    /* result as --json writes it; "accuracy" is what was counted as right until all pairs are */
    json_t *result;
};

static const struct pair *pairs_of(const struct blimp *b)
{
    return (const struct pair *)(const void *)b->pairs.data;
}

static double number_of(const json_t *group, const char *key)
{
    return json_number_value(json_object_get(group, key));
}

static void add(json_t *group, const char *key, bool more)
{
    json_t *number = json_object_get(group, key);
    json_integer_set(number, json_integer_value(number) + more);
}

/* ---- reading ---- */

/* A sentence of a row. */
static struct status read_sentence(struct table_cell *cell, const struct table_file *t, int64_t row,
                                   const char *column)
{
    *cell = table_file_cell(t, row, table_file_column(t, column));
    const char *wrong = !cell->is_there                                     ? "is missing"
                        : cell->is_list                                     ? "is a list"
                        : cell->text[strspn(cell->text, " \t\r\n")] == '\0' ? "is empty"
                                                                            : NULL;
    FAIL_IF(wrong != NULL, STATUS_DATA, "\"%s\" %s; each line has a pair of sentences", column, wrong);
    return status_ok();
}

/* Finds the group that the row names, or makes it; a paradigm has always a name. */
static struct status find_group(json_t **group, const struct blimp *b, int level, const struct table_file *t,
                                int64_t row, const char *file_name)
{
    struct table_cell cell = table_file_cell(t, row, table_file_column(t, keys[level]));
    const char *name = cell.n_items == 1 && cell.n > 0 ? cell.text : level == PARADIGM ? file_name : NULL;
    json_t *groups = json_object_get(b->result, words[level]);
    *group = name == NULL ? NULL : json_object_get(groups, name);
    if (name == NULL || *group != NULL) {
        return status_ok();
    }
    *group = json_pack("{s:i, s:i, s:i}", "pairs", 0, "accuracy", 0, "ties", 0);
    return json_object_set_new(groups, name, *group) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for groups");
}

/* Adds the pair of a row, unless its paradigm has the number that was asked for. */
static struct status add_pair(struct blimp *b, const struct table_file *t, int64_t row,
                              const struct table_cell sentences[N_SIDES], const char *file_name)
{
    struct pair pair = {t->path, table_file_line(t, row), {[ALL] = b->result}};
    TRY(find_group(&pair.groups[PARADIGM], b, PARADIGM, t, row, file_name));
    double n = number_of(pair.groups[PARADIGM], "pairs");
    if (b->args->limit > 0 && n >= (double)b->args->limit) {
        return status_ok();
    }
    for (int level = CLASS; level < ALL; level++) {
        TRY(find_group(&pair.groups[level], b, level, t, row, NULL));
        if (n == 0 && pair.groups[level] != NULL) { /* the first pair names its paradigm's class and field */
            struct table_cell cell = table_file_cell(t, row, table_file_column(t, keys[level]));
            json_object_set_new(pair.groups[PARADIGM], words[level], json_text(cell.text));
        }
    }
    for (int level = 0; level < N_LEVELS; level++) {
        add(pair.groups[level], "pairs", true);
    }
    for (int side = 0; side < N_SIDES; side++) {
        TRY(likelihood_add(&b->texts, &b->session.scratch, sentences[side].text, sentences[side].n));
    }
    buf_append(&b->pairs, &pair, sizeof pair);
    b->n++;
    return buf_status(&b->pairs);
}

static struct status read_rows(struct blimp *b, const struct table_file *t, const char *file_name)
{
    const char *good = b->args->good_field, *bad = b->args->bad_field;
    struct table_cell two[N_SIDES];
    bool differ = false;
    for (int64_t row = 0; row < t->n_rows; row++) {
        struct status s = read_sentence(&two[GOOD], t, row, good);
        s = failed(s) ? s : read_sentence(&two[BAD], t, row, bad);
        differ = differ || (!failed(s) && strcmp(two[GOOD].text, two[BAD].text) != 0);
        s = failed(s) ? s : add_pair(b, t, row, two, file_name);
        TRY(status_context(s, "%s line %lld", t->path, (long long)table_file_line(t, row)));
    }
    FAIL_IF(t->n_rows == 0, STATUS_DATA, "%s has no pairs", t->path);
    FAIL_IF(!differ, STATUS_DATA,
            "%s line %lld: \"%s\" and \"%s\" are the same, as in all pairs of this file", t->path,
            (long long)table_file_line(t, 0), good, bad);
    return status_ok();
}

static struct status read_file(struct blimp *b, const char *path)
{
    struct table_file t;
    TRY(table_open(&t, path, &(struct table_options){0}));
    json_t *name = json_text(basename(path));
    struct status s = status_error(STATUS_MEMORY, "out of memory for the name of a file");
    if (name != NULL) {
        size_t n = (size_t)(strrchr(json_string_value(name), '.') - json_string_value(name));
        json_string_setn(name, json_string_value(name), n); /* every table's name has an ending */
        s = read_rows(b, &t, json_string_value(name));
    }
    json_decref(name);
    table_file_close(&t);
    return s;
}

/* ---- results ---- */

/* The logarithm for a sentence of pair i.  Sentences with the same tokens have the same one, whatever
 * rounding made of them in their batches. */
static double score_of(const struct blimp *b, int64_t i, int side)
{
    bool same = likelihood_same_tokens(&b->texts, 2 * i, 2 * i + 1);
    return likelihood_get(&b->texts, 2 * i + (same ? GOOD : side));
}

/* Makes a percentage of what was counted. */
static double set_accuracy(json_t *group)
{
    double percent = 100 * number_of(group, "accuracy") / number_of(group, "pairs");
    json_object_set_new(group, "accuracy", json_real(percent));
    return percent;
}

static void count(struct blimp *b)
{
    const char *name;
    json_t *group;
    double sums[ALL] = {0};
    for (int64_t i = 0; i < b->n; i++) {
        double good = score_of(b, i, GOOD), bad = score_of(b, i, BAD);
        for (int level = 0; level < N_LEVELS; level++) {
            add(pairs_of(b)[i].groups[level], "accuracy", good > bad);
            add(pairs_of(b)[i].groups[level], "ties", good == bad);
        }
        add(b->result, "same_tokens", likelihood_same_tokens(&b->texts, 2 * i, 2 * i + 1));
    }
    for (int level = 0; level < ALL; level++) {
        json_object_foreach(json_object_get(b->result, words[level]), name, group)
        {
            sums[level] += set_accuracy(group);
        }
    }
    set_accuracy(b->result);
    json_object_set_new(
        b->result, "mean_of_paradigms",
        json_real(sums[PARADIGM] / (double)json_object_size(json_object_get(b->result, words[PARADIGM]))));
}

/* ---- intervals ---- */

/* 95 % intervals of percentages, by the percentile bootstrap (Efron & Tibshirani 1993, chapter 13): the pairs
 * of each paradigm are drawn again, with replacement. */
struct intervals {
    double all[2], paradigms[2];
};

enum { RESAMPLES = 1000 };

/* Right pairs among n that are drawn from those of a paradigm, of which `right` are right. */
static int64_t draw_right(struct rng_stream *stream, int64_t n, int64_t right)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        k += rng_below(stream, (uint32_t)n) < right;
    }
    return k;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void middle_of(double interval[2], double values[RESAMPLES])
{
    qsort(values, RESAMPLES, sizeof *values, ascending);
    interval[0] = values[RESAMPLES / 40];
    interval[1] = values[RESAMPLES - 1 - RESAMPLES / 40];
}

static struct intervals find_intervals(const struct blimp *b)
{
    json_t *paradigms = json_object_get(b->result, words[PARADIGM]), *group;
    double all[RESAMPLES], means[RESAMPLES];
    struct intervals found;
    const char *name;
    for (uint64_t r = 0; r < RESAMPLES; r++) {
        struct rng_stream stream = rng_stream(rng_key(r, (uint64_t)b->n));
        all[r] = means[r] = 0;
        json_object_foreach(paradigms, name, group)
        {
            double n = number_of(group, "pairs"), right = round(number_of(group, "accuracy") * n / 100);
            double drawn = (double)draw_right(&stream, (int64_t)n, (int64_t)right);
            all[r] += 100 * drawn / (double)b->n;
            means[r] += 100 * drawn / n / (double)json_object_size(paradigms);
        }
    }
    middle_of(found.all, all);
    middle_of(found.paradigms, means);
    return found;
}

/* A line of the table of a run's checkpoints. */
static struct status print_checkpoint(const struct blimp *b, int64_t step)
{
    struct intervals i = find_intervals(b);
    printf("%lld\t%lld\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", (long long)step, (long long)b->n,
           number_of(b->result, "accuracy"), i.all[0], i.all[1], number_of(b->result, "mean_of_paradigms"),
           i.paradigms[0], i.paradigms[1]);
    return standard_streams_flush();
}

/* ---- the table of a model ---- */

enum { NAME_COLUMNS = 56 };

static void print_row(const char *name, const json_t *group)
{
    struct buf text = {0};
    log_append_text(&text, name);
    printf("%-*s  %7.0f  %7.2f  %6.0f\n", NAME_COLUMNS, buf_text(&text), number_of(group, "pairs"),
           number_of(group, "accuracy"), number_of(group, "ties"));
    buf_fini(&text);
}

/* Prints the table by paradigm, class, field and in all; main checks whether it was written. */
static void print_table(const struct blimp *b)
{
    const char *name;
    json_t *group;
    for (int level = 0; level < ALL; level++) {
        json_t *groups = json_object_get(b->result, words[level]);
        if (json_object_size(groups) > 0) {
            printf("%-*s  %7s  %7s  %6s\n", NAME_COLUMNS, words[level], "pairs", "right %", "ties");
            json_object_foreach(groups, name, group)
            {
                print_row(name, group);
            }
            putchar('\n');
        }
    }
    print_row("all pairs", b->result);
    printf("%-*s  %7zu  %7.2f\n", NAME_COLUMNS, "mean of paradigms",
           json_object_size(json_object_get(b->result, words[PARADIGM])),
           number_of(b->result, "mean_of_paradigms"));
}

/* Writes a line for each pair: its file, its line, and both logarithms with all digits. */
static struct status write_scores(const struct blimp *b)
{
    struct buf text = {0};
    struct status s = status_ok();
    for (int64_t i = 0; i < b->n && !failed(s); i++) {
        const struct pair *pair = &pairs_of(b)[i];
        json_t *line =
            json_pack("{s:o, s:I, s:f, s:f, s:I, s:I}", "file", json_text(pair->path), "line",
                      (json_int_t)pair->line, "good", score_of(b, i, GOOD), "bad", score_of(b, i, BAD),
                      "good_tokens", (json_int_t)likelihood_tokens(&b->texts, 2 * i), "bad_tokens",
                      (json_int_t)likelihood_tokens(&b->texts, 2 * i + 1));
        s = json_append_line(&text, line, 0);
    }
    s = failed(s) ? s : file_write_atomic(b->args->scores, text.data, text.n);
    buf_fini(&text);
    return s;
}

/* ---- the command ---- */

static struct status score_pairs(struct blimp *b, const struct input_files *f)
{
    for (int64_t i = 0; i < f->n; i++) {
        TRY(read_file(b, f->files[i].path));
    }
    struct progress progress = progress_begin(!b->args->session.common.disable_progress_bar);
    int64_t start = clock_ns();
    TRY(likelihood_make(&b->texts));
    TRY(predict_run(&b->session.packer, &b->texts.request, &(struct predict_options){.progress = &progress}));
    double seconds = clock_since_s(start);
    log_info("%lld pairs in %.1f s, %.1f pairs/s", (long long)b->n, seconds, (double)b->n / seconds);
    count(b);
    double n_same = number_of(b->result, "same_tokens");
    if (n_same > 0) {
        log_warning("%.0f pairs have two sentences with the same tokens: the model cannot tell them apart, "
                    "which counts as wrong",
                    n_same);
    }
    return b->args->scores == NULL ? status_ok() : write_scores(b);
}

static struct status check_output(const struct input_files *f, const char *flag, const char *path)
{
    TRY(path == NULL ? status_ok() : input_files_check_output(f, flag, path));
    return path == NULL ? status_ok() : file_check_output(path, 0);
}

static struct status find_answer(enum answer *answer, const struct blimp_args *a)
{
    bool is_decoder;
    TRY(session_flags_is_decoder(&is_decoder, &a->session));
    *answer = is_decoder ? ANSWER_BLIMP_NEXT : ANSWER_BLIMP;
    return status_ok();
}

static struct status open_session(struct session *s, const struct blimp_args *a)
{
    enum answer answer;
    TRY(find_answer(&answer, a));
    return session_flags_open(s, &a->session, answer);
}

static struct status print_result(const struct blimp *b)
{
    TRY(b->args->json == NULL ? status_ok() : json_file_write(b->args->json, json_incref(b->result)));
    print_table(b);
    return status_ok();
}

/* Scores the pairs with the model of --model, which is the checkpoint of `step`; -1: it is no run's. */
static struct status score_files(const struct blimp_args *a, const struct input_files *f, int64_t step)
{
    struct blimp b = {.args = a};
    TRY(open_session(&b.session, a));
    struct status s = likelihood_init(&b.texts, &b.session, likelihood_masking_find(a->masking));
    if (!failed(s) && b.texts.is_decoder && !a->no_bos) {
        s = likelihood_begin_texts(&b.texts);
    }
    b.result = json_pack("{s:i, s:i, s:i, s:i, s:i, s:{}, s:{}, s:{}, s:o, s:s, s:o}", "pairs", 0, "accuracy",
                         0, "ties", 0, "mean_of_paradigms", 0, "same_tokens", 0, words[PARADIGM],
                         words[CLASS], words[FIELD], "model", json_text(a->session.model), "masking",
                         a->masking, "limit", a->limit > 0 ? json_integer(a->limit) : json_null());
    if (!failed(s)) {
        s = b.result == NULL ? status_error(STATUS_MEMORY, "out of memory for groups") : score_pairs(&b, f);
    }
    if (!failed(s)) {
        s = step < 0 ? print_result(&b) : print_checkpoint(&b, step);
    }
    json_decref(b.result);
    buf_fini(&b.pairs);
    likelihood_fini(&b.texts);
    session_close(&b.session);
    return s;
}

/* Scores the checkpoints of a run, in the order of their steps. */
static struct status score_run(const struct blimp_args *a, const struct input_files *f)
{
    struct checkpoint_steps list;
    struct blimp_args of_one = *a;
    char path[CHECKPOINT_PATH_BYTES];
    struct status s = checkpoint_dir_list(&list, a->run, "ckpt_");
    if (!failed(s) && list.n == 0) {
        s = status_error(STATUS_DATA, "--run %s has no checkpoints (ckpt_STEP)", a->run);
    }
    if (!failed(s)) {
        printf("step\tpairs\tright\tlow\thigh\tparadigms\tparadigms_low\tparadigms_high\n");
    }
    for (int i = list.n - 1; i >= 0 && !failed(s); i--) {
        s = checkpoint_path(path, "%s/ckpt_%lld", a->run, (long long)list.steps[i]);
        of_one.session.model = path;
        s = failed(s) ? s : score_files(&of_one, f, list.steps[i]);
    }
    free(list.steps);
    return s;
}

static struct status check(const struct blimp_args *a)
{
    FAIL_IF((a->session.model == NULL) == (a->run == NULL), STATUS_USAGE,
            "a model to score: give --model PATH, or --run DIR for all checkpoints of a run");
    FAIL_IF(a->run != NULL && (a->json != NULL || a->scores != NULL || a->session.common.dry_run),
            STATUS_USAGE,
            "--run prints a table of all checkpoints: leave out --json, --scores and --dry_run");
    return status_ok();
}

static struct status score(const struct blimp_args *a, const struct input_files *f)
{
    TRY(check_output(f, "--json", a->json));
    TRY(check_output(f, "--scores", a->scores));
    return a->run != NULL ? score_run(a, f) : score_files(a, f, -1);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct blimp_args *a = args;
    struct input_files files = {0};
    struct input_paths inputs;
    TRY(check(a));
    if (a->session.common.dry_run) {
        enum answer answer;
        TRY(find_answer(&answer, a));
        return session_flags_plan(&a->session, answer);
    }
    TRY(input_paths_init(&inputs, a->input, NULL, n_positional, positional));
    struct status s = input_files_list(&files, inputs.paths, inputs.n);
    s = failed(s) ? s : score(a, &files);
    input_files_fini(&files);
    input_paths_fini(&inputs);
    return s;
}

const struct command command_blimp = {
    .name = "blimp",
    .summary = "measure how often a model prefers the right sentence of minimal pairs, such as BLiMP's",
    .details = "A file has a pair on each line, as JSON: {\"sentence_good\": ..., \"sentence_bad\": ...}; "
               "BLiMP's keys UID, linguistics_term and field group the pairs. A sentence's score is the "
               "sum of the log-probabilities of its tokens. A decoder predicts each token from those before "
               "it; of a masked model each token is masked, one at a time, and predicted "
               "(pseudo-log-likelihood). The sentence with the higher score is the model's choice; a tie "
               "is wrong. Prints a table by paradigm, class and field.",
    .positional_usage = "[PATH...]",
    .max_positional = 1 << 20,
    .options = options,
    .args_bytes = sizeof(struct blimp_args),
    .run = run,
};
