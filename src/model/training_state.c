#include "model/training_state.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

static struct status check(const void *self, const struct param_table *params)
{
    return checkpoint_check_moments(self, params);
}

static struct status read(const void *self, enum param_kept kept, const struct param *p, int64_t from,
                          tensor *values)
{
    return checkpoint_read(self, kept, p, from, *values);
}

static struct status check_files(const void *self)
{
    return checkpoint_check_files(self);
}

static struct status read_extra(const void *self, const char *file, const char *name, tensor out)
{
    return checkpoint_read_extra(self, file, name, out);
}

static const struct file_map *find_file(const void *self, const char *file)
{
    const struct checkpoint_file *found = checkpoint_find(self, file);
    return found == NULL ? NULL : &found->map;
}

static void close_viewed(void *self)
{
    (void)self;
}

static void close_owned(void *self)
{
    checkpoint_close(self);
    free(self);
}

#define OF_CHECKPOINT                                                                                        \
    .check = check, .read = read, .check_files = check_files, .read_extra = read_extra, .find_file = find_file

static const struct training_state_kind viewed = {OF_CHECKPOINT, .close = close_viewed};
static const struct training_state_kind owned = {OF_CHECKPOINT, .close = close_owned};

struct status training_state_read_weights(const struct training_state *s, const struct param_table *params,
                                          const struct weight_sink *sink)
{
    TRY(s->kind->check(s->self, params));
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        tensor values;
        TRY(sink->place(sink->self, p, &values));
        TRY(s->kind->read(s->self, PARAM_WEIGHT, p, 0, &values));
        TRY(sink->put(sink->self, p, values));
    }
    return s->kind->check_files(s->self);
}

struct status training_state_read(const struct training_state *s, enum param_kept kept,
                                  const struct param_table *params, int64_t begin, tensor flat)
{
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        int64_t from, to;
        checkpoint_overlap(p, begin, tensor_count(flat), &from, &to);
        if (from < to) {
            tensor values = tensor_slice(flat, p->offset + from - begin, to - from);
            if (kept != PARAM_WEIGHT) {
                memset(values.data, 0, tensor_bytes(values));
            }
            TRY(s->kind->read(s->self, kept, p, from, &values));
        }
    }
    return s->kind->check_files(s->self);
}

struct training_state training_state_of(const struct checkpoint *c)
{
    struct training_state s = {.kind = &viewed,
                               .self = (void *)c,
                               .config = c->config,
                               .vocab_hash = c->manifest.vocab_hash,
                               .position = c->state};
    snprintf(s.path, sizeof s.path, "%s", c->path);
    return s;
}

static const char *own_directory(const struct training_state_place *p)
{
    return p->own != NULL ? p->own : p->directory;
}

static struct status open_checkpoint(struct checkpoint *c, const struct training_state_place *p, bool *found)
{
    char path[CHECKPOINT_PATH_BYTES];
    if (p->step < 0) {
        return checkpoint_dir_open_newest(c, own_directory(p), found);
    }
    TRY(checkpoint_path(path, "%s/ckpt_%lld", own_directory(p), (long long)p->step));
    *found = file_is_directory(path);
    return *found ? checkpoint_open(c, path) : status_ok();
}

static struct status open_own(struct training_state *s, const struct training_state_place *p)
{
    bool found = false;
    struct checkpoint *c = calloc(1, sizeof *c);
    FAIL_IF(c == NULL, STATUS_MEMORY, "out of memory for the checkpoint in %s", own_directory(p));
    struct status opened = open_checkpoint(c, p, &found);
    if (failed(opened) || !found) {
        free(c);
        return opened;
    }
    *s = training_state_of(c);
    s->kind = &owned;
    return opened;
}

/* Another program may have continued a run of kiln. */
static struct status warn_of_later(const struct training_state *s, const struct training_state_place *p)
{
    int64_t file, own = json_integer_value(json_object_get(s->position, "global_step"));
    TRY(checkpoint_dir_newest_file(&file, p->directory));
    if (file > own) {
        log_warning(
            "resuming from %s, not from %s/ckpt_%lld.pt of a later step: kiln's own checkpoints come first",
            s->path, p->directory, (long long)file);
    }
    return status_ok();
}

struct status training_state_open(struct training_state *s, const struct training_state_place *p)
{
    *s = (struct training_state){0};
    struct status opened = open_own(s, p);
    if (!failed(opened) && p->others && p->step < 0 && s->kind != NULL) {
        opened = warn_of_later(s, p);
    } else if (!failed(opened) && p->others && s->kind == NULL) {
        opened = foreign_state_open(s, p);
    }
    if (failed(opened)) {
        training_state_close(s);
        return opened;
    }
    return s->kind != NULL || p->step < 0
               ? status_ok()
               : status_error(STATUS_NO_CHECKPOINT,
                              "there is no %s/ckpt_%lld for --resume_step %lld; leave the flag out to resume "
                              "from the newest",
                              own_directory(p), (long long)p->step, (long long)p->step);
}

struct status training_state_no_extra(const void *self, const char *file, const char *name, tensor out)
{
    (void)self, (void)file, (void)name;
    memset(out.data, 0, tensor_bytes(out));
    return status_ok();
}

const struct file_map *training_state_no_file(const void *self, const char *file)
{
    (void)self, (void)file;
    return NULL;
}

void training_state_close(struct training_state *s)
{
    if (s->kind != NULL) {
        s->kind->close(s->self);
    }
    *s = (struct training_state){0};
}
