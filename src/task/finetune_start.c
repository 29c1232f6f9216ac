/* Start of a fine-tuning: checks of flags, the model, its weights, and inputs that are missing. */
#include "task/finetune_job.h"

#include "core/log.h"
#include "ops/half_ops.h"
#include "pass/network_files.h"
#include "serve/packer.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>

static struct status check_evaluation(const struct finetune_options *o)
{
    FAIL_IF(o->eval_file != NULL && !o->do_train, STATUS_USAGE,
            "--eval_file is evaluated during training: add --do_train, or give the file as --predict_file");
    FAIL_IF(o->eval_file == NULL && (o->run.early.patience > 0 || o->run.eval_steps > 0), STATUS_USAGE,
            "--%s needs --eval_file, labelled data that is not used for training",
            o->run.early.patience > 0 ? "early_stopping_patience" : "eval_steps");
    return status_ok();
}

struct status finetune_check(void *self)
{
    const struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    FAIL_IF(!o->do_train && !o->do_predict, STATUS_USAGE,
            "nothing to do: give --do_train, --do_predict or both");
    FAIL_IF(o->do_train && o->train_file == NULL, STATUS_USAGE, "--do_train needs --train_file");
    FAIL_IF(o->do_predict && o->predict_file == NULL, STATUS_USAGE, "--do_predict needs --predict_file");
    FAIL_IF(o->do_eval && !o->do_predict, STATUS_USAGE, "--do_eval scores predictions: add --do_predict");
    TRY(check_evaluation(o));
    FAIL_IF(o->do_train && o->max_steps <= 0 && o->num_train_epochs < 1, STATUS_USAGE,
            "--num_train_epochs %g is less than one whole epoch", o->num_train_epochs);
    return status_ok();
}

struct status finetune_open_model(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    TRY(model_dir_open_given(&j->open.model, o->run.init_checkpoint,
                             (struct model_dir_given){.config_file = o->run.common.config_file,
                                                      .vocab_file = o->run.vocabulary.vocab_file}));
    if (o->run.common.config_file != NULL) {
        TRY(status_context(model_dir_check_config(&j->open.model, o->run.common.config_file),
                           "%s is not the configuration of %s", o->run.common.config_file,
                           o->run.init_checkpoint));
    }
    if (o->run.vocabulary.vocab_file != NULL) {
        struct tokenizer given;
        TRY(tokenizer_open_vocabulary(&given, o->run.vocabulary.vocab_file, false));
        bool same = given.hash == j->open.model.tokenizer.hash;
        tokenizer_fini(&given);
        FAIL_IF(!same, STATUS_DATA, "%s is not the vocabulary of %s", o->run.vocabulary.vocab_file,
                o->run.init_checkpoint);
    }
    int64_t positions = model_dir_sizes(&j->open.model).max_length;
    FAIL_IF(o->run.batch.max_seq_length > positions, STATUS_USAGE,
            "--max_seq_length %lld is more than the %lld positions of %s",
            (long long)o->run.batch.max_seq_length, (long long)positions, o->run.init_checkpoint);
    if (!o->run.vocabulary.do_lower_case) {
        return status_ok();
    }
    if (!j->open.model.tokenizer.lower_case) {
        log_warning("%s is a cased model, but --do_lower_case was given: its text is lower-cased",
                    o->run.init_checkpoint);
    }
    return tokenizer_set_lower_case(&j->open.model.tokenizer, true);
}

/* Rounds matrices as the working copy in fp16 does; vectors are read in fp32 there too. */
static void round_matrices(struct trainer *t)
{
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        if (p->n_dims == 2) {
            half_ops_round_tensor(param_view(p, t->net.master));
        }
    }
    network_weights_changed(&t->net);
}

/* Whether the files lack all tensors of a part that may be new. */
static bool lacks_head(const struct finetune_job *j)
{
    const struct model_files *files = &j->open.model.files;
    unsigned present = 0;
    for (int i = 0; i < files->n_tensors; i++) {
        present |= 1U << files->tensors[i].as.part;
    }
    return (j->task->may_be_new & ~present) != 0;
}

/* Draws a random head for a model that is not trained and whose files lack it.  A trainer that learns has
 * drawn all weights already. */
