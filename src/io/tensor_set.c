#include "io/tensor_set.h"

#include "core/bytes.h"
#include "core/integers.h"

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

/* Columns of a tensor, flattened to a matrix; a slice that says nothing of columns is of all. */
static int64_t all_columns(const struct tensor_slice *s)
{
    return s->n_dims > 0 ? s->dims[s->n_dims - 1] : 1;
}

static int64_t columns_of(const struct tensor_slice *s)
{
    return s->n_cols > 0 ? s->n_cols : all_columns(s);
}

/* Elements of the columns that the slice is of. */
static int64_t count_stripe(const struct tensor_slice *s)
{
    return s->n_cols > 0 ? s->dims[0] * s->n_cols : count_of(s);
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
    format_dims(dims, s->dims, s->n_dims);
    if (s->n_cols > 0) {
        snprintf(columns, sizeof columns, "columns [%" PRId64 ", %" PRId64 ") of ", s->first_col,
                 s->first_col + s->n_cols);
    }
    snprintf(out, TENSOR_SLICE_BYTES, "[%" PRId64 ", %" PRId64 ") of %s%.80s", s->begin, s->end, columns,
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

static bool parse(struct tensor_slice *s, const char *text)
{
    const char *at = text;
    int64_t end_col = 0;
    *s = (struct tensor_slice){0};
    bool well = take_range(&at, &s->begin, &s->end) && take(&at, " of ");
    bool of_columns = well && take(&at, "columns ");
    if (of_columns) {
        well = take_range(&at, &s->first_col, &end_col) && take(&at, " of ");
        s->n_cols = end_col - s->first_col;
    }
    well = well && take_dims(&at, s) && *at == '\0';
    return well && (!of_columns || (s->n_dims == 2 && end_col <= s->dims[1] && s->n_cols < s->dims[1])) &&
           s->end <= count_stripe(s);
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
    int columns = (x->slice.first_col > y->slice.first_col) - (x->slice.first_col < y->slice.first_col);
    int begins = (x->slice.begin > y->slice.begin) - (x->slice.begin < y->slice.begin);
    int ends = (x->slice.end > y->slice.end) - (x->slice.end < y->slice.end);
    return names != 0 ? names : columns != 0 ? columns : begins != 0 ? begins : ends;
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

static struct status lacks_columns(const struct tensor_piece *p, int64_t first, int64_t end)
{
    return status_error(STATUS_DATA,
                        "%s: tensor %.80s lacks the columns [%" PRId64 ", %" PRId64 "), which no file holds",
                        p->source, p->entry->name, first, end);
}

/* Checks that two pieces are of one tensor. */
static struct status check_agreement(const struct tensor_piece *before, const struct tensor_piece *p)
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
static struct status check_next(const struct tensor_piece *before, const struct tensor_piece *p)
{
    const struct tensor_slice *a = &before->slice, *b = &p->slice;
    if (b->begin < a->end || b->begin == b->end) {
        return status_error(STATUS_DATA, "%s: tensor %.80s: its elements from %" PRId64 " on are also in %s",
                            p->source, p->entry->name, b->begin, before->source);
    }
    return b->begin == a->end ? status_ok() : lacks(p, a->end, b->begin);
}

/* Checks that a piece's columns begin where those of the pieces before end. */
static struct status check_next_columns(const struct tensor_piece *before, const struct tensor_piece *p)
{
    int64_t end = before->slice.first_col + columns_of(&before->slice);
    if (p->slice.first_col < end) {
        return status_error(STATUS_DATA, "%s: tensor %.80s: its columns from %" PRId64 " on are also in %s",
                            p->source, p->entry->name, p->slice.first_col, before->source);
    }
    return p->slice.first_col == end ? status_ok() : lacks_columns(p, end, p->slice.first_col);
}

static bool same_columns(const struct tensor_piece *a, const struct tensor_piece *b)
{
    return a->slice.first_col == b->slice.first_col && a->slice.n_cols == b->slice.n_cols;
}

/* Checks a piece against the one before; NULL: it is the first of its tensor. */
static struct status check_piece(const struct tensor_piece *before, const struct tensor_piece *p)
{
    TRY(before != NULL ? check_agreement(before, p) : status_ok());
    if (before != NULL && same_columns(before, p)) {
        return check_next(before, p);
    }
    if (before == NULL && p->slice.first_col > 0) {
        return lacks_columns(p, 0, p->slice.first_col);
    }
    TRY(before != NULL ? check_next_columns(before, p) : status_ok());
    return p->slice.begin == 0 ? status_ok() : lacks(p, 0, p->slice.begin);
}

/* Checks that the last piece of a stripe, or of a tensor, ends it. */
static struct status check_end(const struct tensor_piece *p, const struct tensor_piece *next)
{
    const struct tensor_slice *s = &p->slice;
    if ((next == NULL || !same_columns(p, next)) && s->end < count_stripe(s)) {
        return lacks(p, s->end, count_stripe(s));
    }
    return next != NULL || s->first_col + columns_of(s) == all_columns(s)
               ? status_ok()
               : lacks_columns(p, s->first_col + s->n_cols, all_columns(s));
}

static struct status check(struct tensor_set *t)
{
    for (int i = 0; i < t->n_pieces; i++) {
        const struct tensor_piece *p = &t->pieces[i];
        bool first = i == 0 || !same_tensor(p - 1, p);
        bool last = i + 1 == t->n_pieces || !same_tensor(p, p + 1);
        t->n += first;
        TRY(check_piece(first ? NULL : p - 1, p));
        TRY(check_end(p, last ? NULL : p + 1));
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

static struct status check_shape(const struct tensor_piece *p, const struct tensor_slice *wanted)
{
    if (p->slice.n_dims == wanted->n_dims &&
        memcmp(p->slice.dims, wanted->dims, (size_t)wanted->n_dims * sizeof wanted->dims[0]) == 0) {
        return status_ok();
    }
    char has[TENSOR_SLICE_BYTES], wants[TENSOR_SLICE_BYTES];
    format_dims(has, p->slice.dims, p->slice.n_dims);
    format_dims(wants, wanted->dims, wanted->n_dims);
    return status_error(STATUS_DATA, "%s: tensor %.80s has the shape %s, but should have %s", p->source,
                        p->entry->name, has, wants);
}

/* What a piece has of the elements [from, to) of its columns; `out` is what is wanted from `begin` on. */
static struct status read_run(const struct tensor_piece *p, int64_t from, int64_t to, int64_t at, tensor out)
{
    from = int_larger(from, p->slice.begin), to = int_smaller(to, p->slice.end);
    return from >= to ? status_ok()
                      : status_context(safetensors_read_elements(p->entry, from - p->slice.begin,
                                                                 tensor_slice(out, from - at, to - from)),
                                       "%s", p->source);
}

/* What a piece of other columns has, row by row. */
static struct status read_rows(const struct tensor_piece *p, const struct tensor_slice *wanted, tensor out)
{
    int64_t has = columns_of(&p->slice), wants = columns_of(wanted);
    int64_t first = int_larger(p->slice.first_col, wanted->first_col);
    int64_t end = int_smaller(p->slice.first_col + has, wanted->first_col + wants);
    int64_t row = int_larger(p->slice.begin / has, wanted->begin / wants);
    for (; first < end && row * has < p->slice.end && row * wants < wanted->end; row++) {
        int64_t there =
            row * wants + first - wanted->first_col; /* in the wanted columns, as they are here: */
        int64_t here = row * has + first - p->slice.first_col;
        int64_t skip = int_larger(wanted->begin - there, 0);
        int64_t n = int_smaller(end - first, wanted->end - there);
        if (skip < n) {
            TRY(read_run(p, here + skip, here + n, here + wanted->begin - there, out));
        }
    }
    return status_ok();
}

struct status tensor_set_read_slice(const struct tensor_set *t, const struct tensor_piece *first,
                                    const struct tensor_slice *wanted, tensor out)
{
    CHECK(wanted->begin >= 0 && wanted->end <= count_stripe(wanted) &&
              wanted->end - wanted->begin == tensor_count(out),
          "%s has no elements [%" PRId64 ", %" PRId64 ")", first->entry->name, wanted->begin, wanted->end);
    TRY(check_shape(first, wanted));
    const struct tensor_piece *last = t->pieces + t->n_pieces;
    tensor flat = tensor_1d(out.data, out.dtype, tensor_count(out));
    const struct tensor_piece of_wanted = {.slice = *wanted};
    for (const struct tensor_piece *p = first; p < last && same_tensor(first, p); p++) {
        TRY(same_columns(p, &of_wanted) ? read_run(p, wanted->begin, wanted->end, wanted->begin, flat)
                                        : read_rows(p, wanted, flat));
    }
    return status_ok();
}

struct status tensor_set_read(const struct tensor_set *t, const struct tensor_piece *first, tensor shape,
                              int64_t begin, tensor out)
{
    struct tensor_slice wanted = {.n_dims = shape.n_dims, .begin = begin, .end = begin + tensor_count(out)};
    memcpy(wanted.dims, shape.dims, sizeof wanted.dims);
    return tensor_set_read_slice(t, first, &wanted, out);
}

/* What a piece has of row `row` of its columns. */
static void add_row(const struct tensor_piece *p, int64_t row, struct stored_runs *runs)
{
    int64_t n = columns_of(&p->slice);
    int64_t from = int_larger(row * n, p->slice.begin), to = int_smaller((row + 1) * n, p->slice.end);
    if (from < to) {
        size_t at = (size_t)(from - p->slice.begin) * runs->item_bytes;
        stored_runs_add(runs, p->entry->data + at, to - from);
    }
}

void tensor_set_runs(const struct tensor_set *t, const struct tensor_piece *first, struct stored_runs *runs)
{
    const struct tensor_piece *end = first, *last = t->pieces + t->n_pieces;
    while (end < last && same_tensor(first, end)) {
        end++;
    }
    bool in_stripes = first->slice.n_cols > 0;
    for (int64_t row = 0; in_stripes && row < first->slice.dims[0]; row++) {
        for (const struct tensor_piece *p = first; p < end; p++) {
            add_row(p, row, runs);
        }
    }
    for (const struct tensor_piece *p = first; !in_stripes && p < end; p++) {
        stored_runs_add(runs, p->entry->data, p->slice.end - p->slice.begin);
    }
}
