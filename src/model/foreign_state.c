/* foreign_state: runs that the replaced scripts began, as training_states.
 *
 * What they have is read: weights (of fp16 runs the "master params", of ZeRO the parts of the ranks, which
 * are fp32), both moments, and the position.  What kiln cannot take over is named in one line. */
#include "core/log.h"
#include "model/foreign_moments.h"
#include "model/training_state.h"

#include <stdlib.h>
#include <string.h>

/* An open checkpoint of another program. */
struct foreign {
    struct model_dir m;
    struct foreign_moments moments;
    json_t *position;
    enum model_task task;
};

/* ---- the table's functions ---- */

static struct status check(const void *self, const struct param_table *params)
{
    const struct foreign *f = self;
    struct load_report report;
    TRY(model_dir_check(&f->m, params, f->task, &report));
    for (int i = 0; i < params->n && f->moments.has; i++) {
        FAIL_IF(foreign_moments_find(&f->moments, params->params[i].name) == NULL, STATUS_DATA,
                "%s: its optimizer has no moments for %s", f->m.path, params->params[i].name);
    }
    return status_ok();
}

static struct status read(const void *self, enum param_kept kept, const struct param *p, int64_t from,
                          tensor *values)
{
    const struct foreign *f = self;
    const struct model_tensor *t = model_dir_tensor(&f->m, p);
    const struct foreign_moment *m = foreign_moments_find(&f->moments, p->name);
    if (kept != PARAM_WEIGHT && !f->moments.has) {
        return status_ok();
    }
    CHECK(t != NULL, "there is no %s", p->name);
    struct model_tensor read = *t;
    if (m != NULL && m->kept[kept] != NULL) { /* instead of the model's weight, too */
        read.stored = *m->kept[kept];
    }
    return model_dir_read_tensor(&f->m, kept, p, &read, from, values);
}

static struct status check_files(const void *self)
{
    const struct foreign *f = self;
    return model_files_check(&f->m.files, f->m.path);
}

static void close_foreign(void *self)
{
    struct foreign *f = self;
    foreign_moments_fini(&f->moments);
    model_dir_close(&f->m);
    json_decref(f->position);
    free(f);
}

static const struct training_state_kind foreign_kind = {.check = check,
                                                        .read = read,
                                                        .check_files = check_files,
                                                        .read_extra = training_state_no_extra,
                                                        .find_file = training_state_no_file,
                                                        .close = close_foreign};

/* ---- the position ---- */

/* Position of a file named by step N whose optimizer counted c steps in its phase, or by a tag of DeepSpeed,
 * which has both: the rest was in the phase before. */
struct position {
    int64_t named;   /* -1: the name says nothing */
    int64_t counted; /* -1: nothing counted */
    int64_t updates; /* updates that the optimizer counted */
};

static struct status set_position(struct foreign *f, struct position at,
                                  const struct training_state_place *place, const char *path)
{
    int64_t named = at.named < 0 ? at.counted : at.named, step = at.counted;
    if (step < 0) {
        step = named > place->phase_began ? named - place->phase_began : named;
    }
    FAIL_IF(step > named, STATUS_DATA,
            "%s is named after step %lld, but counts %lld steps: was it renamed? name it after its step",
            path, (long long)named, (long long)step);
    /* Moments that begin at zero are corrected as those of a first step. */
    int64_t updates = f->moments.has ? at.updates : 0,
            skipped = updates >= 0 && updates < step ? step - updates : 0;
    f->position =
        json_pack("{s:I, s:I, s:I, s:I}", "phase", (json_int_t)(step < named ? 2 : 1), "step",
                  (json_int_t)step, "global_step", (json_int_t)named, "n_skipped", (json_int_t)skipped);
    return f->position == NULL ? status_error(STATUS_MEMORY, "out of memory for the position of %s", path)
                               : status_ok();
}

static bool put_loss_scale(struct foreign *f, int64_t scale, int64_t steps)
{
    return json_object_set_new(f->position, "loss_scale", json_real((double)scale)) == 0 &&
           json_object_set_new(f->position, "loss_scale_steps", json_integer(steps)) == 0;
}

/* Overflows that did not halve the scale, if the scaler has hysteresis. */
static bool put_hysteresis(struct foreign *f, const struct pickle_node *state)
{
    int64_t all, left;
    if (!torch_optimizer_number(&all, pickle_find(state, "delayed_shift")) ||
        !torch_optimizer_number(&left, pickle_find(state, "cur_hysteresis")) || left < 1 || left >= all) {
        return true;
    }
    return json_object_set_new(f->position, "loss_scale_kept", json_integer(all - left)) == 0;
}

/* DeepSpeed's dynamic loss scale: it doubles after scale_window steps without an overflow (its
 * runtime/fp16/loss_scaler.py). */
static bool take_loss_scale(struct foreign *f, const struct pickle_node *scaler)
{
    const struct pickle_node *state =
        scaler != NULL && scaler->kind == PICKLE_OBJECT ? scaler->object.state : NULL;
    const struct pickle_node *last = pickle_find(state, "last_overflow_iter");
    int64_t scale, window, now;
    if (!torch_optimizer_number(&scale, pickle_find(state, "cur_scale")) || scale < 1 ||
        !torch_optimizer_number(&window, pickle_find(state, "scale_window")) || window < 1 ||
        !torch_optimizer_number(&now, pickle_find(state, "cur_iter")) || last == NULL ||
        last->kind != PICKLE_INT || last->integer < -1 || last->integer >= now) {
        return false;
    }
    return put_loss_scale(f, scale, (now - last->integer - 1) % window) && put_hysteresis(f, state);
}

