#include "cmd/session_flags.h"

#include "cmd/settings.h"
#include "core/log.h"

#include <stddef.h>
#include <stdio.h>

const struct option session_flags[] = {
    INIT_CHECKPOINT_ROW,
    OPTION_STRING_ROW("vocab_file", offsetof(struct session_flags, given.vocab_file), NULL, "FILE",
                      "read the vocabulary from this file, for a model that has none or an empty one"),
    DEVICE_ROW(offsetof(struct session_flags, device)),
    OPTION_CHOICE_ROW("dtype", offsetof(struct session_flags, dtype), "fp32", SESSION_DTYPES,
                      SESSION_DTYPE_HELP),
    DRY_RUN_ROW(offsetof(struct session_flags, common.dry_run),
                "check the model, print what it needs, and read no text"),
    {0},
};

struct status session_flags_options(struct session_options *o, const struct session_flags *f,
                                    enum answer answer)
{
    TRY(session_options_find(o, f->device, f->dtype));
    o->batching = answer_kind_of(answer)->batching;
    o->given = f->given;
    return status_ok();
}

struct status session_flags_is_decoder(bool *is_decoder, const struct session_flags *f)
{
    struct model_dir m;
    TRY(model_dir_open_given(&m, f->model, f->given));
    *is_decoder = m.task == MODEL_TASK_CAUSAL_LM;
    model_dir_close(&m);
    return status_ok();
}

struct status session_flags_open(struct session *s, const struct session_flags *f, enum answer answer)
{
    struct session_options o;
    TRY(session_flags_options(&o, f, answer));
    return session_open(s, f->model, answer_kind_of(answer)->task, &o);
}

/* Names the first parameter of the task that the files lack, on which opening the model would fail. */
static struct status check_names(const struct model_dir *m, enum model_task task)
{
    struct param_table params = {0};
    struct status s = model_dir_declare(m, &params, task);
    for (int i = 0; i < params.n && !failed(s); i++) {
        const char *name = params.params[i].name;
        if (model_files_find(&m->files, name, false) == NULL &&
            model_files_find(&m->files, name, true) == NULL) {
            s = status_error(STATUS_DATA, "%s holds a %s, which lacks %s of the %s that this command needs",
                             m->path, m->family->class_of(m->task), name, m->family->class_of(task));
        }
    }
    param_table_fini(&params);
    return s;
}

static struct status check_head(const struct session_flags *f, enum model_task task)
{
    struct model_dir m;
    if (task == MODEL_TASK_ENCODER) {
        return status_ok(); /* every model has one */
    }
    TRY(model_dir_open_given(&m, f->model, f->given));
    struct status s = answer_kind_explain(check_names(&m, task), m.task, task);
    model_dir_close(&m);
    return s;
}

struct status session_flags_plan_options(const struct session_flags *f, enum answer answer,
                                         const struct session_options *o)
{
    enum model_task task = answer_kind_of(answer)->task;
    struct network_plan plan;
    TRY(session_plan(&plan, f->model, task, o));
    TRY(check_head(f, task));
    if (o->peers != NULL) {
        printf("on each of %d ranks, of ", o->peers->size);
    }
    log_put_text(stdout, f->model);
    printf(": %.2f M parameters, %.1f MiB, at most %.3g GFLOP a batch\n", (double)plan.n_params / 1e6,
           (double)plan.total_bytes / 0x1p20, plan.flops / 1e9);
    if (plan.cache_bytes > 0) {
        printf("keys and values of the texts in a batch: %.1f MiB of them\n",
               (double)plan.cache_bytes / 0x1p20);
    }
    return status_ok();
}

struct status session_flags_plan(const struct session_flags *f, enum answer answer)
{
    struct session_options o;
    TRY(session_flags_options(&o, f, answer));
    return session_flags_plan_options(f, answer, &o);
}
