#include "corpus/document.h"

#include <stdlib.h>

void document_fini(struct document *d)
{
    buf_fini(&d->id);
    buf_fini(&d->title);
    buf_fini(&d->text);
    free(d->ends);
    *d = (struct document){0};
}

void document_clear(struct document *d)
{
    buf_clear(&d->id);
    buf_clear(&d->title);
    buf_clear(&d->text);
    d->begins = false;
    d->n_paragraphs = 0;
}

static size_t paragraph_start(const struct document *d, int64_t i)
{
    return i == 0 ? 0 : d->ends[i - 1];
}

struct paragraph document_paragraph(const struct document *d, int64_t i)
{
    size_t start = paragraph_start(d, i);
    return (struct paragraph){d->text.data + start, d->ends[i] - start};
}

size_t document_open_bytes(const struct document *d)
{
    return d->text.n - paragraph_start(d, d->n_paragraphs);
}

struct status document_end_paragraph(struct document *d)
{
    TRY(buf_status(&d->text));
    if ((size_t)d->n_paragraphs == d->capacity) {
        size_t capacity = d->capacity == 0 ? 64 : 2 * d->capacity;
        size_t *ends = realloc(d->ends, capacity * sizeof *ends);
        if (ends == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for %zu paragraphs", capacity);
        }
        d->ends = ends;
        d->capacity = capacity;
    }
    d->ends[d->n_paragraphs++] = d->text.n;
    return status_ok();
}
