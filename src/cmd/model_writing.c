#include "cmd/model_writing.h"

#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/log.h"
#include "model/checkpoint.h"
#include "model/model_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option model_writing_flags[] = {
    OPTION_REQUIRED_ROW("model", offsetof(struct model_writing_flags, model), "PATH",
                        "a checkpoint or model directory, or another program's checkpoint"),
    INIT_CHECKPOINT_ROW,
    OPTION_STRING_ROW("config_file", offsetof(struct model_writing_flags, given.config_file), NULL, "FILE",
                      "read the configuration from this file, if none is beside the weights"),
    OPTION_STRING_ROW("vocab_file", offsetof(struct model_writing_flags, given.vocab_file), NULL, "FILE",
                      "read the vocabulary from this file, if none is beside the weights"),
    OPTION_REQUIRED_ROW("output_dir", offsetof(struct model_writing_flags, common.output_dir), "DIR",
                        "write the model into this directory; it may exist if it holds only an older "
                        "model of the same form, which is replaced"),
    OPTION_CHOICE_ROW("task", offsetof(struct model_writing_flags, task), NULL,
                      "pretraining|masked_lm|question_answering|encoder",
                      "write this class: BertForPreTraining, BertForMaskedLM, BertForQuestionAnswering "
                      "or BertModel; by default all heads that the model has"),
    OPTION_INT_ROW("max_shard_size", offsetof(struct model_writing_flags, max_shard_size), "5e9", 1, 1e15,
                   "write a model of more than N bytes as several files: safetensors with an index"),
    DRY_RUN_ROW(offsetof(struct model_writing_flags, common.dry_run),
                "read and check everything, and write nothing"),
    {0},
};

/* STATUS_USAGE: a decoder has one task only. */
static struct status find_task(enum model_task *task, const struct model_writing_flags *f,
                               const struct model_dir *m)
{
    static const char *const names[] = {
        [MODEL_TASK_PRETRAINING] = "pretraining",
        [MODEL_TASK_MASKED_LM] = "masked_lm",
        [MODEL_TASK_QUESTION_ANSWERING] = "question_answering",
        [MODEL_TASK_ENCODER] = "encoder",
    };
    *task = m->task;
    FAIL_IF(f->task != NULL && m->task == MODEL_TASK_CAUSAL_LM, STATUS_USAGE,
            "--task %s is not a class of %s, a %s: leave out --task", f->task, f->model,
            m->family->class_of(m->task));
    for (size_t i = 0; f->task != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (names[i] != NULL && strcmp(f->task, names[i]) == 0) {
            *task = (enum model_task)i;
        }
    }
    return status_ok();
}

static struct model_dir_contents contents_of(const struct model_writing *w, const struct model_dir *m,
                                             enum model_task task, const struct param_table *params)
{
    return (struct model_dir_contents){
        .family = m->family,
        .task = task,
        .params = params,
        .config = m->config,
        .tokenizer = &m->tokenizer,
        .max_shard_bytes = (uint64_t)w->flags->max_shard_size,
        .form = w->form,
    };
}

/* Writes what the contents have, of a model that `report` was made of, and reads it back. */
static struct status write_contents(const struct model_writing *w, const struct model_dir *m,
                                    const struct model_dir_contents *contents,
                                    const struct load_report *report)
{
    const struct model_writing_flags *f = w->flags;
    const struct param_table *params = contents->params;
    const struct model_progress *progress = contents->progress;
    enum model_task task = contents->task;
    load_report_print(report, m->path);
    if (!f->common.dry_run) {
        TRY(model_dir_save(f->common.output_dir, contents));
    }
    log_result("%s %s: %s, %lld parameters, %d tensors", f->common.dry_run ? "would write" : "wrote",
               f->common.output_dir, m->family->class_of(task), (long long)param_table_count(params),
               params->n);
    if (w->verify && !f->common.dry_run) {
        TRY(model_dir_verify(f->common.output_dir, contents));
        log_result("read back: all weights%s are the same, bit by bit%s",
                   progress == NULL ? "" : ", moments and steps",
                   w->form.type == MODEL_DIR_F32 ? "" : ", in the type of the file");
    }
    return status_ok();
}

/* Reads all weights into `master`, [params->n_elements] of fp32, before it writes them. */
static struct status write_weights(const struct model_writing *w, const struct model_dir *m,
                                   enum model_task task, const struct param_table *params, tensor master,
                                   const struct model_progress *progress)
{
    struct load_report report;
    struct model_dir_contents contents = contents_of(w, m, task, params);
    contents.master = master;
    contents.progress = progress;
    TRY(model_dir_read_weights(m, params, master, task, 0, &report));
    return write_contents(w, m, &contents, &report);
}

/* Nothing is written: so all is read here. */
static struct status read_each(const struct weight_source *weights, const struct param_table *params)
{
    for (int i = 0; i < params->n; i++) {
        tensor values;
        TRY(weights->read(weights->self, &params->params[i], &values));
    }
    return status_ok();
}

/* Reads and writes a tensor at a time. */
static struct status write_stream(const struct model_writing *w, const struct model_dir *m,
                                  enum model_task task, const struct param_table *params)
{
    struct load_report report;
    struct model_dir_source source;
    struct model_dir_contents contents = contents_of(w, m, task, params);
    TRY(model_dir_source_open(&source, m, params, task, &report));
    struct weight_source weights = model_dir_source_of(&source);
    contents.weights = &weights;
    struct status s = w->flags->common.dry_run ? read_each(&weights, params) : status_ok();
    s = failed(s) ? s : write_contents(w, m, &contents, &report);
    struct status read = model_dir_source_close(&source);
    return failed(s) ? s : read;
}

