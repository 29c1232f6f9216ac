#include "dev/exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool exec_enter_from(struct exec *x, const char *layer, int64_t index, const char *file, int line)
{
    x->layer = layer;
    x->layer_index = index;
    x->file = file;
    x->line = line;
    if (!failed(x->status) && x->interrupted != NULL && x->interrupted(x->interrupt_context)) {
        x->status = status_error(STATUS_PREEMPTED, "cancelled before the next layer");
    }
    return !failed(x->status);
}

enum { PLACE_BYTES = 96 };

/* "attention in layer 3" */
static void put_place(char text[PLACE_BYTES], const struct exec_place *p)
{
    char index[24] = "";
    if (p->layer_index >= 0) {
        snprintf(index, sizeof index, " %lld", (long long)p->layer_index);
    }
    snprintf(text, PLACE_BYTES, "%s in %s%s", p->op, p->layer == NULL ? "no layer" : p->layer, index);
}

void exec_fail(struct exec *x, enum status_code code, const char *op, const char *format, ...)
{
    if (failed(x->status)) {
        return;
    }
    char reason[400], place[PLACE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    put_place(place, &(struct exec_place){op, x->layer, x->layer_index});
    x->status =
        status_error(code, "%s on %s: %s", place, x->device == NULL ? "no device" : x->device->name, reason);
}

void exec_queued(struct exec *x, const char *op)
{
    x->last_queued = (struct exec_place){op, x->layer, x->layer_index};
    if (x->first_queued.op == NULL) {
        x->first_queued = x->last_queued;
    }
}

/* Stores, after a wait, any failure since the wait before. */
static void take(struct exec *x, const char *what, struct status s)
{
    char first[PLACE_BYTES] = "", last[PLACE_BYTES] = "";
    if (failed(s) && x->first_queued.op != NULL) {
        put_place(first, &x->first_queued);
        put_place(last, &x->last_queued);
    }
    if (failed(s) && first[0] != '\0' && strcmp(first, last) == 0) {
        exec_fail(x, s.code, x->last_queued.op, "%s", s.message);
    } else if (failed(s) && first[0] != '\0') {
        exec_fail(x, s.code, what, "%s; it belongs to an op from %s to %s (--sync_ops finds out which)",
                  s.message, first, last);
    } else if (failed(s)) {
        exec_fail(x, s.code, what, "%s", s.message);
    }
    x->first_queued.op = NULL;
}

void exec_synchronize(struct exec *x)
{
    if (!failed(x->status)) {
        take(x, "a wait", x->device->synchronize(x->context));
    }
}

void exec_copy_in(struct exec *x, void *on_device, const void *on_host, size_t bytes)
{
    if (!failed(x->status)) {
        take(x, "a copy", x->device->copy_in(x->context, on_device, on_host, bytes));
    }
}

void exec_copy_out(struct exec *x, void *on_host, const void *on_device, size_t bytes)
{
    if (!failed(x->status)) {
        take(x, "a copy", x->device->copy_out(x->context, on_host, on_device, bytes));
    }
}

void exec_keep_in(struct exec *x, const char *directory)
{
    if (x->device->keep_in != NULL) {
        x->device->keep_in(x->context, directory);
    }
}

struct status exec_choices(struct exec *x, char **text, size_t *n)
{
    *text = NULL;
    *n = 0;
    return x->device->choices == NULL ? status_ok() : x->device->choices(x->context, text, n);
}

void exec_take_choices(struct exec *x, const void *text, size_t n, const char *source)
{
    if (x->device->take_choices != NULL) {
        x->device->take_choices(x->context, text, n, source);
    }
}

void *exec_scratch(struct exec *x, size_t bytes)
{
    size_t *most = x->beside ? &x->totals.beside_bytes : &x->totals.workspace_bytes;
    void *workspace = x->beside ? x->beside_workspace : x->workspace;
    size_t planned = x->beside ? x->beside_bytes : x->workspace_bytes;
    if (bytes > *most) {
        *most = bytes;
    }
    if (workspace == NULL) {
        return NULL;
    }
    CHECK(bytes <= planned, "an op needs %zu bytes of scratch, %zu were planned", bytes, planned);
    return workspace;
}
