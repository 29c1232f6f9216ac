/* Where a run of pre-training starts from. */
#include "task/pretrain_run.h"

#include "core/clock.h"
#include "core/log.h"
#include "data/ppmi_vectors.h"
#include "dev/host_view.h"
#include "model/bert/bert_family.h"
#include "pass/network_files.h"
#include "task/pretrain_settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run accepts weights only of the same architecture and vocabulary. */
static struct status check_same_model(const struct pretrain_run *r, const struct bert_config *config,
                                      uint64_t vocab_hash, const char *path)
{
    TRY(status_context(bert_config_same_architecture(config, &r->in.model),
                       "%s has another architecture than --config_file", path));
    return pretrain_inputs_check_vocab(&r->in, vocab_hash, path);
}

/* A model without next sentences has other tensors, so neither kind of run goes on from the other. */
static struct status check_task(const struct pretrain_options *o, const struct training_state *from)
{
    const json_t *classes = json_object_get(from->config, "architectures");
    const char *class = json_string_value(json_array_get(classes, 0));
    bool alone = class != NULL && strcmp(class, bert_task_class(MODEL_TASK_MASKED_LM)) == 0;
    if (class == NULL || alone == o->no_nsp) {
        return status_ok();
    }
    return status_error(STATUS_USAGE,
                        "%s is of a run %s --no_nsp: go on %s it, or start from its weights with "
                        "--init_checkpoint in another --output_dir",
                        from->path, alone ? "with" : "without", alone ? "with" : "without");
}

struct status pretrain_check_checkpoint(void *self, const struct training_state *from)
{
    const struct pretrain_run *r = self;
    struct bert_config saved = r->in.model;
    TRY(check_task(r->options, from));
    TRY(from->config == NULL ? status_ok() : bert_config_parse(&saved, from->config, from->path));
    return check_same_model(r, &saved, from->vocab_hash, from->path);
}

/* Phase 2 begins where phase 1 ended, with its own step 0. */
struct status pretrain_begin_phase(void *self, const struct run_state *saved, const char *path)
{
    const struct pretrain_options *o = ((const struct pretrain_run *)self)->options;
    if (saved->phase > 1) {
        return status_error(STATUS_USAGE, "%s is a checkpoint of phase 2; add --phase2 to continue from it",
                            path);
    }
    if (saved->global_step != o->phase1_end_step) {
        return status_error(STATUS_USAGE,
                            "%s is at step %lld of phase 1, but --phase1_end_step is %lld; finish phase 1 "
                            "first, or pass --phase1_end_step=%lld",
                            path, (long long)saved->global_step, (long long)o->phase1_end_step,
                            (long long)saved->global_step);
    }
    return status_ok();
}

/* What the run's own files are, where a model has none beside it. */
static struct model_dir_given given_of(const struct pretrain_run *r)
{
    const char *vocabulary = r->in.vocab_path[0] == '\0' ? NULL : r->in.vocab_path;
    return (struct model_dir_given){r->options->config_file, vocabulary};
}

/* Loads the weights of any model directory; heads that it lacks are new. */
static struct status start_from_model(struct pretrain_run *r, const char *path)
{
    struct model_dir m;
    struct load_report report;
    TRY(model_dir_open_given(&m, path, given_of(r)));
    struct bert_config config = *bert_family_config(&m);
    if (r->in.model.vocab_size >= m.tokenizer.n) {
        config.vocab_size = r->in.model.vocab_size; /* the number of padding rows may differ */
    }
    struct status s = check_same_model(r, &config, m.tokenizer.hash, path);
    if (!failed(s)) {
        unsigned may_be_new = 1U << NAMES_POOLER | 1U << NAMES_MLM | 1U << NAMES_NSP;
        s = network_files_load(&r->trainer.net, &m, pretrain_task(r->options), may_be_new, &report);
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

/* --ppmi_embeddings, whose seconds count. */
static struct status start_from_neighbours(struct pretrain_run *r)
{
    struct network *net = &r->trainer.net;
    const struct param *words = param_table_find(&net->params, r->bert.model.tied);
    const struct bert_config *c = &r->in.model;
    struct host_view master = {0};
    int64_t start_ns = clock_ns(), n_words = bert_config_n_words(c);
    float *vectors = malloc((size_t)(n_words * c->hidden_size) * sizeof *vectors);
    struct status s = vectors == NULL ? status_error(STATUS_MEMORY, "out of memory for %lld word vectors",
                                                     (long long)n_words)
                                      : ppmi_vectors(vectors, &r->in.train.store.index, n_words,
                                                     c->hidden_size, (uint64_t)r->options->seed);
    s = failed(s) ? s : host_view_open(&master, &net->x, net->master);
    if (!failed(s)) {
        tensor rows = param_view(words, master.host);
        rows.dims[0] = n_words;
        set_words(rows, vectors, words->init_scale * sqrt((double)c->hidden_size));
        host_view_commit(&master, &net->x, net->master);
        network_weights_changed(net);
        exec_synchronize(&net->x);
        s = net->x.status;
    }
    host_view_close(&master);
    free(vectors);
    TRY(s);
    double seconds = (double)(clock_ns() - start_ns) * 1e-9;
    if (r->loop.clock != NULL) {
        run_clock_resume(r->loop.clock, seconds, 0);
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
                                         .others = o->resume_from_checkpoint && o->init_checkpoint == NULL,
                                         .given = given_of(r),
                                         .task = MODEL_TASK_PRETRAINING};
}

/* Loads the weights and position to start from: the newest checkpoint, a given model, or nothing. */
struct status pretrain_restore(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    bool found;
    r->loop.place = place_of(r);
    TRY(loop_restore(&r->loop, &found));
    if (found) {
        return status_ok();
    }
    if (o->init_checkpoint != NULL) {
        return start_from_model(r, o->init_checkpoint);
    }
    if (o->phase2) {
        return status_error(STATUS_NO_CHECKPOINT, "--phase2 continues phase 1, but %s has no checkpoint",
                            o->output_dir);
    }
    if (o->resume_from_checkpoint) {
        log_info("%s has no checkpoint yet: starting from the beginning", o->output_dir);
    }
    return o->ppmi_embeddings ? start_from_neighbours(r) : status_ok();
}
