#include "train/squad.h"

#include "core/clock.h"
#include "core/log.h"
#include "data/squad_cache.h"
#include "data/squad_score.h"
#include "nn/bert_model.h"
#include "ops/backend.h"
#include "text/tokenizer_open.h"
#include "train/memory_fit.h"
#include "train/model_dir.h"
#include "train/run_outputs.h"
#include "train/run_watch.h"
#include "train/squad_predict.h"
#include "train/squad_train.h"
#include "train/stop.h"
#include "train/trainer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Questions and their windows, for training or for prediction. */
struct questions {
    struct squad_examples examples;
    struct squad_features features;
};

struct job {
    const struct squad_options *options;
    struct backend backend;
    struct precision precision;
    struct run_watch watch;
    struct model_dir model;
    struct bert_model bert;
    struct questions train, predict;
    struct trainer trainer;
    struct metrics log;
    struct dir_lock lock;
};

static struct status check_options(const struct squad_options *o)
{
    if (!o->do_train && !o->do_predict) {
        return status_error(STATUS_USAGE, "nothing to do: give --do_train, --do_predict or both");
    }
    if (o->do_train && o->train_file == NULL) {
        return status_error(STATUS_USAGE, "--do_train wants --train_file");
    }
    if (o->do_predict && o->predict_file == NULL) {
        return status_error(STATUS_USAGE, "--do_predict wants --predict_file");
    }
    if (o->do_eval && !o->do_predict) {
        return status_error(STATUS_USAGE, "--do_eval scores predictions: add --do_predict");
    }
    TRY(profile_check(&o->profile));
    if (o->do_train && o->max_steps <= 0 && o->num_train_epochs < 1) {
        return status_error(STATUS_USAGE, "--num_train_epochs %g is less than one whole epoch",
                            o->num_train_epochs);
    }
    return o->dry_run ? status_ok() : run_outputs_check(o->output_dir);
}

/* The model, and the configuration and vocabulary that were given beside it, which must be its own. */
static struct status open_model(struct job *j)
{
    const struct squad_options *o = j->options;
    TRY(model_dir_open(&j->model, o->init_checkpoint));
    TRY(tokenizer_require(&j->model.tokenizer, 1U << SPECIAL_PAD, "a batch of questions"));
    if (o->config_file != NULL) {
        json_t *object;
        struct bert_config given;
        TRY(json_read_object(&object, o->config_file));
        struct status s = bert_config_parse(&given, object, o->config_file);
        json_decref(object);
        TRY(s);
        given.vocab_size = j->model.config.vocab_size; /* files may count rows that pad the vocabulary */
        TRY(status_context(bert_config_same_architecture(&given, &j->model.config),
                           "%s is not the configuration of %s", o->config_file, o->init_checkpoint));
    }
    if (o->vocab_file != NULL) {
        struct tokenizer given;
        TRY(tokenizer_open_vocabulary(&given, o->vocab_file, false));
        bool same = given.hash == j->model.tokenizer.hash;
        tokenizer_fini(&given);
        if (!same) {
            return status_error(STATUS_DATA, "%s is not the vocabulary of %s", o->vocab_file,
                                o->init_checkpoint);
        }
    }
    if (o->max_seq_length > j->model.config.max_position_embeddings) {
        return status_error(STATUS_USAGE, "--max_seq_length %lld is more than the %lld positions of %s",
                            (long long)o->max_seq_length, (long long)j->model.config.max_position_embeddings,
                            o->init_checkpoint);
    }
    if (!o->do_lower_case) {
        return status_ok();
    }
    if (!j->model.tokenizer.lower_case) {
        log_warning("%s is a cased model, but --do_lower_case was given: its text is lower-cased",
                    o->init_checkpoint);
    }
    return tokenizer_set_lower_case(&j->model.tokenizer, true);
}

static struct squad_feature_options feature_options(const struct job *j, bool training)
{
    const struct squad_options *o = j->options;
    return (struct squad_feature_options){
        .max_seq_length = o->max_seq_length,
        .doc_stride = o->doc_stride,
        .max_query_length = o->max_query_length,
        .training = training,
    };
}

