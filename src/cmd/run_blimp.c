/* kiln blimp: whether a model finds the right sentence of a minimal pair more likely than the wrong one. */
#include "cmd/blimp_report.h"
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/session_flags.h"
#include "cmd/settings.h"
#include "cmd/standard_streams.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "corpus/input_guard.h"
#include "io/file.h"
#include "io/json_file.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct blimp_args {
    struct session_flags session;
    const char *input, *good_field, *bad_field, *masking, *json, *scores;
    int64_t limit;
    bool disable_progress_bar;
};

#define AT(field) offsetof(struct blimp_args, field)

static const struct option options[] = {
    SESSION_FLAG_ROWS(AT(session), "a checkpoint or model directory with a masked-LM head"),
    OPTION_INPUT_ROW(
        "input", AT(input), "PATH...",
        "read pairs from these files (.jsonl, .csv, .tsv), or directories of them; more paths may follow",
        true),
    OPTION_STRING_ROW("good_field", AT(good_field), "sentence_good", "NAME", "key of the right sentence"),
    OPTION_STRING_ROW("bad_field", AT(bad_field), "sentence_bad", "NAME", "key of the wrong sentence"),
    OPTION_CHOICE_ROW("masking", AT(masking), "token", "token|within_word",
                      "choose what is masked. token: only the token that is predicted (Salazar et al. 2020, "
                      "arXiv:1910.14659); within_word: the later tokens of its word too (Kauf & Ivanova "
                      "2023, arXiv:2305.10588)"),
    OPTION_INT_ROW("limit", AT(limit), NULL, 1, 1e9,
                   "score only the first N pairs of each paradigm, for a quick look"),
    OPTION_STRING_ROW("json", AT(json), NULL, "FILE", "write the table as JSON"),
    OPTION_STRING_ROW(
        "scores", AT(scores), NULL, "FILE",
        "write a line of JSON for each pair: file, line, and the log-likelihood of both sentences"),
    PROGRESS_BAR_ROW(AT(disable_progress_bar)),
    {0},
};

struct blimp_progress {
    struct progress line;
    int64_t start, n_pairs;
};

static void show(void *self, double part)
{
    struct blimp_progress *p = self;
    if (progress_due(&p->line)) {
        double seconds = clock_since_s(p->start);
        progress_show(&p->line, "scoring %.0f %%, %.1f pairs/s, %s left", 100 * part,
                      part * (double)p->n_pairs / seconds, progress_time(seconds / part * (1 - part)).text);
    }
}

static struct status add_pairs(struct likelihood *l, struct tokenizer_scratch *scratch,
                               const struct sentence_pairs *pairs)
{
    for (int64_t i = 0; i < 2 * pairs->n; i++) {
        const struct sentence_pair *pair = sentence_pairs_get(pairs, i / 2);
        struct text_bytes text = sentence_pairs_text(pairs, i / 2, i % 2 == 0 ? PAIR_GOOD : PAIR_BAD);
        TRY(status_context(likelihood_add(l, scratch, text.bytes, text.n), "%s line %lld",
                           pairs->paths[pair->file], (long long)pair->line));
    }
    return status_ok();
}

static json_t *result_json(const struct blimp_args *a, const struct blimp_report *r)
{
    json_t *root = blimp_report_json(r);
    json_object_set_new(root, "model", json_text(a->session.model));
    json_object_set_new(root, "masking", json_string(a->masking));
    json_object_set_new(root, "limit", a->limit > 0 ? json_integer(a->limit) : json_null());
    return root;
}

static struct status write_result(const struct blimp_args *a, const struct blimp_report *r)
{
    struct buf text = {0};
    struct status s = status_ok();
    if (a->scores != NULL) {
        s = blimp_report_scores(&text, r);
        s = failed(s) ? s : file_write_atomic(a->scores, text.data, text.n);
    }
    if (!failed(s) && a->json != NULL) {
        s = json_file_write(a->json, result_json(a, r));
    }
    buf_clear(&text);
    blimp_report_append(&text, r);
    s = failed(s) ? s : buf_status(&text);
    if (!failed(s)) {
        fputs(buf_text(&text), stdout); /* main checks whether it was written */
    }
    buf_fini(&text);
    return s;
}

