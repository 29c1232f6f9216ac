#include "core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_fini(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

void *buf_extend(struct buf *b, size_t n)
{
    if (b->failed) {
        return NULL;
    }
    if (n > SIZE_MAX / 2 - b->n - 1) {
        b->failed = true;
        return NULL;
    }
    size_t needed = b->n + n + 1;
    if (needed > b->capacity) {
        size_t capacity = b->capacity < 64 ? 64 : b->capacity;
        while (capacity < needed) {
            capacity *= 2;
        }
        char *data = realloc(b->data, capacity);
        if (data == NULL) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->capacity = capacity;
    }
    char *room = b->data + b->n;
    b->n += n;
    b->data[b->n] = '\0';
    return room;
}

void buf_append(struct buf *b, const void *bytes, size_t n)
{
    void *room = buf_extend(b, n);
    if (room != NULL && n > 0) {
        memcpy(room, bytes, n);
    }
}

void buf_puts(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = n < 0 ? NULL : buf_extend(b, (size_t)n);
    if (room != NULL) {
        vsnprintf(room, (size_t)n + 1, format, again);
    }
    va_end(again);
}

struct status buf_status(const struct buf *b)
{
    FAIL_IF(b->failed, STATUS_MEMORY, "out of memory after %zu bytes of a growing buffer", b->n);
    return status_ok();
}

const char *buf_text(const struct buf *b)
{
    return b->data == NULL ? "" : b->data;
}
