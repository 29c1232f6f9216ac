#include "model/background_save.h"

#include "core/clock.h"
#include "core/signals.h"

#include <stdlib.h>

size_t background_save_bytes(int64_t n_elements, enum dtype dtype)
{
    return 3 * (size_t)n_elements * dtype_bytes(dtype);
}

struct status background_save_init(struct background_save *b, size_t bytes)
{
    *b = (struct background_save){.bytes = bytes};
    return device_cpu.allocate(&b->memory, bytes, "the copy that is saved");
}

void background_save_release(struct checkpoint_contents *c)
{
    json_decref((json_t *)c->config);
    json_decref((json_t *)c->tokenizer);
    json_decref((json_t *)c->state);
    free(c->owned);
    *c = (struct checkpoint_contents){0};
}

void background_save_fini(struct background_save *b)
{
    struct background_save_result unused;
    background_save_take(b, true, &unused);
    if (b->memory != NULL) {
        device_cpu.release(b->memory, b->bytes);
    }
    b->memory = NULL;
}

/* Copies the tensor into the block, after its first `*used` bytes; from here on it is in host memory. */
static tensor copy_of(struct background_save *b, struct exec *x, tensor t, size_t *used)
{
    if (tensor_is_null(t)) {
        return t;
    }
    tensor copy = t;
    size_t bytes = tensor_bytes(t);
    copy.data = (char *)b->memory + *used;
    CHECK(bytes <= b->bytes - *used, "a copy of %zu bytes was planned", b->bytes);
    exec_copy_out(x, copy.data, t.data, bytes);
    *used += bytes;
    return copy;
}

static void *write_copy(void *argument)
{
    struct background_save *b = argument;
    struct background_save_result *r = &b->result;
    r->from_ns = clock_ns();
    r->status = b->part_of != NULL ? checkpoint_save_part(&b->part, b->part_of, &b->contents)
                                   : checkpoint_save(b->directory, &b->contents);
    if (!failed(r->status) && b->part_of == NULL) {
        r->status = checkpoint_dir_prune(b->directory, b->contents.step, b->keep_last, b->contents.best_step);
    }
    r->to_ns = clock_ns();
    atomic_store(&b->done, true);
    return NULL;
}

/* The training thread handles signals.  If no thread starts, the save is done here and now. */
static void start(struct background_save *b)
{
    sigset_t before;
    atomic_store(&b->done, false);
    signals_block(&before);
    b->threaded = pthread_create(&b->thread, NULL, write_copy, b) == 0;
    signals_restore(&before);
    if (!b->threaded) {
        write_copy(b);
    }
}

static struct status prepare(struct background_save *b, const char *directory)
{
    TRY(checkpoint_path(b->directory, "%s", directory));
    FAIL_IF(b->contents.config == NULL || b->contents.tokenizer == NULL || b->contents.state == NULL,
            STATUS_MEMORY, "out of memory for a checkpoint");
    return checkpoint_check_space(b->part_of != NULL ? b->part_of : directory, &b->contents);
}

static struct status begin(struct background_save *b, const char *directory, struct exec *x,
                           const struct checkpoint_contents *c, int64_t since_ns, double wait_s)
{
    CHECK(!b->in_flight, "a second save in flight");
    size_t used = 0;
    b->contents = *c;
    struct status s = prepare(b, directory);
    if (failed(s)) {
        background_save_release(&b->contents);
        return s;
    }
    b->contents.master = copy_of(b, x, c->master, &used);
    b->contents.exp_avg = copy_of(b, x, c->exp_avg, &used);
    b->contents.exp_avg_sq = copy_of(b, x, c->exp_avg_sq, &used);
    for (int i = 0; i < c->n_extras; i++) {
        if (c->extras[i].tensor != NULL) {
            b->contents.extras[i].data = copy_of(b, x, c->extras[i].data, &used);
        }
    }
    if (failed(x->status)) {
        background_save_release(&b->contents);
        return x->status;
    }
    b->result = (struct background_save_result){.step = c->step, .wait_s = wait_s};
    b->in_flight = true;
    start(b);
    /* the thread does not read this field, and its result is read only after the join */
    b->result.stall_s = clock_since_s(since_ns);
    return s;
}

struct status background_save_begin(struct background_save *b, const char *directory, struct exec *x,
                                    const struct checkpoint_contents *c, int64_t keep_last, int64_t since_ns,
                                    double wait_s)
{
    b->keep_last = keep_last;
    b->part_of = NULL;
    return begin(b, directory, x, c, since_ns, wait_s);
}

struct status background_save_begin_part(struct background_save *b, const char *directory, const char *path,
                                         struct exec *x, const struct checkpoint_contents *c,
                                         int64_t since_ns, double wait_s)
{
    b->part_of = path;
    return begin(b, directory, x, c, since_ns, wait_s);
}

bool background_save_is_done(const struct background_save *b)
{
    return !b->in_flight || atomic_load(&b->done);
}

void background_save_wait(struct background_save *b)
{
    if (b->in_flight && b->threaded) {
        pthread_join(b->thread, NULL);
        b->threaded = false;
    }
}

bool background_save_take(struct background_save *b, bool wait, struct background_save_result *result)
{
    if (!b->in_flight || !(wait || atomic_load(&b->done))) {
        return false;
    }
    background_save_wait(b);
    *result = b->result;
    background_save_release(&b->contents);
    b->in_flight = false;
    return true;
}