/* The state of torch's GradScaler, which later scripts of NVIDIA save. */
static bool take_grad_scaler(struct foreign *f, const struct pickle_node *state)
{
    int64_t scale, steps;
    return torch_optimizer_number(&scale, pickle_find(state, "scale")) && scale >= 1 &&
           torch_optimizer_number(&steps, pickle_find(state, "_growth_tracker")) &&
           put_loss_scale(f, scale, steps);
}

/* Logs in one line what was not taken over. */
static void tell(const struct foreign *f, bool has_scale, const char *path)
{
    const struct pickle_node *root = f->m.files.files[0].torch.root;
    char file[40] = "";
    int64_t next;
    if (torch_optimizer_number(&next, pickle_item(pickle_find(root, "files"), 0))) {
        snprintf(file, sizeof file, " (file %lld)", (long long)next);
    }
    if (!f->moments.has) {
        log_warning(
            "%s has no state of an optimizer: moments start at zero, and the optimizer counts steps from 1",
            path);
    }
    log_info("%s: kiln cannot use its place in the data%s and its random states%s; --seed decides the "
             "batches and dropout of the next steps",
             path, file, has_scale ? "" : " (nor a loss scale, if it had one)");
}

/* ---- opening ---- */

static struct status open_foreign(struct training_state *s, const char *path, int64_t named,
                                  const struct training_state_place *place)
{
    struct foreign *f = calloc(1, sizeof *f);
    FAIL_IF(f == NULL, STATUS_MEMORY, "out of memory for %s", path);
    *s = (struct training_state){.kind = &foreign_kind, .self = f};
    f->task = place->task;
    TRY(checkpoint_path(s->path, "%s", path));
    TRY(model_dir_open_given(&f->m, path, place->given));
    FAIL_IF(f->m.files.files[0].format != TENSOR_FILE_TORCH, STATUS_DATA, "%s is not a file of torch.save",
            path);
    TRY(foreign_moments_init(&f->moments, &f->m));
    const struct pickle_node *root = f->m.files.files[0].torch.root;
    struct position at = {.named = named, .counted = f->moments.n_steps, .updates = f->moments.n_steps};
    const struct pickle_node *steps = pickle_find(root, "global_steps");
    FAIL_IF(steps != NULL && !torch_optimizer_number(&at.counted, steps), STATUS_DATA,
            "%s: its \"global_steps\" must be a number of steps", path);
    TRY(set_position(f, at, place, path));
    const struct zero_folder *zero = f->m.files.zero;
    tell(f,
         zero != NULL ? take_loss_scale(f, zero->loss_scaler)
                      : take_grad_scaler(f, pickle_find(root, "grad_scaler")),
         path);
    s->vocab_hash = f->m.tokenizer.hash;
    s->position = f->position;
    return status_ok();
}

/* The step in a tag: "200" and "200_phase2_adjusted" of Habana's script, "global_step200" of DeepSpeed; -1:
 * none. */
static int64_t step_of_tag(const char *tag)
{
    static const char prefix[] = "global_step";
    tag += strncmp(tag, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    size_t n = strspn(tag, "0123456789");
    return n == 0 || n > 18 ? -1 : strtoll(tag, NULL, 10);
}

static struct status open_folder(struct training_state *s, const char *folder,
                                 const struct training_state_place *place)
{
    char path[CHECKPOINT_PATH_BYTES];
    const char *slash = strrchr(folder, '/');
    if (megatron_state_is_one(folder)) {
        return megatron_state_open(s, folder, place);
    }
    FAIL_IF(!model_place_has(path, folder, ZERO_FOLDER_STATES), STATUS_DATA,
            "%s is half a checkpoint: it has no " ZERO_FOLDER_STATES ", which the first rank writes", folder);
    return open_foreign(s, path, step_of_tag(slash + 1), place);
}

/* The folder of a step; empty: there is none. */
static struct status find_folder(char folder[CHECKPOINT_PATH_BYTES], const struct training_state_place *place)
{
    static const char *const prefixes[] = {"", "global_step"};
    if (place->step < 0) {
        return model_place_latest(folder, place->directory);
    }
    for (int i = 0; i < 2; i++) {
        TRY(checkpoint_path(folder, "%s/%s%lld", place->directory, prefixes[i], (long long)place->step));
        if (file_is_directory(folder)) {
            return status_ok();
        }
    }
    folder[0] = '\0';
    return status_ok();
}

struct status foreign_state_open(struct training_state *s, const struct training_state_place *place)
{
    char path[CHECKPOINT_PATH_BYTES];
    int64_t newest = place->step;
    if (place->universal) {
        return megatron_state_open_universal(s, place);
    }
    TRY(find_folder(path, place));
    if (path[0] != '\0') {
        return open_folder(s, path, place);
    }
    TRY(newest < 0 ? checkpoint_dir_newest_file(&newest, place->directory) : status_ok());
    if (newest < 0) {
        return status_ok();
    }
    TRY(checkpoint_path(path, "%s/ckpt_%lld.pt", place->directory, (long long)newest));
    return file_exists(path) ? open_foreign(s, path, newest, place) : status_ok();
}