/* From the cache if it holds just these, else made, and written there unless that is unwanted. */
static struct status training_features(struct job *j, struct squad_feature_options fo)
{
    const struct squad_options *o = j->options;
    struct squad_cache_key key;
    struct buf path = {0};
    TRY(squad_cache_key_init(&key, o->train_file, &j->model.tokenizer, fo, o->version_2_with_negative));
    squad_cache_name(&path, o->train_file, o->cache_dir, o->bert_model, &fo);
    struct status s = buf_status(&path);
    if (!failed(s) && file_exists(buf_text(&path))) {
        s = squad_cache_read(&j->train.features, buf_text(&path), &key);
        if (!failed(s)) {
            log_info("features read from %s", buf_text(&path));
            buf_fini(&path);
            return s;
        }
        log_info("%s; the features are made again", s.message);
    }
    s = squad_features_build(&j->train.features, &j->train.examples, &j->model.tokenizer, fo);
    if (!failed(s) && !o->skip_cache && !o->dry_run) {
        struct status written = squad_cache_write(buf_text(&path), &j->train.features, &key);
        if (failed(written)) {
            log_warning("%s; going on without a cache of features", written.message);
        }
    }
    buf_fini(&path);
    return s;
}

static struct status read_questions(struct job *j)
{
    const struct squad_options *o = j->options;
    if (o->do_train) {
        struct squad_read_options training = {true, o->version_2_with_negative};
        TRY(squad_examples_open(&j->train.examples, o->train_file, training));
        TRY(training_features(j, feature_options(j, true)));
        log_info("training: %s: %lld questions, %lld features", o->train_file, (long long)j->train.examples.n,
                 (long long)j->train.features.n);
    }
    if (o->do_predict) {
        struct squad_read_options predicting = {false, o->version_2_with_negative};
        TRY(squad_examples_open(&j->predict.examples, o->predict_file, predicting));
        TRY(squad_features_build(&j->predict.features, &j->predict.examples, &j->model.tokenizer,
                                 feature_options(j, false)));
        log_info("prediction: %s: %lld questions, %lld features", o->predict_file,
                 (long long)j->predict.examples.n, (long long)j->predict.features.n);
    }
    return status_ok();
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Room for the batches of training and of prediction. */
static struct status trainer_config_of(struct job *j, struct trainer_config *config)
{
    const struct squad_options *o = j->options;
    struct batch_limits train = {0}, predict = {0};
    if (o->do_train) {
        TRY(squad_train_limits(&j->train.features, o, &train));
    }
    if (o->do_predict) {
        predict = squad_predict_limits(&j->predict.features, o->predict_batch_size);
    }
    j->bert = bert_model(&j->model.config, BERT_TASK_QUESTION_ANSWERING);
    *config = (struct trainer_config){
        .model = &j->bert.model,
        .device = j->backend.device,
        .ops = j->backend.ops,
        .precision = j->precision,
        .loss_scale = o->loss_scale,
        .optimizer = optimizer_defaults(OPTIMIZER_ADAMW),
        .limits = {larger(train.n_tokens, predict.n_tokens), larger(train.n_sequences, predict.n_sequences),
                   larger(train.n_labels, predict.n_labels), larger(train.max_seqlen, predict.max_seqlen)},
        .training = o->do_train,
        .saving = o->do_train && !o->skip_checkpoint,
        .seed = (uint64_t)o->seed,
    };
    /* the replaced script's: no decay, no bias correction (docs/quirks.md) */
    config->optimizer.weight_decay = 0;
    config->optimizer.bias_correction = false;
    return status_ok();
}

static struct memory_cut memory_cut_of(const struct squad_options *o)
{
    if (!o->do_train) {
        return (struct memory_cut){"--predict_batch_size", o->predict_batch_size, 1, false, 0};
    }
    return (struct memory_cut){"--train_batch_size", o->train_batch_size, o->gradient_accumulation_steps,
                               true, 0};
}

/* The head may be new when it is going to be trained. */
static struct status load_weights(struct job *j)
{
    struct load_report report;
    unsigned may_be_new = j->options->do_train ? 1U << NAMES_QA : 0;
    TRY(trainer_state_load(&j->trainer, &j->model, BERT_TASK_QUESTION_ANSWERING, may_be_new, &report));
    load_report_print(&report, j->options->init_checkpoint);
    return status_ok();
}

static struct status output_path(char path[MODEL_DIR_PATH_BYTES], const struct job *j, const char *name)
{
    int n = snprintf(path, MODEL_DIR_PATH_BYTES, "%s/%s", j->options->output_dir, name);
    return n < MODEL_DIR_PATH_BYTES ? status_ok()
                                    : status_error(STATUS_USAGE, "--output_dir is too long a path");
}

static struct status train(struct job *j)
{
    const struct squad_options *o = j->options;
    struct squad_trained result;
    char path[MODEL_DIR_PATH_BYTES];
    TRY(squad_train(&j->trainer, &j->train.features, j->train.examples.n, &j->model.tokenizer, o, &j->log,
                    &result));
    log_info("e2e_train_time %.1f s, training_sequences_per_second %.2f, final_loss %.4f", result.seconds,
             result.sequences_per_second, result.final_loss);
    if (result.n_steps > 0 && result.n_skipped == result.n_steps) {
        log_warning("the gradients of every step overflowed, so nothing was learnt: train longer, or give a "
                    "--loss_scale");
    }
    metrics_event(&j->log, "trained",
                  json_pack("{s:I, s:f, s:f, s:f}", "steps", (json_int_t)result.n_steps, "e2e_train_time",
                            result.seconds, "training_sequences_per_second", result.sequences_per_second,
                            "final_loss", result.final_loss));
    if (o->skip_checkpoint) {
        return status_ok();
    }
    TRY(output_path(path, j, "model"));
    struct model_dir_contents contents = {
        .task = BERT_TASK_QUESTION_ANSWERING,
        .config = &j->model.config,
        .tokenizer = &j->model.tokenizer,
    };
    TRY(trainer_state_export(&j->trainer, path, &contents));
    log_info("saved %s", path);
    return status_ok();
}

/* Runs `python eval_script predict_file predictions.json` as the replaced script does; its output is the
 * user's. */
static struct status run_eval_script(const struct job *j, const char *predictions)
{
    const struct squad_options *o = j->options;
    char command[4 * MODEL_DIR_PATH_BYTES];
    if (strpbrk(o->eval_script, "'\\") != NULL || strpbrk(o->predict_file, "'\\") != NULL ||
        strpbrk(predictions, "'\\") != NULL) {
        return status_error(STATUS_USAGE, "--eval_script cannot be run with quotes or backslashes in a path");
    }
    int n = snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", o->eval_script, o->predict_file,
                     predictions);
    if (n >= (int)sizeof command || system(command) != 0) { /* NOLINT(cert-env33-c): the user's own script */
        return status_error(STATUS_DATA, "--eval_script %s failed", o->eval_script);
    }
    return status_ok();
}