/* Writes the weights with the state of the run. */
static struct status write_run(const struct model_writing *w, const struct model_dir *m, enum model_task task,
                               const struct param_table *params, tensor master)
{
    struct model_progress progress;
    TRY(model_progress_open(&progress, m->place.directory, params));
    progress.n_ranks = w->n_ranks;
    progress.files = w->files;
    progress.n_files = w->n_files;
    if (progress.n_skipped > 0 && w->form.kind == MODEL_DIR_SCRIPT) {
        log_warning("%" PRId64 " steps of the phase were skipped; a ckpt_N.pt counts them as taken",
                    progress.n_skipped);
    }
    struct status s = write_weights(w, m, task, params, master, &progress);
    model_progress_close(&progress);
    return s;
}

/* Writes with all weights in memory. */
static struct status write_whole(const struct model_writing *w, const struct model_dir *m,
                                 enum model_task task, const struct param_table *params)
{
    float *flat = calloc((size_t)params->n_elements, sizeof *flat);
    FAIL_IF(flat == NULL, STATUS_MEMORY, "out of memory for %lld parameters", (long long)params->n_elements);
    tensor master = tensor_1d(flat, DTYPE_F32, params->n_elements);
    struct status s = w->with_progress ? write_run(w, m, task, params, master)
                                       : write_weights(w, m, task, params, master, NULL);
    free(flat);
    return s;
}

static struct status write_model(const struct model_writing *w, const struct model_dir *m,
                                 enum model_task task)
{
    struct param_table params = {0};
    bool streams = model_dir_form_streams(w->form) && !w->with_progress;
    struct status s = model_dir_declare(m, &params, task);
    if (!failed(s)) {
        s = streams ? write_stream(w, m, task, &params) : write_whole(w, m, task, &params);
    }
    param_table_fini(&params);
    return s;
}

static void warn_of_modules(const char *model)
{
    char modules[CHECKPOINT_PATH_BYTES];
    if (!failed(checkpoint_path(modules, "%s/modules.json", model)) && file_exists(modules)) {
        log_warning("kiln does not export %s and the files it names: copy them beside the exported model, or "
                    "its vectors differ",
                    modules);
    }
}

/* `from` is the model, or the directory that its files are in. */
static struct status check_own(const struct model_writing_flags *f, const char *from)
{
    return file_is_same(from, f->common.output_dir)
               ? status_error(STATUS_USAGE,
                              "--output_dir %s is the --model %s, which the "
                              "export would replace: choose another directory",
                              f->common.output_dir, f->model)
               : status_ok();
}

static struct status check_output(const struct model_writing *w)
{
    return w->flags->common.dry_run ? model_dir_check_place(w->flags->common.output_dir, w->form)
                                    : model_dir_check_output(w->flags->common.output_dir, w->form, 0);
}

/* A file or folder that is named by no --step is named by the checkpoint's. */
static struct status name_step(struct model_dir_form *form, const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct checkpoint_manifest manifest;
    TRY(checkpoint_path(path, "%s/manifest.json", directory));
    if (form->step == 0 && file_exists(path)) {
        TRY(checkpoint_manifest_read(&manifest, path));
        form->step = manifest.step;
        checkpoint_manifest_fini(&manifest);
    }
    return status_ok();
}

struct status model_writing_run(struct model_writing *w)
{
    const struct model_writing_flags *f = w->flags;
    struct model_dir m;
    TRY(check_own(f, f->model));
    TRY(w->with_progress ? status_ok() : check_output(w));
    TRY(model_dir_open_given(&m, f->model, f->given));
    if (model_dir_form_drops_rows(w->form)) {
        model_dir_drop_rows(&m);
    }
    enum model_task task;
    struct status s = find_task(&task, f, &m);
    s = failed(s) ? s : check_own(f, m.place.directory);
    if (!failed(s) && w->with_progress) {
        s = name_step(&w->form, m.place.directory);
        s = failed(s) ? s : check_output(w);
    }
    if (!failed(s)) {
        s = write_model(w, &m, task);
    }
    if (!failed(s)) {
        warn_of_modules(f->model);
    }
    if (!failed(s) && w->after != NULL && !f->common.dry_run) {
        s = w->after(w, &m, task);
    }
    model_dir_close(&m);
    return s;
}

/* ---- kiln export ---- */

static const struct option options[] = {OPTION_ROWS_OF(model_writing_flags, 0), {0}};

static struct status run_export(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    struct model_writing w = {.flags = args, .form = {.kind = MODEL_DIR_HUGGING_FACE}};
    return model_writing_run(&w);
}

const struct command command_export = {
    .name = "export",
    .summary = "write a model as a Hugging Face directory",
    .details = "Reads kiln's checkpoints and output directories, Hugging Face directories (model.safetensors "
               "or pytorch_model.bin, whole or in shards; F32, F16, BF16; old names), ckpt_N.pt and "
               "mp_rank_00_model_states.pt of PyTorch and DeepSpeed, and TensorFlow checkpoints by their "
               "prefix, the configuration and vocabulary beside them, and writes config.json, "
               "model.safetensors, vocab.txt, tokenizer.json and the files around them, in fp32. Heads that "
               "the task lacks are left out and listed; heads that the model lacks are an error.",
    .options = options,
    .args_bytes = sizeof(struct model_writing_flags),
    .run = run_export,
};
