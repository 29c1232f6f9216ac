/* Start of a run of pre-training: the weights and position that it begins with. */
#include "task/pretrain_run.h"

#include "core/clock.h"
#include "core/integers.h"
#include "core/log.h"
#include "data/ppmi_vectors.h"
#include "pass/network_files.h"
#include "pass/weight_window.h"
#include "task/own_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run accepts weights only of the same architecture and vocabulary.  `rows`: rows of the word
 * embeddings. */
static struct status check_same_model(const struct pretrain_run *r, const void *config, int64_t rows,
                                      uint64_t vocab_hash, const char *path)
{
    const struct model *m = r->in.model;
    struct status s = rows == m->vocab_size
                          ? r->options->kind->family->same_architecture(config, m->type->config(m))
                          : status_error(STATUS_DATA, "\"vocab_size\" is %lld there and %lld here",
                                         (long long)rows, (long long)m->vocab_size);
    TRY(status_context(s, "%s has another architecture than %s", path,
                       r->options->config != NULL ? pretrain_config_name(r->options) : "--config_file"));
    return pretrain_inputs_check_vocab(&r->in, vocab_hash, path);
}

static struct status other_family(const struct pretrain_run *r, const struct model_family *family,
                                  const char *path)
{
    return status_error(STATUS_DATA, "%s is a %s model, and this run trains %s", path, family->name,
                        r->options->kind->family->name);
}

/* Another program may have counted the samples that its steps consumed: the next batch begins after them. */
static struct status check_samples(const struct pretrain_options *o, const struct training_state *from)
{
    int64_t step = json_integer_value(json_object_get(from->position, "global_step"));
    int64_t says = json_integer_value(json_object_get(from->position, "consumed_samples"));
    int64_t own = pretrain_samples_at(o, step + 1).before;
    FAIL_IF(says != 0 && says != own, STATUS_USAGE,
            "%s consumed %lld samples in its %lld steps, but the batches of this run's flags would have been "
            "%lld samples: give the batch sizes of that run",
            from->path, (long long)says, (long long)step, (long long)own);
    return status_ok();
}

/* Dropout makes no other network, but another run. */
static void warn_of_dropout(const struct model_family *family, const void *saved, const struct model *model)
{
    const char *key;
    const json_t *value;
    json_t *old = family->config_to_json(saved, model->task);
    json_t *new = family->config_to_json(model->type->config(model), model->task);
    json_object_foreach(old, key, value)
    {
        double was = json_real_value(value), is = json_real_value(json_object_get(new, key));
        if (was != is && strcmp(key, "initializer_range") != 0) {
            log_warning("%s was %g in the checkpoint and is %g now", key, was, is);
        }
    }
    json_decref(old);
    json_decref(new);
}

struct status pretrain_check_checkpoint(void *self, const struct training_state *from)
{
    const struct pretrain_run *r = self;
    TRY(check_samples(r->options, from));
    const struct pretrain_kind *kind = r->options->kind;
    const struct model_family *ours = kind->family, *family;
    void *config;
    TRY(kind->check_checkpoint != NULL ? kind->check_checkpoint(r->options, from) : status_ok());
    if (from->config == NULL) {
        return pretrain_inputs_check_vocab(&r->in, from->vocab_hash, from->path);
    }
    TRY(model_family_parse_config(&family, &config, from->config, from->path));
    struct status s = family == ours ? check_same_model(r, config, ours->sizes(config).vocab_size,
                                                        from->vocab_hash, from->path)
                                     : other_family(r, family, from->path);
    if (!failed(s)) {
        warn_of_dropout(ours, config, r->in.model);
    }
    free(config);
    return s;
}

/* Phase 2 begins where phase 1 ended, with its own step 0. */
struct status pretrain_begin_phase(void *self, const struct run_state *saved, const char *path)
{
    const struct pretrain_options *o = ((const struct pretrain_run *)self)->options;
    FAIL_IF(saved->phase > 1, STATUS_USAGE, "%s is a checkpoint of phase 2; add --phase2 to continue from it",
            path);
    FAIL_IF(saved->global_step != o->phase1_end_step, STATUS_USAGE,
            "%s is at step %lld of phase 1, but --phase1_end_step is %lld; finish phase 1 first, or pass "
            "--phase1_end_step=%lld",
            path, (long long)saved->global_step, (long long)o->phase1_end_step,
            (long long)saved->global_step);
    return status_ok();
}