static struct status evaluate(struct job *j, const char *predictions)
{
    const struct squad_options *o = j->options;
    struct squad_scores score;
    if (o->eval_script != NULL) {
        return run_eval_script(j, predictions);
    }
    TRY(squad_score_files(&score, o->predict_file, predictions));
    log_info("exact_match %.4f, F1 %.4f", score.exact_match, score.f1);
    metrics_event(&j->log, "score",
                  json_pack("{s:f, s:f}", "exact_match", score.exact_match, "F1", score.f1));
    return status_ok();
}

static struct status predict(struct job *j)
{
    const struct squad_options *o = j->options;
    struct squad_answers answers;
    char predictions[MODEL_DIR_PATH_BYTES], nbest[MODEL_DIR_PATH_BYTES];
    struct squad_answer_options ao = {
        .n_best = o->n_best_size,
        .max_answer_length = o->max_answer_length,
        .version_2 = o->version_2_with_negative,
        .null_score_diff_threshold = o->null_score_diff_threshold,
    };
    TRY(output_path(predictions, j, "predictions.json"));
    TRY(output_path(nbest, j, "nbest_predictions.json"));
    TRY(squad_answers_init(&answers, &j->predict.examples, &j->predict.features, &j->model.tokenizer, ao));
    metrics_event(&j->log, "predicting",
                  json_pack("{s:I, s:I, s:I}", "questions", (json_int_t)j->predict.examples.n, "features",
                            (json_int_t)j->predict.features.n, "batch_size",
                            (json_int_t)o->predict_batch_size));
    struct profile profile = {0};
    struct profile_options times = o->profile;
    times.enabled = times.enabled && !o->do_train; /* where there is training, it is what is timed */
    struct status s = profile_open(&profile, &times, o->output_dir, &j->trainer.x);
    j->trainer.profile = &profile;
    int64_t start = clock_ns();
    if (!failed(s)) {
        stop_begin_work();
        s = squad_predict(&j->trainer, &answers, o->predict_batch_size,
                          j->model.tokenizer.special[SPECIAL_PAD], &j->log.progress, stop_requested);
    }
    double seconds = clock_since_s(start);
    profile_close(&profile);
    j->trainer.profile = NULL;
    if (!failed(s)) {
        s = squad_answers_write(&answers, predictions, nbest);
    }
    squad_answers_fini(&answers);
    TRY(s);
    double rate = (double)j->predict.features.n / seconds;
    log_info("e2e_inference_time %.1f s, inference_sequences_per_second %.2f; wrote %s and %s", seconds, rate,
             predictions, nbest);
    metrics_event(&j->log, "predicted",
                  json_pack("{s:I, s:f, s:f}", "features", (json_int_t)j->predict.features.n,
                            "e2e_inference_time", seconds, "inference_sequences_per_second", rate));
    return o->do_eval ? evaluate(j, predictions) : status_ok();
}

