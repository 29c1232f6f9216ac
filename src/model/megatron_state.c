/* megatron_state: runs that Megatron-DeepSpeed began, as training_states: a universal checkpoint, or the
 * folder of a step with the states of the optimizers of all ranks.
 *
 * Weights in fp32 and moments go through the names, joins and slices that the weights of models go
 * through.  The position is the iteration; its samples are those of the run's flags. */
#include "core/log.h"
#include "io/torch_optimizer.h"
#include "model/training_state.h"

#include <stdlib.h>
#include <string.h>

/* An open folder. */
struct megatron_run {
    struct model_dir m;
    json_t *position;
    enum model_task task;
};

/* ---- the table's functions ---- */

static struct status check(const void *self, const struct param_table *params)
{
    const struct megatron_run *r = self;
    struct load_report report;
    return model_dir_check(&r->m, params, r->task, &report);
}

/* The tensor whose last row is repeated for words after those of the files, as the loaders of such files do:
 * the row that is kept for it, or else the words themselves, if the last is no word.  NULL: neither is
 * there. */
static const struct stored_tensor *find_fill(struct stored_tensor *row, const struct megatron_run *r,
                                             const struct megatron_moment *from)
{
    const struct stored_tensor *t = &from->tensor, *kept = from->padding;
    int64_t cols = t->n_dims == 2 ? t->dims[1] : 1;
    if (kept != NULL && kept->unreadable == NULL && stored_tensor_is_dense(kept) && kept->dtype == t->dtype &&
        (int64_t)(kept->bytes / dtype_bytes(kept->dtype)) == cols) {
        *row = *kept;
        row->n_dims = 2;
        row->dims[0] = 1;
        row->dims[1] = row->strides[0] = cols;
        row->strides[1] = 1;
        return row;
    }
    return t->dims[0] > r->m.tokenizer.n ? t : NULL;
}

static struct status read(const void *self, enum param_kept kept, const struct param *p, int64_t from,
                          tensor *values)
{
    const struct megatron_run *r = self;
    const struct megatron_files *files = r->m.files.megatron;
    const struct model_tensor *t = model_dir_tensor(&r->m, p);
    struct megatron_moment moment;
    struct stored_tensor row;
    if (kept != PARAM_WEIGHT && !files->has_moments) {
        return status_ok();
    }
    CHECK(t != NULL, "%s has no %s", r->m.path, p->name);
    if (kept == PARAM_WEIGHT && p->split != PARAM_BY_WORD) { /* the weight's file is open */
        return model_dir_read_tensor(&r->m, kept, p, t, from, values);
    }
    TRY(megatron_files_moment(files, megatron_files_find(files, t->stored.name), kept, &moment));
    struct model_tensor like = model_tensor_like(t, &moment.tensor);
    like.fill = p->split == PARAM_BY_WORD ? find_fill(&row, r, &moment) : NULL;
    struct status s = model_dir_read_tensor(&r->m, kept, p, &like, from, values);
    megatron_moment_close(&moment);
    return s;
}

static struct status check_files(const void *self)
{
    const struct megatron_run *r = self;
    return model_files_check(&r->m.files, r->m.path);
}

static void close_run(void *self)
{
    struct megatron_run *r = self;
    model_dir_close(&r->m);
    json_decref(r->position);
    free(r);
}

static const struct training_state_kind megatron_kind = {.check = check,
                                                         .read = read,
                                                         .check_files = check_files,
                                                         .read_extra = training_state_no_extra,
                                                         .find_file = training_state_no_file,
                                                         .close = close_run};

/* ---- opening ---- */

/* Compares what no shape shows, as the loader of Megatron does. */
static struct status check_arguments(const struct megatron_run *r)
{
    const struct pickle_node *states = r->m.files.megatron->states;
    struct model_family_sizes own = model_dir_sizes(&r->m);
    const struct {
        const char *name;
        int64_t own;
    } rows[] = {{"num_layers", own.n_layers}, {"num_attention_heads", own.heads.n}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t says = megatron_files_argument(states, rows[i].name);
        FAIL_IF(says > 0 && says != rows[i].own, STATUS_DATA,
                "%s was trained with %s %lld, but this run has %lld: give the flags of that "
                "run",
                r->m.path, rows[i].name, (long long)says, (long long)rows[i].own);
    }
    return status_ok();
}