/* Files of the run, for a model that has none of its own. */
static struct model_dir_given given_of(const struct pretrain_run *r)
{
    bool is_whole = r->in.vocab_path[0] != '\0' && r->options->run.vocabulary.merge_file == NULL;
    const char *vocabulary = is_whole ? r->in.vocab_path : NULL;
    const struct model *m = r->in.model;
    bool by_flags = r->options->config != NULL;
    return (struct model_dir_given){.config_file = by_flags ? NULL : r->options->run.common.config_file,
                                    .vocab_file = vocabulary,
                                    .family = r->options->kind->family,
                                    .config = by_flags ? m->type->config(m) : NULL,
                                    .n_words = m->n_words};
}

/* The number of rows that pad the vocabulary may differ. */
static struct status check_start(const struct pretrain_run *r, const struct model_dir *m, const char *path)
{
    int64_t rows = r->in.model->vocab_size;
    if (m->family != r->options->kind->family) {
        return other_family(r, m->family, path);
    }
    rows = rows >= m->tokenizer.n ? rows : model_dir_sizes(m).vocab_size;
    return check_same_model(r, m->config, rows, m->tokenizer.hash, path);
}

/* Loads the weights of any model directory; heads that it lacks are new. */
static struct status start_from_model(struct pretrain_run *r, const char *path)
{
    const struct pretrain_kind *kind = r->options->kind;
    struct model_dir m;
    struct load_report report;
    TRY(model_dir_open_given(&m, path, given_of(r)));
    struct status s = check_start(r, &m, path);
    if (!failed(s)) {
        s = network_files_load(&r->run.trainer.net, &m, kind->task(r->options), kind->may_be_new, NULL,
                               &report);
    }
    if (!failed(s)) {
        load_report_print(&report, path);
    }
    model_dir_close(&m);
    return s;
}

/* Sets the rows of words that have a vector, in the length that random ones have. */
static void set_words(tensor rows, const float *vectors, double length)
{
    int64_t n_columns = tensor_cols(rows);
    for (int64_t i = 0; i < tensor_rows(rows); i++) {
        double squares = 0;
        for (int64_t j = 0; j < n_columns; j++) {
            squares += (double)vectors[i * n_columns + j] * vectors[i * n_columns + j];
        }
        for (int64_t j = 0; j < n_columns && squares > 0; j++) {
            tensor_set(rows, i * n_columns + j, length * vectors[i * n_columns + j]);
        }
    }
}

/* Words without a vector begin as without the flag.  A rank of a mesh has some of them, or none. */
static struct status write_words(struct pretrain_run *r, const struct param *words, const float *vectors,
                                 int64_t n_words)
{
    struct weight_window window;
    tensor rows;
    int64_t first = words->first[0], n_here = int_smaller(n_words - first, words->dims[0]);
    if (n_here <= 0) {
        return status_ok();
    }
    TRY(weight_window_open(&window, &r->run.trainer.net));
    struct weight_sink sink = weight_window_sink(&window);
    struct status s = weight_window_draw(&window, words, r->run.trainer.config.seed, &rows);
    if (!failed(s)) {
        rows.dims[0] = n_here;
        set_words(rows, vectors + first * words->dims[1], words->init_scale * sqrt((double)words->dims[1]));
        s = sink.put(sink.self, words, rows);
    }
    struct status written = weight_window_close(&window);
    return failed(s) ? s : written;
}