static struct status open_logs(struct job *j)
{
    const struct squad_options *o = j->options;
    struct metrics_options logs = {
        .directory = o->output_dir,
        .dllogger_file = o->json_summary,
        .tensorboard = o->enable_tensorboard_logging,
        .progress = !o->disable_progress_bar,
        .log_every = o->log_freq,
        .process_start_ns = clock_ns(),
    };
    return metrics_open(&j->log, &logs);
}

/* Room for the checkpoints and, beside them, the fine-tuned model. */
static struct status open_outputs(struct job *j, const struct trainer_plan *plan)
{
    const struct squad_options *o = j->options;
    int64_t interval = o->num_steps_per_checkpoint;
    int64_t epoch = o->do_train ? (j->train.features.n + o->train_batch_size - 1) / o->train_batch_size : 0;
    int64_t steps = o->max_steps > 0 ? (int64_t)o->max_steps : epoch * (int64_t)o->num_train_epochs;
    int64_t n_saves = interval > 0 ? steps / interval : 0;
    n_saves = o->resume_from_checkpoint && n_saves > 1 ? 1 : n_saves;
    uint64_t checkpoints = run_outputs_checkpoint_bytes(n_saves, SQUAD_TRAIN_KEPT, plan->saving_bytes);
    bool saves = o->do_train && !o->skip_checkpoint;
    struct run_outputs outputs = {
        .directory = o->output_dir,
        .json_summary = o->json_summary,
        .migration_log = o->migration_log,
        .trace_dir = o->profile.enabled ? o->profile.directory : NULL,
        .bytes = saves ? checkpoints + (uint64_t)plan->n_params * sizeof(float) : 0,
    };
    return run_outputs_open(&outputs, &j->lock);
}

static struct status run_job(struct job *j)
{
    const struct squad_options *o = j->options;
    struct trainer_config config;
    TRY(open_model(j));
    TRY(read_questions(j));
    TRY(trainer_config_of(j, &config));
    struct trainer_plan plan;
    TRY(trainer_plan(&plan, &config));
    log_info("model: %s: %.2f M parameters, %s; memory %.1f MiB", o->init_checkpoint,
             (double)plan.n_params / 1e6, precision_name(j->precision), (double)plan.total_bytes / 0x1p20);
    TRY(memory_fit_require(&config, &plan, memory_cut_of(o), o->dry_run));
    if (o->dry_run) {
        return status_ok();
    }
    TRY(open_outputs(j, &plan));
    TRY(stop_before_work());
    TRY(open_logs(j));
    TRY(run_watch_open(&j->watch, &j->backend, "squad", o->migration_log, o->sync_ops));
    config.ops = j->backend.ops;
    TRY(trainer_init(&j->trainer, &config));
    exec_keep_in(&j->trainer.x, o->output_dir);
    TRY(load_weights(j));
    TRY(stop_before_work());
    if (o->do_train) {
        TRY(train(j));
    } else {
        metrics_start(&j->log, &(struct metrics_start){.task = "question answering",
                                                       .drop_in = DROP_IN_SQUAD,
                                                       .phase = 1,
                                                       .trainer = &j->trainer,
                                                       .flags = o->flags});
    }
    return o->do_predict ? predict(j) : status_ok();
}

struct status squad_run(const struct squad_options *o)
{
    struct job j = {.options = o, .lock = {.fd = -1}};
    stop_install();
    TRY(check_options(o));
    TRY(backend_find(&j.backend, o->device));
    TRY(precision_find(&j.precision, &o->precision, j.backend.device));
    struct status s = stop_explain(run_job(&j));
    metrics_close(&j.log);
    trainer_fini(&j.trainer);
    squad_features_fini(&j.predict.features);
    squad_examples_fini(&j.predict.examples);
    squad_features_fini(&j.train.features);
    squad_examples_fini(&j.train.examples);
    model_dir_close(&j.model);
    dir_lock_release(&j.lock);
    run_watch_close(&j.watch, s);
    return s;
}
