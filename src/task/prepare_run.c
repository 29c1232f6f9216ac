#include "task/prepare_run.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "corpus/dump_index.h"
#include "corpus/pass_work.h"
#include "corpus/sentence_learning.h"
#include "io/dir_lock.h"
#include "task/prepare_outputs.h"
#include "task/prepare_plan.h"

#include <string.h>

static const double SAMPLE_SECONDS = 1;

/* Bytes of input that get a sample: less is read in seconds anyway. */
enum { SAMPLE_FROM_BYTES = 256 << 20 };

/* More than any machine reads in a second, so that the sample takes a small part of the time. */
static const double SAMPLED_BYTES_PER_SECOND = 10e9;

struct run {
    const struct prepare_config *config;
    struct corpus *corpus;
    struct pass_work work; /* OUTPUT_DIR/.prepare */
    struct pass_state at;
};

static struct status check_outputs(void *config)
{
    return prepare_outputs_check(config);
}

/* ---- the stages ---- */

/* A run that is resumed learns again, from the same text. */
static struct status learn_and_read(struct run *r, struct store_pass_report *report)
{
    struct punkt punkt = {0};
    struct store_pass_config pass = r->config->pass;
    bool splits = pass.tokenizer != NULL && !pass.one_sentence_per_line;
    pass.directory = r->work.directory;
    pass.punkt = &punkt;
    struct status s = status_ok();
    if (splits) {
        s = sentence_learning_run(r->corpus, &punkt, SENTENCE_LEARNING_INPUT_BYTES);
    }
    s = failed(s) ? s : store_pass_run(report, r->corpus, &pass, &r->at);
    punkt_fini(&punkt);
    return s;
}

/* Keeps what was read for the caller, and the stores, which a resumed run may have made before. */
static void keep_report(const struct prepare_config *c, const struct pass_state *state,
                        const struct corpus *corpus, const struct token_store_info *infos)
{
    struct pass_report *r = c->report;
    if (r == NULL) {
        return;
    }
    *r = (struct pass_report){
        .read = *state, .total_bytes = corpus->files.total_bytes, .sources = corpus_file_counts_json(corpus)};
    prepare_report_sources(r->sources);
    for (int k = 0; k < STORE_COUNT && c->wants_store; k++) {
        if (infos[k].n_documents > 0) {
            snprintf(r->prefixes[r->n_stores], FILE_PATH_BYTES, "%.1000s/%s", c->common.output_dir,
                     k == STORE_TRAIN ? "train" : "heldout");
            r->infos[r->n_stores++] = infos[k];
        }
    }
}

/* Fails if no text was kept. */
static struct status check_has_text(const struct pass_state *s)
{
    int64_t without = s->fates[DOCUMENT_WITHOUT_FIELD];
    if (s->counts.n_documents + s->fates[DOCUMENT_KEPT] > 0) {
        return status_ok();
    }
    FAIL_IF(without == 0, STATUS_DATA, "the input has no text");
    return status_error(STATUS_DATA,
                        "the input has no text: %lld lines of JSON lack the field that --text_field names",
                        (long long)without);
}

static void tell_text_file(const struct run *r)
{
    if (r->config->pass.writes_text && r->at.stage >= PASS_READ) {
        log_info("%s/" STORE_PASS_TEXT_NAME ": %lld documents, %.1f MB", r->config->common.output_dir,
                 (long long)r->at.text.n_documents, (double)r->at.text.file.n_bytes / 1e6);
    }
}

static struct status read_text(struct run *r)
{
    struct store_pass_report report = {0};
    bool was_read = r->at.stage >= PASS_READ;
    struct status s = was_read ? status_ok() : learn_and_read(r, &report);
    if (!failed(s) || report.is_whole) {
        prepare_report_text(&r->at, r->corpus->files.total_bytes);
        tell_text_file(r);
        keep_report(r->config, &r->at, r->corpus, report.infos);
        TRY(check_has_text(&r->at));
    }
    TRY(s);
    if (r->config->wants_store && !was_read) {
        prepare_report_stores(r->config, report.infos);
    }
    return status_ok();
}

static struct status write_set(struct run *r, const struct prepare_set *set)
{
    char directory[FILE_PATH_BYTES];
    struct shard_writer_report reports[STORE_COUNT];
    struct shard_set_config shards = set->shards;
    TRY(prepare_outputs_set_path(directory, r->config, set));
    shards.store_dir = r->work.directory;
    shards.directory = directory;
    shards.keeps_existing = true;
    TRY(shard_set_write(&shards, reports));
    prepare_report_set(r->config, set, reports);
    return status_ok();
}

static struct status write_sets(struct run *r)
{
    if (r->at.stage >= PASS_MADE) {
        return status_ok();
    }
    for (int i = 0; i < r->config->n_sets; i++) {
        TRY(write_set(r, &r->config->sets[i]));
    }
    return pass_work_save_stage(&r->work, &r->at, PASS_MADE);
}

static struct status move_outputs(struct run *r)
{
    if (r->at.stage < PASS_MOVING) {
        TRY(file_exists(r->work.done) ? file_remove_tree(r->work.done) : status_ok());
        TRY(prepare_outputs_remove_old(r->config));
        TRY(pass_work_save_stage(&r->work, &r->at, PASS_MOVING));
    }
    TRY(prepare_outputs_move(r->config));
    return pass_work_end(&r->work);
}

static struct status run_stages(struct run *r)
{
    bool is_done;
    TRY(pass_work_begin(&r->work, &r->at, &is_done));
    if (is_done) {
        return status_ok();
    }
    prepare_outputs_clean(r->config);
    bool was_resumed = r->at.n_saves > 0;
    struct status s = read_text(r);
    s = failed(s) ? s : write_sets(r);
    s = failed(s) ? s : move_outputs(r);
    if (failed(s)) {
        pass_work_keep(&r->work, &r->at, s, was_resumed);
    }
    return s;
}

