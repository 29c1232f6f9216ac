#include "data/labelled_texts.h"

#include <string.h>

static void put_labels(struct labelled_texts *t, const int32_t *labels, int64_t n)
{
    static const int32_t none = -1; /* in fp32, no number */
    if (labels != NULL) {
        buf_append(&t->labels, labels, (size_t)n * sizeof *labels);
    }
    for (int64_t i = 0; labels == NULL && i < n; i++) {
        buf_append(&t->labels, &none, sizeof none);
    }
}

struct status labelled_texts_add(struct labelled_texts *t, const int32_t *ids, int64_t n, int64_t n_first,
                                 const int32_t *labels)
{
    struct labelled_text text = {.first = (int64_t)t->ids.n,
                                 .n = n,
                                 .n_first = n_first,
                                 .labels = (int64_t)(t->labels.n / sizeof *labels)};
    for (int64_t i = 0; i < n; i++) {
        if (!id_list_append(&t->ids, ids[i])) {
            return status_error(STATUS_MEMORY, "out of memory for the tokens of texts");
        }
    }
    buf_append(&t->texts, &text, sizeof text);
    put_labels(t, labels, t->of_tokens ? n : t->width);
    t->max_length = n > t->max_length ? n : t->max_length;
    t->n++;
    TRY(buf_status(&t->texts));
    return buf_status(&t->labels);
}

void labelled_texts_fini(struct labelled_texts *t)
{
    id_list_fini(&t->ids);
    buf_fini(&t->texts);
    buf_fini(&t->labels);
    *t = (struct labelled_texts){0};
}

const struct labelled_text *labelled_texts_get(const struct labelled_texts *t, int64_t i)
{
    return (const struct labelled_text *)(const void *)t->texts.data + i;
}

const int32_t *labelled_texts_labels(const struct labelled_texts *t, int64_t i)
{
    return (const int32_t *)(const void *)t->labels.data + labelled_texts_get(t, i)->labels;
}

static int64_t length(const void *self, int64_t i)
{
    return labelled_texts_get(self, i)->n;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct labelled_texts *t = self;
    const struct labelled_text *x = labelled_texts_get(t, i);
    int32_t *ids = text_batch_add(out, x->n, x->n_first, -1, key);
    memcpy(ids, t->ids.ids + x->first, (size_t)x->n * sizeof *ids);
    int64_t row = t->of_tokens ? ids - out->ids : (out->n_sequences - 1) * t->width;
    memcpy(out->fields[TEXT_CLASS_LABELS] + row, labelled_texts_labels(t, i),
           (size_t)(t->of_tokens ? x->n : t->width) * sizeof *ids);
}

struct example_source labelled_texts_source(const struct labelled_texts *t, const char *name)
{
    return (struct example_source){
        .name = name, .self = t, .n = t->n, .max_length = t->max_length, .length = length, .add = add};
}
