#include "dev/exec.h"

#include <stdarg.h>
#include <stdio.h>

bool exec_enter(struct exec *x, const char *layer, int64_t index)
{
    x->layer = layer;
    x->layer_index = index;
    if (!failed(x->status) && x->cancelled != NULL && x->cancelled(x->cancel_context)) {
        x->status = status_error(STATUS_PREEMPTED, "cancelled before the next layer");
    }
    return !failed(x->status);
}

void exec_fail(struct exec *x, enum status_code code, const char *op, const char *format, ...)
{
    if (failed(x->status)) {
        return;
    }
    char reason[320];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    char index[24] = "";
    if (x->layer_index >= 0) {
        snprintf(index, sizeof index, " %lld", (long long)x->layer_index);
    }
    x->status = status_error(code, "%s in %s%s on %s: %s", op, x->layer == NULL ? "no layer" : x->layer,
                             index, x->device == NULL ? "no device" : x->device->name, reason);
}

static void take(struct exec *x, struct status s)
{
    if (failed(s)) {
        exec_fail(x, s.code, "a copy", "%s", s.message);
    }
}

void exec_copy_in(struct exec *x, void *on_device, const void *on_host, size_t bytes)
{
    if (!failed(x->status)) {
        take(x, x->device->copy_in(x->context, on_device, on_host, bytes));
    }
}

void exec_copy_out(struct exec *x, void *on_host, const void *on_device, size_t bytes)
{
    if (!failed(x->status)) {
        take(x, x->device->copy_out(x->context, on_host, on_device, bytes));
    }
}

void *exec_scratch(struct exec *x, size_t bytes)
{
    if (bytes > x->totals.workspace_bytes) {
        x->totals.workspace_bytes = bytes;
    }
    if (x->workspace == NULL) {
        return NULL;
    }
    CHECK(bytes <= x->workspace_bytes, "an op needs %zu bytes of scratch, %zu were planned", bytes,
          x->workspace_bytes);
    return x->workspace;
}
