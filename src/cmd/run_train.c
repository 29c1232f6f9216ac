/* kiln train: from texts to a model with one command.  It looks at the text and the machine, chooses what
 * cmd/train_choice says, and runs the other commands in order, each of which it prints; so that whoever wants
 * more can go on with them.
 *
 * The rule: OUTPUT_DIR/train.json names the text, the flags and the steps that are done.  The same command
 * continues where it was stopped; one with another text or other flags is refused. */
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "cmd/input_paths.h"
#include "cmd/settings.h"
#include "cmd/train_kinds.h"
#include "cmd/train_state.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/words.h"
#include "data/store_check.h"
#include "io/json_file.h"
#include "io/token_store.h"
#include "ops/backend.h"
#include "report/run_log.h"
#include "text/tokenizer_open.h"
#include "watch/ceilings.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct train_args {
    const char *input, *kind;
    double hours;
    int64_t seed;
    struct option_words prompts;
    bool do_lower_case;
    struct command_flags common;
};

#define AT(field) offsetof(struct train_args, field)

static const struct option options[] = {
    OPTION_INPUT_ROW("input", AT(input), "PATH...",
                     "learn from these files, or folders of them: prose, JSON lines, dumps of Wikipedia, "
                     "compressed or not; or paths without a flag",
                     false),
    OPTION_REQUIRED_ROW("output_dir", AT(common.output_dir), "DIR",
                        "write the model (DIR/model), its report (DIR/report.html) and what it was made of "
                        "(DIR/data) into this directory"),
    OPTION_CHOICE_ROW("kind", AT(kind), TRAIN_KIND_DEFAULT, TRAIN_KIND_NAMES, TRAIN_KIND_HELP),
    OPTION_REAL_ROW("hours", AT(hours), "1", 0.001, 10000, "number of hours that all of it may take"),
    OPTION_FLAG_ROW("do_lower_case", AT(do_lower_case),
                    "lower-case the text and strip accents, for a model that fills gaps: right for English "
                    "without names"),
    OPTION_WORDS_ROW("prompts", AT(prompts), "TEXT...",
                     "say at each evaluation how the model continues these texts, or fills their [MASK]; "
                     "default: the beginnings of three held-out texts"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647,
                   "seed of weights, held-out text, data order and dropout"),
    DRY_RUN_ROW(AT(common.dry_run), "print the choices and the commands, and write nothing"),
    {0},
};

struct train_run {
    const struct train_args *args;
    const struct train_kind *kind;
    const char *const *texts; /* [n_texts] */
    int n_texts;
    struct train_state state;
    const char *data; /* the state's */
    char vocab[FILE_PATH_BYTES];
    int64_t text_bytes; /* size of the files */
    double flops_per_s; /* products in the faster dtype */
    bool bf16;          /* it is bf16 */
    int64_t start_ns;
    struct train_facts facts;
    struct train_choice choice;
};

static json_t *flags_of(const struct train_args *a)
{
    json_t *prompts = json_array();
    for (int i = 0; i < a->prompts.n; i++) {
        json_array_append_new(prompts, json_text(a->prompts.of[i]));
    }
    return json_pack("{s:s, s:f, s:I, s:b, s:o}", "kind", a->kind, "hours", a->hours, "seed",
                     (json_int_t)a->seed, "do_lower_case", a->do_lower_case, "prompts", prompts);
}

/* ---- steps ---- */

static void print_command(const struct command *c, const struct words *w)
{
    struct buf line = {0};
    words_print(&line, w);
    log_info("== kiln %s %s", c->name, buf_text(&line));
    buf_fini(&line);
}

/* Runs a command, unless an earlier start did; frees the words. */
static struct status run_step(struct train_run *r, const struct command *c, struct words *w)
{
    struct status s = words_status(w);
    if (!failed(s) && !train_state_is_done(&r->state, c->name)) {
        print_command(c, w);
        s = r->args->common.dry_run ? status_ok() : command_run(c, w->n, w->list);
        if (!failed(s)) {
            s = train_state_set_done(&r->state, c->name);
        }
    }
    words_fini(w);
    return s;
}

static void add_texts(struct words *w, const struct train_run *r)
{
    words_add(w, "--input");
    words_add_list(w, (const char *const[]){r->texts[0], NULL});
    for (int i = 1; i < r->n_texts; i++) {
        words_add(w, "%s", r->texts[i]);
    }
}

static struct status make_vocabulary(struct train_run *r)
{
    struct words w = {0};
    add_texts(&w, r);
    words_add_list(&w, r->kind->vocab);
    words_add(&w, "--vocab_file=%s/%s", r->data, r->kind->vocab_written);
    words_add(&w, "--vocab_size=%" PRId64, train_choice_vocab_size(r->text_bytes));
    if (r->args->do_lower_case) {
        words_add(&w, "--do_lower_case");
    }
    return run_step(r, &command_vocab, &w);
}

