/* fixture_store: small token stores for the tests of data. */
#ifndef KILN_TESTS_FIXTURE_STORE_H
#define KILN_TESTS_FIXTURE_STORE_H

#include "test.h"

#include "core/rng.h"
#include "io/indexed.h"

#include <unistd.h>

enum { FIXTURE_PAD, FIXTURE_CLS, FIXTURE_SEP, FIXTURE_MASK, FIXTURE_N_SPECIAL };

/* A directory of this test's own, removed by fixture_remove. */
static char fixture_directory[] = "/tmp/kiln-test-XXXXXX";

static inline const char *fixture_path(const char *name)
{
    static char path[512];
    if (strstr(fixture_directory, "XXXXXX") != NULL) {
        EXPECT(mkdtemp(fixture_directory) != NULL, "mkdtemp");
    }
    snprintf(path, sizeof path, "%s/%s", fixture_directory, name);
    return path;
}

static inline void fixture_remove(void)
{
    EXPECT_OK(file_remove_tree(fixture_directory));
}

/* Writes a file at once: the care of io/file.h, an fsync or two, is not needed here. */
static inline void fixture_write(const char *name, const void *bytes, size_t n)
{
    const char *path = fixture_path(name);
    FILE *f = fopen(path, "wb");
    EXPECT(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
}

/* A word whose id tells where in the store it stands, as far as a vocabulary of this size can tell. */
static inline int32_t fixture_token(int64_t offset, int32_t vocab_size)
{
    return (int32_t)(FIXTURE_N_SPECIAL + offset % (vocab_size - FIXTURE_N_SPECIAL));
}

/* Writes and opens a store of n_documents documents of 1..max_sentences sentences of 1..max_tokens tokens. */
static inline void fixture_store(struct indexed *x, const char *name, int64_t n_documents,
                                 uint32_t max_sentences, uint32_t max_tokens, int32_t vocab_size)
{
    const char *prefix = fixture_path(name);
    struct rng_stream r = rng_stream(rng_key(11, (uint64_t)n_documents));
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, prefix, vocab_size));
    int32_t *ids = malloc(max_tokens * sizeof *ids);
    for (int64_t d = 0; d < n_documents; d++) {
        uint32_t n_sentences = 1 + rng_below(&r, max_sentences);
        for (uint32_t k = 0; k < n_sentences; k++) {
            uint32_t n = 1 + rng_below(&r, max_tokens);
            for (uint32_t i = 0; i < n; i++) {
                ids[i] = fixture_token(w.n_tokens + i, vocab_size);
            }
            indexed_writer_add(&w, ids, n);
        }
        indexed_writer_end_document(&w);
    }
    free(ids);
    EXPECT_OK(indexed_writer_commit(&w));
    EXPECT_OK(indexed_open(x, prefix));
}

#endif
