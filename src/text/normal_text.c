#include "text/normal_text.h"

#include <stdlib.h>
#include <string.h>

void normal_text_fini(struct normal_text *t)
{
    free(t->bytes);
    free(t->origins);
    *t = (struct normal_text){0};
}

void normal_text_clear(struct normal_text *t, bool keeps_origins)
{
    if (keeps_origins && !t->keeps_origins) { /* the memory has none yet */
        normal_text_fini(t);
    }
    t->n = 0;
    t->keeps_origins = keeps_origins;
    t->failed = false;
}

static bool reserve(struct normal_text *t, size_t n)
{
    size_t wanted = t->n + n + 1;
    if (wanted <= t->capacity || t->failed) {
        return !t->failed;
    }
    wanted += wanted / 2 + 64;
    char *bytes = realloc(t->bytes, wanted);
    t->bytes = bytes == NULL ? t->bytes : bytes;
    size_t *origins = t->keeps_origins ? realloc(t->origins, wanted * sizeof *origins) : NULL;
    t->origins = origins == NULL ? t->origins : origins;
    t->failed = bytes == NULL || (t->keeps_origins && origins == NULL);
    t->capacity = t->failed ? t->capacity : wanted;
    return !t->failed;
}

void normal_text_put(struct normal_text *t, const char *bytes, size_t n, size_t origin)
{
    if (n == 0 || !reserve(t, n)) {
        return;
    }
    memcpy(t->bytes + t->n, bytes, n);
    for (size_t i = 0; t->keeps_origins && i < n; i++) {
        t->origins[t->n + i] = origin;
    }
    t->n += n;
}

void normal_text_copy(struct normal_text *t, const struct normal_text *from, size_t at, size_t n)
{
    if (n == 0 || !reserve(t, n)) {
        return;
    }
    memcpy(t->bytes + t->n, from->bytes + at, n);
    for (size_t i = 0; t->keeps_origins && i < n; i++) {
        t->origins[t->n + i] = normal_text_origin(from, at + i);
    }
    t->n += n;
}

void normal_text_end(struct normal_text *t, size_t origin)
{
    if (reserve(t, 0) && t->keeps_origins) {
        t->origins[t->n] = origin;
    }
}

size_t normal_text_origin(const struct normal_text *t, size_t at)
{
    return t->keeps_origins ? t->origins[at] : at;
}

struct status normal_text_status(const struct normal_text *t)
{
    return t->failed ? status_error(STATUS_MEMORY, "out of memory for a text of %zu bytes", t->n)
                     : status_ok();
}

const char *normal_text_find(const char *text, size_t n, const char *wanted, size_t n_wanted)
{
    const char *end = text + n;
    while ((size_t)(end - text) >= n_wanted) {
        const char *at = memchr(text, wanted[0], (size_t)(end - text) - n_wanted + 1);
        if (at == NULL || memcmp(at, wanted, n_wanted) == 0) {
            return at;
        }
        text = at + 1;
    }
    return NULL;
}