static struct status make_stores(struct train_run *r)
{
    struct words w = {0};
    add_texts(&w, r);
    words_add(&w, "--vocab_file=%s", r->vocab);
    words_add(&w, "--output_dir=%s", r->data);
    words_add(&w, "--holdout_fraction=%g", r->text_bytes < 20000000 ? 0.05 : 0.02);
    words_add(&w, "--seed=%" PRId64, r->args->seed);
    words_add(&w, "--drop_duplicates");
    words_add_list(&w, r->kind->prepare);
    if (r->kind->masked) {
        words_add(&w, "--do_lower_case=%s", r->args->do_lower_case ? "true" : "false");
    }
    return run_step(r, &command_prepare, &w);
}

/* ---- what there is, and what to make of it ---- */

/* Measures the rate of products; other programs disturb it, so the best counts. */
static struct status measure_machine(struct train_run *r)
{
    enum { N_ROUNDS = 3 };
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    const struct backend cpu = {&device_cpu, ops_cpu()};
    double best[2] = {0};
    for (int i = 0; i < 2 * N_ROUNDS; i++) {
        double flops_per_s;
        TRY(ceiling_products(&cpu, ceiling_size_of(cpu.device), (struct precision){.dtype = dtypes[i % 2]},
                             &flops_per_s));
        best[i % 2] = fmax(best[i % 2], flops_per_s);
    }
    r->bf16 = best[1] > 1.2 * best[0]; /* rounding has to be worth it */
    r->flops_per_s = best[r->bf16];
    return status_ok();
}

/* Warns where held-out text stands in the text to train on: its loss would be too good. */
static void tell_overlap(const struct token_store *heldout, const struct token_store *train)
{
    double share;
    struct status s = store_overlap(&share, &heldout->index, &train->index);
    if (failed(s)) {
        log_warning("%s", s.message);
    } else if (share > 0.01) {
        log_warning("%.1f %% of the held-out text stands word for word in the text to train on, so the model "
                    "will seem better than it is: the text repeats itself; `kiln prepare` leaves repeated "
                    "lines out with --drop_repeated_lines N",
                    100 * share);
    }
}

/* Tokens of the stores; of a dry run, which has none, a guess. */
static struct status count_tokens(struct train_run *r)
{
    enum { LEAST_TOKENS = 5000, BYTES_PER_TOKEN = 4 };
    char train_path[FILE_PATH_BYTES], heldout_path[FILE_PATH_BYTES];
    struct token_store train, heldout;
    if (r->args->common.dry_run) {
        r->facts.n_tokens = r->text_bytes / BYTES_PER_TOKEN;
        return status_ok();
    }
    TRY(file_make_path(train_path, "%s/train", r->data));
    TRY(file_make_path(heldout_path, "%s/heldout", r->data));
    TRY(token_store_open(&train, train_path));
    r->facts.n_tokens = train.index.n_tokens;
    struct status s = r->facts.n_tokens >= LEAST_TOKENS
                          ? token_store_open(&heldout, heldout_path)
                          : status_error(STATUS_DATA,
                                         "the text has %" PRId64 " tokens to train on, and a model needs at "
                                         "least %d, some 15 pages: give more text",
                                         r->facts.n_tokens, LEAST_TOKENS);
    if (!failed(s)) {
        log_info("text: %.1f MB; %" PRId64 " tokens to train on, %" PRId64 " held out",
                 (double)r->text_bytes * 1e-6, train.index.n_tokens, heldout.index.n_tokens);
        tell_overlap(&heldout, &train);
        token_store_close(&heldout);
    }
    token_store_close(&train);
    return s;
}

static void tell_choice(const struct train_run *r)
{
    const struct train_choice *c = &r->choice;
    log_info("machine: %.0f GFLOP/s in %s; %.1f minutes are left for training", r->flops_per_s * 1e-9,
             r->bf16 ? "bf16" : "fp32", r->facts.seconds / 60);
    log_info("vocabulary: %" PRId64 " pieces, for %.1f MB of text", r->facts.vocab_size,
             (double)r->text_bytes * 1e-6);
    log_info("model: %s of %" PRId64 " layers of width %" PRId64
             ", the largest that sees %d tokens for each of its %.1f million weights",
             r->kind->title, c->size->n_layers, c->size->width, TRAIN_TOKENS_PER_WEIGHT,
             (double)c->n_weights * 1e-6);
    log_info("training: about %.1f million tokens, %.1f epochs, in steps of %" PRId64 " x %" PRId64
             " tokens; it ends by %s",
             c->n_tokens * 1e-6, c->epochs, c->batch, c->length,
             c->ends_by_steps ? "steps: more epochs would be learnt by heart" : "the clock");
    if (r->kind->masked) {
        log_info("to expect: a loss 2 to 3 below that of word frequencies, which each evaluation prints");
    } else {
        log_info(
            "to expect: %.2f to %.2f bits a byte of held-out text, for English; counts of n-grams, which "
            "each evaluation prints, are what to beat",
            c->bits[0], c->bits[1]);
    }
}

