#include "dev/host_view.h"

#include <stdlib.h>

/* Closes a view that failed to open, so its caller has nothing to do. */
static struct status opened(struct host_view *v, const struct exec *x)
{
    if (failed(x->status)) {
        host_view_close(v);
    }
    return x->status;
}

struct status host_view_open_blank(struct host_view *v, struct exec *x, tensor t)
{
    *v = (struct host_view){.host = t};
    if (x->device->is_host || tensor_is_null(t)) {
        return x->status;
    }
    CHECK(tensor_is_dense(t), "a view of strided rows");
    v->memory = malloc(tensor_bytes(t) > 0 ? tensor_bytes(t) : 1);
    FAIL_IF(v->memory == NULL, STATUS_MEMORY, "out of memory for a copy of %zu bytes", tensor_bytes(t));
    v->host.data = v->memory;
    return opened(v, x);
}

struct status host_view_open(struct host_view *v, struct exec *x, tensor t)
{
    TRY(host_view_open_blank(v, x, t));
    if (v->memory != NULL) {
        exec_copy_out(x, v->memory, t.data, tensor_bytes(t));
    }
    return opened(v, x);
}

void host_view_commit(const struct host_view *v, struct exec *x, tensor t)
{
    if (v->memory != NULL) {
        exec_copy_in(x, t.data, v->memory, tensor_bytes(t));
    }
}

void host_view_close(struct host_view *v)
{
    free(v->memory);
    *v = (struct host_view){0};
}