static struct status draw_head(struct finetune_job *j)
{
    const struct model_dir *m = &j->open.model;
    if (j->options->do_train || !j->task->predicts_untrained || j->task->learns_vectors || !lacks_head(j)) {
        return status_ok();
    }
    if (j->run.loop.ranks.world.rank == 0) {
        log_warning("%s is a %s: the head of a %s is new and random, and without --do_train nothing trains "
                    "it, so the predictions are random; for good ones give a fine-tuned model",
                    j->options->run.init_checkpoint, m->family->class_of(m->task),
                    m->family->class_of(j->task->task));
    }
    return trainer_initialize(&j->run.trainer);
}

struct status finetune_load_weights(struct finetune_job *j)
{
    struct load_report report;
    bool may_lack = j->options->do_train || j->task->predicts_untrained;
    TRY(draw_head(j));
    TRY(network_files_load(&j->run.trainer.net, &j->open.model, j->task->task,
                           may_lack ? j->task->may_be_new : 0, NULL, &report));
    load_report_print(&report, j->options->run.init_checkpoint);
    if (j->run.precision.rounds_to_f16) {
        round_matrices(&j->run.trainer);
    }
    return status_ok();
}

/* ---- what a dry run plans with where its inputs are not there yet ---- */

bool finetune_find_missing(void *self, struct missing *m)
{
    const struct finetune_options *o = ((const struct finetune_job *)self)->options;
    missing_config(m, o->run.common.config_file);
    missing_weights(m, o->run.init_checkpoint);
    missing_path(m, "vocab_file", o->run.vocabulary.vocab_file,
                 "it comes with the model, so the flag may be left out");
    if (o->do_train) {
        missing_path(m, "train_file", o->train_file, "you provide it; SQuAD's is train-v1.1.json");
    }
    missing_path(m, "eval_file", o->eval_file, "you provide it: labelled data that is not used for training");
    if (o->do_predict) {
        missing_path(m, "predict_file", o->predict_file, "you provide it; SQuAD's is dev-v1.1.json");
    }
    return m->n > 0;
}

/* The vocabulary is the usual one where nothing says its size. */
static struct status create(struct model **model, const struct model_family *family, void *config,
                            const struct finetune_options *o, enum model_task task)
{
    struct model_family_sizes sizes = family->sizes(config);
    if (sizes.vocab_size == 0) {
        log_info("planned with a vocabulary of %lld pieces", (long long)family->usual_words);
        family->set_words(config, family->usual_words, family->usual_words);
    }
    FAIL_IF(sizes.max_length < o->run.batch.max_seq_length, STATUS_USAGE,
            "--max_seq_length %lld is more than the %lld positions of the model",
            (long long)o->run.batch.max_seq_length, (long long)sizes.max_length);
    return family->create(model, config, task);
}

static struct status create_of_file(struct model **model, const struct finetune_options *o,
                                    enum model_task task)
{
    const struct model_family *family;
    void *config;
    json_t *root;
    TRY(model_family_read_config(&family, &config, &root, o->run.common.config_file));
    struct status s = create(model, family, config, o, task);
    free(config);
    json_decref(root);
    return s;
}

static struct status create_of_directory(struct model **model, const struct finetune_options *o,
                                         enum model_task task)
{
    struct model_dir m;
    TRY(model_dir_open_given(&m, o->run.init_checkpoint,
                             (struct model_dir_given){.vocab_file = o->run.vocabulary.vocab_file}));
    if (model_dir_labels(&m) != NULL) {
        model_dir_labels(&m)->names = NULL; /* those of the directory, which is closed */
    }
    struct status s = create(model, m.family, m.config, o, task);
    model_dir_close(&m);
    return s;
}

static struct status assume_model(struct model **model, const struct finetune_options *o,
                                  enum model_task task)
{
    if (o->run.common.config_file != NULL && !missing_is(o->run.common.config_file)) {
        return create_of_file(model, o, task);
    }
    return missing_weights_are(o->run.init_checkpoint) ? status_ok() : create_of_directory(model, o, task);
}

struct status finetune_assume(void *self)
{
    struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    const struct run_settings *s = &o->run;
    TRY(finetune_finished_check(j));
    if (o->do_train) {
        TRY(batch_check_cut(s->batch.train_batch_size, s->batch.gradient_accumulation_steps));
        j->limits = text_batch_limits(s->batch.train_batch_size / s->batch.gradient_accumulation_steps,
                                      s->batch.max_seq_length, 0);
        j->run.limits = j->limits;
    }
    if (o->do_predict) {
        j->run.limits =
            batch_limits_both(j->limits, packer_limits(o->predict_batch_size * s->batch.max_seq_length,
                                                       s->batch.max_seq_length));
    }
    TRY(assume_model(&j->model, o, j->task->task));
    j->run.model = j->model;
    return status_ok();
}
