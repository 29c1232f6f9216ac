#include "io/indexed.h"

#include "core/bytes.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "stores are read and written in the machine's byte order");

enum { PATH_BYTES = 1024 };

const char indexed_magic[INDEXED_MAGIC_BYTES] = "MMIDIDX\0";

static struct status make_path(char path[PATH_BYTES], const char *prefix, const char *suffix)
{
    FAIL_IF((size_t)snprintf(path, PATH_BYTES, "%s%s", prefix, suffix) >= PATH_BYTES, STATUS_USAGE,
            "the path %.60s... is longer than %d bytes", prefix, PATH_BYTES - 1);
    return status_ok();
}

/* Finds the parts of the index, and checks that it is exactly as long as its counts say. */
static struct status read_index(struct indexed *x, const char *path)
{
    struct span s = bytes_span(x->idx.data, x->idx.n);
    const unsigned char *magic = bytes_take(&s, INDEXED_MAGIC_BYTES);
    uint64_t version = bytes_read_u64(&s);
    int dtype = bytes_read_u8(&s);
    uint64_t n_sequences = bytes_read_u64(&s);
    uint64_t n_bounds = bytes_read_u64(&s);
    FAIL_IF(s.failed || memcmp(magic, indexed_magic, INDEXED_MAGIC_BYTES) != 0, STATUS_DATA,
            "%s is not the index of a token store: it lacks the MMIDIDX header", path);
    FAIL_IF(version != INDEXED_VERSION, STATUS_DATA, "%s has version %llu; kiln reads version 1", path,
            (unsigned long long)version);
    FAIL_IF(dtype != INDEXED_CODE_I32 && dtype != INDEXED_CODE_U16, STATUS_DATA,
            "%s has element type %d; tokens must have type 4 (int32) or 8 (uint16)", path, dtype);
    x->sizes = bytes_take_items(&s, n_sequences, sizeof(int32_t));
    x->pointers = bytes_take_items(&s, n_sequences, sizeof(int64_t));
    x->boundaries = bytes_take_items(&s, n_bounds, sizeof(int64_t));
    FAIL_IF(s.failed || bytes_left(&s) != 0 || n_bounds == 0, STATUS_DATA,
            "%s has %zu bytes, which does not fit the %llu sequences and %llu document "
            "bounds of its header: it is cut short or damaged",
            path, x->idx.n, (unsigned long long)n_sequences, (unsigned long long)n_bounds);
    x->token_bytes = dtype == INDEXED_CODE_U16 ? 2 : 4;
    x->n_sequences = (int64_t)n_sequences;
    x->n_documents = (int64_t)n_bounds - 1;
    return status_ok();
}

/* Sequences lie end to end from byte 0, as every writer of the format leaves them. */
static struct status check_sequences(struct indexed *x, const char *path)
{
    int64_t end = 0;
    for (int64_t i = 0; i < x->n_sequences; i++) {
        int32_t size;
        memcpy(&size, x->sizes + 4 * i, 4);
        int64_t pointer = indexed_load_i64(x->pointers, i);
        FAIL_IF(size < 0 || pointer != end, STATUS_DATA,
                "%s: sequence %lld has %d tokens at byte %lld of the .bin, where byte %lld was expected",
                path, (long long)i, (int)size, (long long)pointer, (long long)end);
        end += (int64_t)size * x->token_bytes;
        FAIL_IF((uint64_t)end > x->bin.n, STATUS_DATA,
                "%s: sequence %lld ends at byte %lld, but the .bin has only %zu bytes", path, (long long)i,
                (long long)end, x->bin.n);
    }
    FAIL_IF((uint64_t)end != x->bin.n, STATUS_DATA, "%s describes %lld bytes of tokens, but the .bin has %zu",
            path, (long long)end, x->bin.n);
    x->n_tokens = end / x->token_bytes;
    return status_ok();
}

static struct status check_documents(const struct indexed *x, const char *path)
{
    int64_t last = 0;
    for (int64_t d = 0; d <= x->n_documents; d++) {
        int64_t bound = indexed_first_sequence(x, d);
        FAIL_IF(bound < last || bound > x->n_sequences || (d == 0 && bound != 0), STATUS_DATA,
                "%s: document bound %lld is %lld, but must lie between the bound before it, "
                "%lld, and the number of sequences, %lld",
                path, (long long)d, (long long)bound, (long long)last, (long long)x->n_sequences);
        last = bound;
    }
    FAIL_IF(last != x->n_sequences, STATUS_DATA,
            "%s: the documents end at sequence %lld, but should end at the last, %lld", path, (long long)last,
            (long long)x->n_sequences);
    return status_ok();
}

struct status indexed_open(struct indexed *x, const char *prefix)
{
    *x = (struct indexed){0};
    char bin_path[PATH_BYTES], idx_path[PATH_BYTES];
    TRY(make_path(bin_path, prefix, ".bin"));
    TRY(make_path(idx_path, prefix, ".idx"));
    struct status s = file_map_open(&x->idx, idx_path);
    if (!failed(s)) {
        s = file_map_open(&x->bin, bin_path);
    }
    if (!failed(s)) {
        s = read_index(x, idx_path);
    }
    if (!failed(s)) {
        s = check_sequences(x, idx_path);
    }
    if (!failed(s)) {
        s = check_documents(x, idx_path);
    }
    if (failed(s)) {
        indexed_close(x);
    }
    return s;
}

void indexed_close(struct indexed *x)
{
    file_map_close(&x->bin);
    file_map_close(&x->idx);
    *x = (struct indexed){0};
}

int64_t indexed_find_document(const struct indexed *x, int64_t sequence)
{
    CHECK(sequence >= 0 && sequence < x->n_sequences, "sequence %lld of %lld", (long long)sequence,
          (long long)x->n_sequences);
    int64_t low = 0, high = x->n_documents; /* bounds[low] <= sequence < bounds[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (indexed_first_sequence(x, middle) <= sequence) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

void indexed_copy(const struct indexed *x, int32_t *ids, int64_t begin, int64_t n)
{
    CHECK(begin >= 0 && n >= 0 && n <= x->n_tokens - begin, "tokens %lld + %lld of %lld", (long long)begin,
          (long long)n, (long long)x->n_tokens);
    if (n == 0) {
        return;
    }
    const unsigned char *p = x->bin.data + begin * x->token_bytes;
    if (x->token_bytes == 4) {
        memcpy(ids, p, (size_t)n * 4);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t id;
        memcpy(&id, p + 2 * i, 2);
        ids[i] = id;
    }
}
