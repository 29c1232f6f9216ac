/* kiln export: writes a checkpoint or model directory as a directory that `transformers` and kiln load. */
#include "cmd/commands.h"
#include "core/log.h"
#include "model/checkpoint.h"
#include "model/bert_family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct export_args {
    const char *model;
    const char *output_dir;
    const char *task;
    int64_t max_shard_size;
    bool dry_run;
};

static const struct option options[] = {
    OPTION_REQUIRED_ROW("model", offsetof(struct export_args, model), "PATH",
                        "a checkpoint or model directory"),
    OPTION_REQUIRED_ROW(
        "output_dir", offsetof(struct export_args, output_dir), "DIR",
        "the directory to make; it may exist if it holds only an older export, which is replaced"),
    OPTION_CHOICE_ROW("task", offsetof(struct export_args, task), NULL,
                      "pretraining|masked_lm|question_answering|encoder",
                      "the class to write: BertForPreTraining, BertForMaskedLM, BertForQuestionAnswering or "
                      "BertModel; without it, all heads that the model has"),
    OPTION_INT_ROW("max_shard_size", offsetof(struct export_args, max_shard_size), "5e9", 1, 1e15,
                   "write a larger model as several files with an index"),
    OPTION_FLAG_ROW("dry_run", offsetof(struct export_args, dry_run),
                    "read and check everything, write nothing"),
    {0},
};

static enum bert_task task_of(const struct export_args *a, const struct model_dir *m)
{
    static const char *const names[] = {
        [BERT_TASK_PRETRAINING] = "pretraining",
        [BERT_TASK_MASKED_LM] = "masked_lm",
        [BERT_TASK_QUESTION_ANSWERING] = "question_answering",
        [BERT_TASK_ENCODER] = "encoder",
    };
    for (size_t i = 0; a->task != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(a->task, names[i]) == 0) {
            return (enum bert_task)i;
        }
    }
    return (enum bert_task)m->task;
}

/* Reads the weights into `master`, [params->n_elements] of fp32, and writes them. */
static struct status convert(const struct export_args *a, const struct model_dir *m, enum bert_task task,
                             const struct param_table *params, tensor master)
{
    struct load_report report;
    struct model_dir_contents contents = {
        .family = &bert_family,
        .task = task,
        .params = params,
        .master = master,
        .config = m->config,
        .tokenizer = &m->tokenizer,
        .max_shard_bytes = (uint64_t)a->max_shard_size,
    };
    TRY(model_dir_read_weights(m, params, master, task, 0, &report));
    load_report_print(&report, m->path);
    if (!a->dry_run) {
        TRY(model_dir_save(a->output_dir, &contents));
    }
    printf("%s %s: %s, %lld parameters, %d tensors\n", a->dry_run ? "would write" : "wrote", a->output_dir,
           bert_task_class(task), (long long)param_table_count(params), params->n);
    return status_ok();
}

static struct status export_open(const struct export_args *a, const struct model_dir *m)
{
    struct param_table params = {0};
    enum bert_task task = task_of(a, m);
    float *flat = NULL;
    struct status s = bert_declare(&params, bert_family_config(m), task);
    if (!failed(s)) {
        flat = calloc((size_t)params.n_elements, sizeof *flat);
        s = flat == NULL ? status_error(STATUS_MEMORY, "out of memory for %lld parameters",
                                        (long long)params.n_elements)
                         : convert(a, m, task, &params, tensor_1d(flat, DTYPE_F32, params.n_elements));
    }
    free(flat);
    param_table_fini(&params);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct export_args *a = args;
    struct model_dir m;
    if (file_is_same(a->model, a->output_dir)) {
        return status_error(STATUS_USAGE,
                            "--output_dir %s is the --model %s, which the export would replace: choose "
                            "another directory",
                            a->output_dir, a->model);
    }
    TRY(a->dry_run ? model_dir_check_place(a->output_dir) : model_dir_check_output(a->output_dir, 0));
    TRY(model_dir_open(&m, a->model));
    char modules[CHECKPOINT_PATH_BYTES];
    struct status s = export_open(a, &m);
    if (!failed(s) && !failed(checkpoint_path(modules, "%s/modules.json", a->model)) &&
        file_exists(modules)) {
        log_warning(
            "%s and the files it names are not exported: vectors of the export are another model's until "
            "they are copied beside it",
            modules);
    }
    model_dir_close(&m);
    return s;
}

const struct command command_export = {
    .name = "export",
    .summary = "write a model as a Hugging Face directory",
    .details =
        "Reads kiln's checkpoints and output directories, Hugging Face directories (model.safetensors or "
        "pytorch_model.bin, whole or in shards; F32, F16, BF16; old names), ckpt_N.pt and "
        "mp_rank_00_model_states.pt of PyTorch and DeepSpeed, and TensorFlow checkpoints by their prefix, "
        "the "
        "configuration and vocabulary beside them, and writes config.json, model.safetensors, vocab.txt, "
        "tokenizer.json and the files "
        "around them, in fp32. Heads that the task lacks are left out and listed; heads that the model lacks "
        "are "
        "an error.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct export_args),
    .run = run,
};
