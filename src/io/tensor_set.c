#include "io/tensor_set.h"

#include "core/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t count_of(const struct tensor_slice *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_dims; i++) {
        n *= s->dims[i];
    }
    return n;
}

static void format_dims(char out[TENSOR_SLICE_BYTES], const int64_t *dims, int n_dims)
{
    size_t n = (size_t)snprintf(out, TENSOR_SLICE_BYTES, "[");
    for (int i = 0; i < n_dims; i++) {
        n += (size_t)snprintf(out + n, TENSOR_SLICE_BYTES - n, "%s%" PRId64, i > 0 ? ", " : "", dims[i]);
    }
    snprintf(out + n, TENSOR_SLICE_BYTES - n, "]");
}

void tensor_slice_format(char out[TENSOR_SLICE_BYTES], const struct tensor_slice *s)
{
    char dims[TENSOR_SLICE_BYTES];
    format_dims(dims, s->dims, s->n_dims);
    snprintf(out, TENSOR_SLICE_BYTES, "[%" PRId64 ", %" PRId64 ") of %.100s", s->begin, s->end, dims);
}

/* A number without sign or leading zeros, and *at after it; -1 for anything else. */
static int64_t take_number(const char **at)
{
    size_t n = strspn(*at, "0123456789");
    const char *digits = *at;
    *at += n;
    return n == 0 || n > 18 || (n > 1 && digits[0] == '0') ? -1 : strtoll(digits, NULL, 10);
}

static bool take(const char **at, const char *text)
{
    size_t n = strlen(text);
    bool there = strncmp(*at, text, n) == 0;
    *at += there ? n : 0;
    return there;
}

static bool parse(struct tensor_slice *s, const char *text)
{
    const char *at = text;
    uint64_t count = 1;
    *s = (struct tensor_slice){0};
    bool well = take(&at, "[");
    s->begin = take_number(&at);
    well = well && take(&at, ", ");
    s->end = take_number(&at);
    well = well && take(&at, ") of [");
    while (well && s->n_dims < TENSOR_MAX_DIMS && (s->n_dims == 0 || take(&at, ", "))) {
        int64_t dim = take_number(&at);
        well = dim >= 0 && bytes_multiply(count, (uint64_t)dim, &count) && count <= INT64_MAX;
        s->dims[s->n_dims++] = dim;
    }
    return well && take(&at, "]") && *at == '\0' && 0 <= s->begin && s->begin < s->end &&
           (uint64_t)s->end <= count;
}

struct status tensor_slice_of(struct tensor_slice *s, const struct safetensors *f,
                              const struct safetensors_entry *e, const char *source)
{
    const char *text = safetensors_slice_text(f, e);
    *s = (struct tensor_slice){.n_dims = e->n_dims};
    memcpy(s->dims, e->dims, sizeof s->dims);
    s->end = count_of(s);
    if (text == NULL) {
        return status_ok();
    }
    if (!parse(s, text)) {
        return status_error(STATUS_DATA,
                            "%s: tensor %.80s: its metadata '%.60s' does not describe a slice of a tensor",
                            source, e->name, text);
    }
    if (e->n_dims != 1 || e->dims[0] != s->end - s->begin) {
        return status_error(STATUS_DATA,
                            "%s: tensor %.80s: its metadata says that it is %.100s, but it is not that many "
                            "elements in one dim",
                            source, e->name, text);
    }
    return status_ok();
}

static int compare(const void *a, const void *b)
{
    const struct tensor_piece *x = a;
    const struct tensor_piece *y = b;
    int names = strcmp(x->entry->name, y->entry->name);
    int begins = (x->slice.begin > y->slice.begin) - (x->slice.begin < y->slice.begin);
    int ends = (x->slice.end > y->slice.end) - (x->slice.end < y->slice.end);
    return names != 0 ? names : begins != 0 ? begins : ends;
}

static bool same_tensor(const struct tensor_piece *a, const struct tensor_piece *b)
{
    return strcmp(a->entry->name, b->entry->name) == 0;
}

static struct status lacks(const struct tensor_piece *p, int64_t begin, int64_t end)
{
    return status_error(STATUS_DATA,
                        "%s: tensor %.80s lacks the elements [%" PRId64 ", %" PRId64 "), which no file holds",
                        p->source, p->entry->name, begin, end);
}