/* Starts from the vectors of --ppmi_embeddings; their seconds count for the run's clock. */
static struct status start_from_neighbours(struct pretrain_run *r)
{
    struct network *net = &r->run.trainer.net;
    const struct model *m = r->in.model;
    const struct param *words = param_table_find(&net->params, m->tied);
    if (words == NULL) { /* a stage between the input layer and the heads */
        return status_ok();
    }
    int64_t start_ns = clock_ns(), n_words = m->n_words;
    float *vectors = malloc((size_t)(n_words * m->hidden_size) * sizeof *vectors);
    struct status s = vectors == NULL ? status_error(STATUS_MEMORY, "out of memory for %lld word vectors",
                                                     (long long)n_words)
                                      : ppmi_vectors(vectors, &r->in.train.store->index, n_words,
                                                     m->hidden_size, (uint64_t)r->options->run.seed);
    s = failed(s) ? s : write_words(r, words, vectors, n_words);
    free(vectors);
    TRY(s);
    double seconds = (double)(clock_ns() - start_ns) * 1e-9;
    if (r->run.loop.clock != NULL) {
        run_clock_resume(r->run.loop.clock, seconds, 0);
    }
    log_info(
        "word embeddings: begin as vectors of %lld words from their neighbours in the text, found in %.1f s",
        (long long)n_words, seconds);
    return status_ok();
}

/* --init_checkpoint asks for its weights, not for what another program left in --output_dir. */
static struct training_state_place place_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    return (struct training_state_place){.step = o->resume_step,
                                         .others =
                                             o->run.resume_from_checkpoint && o->run.init_checkpoint == NULL,
                                         .universal = o->load_universal,
                                         .given = given_of(r),
                                         .task = o->kind->foreign_task};
}

/* A run that resumes from another directory's checkpoint does not mix its own with those of a third. */
static struct status check_load(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    struct checkpoint_steps own = {0};
    char path[CHECKPOINT_PATH_BYTES];
    if (o->run.load_dir == NULL || strcmp(o->run.load_dir, o->run.common.output_dir) == 0) {
        return status_ok();
    }
    TRY(own_files_checkpoints(path, o->run.common.output_dir, pretrain_tuning_command(o)));
    TRY(checkpoint_dir_list(&own, path, "ckpt_"));
    int n = own.n;
    free(own.steps);
    FAIL_IF(n != 0, STATUS_USAGE,
            "%s has checkpoints already, and %s names %s: give %s %s to continue from them, or another %s",
            o->run.common.output_dir, o->run.names->resume, o->run.load_dir, o->run.names->resume,
            o->run.common.output_dir, o->run.names->output);
    return status_ok();
}

struct status pretrain_export_path(char path[CHECKPOINT_PATH_BYTES], const struct pretrain_options *o)
{
    return checkpoint_path(path, o->exports_model ? "%s/model" : "%s/best", o->run.common.output_dir);
}

/* A run that begins has no model yet: one that is there is another's, and would be replaced. */
static struct status check_export(const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(pretrain_export_path(path, o));
    return !file_exists(path) || (!o->exports_model && o->run.early.patience == 0)
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "%s is there already, and %s has no checkpoint of a run that made it: move it "
                              "away, or give another %s",
                              path, o->run.common.output_dir, o->run.names->output);
}

/* Loads the weights and position to start from: the newest checkpoint, a given model, or nothing. */
struct status pretrain_restore(void *self)
{
    struct pretrain_run *r = self;
    const struct pretrain_options *o = r->options;
    bool found;
    slow_work_phase(&r->run.loop.start, "looking for weights to start from, and checking their checksums,");
    TRY(check_load(r));
    r->run.loop.place = place_of(r);
    TRY(loop_restore(&r->run.loop, &found));
    if (found) {
        return status_ok();
    }
    TRY(check_export(o));
    if (o->run.init_checkpoint != NULL) {
        return start_from_model(r, o->run.init_checkpoint);
    }
    FAIL_IF(o->phase2, STATUS_NO_CHECKPOINT, "--phase2 continues phase 1, but %s has no checkpoint",
            o->run.common.output_dir);
    if (o->run.load_dir != NULL) {
        log_warning("%s %s has no checkpoint: starting from random weights", o->run.names->resume,
                    o->run.load_dir);
    } else if (o->run.resume_from_checkpoint) {
        log_info("%s has no checkpoint yet: starting from the beginning", o->run.common.output_dir);
    }
    return o->ppmi_embeddings ? start_from_neighbours(r) : status_ok();
}
