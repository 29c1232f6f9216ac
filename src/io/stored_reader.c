#include "io/stored_reader.h"

#include "core/integers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t PIECE = 1 << 16;

int64_t stored_reader_count(const struct stored_tensor *t)
{
    return (int64_t)(t->bytes / dtype_bytes(t->dtype));
}

struct status stored_reader_open(struct stored_reader *r, const struct stored_tensor *t)
{
    int64_t n = stored_reader_count(t);
    *r = (struct stored_reader){.from = *t, .values = tensor_1d(NULL, t->dtype, 0)};
    TRY(stored_tensor_read_elements(t, 0, r->values)); /* whether it can be, and its checksum */
    r->from.has_crc = false;
    r->values = tensor_1d(malloc(PIECE * dtype_bytes(t->dtype)), t->dtype, int_smaller(n, PIECE));
    return r->values.data != NULL ? status_ok()
                                  : status_error(STATUS_MEMORY, "out of memory for the tensor %s", t->name);
}

struct status stored_reader_next(struct stored_reader *r, tensor *piece)
{
    int64_t first = r->next;
    *piece = tensor_slice(r->values, 0, int_smaller(stored_reader_count(&r->from) - first, PIECE));
    r->next += tensor_count(*piece);
    return stored_tensor_read_elements(&r->from, first, *piece);
}

void stored_reader_close(struct stored_reader *r)
{
    free(r->values.data);
}

static bool is_real(enum dtype dtype)
{
    return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2 || stored_tensor_converts(dtype, DTYPE_F32);
}

static void count_piece(struct stored_nonfinite *found, int64_t first, tensor piece)
{
    int64_t at = tensor_find_nonfinite(piece);
    for (int64_t i = at; i >= 0 && i < tensor_count(piece); i++) {
        double value = tensor_get(piece, i);
        found->n_nan += isnan(value) != 0;
        found->n_infinite += isinf(value) != 0;
        if (found->first < 0) {
            found->first = first + i;
            found->value = value;
        }
    }
}

struct status stored_reader_find_nonfinite(struct stored_nonfinite *found, const struct stored_tensor *t)
{
    struct stored_reader r;
    tensor piece;
    *found = (struct stored_nonfinite){.first = -1};
    if (t->unreadable != NULL || !is_real(t->dtype)) {
        return status_ok();
    }
    struct status s = stored_reader_open(&r, t);
    for (int64_t first = 0; !failed(s) && first < stored_reader_count(t); first += tensor_count(piece)) {
        s = stored_reader_next(&r, &piece);
        if (!failed(s)) {
            count_piece(found, first, piece);
        }
    }
    stored_reader_close(&r);
    return s;
}
