/* Shuffled documents: each is there once, with its sequences; the order is the seed's, whatever the memory;
 * and all orders of a few documents are equally frequent. */
#include "test.h"

#include "core/rng.h"
#include "corpus/document_shuffle.h"
#include "io/file.h"

#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 300, LARGE = 3000 };

static char directory[] = "/tmp/kiln_shuffle_XXXXXX";

/* Document d begins with two tokens that say its number, and has up to three sequences, some empty.  One is
 * larger than the least memory. */
static void add_document(struct document_shuffle *s, int64_t d, int64_t large)
{
    struct rng_stream r = rng_stream(rng_key(9, (uint64_t)d));
    int32_t ids[LARGE] = {(int32_t)(d / WORDS), (int32_t)(d % WORDS)};
    int64_t n = d == large ? LARGE : 2 + rng_below(&r, 20);
    for (int64_t i = 2; i < n; i++) {
        ids[i] = (int32_t)rng_below(&r, WORDS);
    }
    document_shuffle_add(s, ids, n);
    for (int64_t k = d % 3; k > 0; k--) {
        document_shuffle_add(s, ids, 5 * (k - 1));
    }
    document_shuffle_end_document(s);
}

static void write_store(const char *prefix, int64_t n, int64_t seed, uint64_t memory, uint64_t expected,
                        int64_t words, int64_t *n_files)
{
    struct document_shuffle s;
    struct indexed_writer w;
    char parts[128];
    struct document_shuffle_config c = {.seed = seed, .memory_bytes = memory, .expected_bytes = expected};
    snprintf(parts, sizeof parts, "%s.parts", prefix);
    EXPECT_OK(indexed_writer_open(&w, prefix, words));
    EXPECT_OK(document_shuffle_open(&s, &c, parts, w.token_bytes));
    for (int64_t d = 0; d < n; d++) {
        add_document(&s, d, n / 2);
    }
    EXPECT_OK(document_shuffle_status(&s));
    EXPECT_OK(document_shuffle_pour(&s, &w));
    *n_files = s.n_files;
    document_shuffle_close(&s);
    EXPECT(!file_exists(parts), "%s is left", parts);
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    indexed_writer_close(&w);
}

/* Each document once, as add_document made it; *moved are those that are elsewhere. */
static void check_store(const char *prefix, int64_t n, int64_t *moved)
{
    struct indexed x;
    EXPECT_OK(indexed_open(&x, prefix));
    EXPECT(x.n_documents == n, "%lld documents", (long long)x.n_documents);
    unsigned char *seen = calloc((size_t)n, 1);
    *moved = 0;
    for (int64_t d = 0; d < n; d++) {
        int64_t sequence = indexed_first_sequence(&x, d), end = indexed_first_sequence(&x, d + 1);
        int64_t begin = indexed_offset(&x, sequence), size = indexed_offset(&x, sequence + 1) - begin;
        int32_t ids[LARGE], wanted[LARGE];
        indexed_copy(&x, ids, begin, size);
        int64_t number = ids[0] * (int64_t)WORDS + ids[1];
        EXPECT(number < n && !seen[number], "document %lld twice", (long long)number);
        struct rng_stream r = rng_stream(rng_key(9, (uint64_t)number));
        EXPECT(size == (number == n / 2 ? LARGE : 2 + rng_below(&r, 20)), "document %lld: %lld tokens",
               (long long)number, (long long)size);
        for (int64_t i = 2; i < size; i++) {
            wanted[i] = (int32_t)rng_below(&r, WORDS);
        }
        EXPECT(memcmp(ids + 2, wanted + 2, (size_t)(size - 2) * sizeof *ids) == 0, "document %lld",
               (long long)number);
        EXPECT(end - sequence == 1 + number % 3, "%lld sequences", (long long)(end - sequence));
        for (int64_t k = number % 3; k > 0; k--) {
            int64_t at = indexed_offset(&x, ++sequence);
            EXPECT(indexed_offset(&x, sequence + 1) - at == 5 * (k - 1), "a sequence of document %lld",
                   (long long)number);
        }
        seen[number] = 1;
        *moved += number != d;
    }
    free(seen);
    indexed_close(&x);
}