/* Chooses once; a later start continues with the same. */
static struct status choose(struct train_run *r)
{
    json_t *seconds = json_object_get(r->state.root, "seconds"),
           *flops = json_object_get(r->state.root, "flops");
    struct train_facts *f = &r->facts;
    if (flops == NULL) {
        TRY(measure_machine(r));
        double left =
            r->args->hours * 3600 * 0.97 - clock_since_s(r->start_ns) - 5; /* the end takes some seconds */
        json_object_set_new(r->state.root, "seconds", json_real(fmax(floor(left), 2)));
        json_object_set_new(r->state.root, "flops", json_real(r->flops_per_s));
        json_object_set_new(r->state.root, "bf16", json_boolean(r->bf16));
        seconds = json_object_get(r->state.root, "seconds");
        flops = json_object_get(r->state.root, "flops");
    }
    r->flops_per_s = json_number_value(flops);
    r->bf16 = json_is_true(json_object_get(r->state.root, "bf16"));
    f->masked = r->kind->masked;
    f->vocab_size = train_choice_vocab_size(r->text_bytes);
    f->flops_per_s = r->flops_per_s;
    f->seconds = json_number_value(seconds);
    TRY(count_tokens(r));
    r->choice = train_choice_make(f);
    tell_choice(r);
    return train_state_write(&r->state);
}

/* Dropout is for text that is repeated. */
static struct status write_config(const struct train_run *r)
{
    char path[FILE_PATH_BYTES];
    TRY(file_make_path(path, "%s/config.json", r->data));
    return r->args->common.dry_run
               ? status_ok()
               : json_file_write(path, r->kind->config(&r->choice, r->choice.epochs > 2 ? 0.1 : 0));
}

static void add_prompts(struct words *w, const struct train_run *r, const struct train_prompts *chosen)
{
    const struct option_words *given = &r->args->prompts;
    int n = given->n > 0 ? given->n : chosen->n;
    for (int i = 0; i < n; i++) {
        if (i == 0) {
            words_add(w, "--sample_prompts");
        }
        words_add(w, "%s", given->n > 0 ? given->of[i] : chosen->of[i]);
    }
}

static struct status pretrain(struct train_run *r)
{
    const struct train_choice *c = &r->choice;
    struct train_prompts prompts = {0};
    struct words w = {0};
    int64_t interval = c->n_steps > 40 ? c->n_steps / 8 : c->n_steps;
    if (!r->args->common.dry_run && r->args->prompts.n == 0) {
        TRY(train_prompts_choose(&prompts, r->data, r->vocab, r->kind->masked));
    }
    words_add(&w, "--input_dir=%s", r->data);
    words_add(&w, "--output_dir=%s", r->args->common.output_dir);
    words_add(&w, "--vocab_file=%s", r->vocab);
    words_add(&w, "--config_file=%s/config.json", r->data);
    words_add_list(&w, r->kind->pretrain);
    if (r->kind->masked) { /* positions that are seldom seen are learnt late */
        words_add(&w, "--shifted_positions=%s", c->n_tokens > 8e6 ? "true" : "false");
    }
    words_add(&w, "--resume_from_checkpoint");
    words_add(&w, "--autocast=%s", r->bf16 ? "true" : "false");
    words_add(&w, "--max_seq_length=%" PRId64, c->length);
    words_add(&w, "--train_batch_size=%" PRId64, c->batch);
    if (c->ends_by_steps) {
        words_add(&w, "--max_steps=%" PRId64, c->n_steps);
    } else {
        words_add(&w, "--total_training_time=%.0f", r->facts.seconds);
    }
    words_add(&w, "--eval_steps=%" PRId64, interval);
    words_add(&w, "--num_steps_per_checkpoint=%" PRId64, interval);
    words_add(&w, "--log_freq=%" PRId64, c->n_steps > 200 ? (int64_t)20 : (int64_t)1);
    words_add(&w, "--seed=%" PRId64, r->args->seed);
    add_prompts(&w, r, &prompts);
    train_prompts_fini(&prompts);
    return run_step(r, &command_pretrain, &w);
}

static struct status export_model(struct train_run *r)
{
    struct words w = {0};
    words_add(&w, "--model=%s", r->args->common.output_dir);
    words_add(&w, "--output_dir=%s/model", r->args->common.output_dir);
    return run_step(r, &command_export, &w);
}

/* ---- the end ---- */