static struct status run_locked(struct run *r)
{
    struct dir_lock lock;
    TRY(file_make_directories(r->config->common.output_dir));
    TRY(dir_lock_acquire(&lock, r->config->common.output_dir));
    struct status s = run_stages(r);
    dir_lock_release(&lock);
    return s;
}

/* ---- what writes nothing ---- */

static struct status check_text(const struct prepare_config *c, struct corpus *corpus)
{
    struct store_pass_report report;
    struct pass_state state = {0};
    TRY(store_pass_run(&report, corpus, &c->pass, &state));
    prepare_report_text(&state, corpus->files.total_bytes);
    keep_report(c, &state, corpus, report.infos);
    const struct source_counts *n = &state.counts;
    TRY(check_has_text(&state));
    bool is_whole = n->n_damaged_parts + n->n_cut_files + n->n_unclosed + n->n_missing_pages == 0;
    log_info("%s; nothing was written",
             is_whole ? "all of the text was read" : "all of the text that is there was read");
    return status_ok();
}

/* Says what --resume would continue. */
static struct status tell_unfinished(const struct prepare_config *c)
{
    struct pass_state state;
    char work[FILE_PATH_BYTES];
    bool found;
    snprintf(work, sizeof work, "%s/" PREPARE_WORK_NAME, c->common.output_dir);
    TRY(pass_state_load(&state, work, &found));
    if (found) {
        log_info("plan: %s holds an unfinished run, which read %.1f MB: --resume continues it", work,
                 (double)state.done_bytes / 1e6);
    }
    return status_ok();
}

static struct status tell_plan(const struct prepare_config *c, const struct corpus *corpus)
{
    struct prepare_plan plan;
    TRY(c->resume ? status_ok() : prepare_outputs_check(c));
    TRY(prepare_plan_make(&plan, c, corpus, SAMPLE_SECONDS));
    prepare_plan_tell(&plan, c, corpus);
    if (!plan.sample_is_whole) {
        log_info("plan: the sample has:");
    }
    prepare_report_text(&plan.sample, plan.sample.done_bytes);
    TRY(tell_unfinished(c));
    log_info("would write to %s; nothing was written", c->common.output_dir);
    return prepare_plan_check_disk(&plan, c);
}

/* check_place has found the paths short enough. */
static void make_work(struct run *r)
{
    const struct prepare_config *c = r->config;
    r->work = (struct pass_work){.output = c->common.output_dir,
                                 .inputs = &r->corpus->files,
                                 .settings = c->settings,
                                 .overwrite = c->overwrite,
                                 .resume = c->resume,
                                 .check_outputs = check_outputs,
                                 .context = (void *)c};
    snprintf(r->work.directory, FILE_PATH_BYTES, "%s/" PREPARE_WORK_NAME, c->common.output_dir);
    snprintf(r->work.done, FILE_PATH_BYTES, "%s/.prepared.json", c->common.output_dir);
}

static double sample_seconds(uint64_t n_bytes)
{
    double seconds = (double)n_bytes / SAMPLED_BYTES_PER_SECOND;
    return n_bytes < SAMPLE_FROM_BYTES ? 0 : seconds < SAMPLE_SECONDS ? seconds : SAMPLE_SECONDS;
}

static struct status plan_and_run(const struct prepare_config *c, struct corpus *corpus)
{
    struct prepare_plan plan;
    struct run r = {.config = c, .corpus = corpus};
    make_work(&r);
    if (!c->resume) {
        TRY(c->overwrite ? status_ok() : prepare_outputs_check(c));
        TRY(prepare_plan_make(&plan, c, corpus, sample_seconds(corpus->files.total_bytes)));
        prepare_plan_tell(&plan, c, corpus);
        TRY(prepare_plan_check_disk(&plan, c));
    }
    return run_locked(&r);
}

static struct status check_place(const struct prepare_config *c, const struct input_files *f)
{
    static const char longest[] =
        "/" PREPARE_WORK_NAME "/sets//training/.kiln_training_100000.hdf5.kiln-0123456789abcdef.tmp";
    size_t n = 0;
    for (int i = 0; i < c->n_sets; i++) {
        size_t name = strlen(c->sets[i].name);
        n = name > n ? name : n;
    }
    n = sizeof longest + 2 * n; /* a data set's name is in those of its directory and of its files */
    TRY(prepare_outputs_guard(c, f));
    return c->common.dry_run || c->check ? file_check_directory_path(c->common.output_dir, n)
                                         : file_check_output_directory(c->common.output_dir, n, 0);
}

struct status prepare_run(const struct prepare_config *c)
{
    struct corpus corpus;
    int64_t start = clock_ns();
    TRY(corpus_open(&corpus, c->inputs, c->n_inputs, c->source));
    struct status s = check_place(c, &corpus.files);
    for (int i = 0; i < c->n_sets && !failed(s); i++) {
        s = shard_set_check(&c->sets[i].shards);
    }
    stop_install();
    stop_begin_work();
    s = failed(s) ? s : dump_index_read(&corpus.files);
    if (!failed(s)) {
        s = c->common.dry_run ? tell_plan(c, &corpus)
            : c->check        ? check_text(c, &corpus)
                              : plan_and_run(c, &corpus);
    }
    corpus_close(&corpus);
    if (!failed(s)) {
        log_info("total time: %s", progress_time(clock_since_s(start)).text);
    }
    return s;
}