static struct status score_texts(const struct blimp_args *a, struct session *session, struct likelihood *l,
                                 const struct sentence_pairs *pairs)
{
    struct blimp_progress progress = {progress_begin(!a->disable_progress_bar), clock_ns(), pairs->n};
    struct blimp_report r;
    TRY(add_pairs(l, &session->scratch, pairs));
    struct status s = likelihood_run(l, &session->packer, show, &progress);
    progress_end(&progress.line);
    TRY(s);
    double seconds = clock_since_s(progress.start);
    TRY(blimp_report_init(&r, pairs, l));
    log_info("%lld pairs in %.1f s, %.1f pairs/s", (long long)pairs->n, seconds, (double)pairs->n / seconds);
    if (r.n_same > 0) {
        log_warning("%lld pairs have two sentences with the same tokens: the model cannot tell them apart, "
                    "which counts as wrong",
                    (long long)r.n_same);
    }
    s = write_result(a, &r);
    blimp_report_fini(&r);
    return s;
}

static struct status score_pairs(const struct blimp_args *a, const struct sentence_pairs *pairs)
{
    struct session s;
    struct likelihood l = {0};
    TRY(session_flags_open(&s, &a->session, ANSWER_BLIMP));
    struct status status =
        likelihood_init(&l, &s, strcmp(a->masking, "token") == 0 ? LIKELIHOOD_TOKEN : LIKELIHOOD_WITHIN_WORD);
    if (!failed(status)) {
        status = score_texts(a, &s, &l, pairs);
    }
    likelihood_fini(&l);
    session_close(&s);
    return status;
}

static struct status check_outputs(const struct blimp_args *a, const struct input_files *f)
{
    const char *const flags[] = {"--json", "--scores"}, *const paths[] = {a->json, a->scores};
    for (int i = 0; i < 2; i++) {
        if (paths[i] != NULL) {
            TRY(input_guard_check_file(f, flags[i], paths[i]));
            TRY(file_check_output(paths[i], 0));
        }
    }
    return status_ok();
}

static struct status score_files(const struct blimp_args *a, const struct input_files *f)
{
    struct pair_options o = {.columns = {a->good_field, a->bad_field}, .limit = a->limit};
    struct sentence_pairs pairs;
    const char **paths = malloc((size_t)f->n * sizeof *paths);
    if (paths == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %lld paths", (long long)f->n);
    }
    for (int64_t i = 0; i < f->n; i++) {
        paths[i] = f->files[i].path;
    }
    struct status s = check_outputs(a, f);
    if (!failed(s)) {
        s = sentence_pairs_open(&pairs, paths, f->n, &o);
    }
    if (!failed(s)) {
        s = score_pairs(a, &pairs);
        sentence_pairs_close(&pairs);
    }
    free(paths);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct blimp_args *a = args;
    struct input_files files = {0};
    struct input_paths inputs;
    if (a->session.dry_run) {
        return session_flags_plan(&a->session, ANSWER_BLIMP);
    }
    TRY(input_paths_init(&inputs, a->input, NULL, n_positional, positional));
    struct status s = input_files_list(&files, inputs.paths, inputs.n);
    if (!failed(s)) {
        s = score_files(a, &files);
    }
    input_files_fini(&files);
    input_paths_fini(&inputs);
    return s;
}

const struct command command_blimp = {
    .name = "blimp",
    .summary = "measure how often a model prefers the right sentence of minimal pairs, such as BLiMP's",
    .details = "A file has a pair on each line, as JSON: {\"sentence_good\": ..., \"sentence_bad\": ...}; "
               "BLiMP's keys UID, linguistics_term and field group the pairs. A sentence's score is its "
               "pseudo-log-likelihood: each token is masked, one at a time, and predicted; the logarithms of "
               "the probabilities are added. The sentence with the higher score is the model's choice; a tie "
               "is wrong. Prints a table by paradigm, class and field.",
    .positional_usage = "[PATH...]",
    .max_positional = 1 << 20,
    .options = options,
    .args_bytes = sizeof(struct blimp_args),
    .run = run,
};
