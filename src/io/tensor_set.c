#include "io/tensor_set.h"

#include "core/bytes.h"
#include "io/stored_rects.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A tensor, or a slice of one, in a file. */
struct piece {
    const struct stored_tensor *entry;
    struct tensor_slice slice;
    const char *source; /* names the file */
};

/* The pieces of all files, in the order of names, then of columns, then of elements. */
struct pieces {
    struct piece *list;
    int n;
};

static int64_t count_of(const struct tensor_slice *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_dims; i++) {
        n *= s->dims[i];
    }
    return n;
}

/* Columns of a tensor, seen as a matrix of its slowest dim by all others. */
static int64_t all_columns(const struct tensor_slice *s)
{
    int64_t n = count_of(s) > 0;
    for (int i = 1; i < s->n_dims; i++) {
        n *= s->dims[i];
    }
    return n;
}

/* Elements of the columns that the slice is of. */
static int64_t count_stripe(const struct tensor_slice *s)
{
    return s->part.n[0] * s->part.n[1];
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
    char dims[TENSOR_SLICE_BYTES], columns[64] = "";
    const struct stored_part *p = &s->part;
    format_dims(dims, s->dims, s->n_dims);
    if (p->n[1] < all_columns(s)) {
        snprintf(columns, sizeof columns, "columns [%" PRId64 ", %" PRId64 ") of ", p->at[1],
                 p->at[1] + p->n[1]);
    }
    snprintf(out, TENSOR_SLICE_BYTES, "[%" PRId64 ", %" PRId64 ") of %s%.80s", p->begin, p->end, columns,
             dims);
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

/* "[a, b)" */
static bool take_range(const char **at, int64_t *first, int64_t *end)
{
    bool well = take(at, "[");
    *first = take_number(at);
    well = well && take(at, ", ");
    *end = take_number(at);
    return well && take(at, ")") && 0 <= *first && *first < *end;
}

static bool take_dims(const char **at, struct tensor_slice *s)
{
    uint64_t count = 1;
    bool well = take(at, "[");
    while (well && s->n_dims < TENSOR_MAX_DIMS && (s->n_dims == 0 || take(at, ", "))) {
        int64_t dim = take_number(at);
        well = dim >= 0 && bytes_multiply(count, (uint64_t)dim, &count) && count <= INT64_MAX;
        s->dims[s->n_dims++] = dim;
    }
    return well && take(at, "]");
}

/* Sets the part to the complete tensor. */
static void take_whole(struct tensor_slice *s)
{
    int64_t n = count_of(s), cols = all_columns(s);
    s->part = (struct stored_part){.n = {cols > 0 ? n / cols : 0, cols}, .end = n};
}

static bool parse(struct tensor_slice *s, const char *text)
{
    const char *at = text;
    int64_t begin, end, first = 0, end_col = 0;
    *s = (struct tensor_slice){0};
    bool well = take_range(&at, &begin, &end) && take(&at, " of ");
    bool of_columns = well && take(&at, "columns ");
    if (of_columns) {
        well = take_range(&at, &first, &end_col) && take(&at, " of ");
    }
    well = well && take_dims(&at, s) && *at == '\0';
    if (!well || (of_columns && (s->n_dims != 2 || end_col > s->dims[1] || end_col - first == s->dims[1]))) {
        return false;
    }
    take_whole(s);
    s->part.at[1] = first;
    s->part.n[1] = of_columns && s->part.n[1] > 0 ? end_col - first : s->part.n[1];
    s->part.begin = begin;
    s->part.end = end;
    return end <= count_stripe(s);
}

struct status tensor_slice_of(struct tensor_slice *s, const struct safetensors *f,
                              const struct stored_tensor *e, const char *source)
{
    const char *text = safetensors_slice_text(f, e);
    *s = (struct tensor_slice){.n_dims = e->n_dims};
    memcpy(s->dims, e->dims, sizeof s->dims);
    take_whole(s);
    if (text == NULL) {
        return status_ok();
    }
    FAIL_IF(!parse(s, text), STATUS_DATA,
            "%s: tensor %.80s: its metadata '%.60s' does not describe a slice of a tensor", source, e->name,
            text);
    FAIL_IF(e->n_dims != 1 || e->dims[0] != s->part.end - s->part.begin, STATUS_DATA,
            "%s: tensor %.80s: its metadata says that it is %.100s, but it is not that many "
            "elements in one dim",
            source, e->name, text);
    return status_ok();
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    const struct stored_part *p = &x->slice.part, *q = &y->slice.part;
    int names = strcmp(x->entry->name, y->entry->name), columns = order(p->at[1], q->at[1]);
    int begins = order(p->begin, q->begin);
    return names != 0 ? names : columns != 0 ? columns : begins != 0 ? begins : order(p->end, q->end);
}

static bool same_tensor(const struct piece *a, const struct piece *b)
{
    return strcmp(a->entry->name, b->entry->name) == 0;
}

static struct status lacks(const struct piece *p, int64_t begin, int64_t end)
{
    return status_error(STATUS_DATA,
                        "%s: tensor %.80s lacks the elements [%" PRId64 ", %" PRId64 "), which no file holds",
                        p->source, p->entry->name, begin, end);
}

static struct status lacks_columns(const struct piece *p, int64_t first, int64_t end)
{
    return status_error(STATUS_DATA,
                        "%s: tensor %.80s lacks the columns [%" PRId64 ", %" PRId64 "), which no file holds",
                        p->source, p->entry->name, first, end);
}

/* Checks that two pieces are of one tensor. */
static struct status check_agreement(const struct piece *before, const struct piece *p)
{
    const struct tensor_slice *a = &before->slice, *b = &p->slice;
    if (a->n_dims == b->n_dims && memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
        before->entry->dtype == p->entry->dtype) {
        return status_ok();
    }
    char there[TENSOR_SLICE_BYTES], here[TENSOR_SLICE_BYTES];
    format_dims(there, a->dims, a->n_dims);
    format_dims(here, b->dims, b->n_dims);
    return status_error(STATUS_DATA, "%s: tensor %.80s is a slice of %s %s here, but of %s %s in %s",
                        p->source, p->entry->name, p->entry->dtype_label, here, before->entry->dtype_label,
                        there, before->source);
}

/* Checks that a piece begins where the previous one of its columns ends. */
static struct status check_next(const struct piece *before, const struct piece *p)
{
    const struct stored_part *a = &before->slice.part, *b = &p->slice.part;
    FAIL_IF(b->begin < a->end || b->begin == b->end, STATUS_DATA,
            "%s: tensor %.80s: its elements from %" PRId64 " on are also in %s", p->source, p->entry->name,
            b->begin, before->source);
    return b->begin == a->end ? status_ok() : lacks(p, a->end, b->begin);
}

/* Checks that a piece's columns begin where those of the pieces before end. */
static struct status check_next_columns(const struct piece *before, const struct piece *p)
{
    int64_t end = before->slice.part.at[1] + before->slice.part.n[1], first = p->slice.part.at[1];
    FAIL_IF(first < end, STATUS_DATA, "%s: tensor %.80s: its columns from %" PRId64 " on are also in %s",
            p->source, p->entry->name, first, before->source);
    return first == end ? status_ok() : lacks_columns(p, end, first);
}

static bool same_columns(const struct piece *a, const struct piece *b)
{
    return a->slice.part.at[1] == b->slice.part.at[1] && a->slice.part.n[1] == b->slice.part.n[1];
}

/* Checks a piece against the one before; NULL: it is the first of its tensor. */
static struct status check_piece(const struct piece *before, const struct piece *p)
{
    const struct stored_part *part = &p->slice.part;
    if (before != NULL && same_columns(before, p)) {
        return check_next(before, p);
    }
    if (before == NULL && part->at[1] > 0) {
        return lacks_columns(p, 0, part->at[1]);
    }
    TRY(before != NULL ? check_next_columns(before, p) : status_ok());
    return part->begin == 0 ? status_ok() : lacks(p, 0, part->begin);
}

/* Checks that the last piece of a stripe, or of a tensor, ends it. */
static struct status check_end(const struct piece *p, const struct piece *next)
{
    const struct stored_part *part = &p->slice.part;
    int64_t end = count_stripe(&p->slice), end_col = part->at[1] + part->n[1];
    if ((next == NULL || !same_columns(p, next)) && part->end < end) {
        return lacks(p, part->end, end);
    }
    return next != NULL || end_col == all_columns(&p->slice)
               ? status_ok()
               : lacks_columns(p, end_col, all_columns(&p->slice));
}

/* ---- the set ---- */

static struct status list_pieces(struct pieces *all, const struct tensor_set_file *files, int n_files)
{
    size_t most = 0;
    for (int i = 0; i < n_files; i++) {
        most += (size_t)files[i].file->n;
    }
    all->list = calloc(most + 1, sizeof *all->list);
    FAIL_IF(all->list == NULL, STATUS_MEMORY, "out of memory for a list of %zu tensors", most);
    for (int i = 0; i < n_files; i++) {
        for (int k = 0; k < files[i].file->n; k++) {
            struct piece *p = &all->list[all->n++];
            p->entry = &files[i].file->entries[k];
            p->source = files[i].source;
            TRY(tensor_slice_of(&p->slice, files[i].file, p->entry, p->source));
        }
    }
    if (all->n > 0) {
        qsort(all->list, (size_t)all->n, sizeof *all->list, compare);
    }
    return status_ok();
}

/* Lays the tensors over the pieces, which are checked on the way. */
static struct status lay_out(struct tensor_set *t, struct stored_rects *rects, const struct pieces *all)
{
    for (int i = 0; i < all->n; i++) {
        const struct piece *p = &all->list[i];
        bool first = i == 0 || !same_tensor(p - 1, p), last = i + 1 == all->n || !same_tensor(p, p + 1);
        TRY(check_piece(first ? NULL : p - 1, p));
        TRY(last ? status_ok() : check_agreement(p, p + 1));
        TRY(check_end(p, last ? NULL : p + 1));
        if (first) {
            struct stored_tensor *added = &t->tensors[t->n];
            *added = *p->entry;
            added->n_dims = p->slice.n_dims;
            memcpy(added->dims, p->slice.dims, sizeof p->slice.dims);
            t->sources[t->n++] = p->source;
        }
        if (last) { /* the files have all elements of these dims */
            struct stored_tensor *whole = &t->tensors[t->n - 1];
            CHECK(stored_tensor_make_dense(whole, dtype_bytes(whole->dtype)), "%s", whole->name);
        }
        int64_t n = rects->n;
        stored_rects_add_run(rects, &p->slice.part, p->entry->data, dtype_bytes(p->entry->dtype));
        t->tensors[t->n - 1].n_rects += rects->n - n;
    }
    return status_ok();
}

static struct status join_pieces(struct tensor_set *t, const struct pieces *all)
{
    struct stored_rects rects = {0};
    t->tensors = calloc((size_t)all->n + 1, sizeof *t->tensors);
    t->sources = calloc((size_t)all->n + 1, sizeof *t->sources);
    struct status s = t->tensors == NULL || t->sources == NULL ? status_ok() : lay_out(t, &rects, all);
    t->rects = rects.list;
    FAIL_IF(t->tensors == NULL || t->sources == NULL || rects.failed, STATUS_MEMORY,
            "out of memory for the slices of %d tensors", all->n);
    const struct stored_rect *next = rects.list;
    for (int i = 0; i < t->n; i++) {
        t->tensors[i].rects = t->tensors[i].n_rects > 0 ? next : NULL;
        next += t->tensors[i].n_rects;
    }
    return s;
}

struct status tensor_set_init(struct tensor_set *t, const struct tensor_set_file *files, int n_files)
{
    struct pieces all = {0};
    *t = (struct tensor_set){0};
    struct status s = list_pieces(&all, files, n_files);
    s = failed(s) ? s : join_pieces(t, &all);
    free(all.list);
    if (failed(s)) {
        tensor_set_fini(t);
    }
    return s;
}

void tensor_set_fini(struct tensor_set *t)
{
    free(t->tensors);
    free((void *)t->sources);
    free(t->rects);
    *t = (struct tensor_set){0};
}

static int compare_names(const void *name, const void *t)
{
    return strcmp(name, ((const struct stored_tensor *)t)->name);
}

const struct stored_tensor *tensor_set_find(const struct tensor_set *t, const char *name)
{
    return t->n == 0 ? NULL : bsearch(name, t->tensors, (size_t)t->n, sizeof *t->tensors, compare_names);
}

struct status tensor_set_read(const struct tensor_set *t, const struct stored_tensor *from,
                              const struct tensor_slice *slice, tensor out)
{
    const char *source = t->sources[from - t->tensors];
    if (from->n_dims != slice->n_dims ||
        memcmp(from->dims, slice->dims, (size_t)slice->n_dims * sizeof *slice->dims) != 0) {
        char has[TENSOR_SLICE_BYTES], wants[TENSOR_SLICE_BYTES];
        format_dims(has, from->dims, from->n_dims);
        format_dims(wants, slice->dims, slice->n_dims);
        return status_error(STATUS_DATA, "%s: tensor %.80s has the shape %s, but should have %s", source,
                            from->name, has, wants);
    }
    return status_context(stored_tensor_read_part(from, &slice->part, out), "%s", source);
}
