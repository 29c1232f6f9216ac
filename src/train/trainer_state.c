#include "train/trainer_state.h"

#include "dev/host_view.h"
#include "pass/weight_window.h"

#include <stdlib.h>
#include <string.h>

struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents)
{
    char *choices;
    size_t n;
    TRY(exec_choices(&t->net.x, &choices, &n));
    contents->owned = choices;
    if (n > 0) {
        contents->extras[contents->n_extras++] = (struct checkpoint_extra){
            .file = TRAINER_STATE_CHOICES_FILE, .data = tensor_1d(choices, DTYPE_U8, (int64_t)n)};
    }
    if (!tensor_is_null(t->net.stage.histories)) {
        contents->extras[contents->n_extras++] =
            (struct checkpoint_extra){.file = TRAINER_STATE_HISTORIES_FILE,
                                      .tensor = TRAINER_STATE_HISTORIES,
                                      .data = t->net.stage.histories};
    }
    return status_ok();
}

/* The part of a flat buffer that lies in a shard; it may be empty.  The buffer begins at element `begin` of
 * the complete one. */
static tensor slice_of(tensor flat, int64_t begin, struct param_shard shard)
{
    return tensor_slice(flat, shard.begin - begin, shard.end - shard.begin);
}

void trainer_state_slices(const struct trainer *t, struct checkpoint_contents *contents)
{
    struct param_shard own = trainer_saved(t);
    int64_t moments = t->update.shard.begin;
    contents->params = &t->net.params;
    contents->master = slice_of(t->net.master, t->net.owned.begin, own);
    contents->exp_avg = slice_of(t->exp_avg, moments, own);
    contents->exp_avg_sq = slice_of(t->exp_avg_sq, moments, own);
    contents->master_begin = contents->moments_begin = own.begin;
}

/* Reads the histories for fp8; they are written after the ops queued so far. */
static struct status resume_histories(struct trainer *t, const struct training_state *from)
{
    struct host_view histories;
    if (tensor_is_null(t->net.stage.histories)) {
        return status_ok();
    }
    TRY(host_view_open_blank(&histories, &t->net.x, t->net.stage.histories));
    struct status s = from->kind->read_extra(from->self, TRAINER_STATE_HISTORIES_FILE,
                                             TRAINER_STATE_HISTORIES, histories.host);
    if (!failed(s)) {
        host_view_commit(&histories, &t->net.x, t->net.stage.histories);
    }
    host_view_close(&histories);
    return s;
}

static struct status resume_weights(struct trainer *t, const struct training_state *from)
{
    struct weight_window window;
    TRY(weight_window_open(&window, &t->net));
    struct weight_sink sink = weight_window_sink(&window);
    struct status s = training_state_read_weights(from, &t->net.params, &sink);
    struct status written = weight_window_close(&window);
    return failed(s) ? s : written;
}

static struct status resume_moment(struct trainer *t, const struct training_state *from, enum param_kept kept,
                                   tensor to)
{
    struct host_view view;
    TRY(host_view_open(&view, &t->net.x, to));
    struct status s = training_state_read(from, kept, &t->net.params, t->update.shard.begin, view.host);
    if (!failed(s)) {
        host_view_commit(&view, &t->net.x, to);
        s = t->net.x.status;
    }
    host_view_close(&view);
    return s;
}

struct status trainer_state_resume(struct trainer *t, const struct training_state *from)
{
    const struct file_map *choices = from->kind->find_file(from->self, TRAINER_STATE_CHOICES_FILE);
    if (choices != NULL && choices->n > 0) { /* take them before anything is timed */
        exec_take_choices(&t->net.x, choices->data, choices->n, from->path);
    }
    TRY(resume_weights(t, from));
    TRY(resume_moment(t, from, PARAM_EXP_AVG, t->exp_avg));
    TRY(resume_moment(t, from, PARAM_EXP_AVG_SQ, t->exp_avg_sq));
    return resume_histories(t, from);
}

/* Collects the master's shards of all ranks on the first rank, in `flat` [all elements] of its host
 * memory. */
static struct status collect_master(struct trainer *t, const struct comm *world, tensor flat)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    struct host_view mine;
    const int64_t *bounds = t->update.bounds;
    TRY(comm_agree(world, host_view_open(&mine, &t->net.x, t->net.master)));
    if (world->rank > 0 && tensor_count(mine.host) > 0) {
        comm_send(world, &host, mine.host, 0);
    }
    for (int r = 1; r < world->size && world->rank == 0; r++) {
        if (bounds[r + 1] > bounds[r]) {
            comm_receive(world, &host, tensor_slice(flat, bounds[r], bounds[r + 1] - bounds[r]), r);
        }
    }
    if (world->rank == 0) {
        memcpy(tensor_slice(flat, bounds[0], bounds[1] - bounds[0]).data, mine.host.data,
               tensor_bytes(mine.host));
    }
    host_view_close(&mine);
    return host.status;
}

struct status trainer_state_export(struct trainer *t, const struct comm *world, const char *path,
                                   struct model_dir_contents *contents)
{
    int64_t n = t->net.params.n_elements;
    enum dtype vector = dtype_of_vectors(t->config.net.precision.dtype);
    if (network_has_master(&t->net)) {
        return comm_agree(world,
                          world->rank == 0 ? network_files_export(&t->net, path, contents) : status_ok());
    }
    tensor flat = tensor_1d(world->rank == 0 ? calloc((size_t)n, dtype_bytes(vector)) : NULL, vector, n);
    bool lacks = world->rank == 0 && flat.data == NULL;
    struct status s = comm_agree(
        world, lacks ? status_error(STATUS_MEMORY, "out of memory for %lld weights in fp32", (long long)n)
                     : status_ok());
    if (!failed(s)) {
        s = collect_master(t, world, flat);
        contents->params = &t->net.params;
        contents->master = flat;
        s = comm_agree(world, failed(s) || world->rank > 0 ? s : model_dir_save(path, contents));
    }
    free(flat.data);
    return s;
}
