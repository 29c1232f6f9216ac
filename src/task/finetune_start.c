/* What a fine-tuning begins with: flags that go together, the model, and its weights. */
#include "task/finetune_job.h"

#include "core/log.h"
#include "ops/half_ops.h"
#include "pass/network_files.h"
#include "task/finetune_finished.h"
#include "task/run_outputs.h"
#include "text/tokenizer_open.h"

static struct status check_evaluation(const struct finetune_options *o)
{
    if (o->eval_file != NULL && !o->do_train) {
        return status_error(
            STATUS_USAGE,
            "--eval_file is evaluated during training: add --do_train, or give the file as --predict_file");
    }
    if (o->eval_file == NULL && (o->early.patience > 0 || o->eval_steps > 0)) {
        return status_error(STATUS_USAGE,
                            "--%s needs --eval_file, labelled data that is not used for training",
                            o->early.patience > 0 ? "early_stopping_patience" : "eval_steps");
    }
    if (o->early.patience > 0 && o->skip_checkpoint) {
        return status_error(STATUS_USAGE, "--early_stopping_patience needs checkpoints, to return to the "
                                          "best: leave out --skip_checkpoint");
    }
    return status_ok();
}

struct status finetune_check_options(const struct finetune_options *o, const struct finetune_task *task)
{
    if (!o->do_train && !o->do_predict) {
        return status_error(STATUS_USAGE, "nothing to do: give --do_train, --do_predict or both");
    }
    if (o->do_train && o->train_file == NULL) {
        return status_error(STATUS_USAGE, "--do_train needs --train_file");
    }
    if (o->do_predict && o->predict_file == NULL) {
        return status_error(STATUS_USAGE, "--do_predict needs --predict_file");
    }
    if (o->do_eval && !o->do_predict) {
        return status_error(STATUS_USAGE, "--do_eval scores predictions: add --do_predict");
    }
    TRY(check_evaluation(o));
    TRY(profile_check(&o->profile));
    TRY(plain_ops_check(o->watch.plain_ops));
    if (o->do_train && o->max_steps <= 0 && o->num_train_epochs < 1) {
        return status_error(STATUS_USAGE, "--num_train_epochs %g is less than one whole epoch",
                            o->num_train_epochs);
    }
    if (rank_options_world(&o->ranks).rank > 0) {
        return status_ok();
    }
    TRY(o->dry_run ? status_ok() : run_outputs_check(o->output_dir));
    return finetune_finished_check(o, task);
}

struct status finetune_open_model(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    TRY(model_dir_open_given(
        &j->open.model, o->init_checkpoint,
        (struct model_dir_given){.config_file = o->config_file, .vocab_file = o->vocab_file}));
    if (o->config_file != NULL) {
        TRY(status_context(model_dir_check_config(&j->open.model, o->config_file),
                           "%s is not the configuration of %s", o->config_file, o->init_checkpoint));
    }
    if (o->vocab_file != NULL) {
        struct tokenizer given;
        TRY(tokenizer_open_vocabulary(&given, o->vocab_file, false));
        bool same = given.hash == j->open.model.tokenizer.hash;
        tokenizer_fini(&given);
        if (!same) {
            return status_error(STATUS_DATA, "%s is not the vocabulary of %s", o->vocab_file,
                                o->init_checkpoint);
        }
    }
    int64_t positions = model_dir_sizes(&j->open.model).max_length;
    if (o->max_seq_length > positions) {
        return status_error(STATUS_USAGE, "--max_seq_length %lld is more than the %lld positions of %s",
                            (long long)o->max_seq_length, (long long)positions, o->init_checkpoint);
    }
    if (!o->do_lower_case) {
        return status_ok();
    }
    if (!j->open.model.tokenizer.lower_case) {
        log_warning("%s is a cased model, but --do_lower_case was given: its text is lower-cased",
                    o->init_checkpoint);
    }
    return tokenizer_set_lower_case(&j->open.model.tokenizer, true);
}

/* As the working copy in fp16 has them; vectors are read in fp32 there too. */
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

/* Gives a model that nobody trains a random head in place of one that its files lack.  A trainer that learns
 * has drawn all weights already. */
static struct status draw_head(struct finetune_job *j)
{
    const struct model_dir *m = &j->open.model;
    if (j->options->do_train || !j->task->predicts_untrained || !lacks_head(j)) {
        return status_ok();
    }
    if (rank_options_world(&j->options->ranks).rank == 0) {
        log_warning("%s is a %s: the head of a %s is new and random, and without --do_train nothing trains "
                    "it, so the predictions are random; for good ones give a fine-tuned model",
                    j->options->init_checkpoint, m->family->class_of(m->task),
                    m->family->class_of(j->task->task));
    }
    return trainer_initialize(&j->trainer);
}

struct status finetune_load_weights(struct finetune_job *j)
{
    struct load_report report;
    bool may_lack = j->options->do_train || j->task->predicts_untrained;
    TRY(draw_head(j));
    TRY(network_files_load(&j->trainer.net, &j->open.model, j->task->task, may_lack ? j->task->may_be_new : 0,
                           &report));
    load_report_print(&report, j->options->init_checkpoint);
    if (j->precision.rounds_to_f16) {
        round_matrices(&j->trainer);
    }
    return status_ok();
}