/* The last evaluation: the loss, and what counts of n-grams and word frequencies alone lose. */
static struct status tell_result(const struct train_run *r)
{
    struct run_log log;
    TRY(run_log_open(&log, r->args->common.output_dir));
    const struct run_row *last = log.evaluations.n == 0 ? NULL : &log.evaluations.rows[log.evaluations.n - 1];
    for (int m = 0; last != NULL && m < N_MEASURES; m++) {
        double loss = last->values[run_column_of(m, RUN_MEASURE_LOSS)],
               words = last->values[run_column_of(m, RUN_BASELINE_LOSS)],
               ngram = last->values[run_column_of(m, RUN_NGRAM_LOSS)];
        if (isfinite(loss) && isfinite(ngram)) {
            log_info("held-out text: perplexity %.2f, %.2f times that of counts of n-grams (%.2f)", exp(loss),
                     exp(loss - ngram), exp(ngram));
        } else if (isfinite(loss) && isfinite(words)) {
            log_info("held-out text: loss %.3f, %.2f %s that of word frequencies alone (%.3f)", loss,
                     fabs(words - loss), loss < words ? "below" : "above", words);
        }
    }
    run_log_close(&log);
    return status_ok();
}

static void tell_next(const struct train_run *r)
{
    char model[FILE_PATH_BYTES], line[2 * FILE_PATH_BYTES];
    snprintf(model, sizeof model, "%s/model", r->args->common.output_dir);
    log_info("the model is %s, its curves and samples are in %s/report.html; try:", model,
             r->args->common.output_dir);
    for (const char *const *t = r->kind->tries; *t != NULL; t++) {
        const char *place = strstr(*t, "%s");
        snprintf(line, sizeof line, "%.*s%s%s", (int)(place - *t), *t, model, place + 2);
        log_info("  kiln %s", line);
    }
}

static struct status run_steps(struct train_run *r)
{
    TRY(make_vocabulary(r));
    TRY(make_stores(r));
    TRY(choose(r));
    TRY(write_config(r));
    TRY(pretrain(r));
    TRY(export_model(r));
    if (r->args->common.dry_run) {
        return status_ok();
    }
    fflush(stdout); /* what the commands printed comes first */
    TRY(tell_result(r));
    tell_next(r);
    return status_ok();
}

/* Before anything is made: there is text, and the model is not written into it. */
static struct status look_at_text(struct train_run *r, struct input_files *files)
{
    enum { LEAST_BYTES = 2500 }; /* packed, 15 pages take more */
    TRY(input_files_list(files, r->texts, r->n_texts));
    r->text_bytes = (int64_t)files->total_bytes;
    FAIL_IF(r->text_bytes < LEAST_BYTES, STATUS_DATA,
            "the text has %" PRId64
            " bytes, and a model needs at least some 15 pages, 20,000 bytes: give more text",
            r->text_bytes);
    return input_files_check_output_directory(files, r->texts, r->n_texts, "--output_dir",
                                              r->args->common.output_dir);
}

static struct status open_and_run(struct train_run *r)
{
    const struct command_flags *c = &r->args->common;
    struct input_files files = {0};
    struct status s = look_at_text(r, &files);
    if (!failed(s)) {
        s = train_state_open(&r->state, c->output_dir, &files, flags_of(r->args), c->dry_run);
        r->data = r->state.data;
        s = failed(s) ? s : file_make_path(r->vocab, "%s/%s", r->data, r->kind->vocab_read);
        s = failed(s) ? s : run_steps(r);
        train_state_close(&r->state);
    }
    input_files_fini(&files);
    if (s.code == STATUS_PREEMPTED) {
        log_info("stopped: the same command continues");
    }
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct train_args *a = args;
    struct train_run r = {.args = a, .kind = train_kind_find(a->kind), .start_ns = clock_ns()};
    struct input_paths texts;
    FAIL_IF(a->do_lower_case && !r.kind->masked, STATUS_USAGE,
            "--do_lower_case cannot be with --kind %s, which keeps all bytes", a->kind);
    TRY(input_paths_init(&texts, a->input, NULL, n_positional, positional));
    r.texts = texts.paths;
    r.n_texts = texts.n;
    struct status s =
        texts.n > 0 ? open_and_run(&r) : status_error(STATUS_USAGE, "no text: give files or folders of text");
    input_paths_fini(&texts);
    return s;
}

const struct command command_train = {
    .name = "train",
    .summary = "make a model of your texts: everything from files to a model, in the time that you give",
    .details =
        "Looks at the text and at this machine, chooses vocabulary, model and training, and runs vocab, "
        "prepare, pretrain and export, each with the flags that it prints. A part of the text is held "
        "out, to measure what was learnt. After an interruption the same command continues.",
    .positional_usage = "[PATH...]",
    .max_positional = 10000,
    .options = options,
    .args_bytes = sizeof(struct train_args),
    .run = run,
};