static bool is_equal(const char *a, const char *b, const char *suffix)
{
    struct file_map x, y;
    char path[2][160];
    snprintf(path[0], sizeof path[0], "%s%s", a, suffix);
    snprintf(path[1], sizeof path[1], "%s%s", b, suffix);
    EXPECT_OK(file_map_open(&x, path[0]));
    EXPECT_OK(file_map_open(&y, path[1]));
    bool equal = x.n == y.n && memcmp(x.data, y.data, x.n) == 0;
    file_map_close(&x);
    file_map_close(&y);
    return equal;
}

static void the_order_is_the_seeds(int64_t words)
{
    enum { N = 1200 };
    char one[128], other[128], third[128];
    int64_t n_files, moved;
    snprintf(one, sizeof one, "%s/one", directory);
    snprintf(other, sizeof other, "%s/other", directory);
    snprintf(third, sizeof third, "%s/third", directory);
    write_store(one, N, 7, UINT64_C(1) << 30, 0, words, &n_files);
    check_store(one, N, &moved);
    EXPECT(n_files == 1 && moved > N - 20, "%lld files, %lld documents moved", (long long)n_files,
           (long long)moved);
    /* files that are dealt out again, at once many, and both; less memory than a document takes */
    static const struct {
        uint64_t memory, expected;
        int64_t n_files;
    } rows[] = {{6000, 0, 200}, {6000, 100000, 60}, {1000, 30000, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_store(other, N, 7, rows[i].memory, rows[i].expected, words, &n_files);
        EXPECT(n_files >= rows[i].n_files, "row %zu: %lld files", i, (long long)n_files);
        EXPECT(is_equal(one, other, ".bin") && is_equal(one, other, ".idx"), "row %zu: another order", i);
    }
    write_store(third, N, 8, UINT64_C(1) << 30, 0, words, &n_files);
    check_store(third, N, &moved);
    EXPECT(!is_equal(one, third, ".idx"), "two seeds give one order");
}

/* Of each four documents, 2,400 times in one store, each of 24 orders is drawn about 100 times. */
static void all_orders_are_drawn(void)
{
    enum { GROUPS = 2400, ORDERS = 256 };
    int counts[ORDERS] = {0}, drawn = 0;
    int *order = calloc(GROUPS, sizeof *order);
    double chi2 = 0;
    char prefix[128];
    struct indexed x;
    int64_t n_files;
    snprintf(prefix, sizeof prefix, "%s/groups", directory);
    write_store(prefix, 4 * GROUPS, 1, 1 << 20, 0, WORDS, &n_files);
    EXPECT_OK(indexed_open(&x, prefix));
    for (int64_t d = 0; d < 4 * GROUPS; d++) {
        int32_t ids[2];
        indexed_copy(&x, ids, indexed_offset(&x, indexed_first_sequence(&x, d)), 2);
        int number = ids[0] * WORDS + ids[1];
        order[number / 4] = 4 * order[number / 4] + number % 4;
    }
    for (int i = 0; i < GROUPS; i++) {
        counts[order[i]]++;
    }
    for (int i = 0; i < ORDERS; i++) {
        drawn += counts[i] > 0;
        chi2 += counts[i] > 0 ? (counts[i] - 100.0) * (counts[i] - 100.0) / 100.0 : 0;
    }
    EXPECT(drawn == 24 && chi2 < 49.7, "%d orders, chi squared of 23 degrees %.1f", drawn, chi2); /* 0.1 % */
    indexed_close(&x);
    free(order);
}

int main(void)
{
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    the_order_is_the_seeds(WORDS);
    the_order_is_the_seeds(100000);
    all_orders_are_drawn();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