/* Checks that a piece begins where the previous one ends. */
static struct status check_next(const struct tensor_piece *before, const struct tensor_piece *p)
{
    const struct tensor_slice *a = &before->slice, *b = &p->slice;
    if (a->n_dims != b->n_dims || memcmp(a->dims, b->dims, sizeof a->dims) != 0 ||
        before->entry->dtype != p->entry->dtype) {
        char there[TENSOR_SLICE_BYTES], here[TENSOR_SLICE_BYTES];
        format_dims(there, a->dims, a->n_dims);
        format_dims(here, b->dims, b->n_dims);
        return status_error(STATUS_DATA, "%s: tensor %.80s is a slice of %s %s here, but of %s %s in %s",
                            p->source, p->entry->name, p->entry->dtype_label, here,
                            before->entry->dtype_label, there, before->source);
    }
    if (b->begin < a->end || b->begin == b->end) {
        return status_error(STATUS_DATA, "%s: tensor %.80s: its elements from %" PRId64 " on are also in %s",
                            p->source, p->entry->name, b->begin, before->source);
    }
    return b->begin == a->end ? status_ok() : lacks(p, a->end, b->begin);
}

static struct status check(struct tensor_set *t)
{
    for (int i = 0; i < t->n_pieces; i++) {
        const struct tensor_piece *p = &t->pieces[i];
        bool first = i == 0 || !same_tensor(p - 1, p);
        bool last = i + 1 == t->n_pieces || !same_tensor(p, p + 1);
        t->n += first;
        if (first && p->slice.begin > 0) {
            return lacks(p, 0, p->slice.begin);
        }
        if (!first) {
            TRY(check_next(p - 1, p));
        }
        if (last && p->slice.end < count_of(&p->slice)) {
            return lacks(p, p->slice.end, count_of(&p->slice));
        }
    }
    return status_ok();
}

static struct status list_pieces(struct tensor_set *t, const struct tensor_set_file *files, int n_files)
{
    size_t most = 0;
    int n = 0;
    for (int i = 0; i < n_files; i++) {
        most += (size_t)files[i].file->n;
    }
    t->pieces = calloc(most + 1, sizeof *t->pieces);
    if (t->pieces == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a list of %zu tensors", most);
    }
    for (int i = 0; i < n_files; i++) {
        for (int k = 0; k < files[i].file->n; k++) {
            struct tensor_piece *p = &t->pieces[n++];
            p->entry = &files[i].file->entries[k];
            p->source = files[i].source;
            TRY(tensor_slice_of(&p->slice, files[i].file, p->entry, p->source));
        }
    }
    t->n_pieces = n;
    if (n > 0) {
        qsort(t->pieces, (size_t)n, sizeof *t->pieces, compare);
    }
    return check(t);
}

struct status tensor_set_init(struct tensor_set *t, const struct tensor_set_file *files, int n_files)
{
    *t = (struct tensor_set){0};
    struct status s = list_pieces(t, files, n_files);
    if (failed(s)) {
        tensor_set_fini(t);
    }
    return s;
}

void tensor_set_fini(struct tensor_set *t)
{
    free(t->pieces);
    *t = (struct tensor_set){0};
}

const struct tensor_piece *tensor_set_find(const struct tensor_set *t, const char *name)
{
    int low = 0, high = t->n_pieces; /* the first piece whose name is not before it */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(t->pieces[middle].entry->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < t->n_pieces && strcmp(t->pieces[low].entry->name, name) == 0;
    return found ? &t->pieces[low] : NULL;
}

static struct status check_shape(const struct tensor_piece *p, tensor shape)
{
    bool same = p->slice.n_dims == shape.n_dims;
    for (int i = 0; same && i < shape.n_dims; i++) {
        same = p->slice.dims[i] == shape.dims[i];
    }
    if (!same) {
        char has[TENSOR_SLICE_BYTES], wants[TENSOR_SLICE_BYTES];
        format_dims(has, p->slice.dims, p->slice.n_dims);
        format_dims(wants, shape.dims, shape.n_dims);
        return status_error(STATUS_DATA, "%s: tensor %.80s has the shape %s, but should have %s", p->source,
                            p->entry->name, has, wants);
    }
    return status_ok();
}

struct status tensor_set_read(const struct tensor_set *t, const struct tensor_piece *first, tensor shape,
                              int64_t begin, tensor out)
{
    int64_t end = begin + tensor_count(out);
    CHECK(begin >= 0 && end <= tensor_count(shape), "%s has no elements [%" PRId64 ", %" PRId64 ")",
          first->entry->name, begin, end);
    TRY(check_shape(first, shape));
    const struct tensor_piece *last = t->pieces + t->n_pieces;
    tensor flat = tensor_1d(out.data, out.dtype, tensor_count(out));
    for (const struct tensor_piece *p = first; p < last && same_tensor(first, p); p++) {
        int64_t from = p->slice.begin > begin ? p->slice.begin : begin;
        int64_t to = p->slice.end < end ? p->slice.end : end;
        if (from < to) {
            TRY(status_context(safetensors_read_elements(p->entry, from - p->slice.begin,
                                                         tensor_slice(flat, from - begin, to - from)),
                               "%s", p->source));
        }
    }
    return status_ok();
}