/* A count in the states of rank 0; -1: there is none. */
static int64_t count_of(const struct megatron_files *f, const char *name)
{
    int64_t n;
    return torch_optimizer_number(&n, pickle_find(f->states, name)) && n >= 0 ? n : -1;
}

/* The steps of the run, and those of them without an update: moments that begin at zero are corrected as
 * those of a first step. */
static struct status take_position(struct megatron_run *r)
{
    const struct megatron_files *f = r->m.files.megatron;
    int64_t step = count_of(f, "iteration"), skipped = count_of(f, "skipped_steps");
    step = step < 0 ? count_of(f, "global_steps") : step;
    FAIL_IF(step < 0, STATUS_DATA,
            "%s has no " ZERO_FOLDER_STATES " that says its iteration: copy it from the "
            "checkpoint that the folder was made of",
            r->m.path);
    skipped = f->n_updates >= 0 ? step - f->n_updates : skipped < 0 ? 0 : skipped;
    skipped = f->has_moments ? skipped : step;
    FAIL_IF(skipped < 0 || skipped > step, STATUS_DATA,
            "%s is at step %lld, but its optimizer counts %lld updates", r->m.path, (long long)step,
            (long long)(step - skipped));
    r->position = json_pack("{s:i, s:I, s:I, s:I, s:I}", "phase", 1, "step", (json_int_t)step, "global_step",
                            (json_int_t)step, "n_skipped", (json_int_t)skipped, "consumed_samples",
                            (json_int_t)megatron_files_argument(f->states, "consumed_train_samples"));
    return r->position == NULL
               ? status_error(STATUS_MEMORY, "out of memory for the position of %s", r->m.path)
               : status_ok();
}

static struct status open_run(struct megatron_run *r, const char *folder,
                              const struct training_state_place *place)
{
    r->task = place->task;
    TRY(model_dir_open_given(&r->m, folder, place->given));
    CHECK(r->m.files.megatron != NULL, "%s is read as another kind", folder);
    TRY(check_arguments(r));
    TRY(take_position(r));
    if (place->given.config != NULL) {
        TRY(status_context(r->m.family == place->given.family
                               ? r->m.family->same_architecture(r->m.config, place->given.config)
                               : status_error(STATUS_DATA, "it is a %s model", r->m.family->name),
                           "%s has another architecture than this run", folder));
    }
    if (!r->m.files.megatron->has_moments) {
        log_warning(
            "%s has no state of an optimizer: moments start at zero, and the optimizer counts steps from 1",
            folder);
    }
    log_info("%s: kiln cannot use its random states; --seed decides dropout", folder);
    return status_ok();
}

bool megatron_state_is_one(const char *folder)
{
    char path[CHECKPOINT_PATH_BYTES];
    return model_place_has(path, folder, MEGATRON_FIRST_FILE) || megatron_files_has_states(folder);
}

struct status megatron_state_open(struct training_state *s, const char *folder,
                                  const struct training_state_place *place)
{
    struct megatron_run *r = calloc(1, sizeof *r);
    FAIL_IF(r == NULL, STATUS_MEMORY, "out of memory for %s", folder);
    *s = (struct training_state){.kind = &megatron_kind, .self = r};
    TRY(checkpoint_path(s->path, "%s", folder));
    TRY(open_run(r, folder, place)); /* who opens a state closes it after a failure */
    s->vocab_hash = r->m.tokenizer.hash;
    s->position = r->position;
    return status_ok();
}

/* The folder that "latest_universal" names, or the directory itself. */
static struct status find_universal(char folder[CHECKPOINT_PATH_BYTES], const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(model_place_named(folder, directory, "latest_universal"));
    if (folder[0] == '\0') {
        TRY(checkpoint_path(folder, "%s", directory));
    }
    return model_place_has(path, folder, MEGATRON_UNIVERSAL)
               ? status_ok()
               : status_error(STATUS_NO_CHECKPOINT,
                              "%s is no universal checkpoint: it has neither a folder " MEGATRON_UNIVERSAL
                              " nor a latest_universal that names a folder with it",
                              directory);
}

struct status megatron_state_open_universal(struct training_state *s,
                                            const struct training_state_place *place)
{
    char folder[CHECKPOINT_PATH_BYTES];
    TRY(find_universal(folder, place->directory));
    return megatron_state_open(s, folder, place);
}
