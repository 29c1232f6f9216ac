#include "dist/same_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void same_run_add(struct same_run *r, const char *name, const char *value)
{
    buf_append(&r->items, name, strlen(name) + 1);
    buf_append(&r->items, value, strlen(value) + 1);
}

void same_run_add_hash(struct same_run *r, const char *name, uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    same_run_add(r, name, text);
}

/* Items are pairs of texts, name and value, each with its end. */
static const char *next(const char **at, const char *end)
{
    const char *text = *at;
    *at = text < end ? text + strlen(text) + 1 : end;
    return text < end ? text : "";
}

static struct status compare(const char *mine, size_t n_mine, const char *first, size_t n_first,
                             enum status_code code)
{
    const char *mine_end = mine + n_mine, *first_end = first + n_first;
    while (mine < mine_end || first < first_end) {
        const char *name = next(&mine, mine_end), *value = next(&mine, mine_end);
        const char *first_name = next(&first, first_end), *first_value = next(&first, first_end);
        FAIL_IF(strcmp(name, first_name) != 0, STATUS_UNAVAILABLE,
                "this rank compares \"%s\", but rank 0 compares \"%s\": start the same program on all ranks",
                name, first_name);
        if (strcmp(value, first_value) != 0) {
            return status_error(code,
                                "%s is %.180s here, but %.180s on rank 0; it must be the same on all ranks",
                                name, value, first_value);
        }
    }
    return status_ok();
}

/* Broadcasts rank 0's n bytes; all ranks know n. */
static struct status hear_first(const struct comm *world, void *bytes, size_t n)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    comm_broadcast(world, &host, tensor_1d(bytes, DTYPE_U8, (int64_t)n), 0);
    return host.status;
}

static struct status check(const struct same_run *r, const struct comm *world, enum status_code code)
{
    uint64_t n = r->items.n;
    TRY(comm_agree(world, buf_status(&r->items)));
    TRY(hear_first(world, &n, sizeof n));
    char *first = malloc(n + 1);
    struct status s = comm_agree(
        world,
        first != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for what ranks compare"));
    if (first != NULL && !failed(s) && world->rank == 0) {
        memcpy(first, r->items.data, n);
    }
    s = failed(s) ? s : hear_first(world, first, n);
    if (!failed(s)) {
        s = comm_agree(world, compare(r->items.data, r->items.n, first, n, code));
    }
    free(first);
    return s;
}

struct status same_run_check(struct same_run *r, const struct comm *world, enum status_code code)
{
    struct status s =
        world->size > 1 && world->emulated == NULL ? check(r, world, code) : buf_status(&r->items);
    buf_fini(&r->items);
    return s;
}
