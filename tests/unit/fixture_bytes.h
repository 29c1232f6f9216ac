/* fixture_bytes: the smallest tokenizer that is none of kiln's: an id is a byte, a space begins a word, as in byte-level
 * BPE, two files make the vocabulary, there is no special token and no letter case. */
#ifndef KILN_TESTS_FIXTURE_BYTES_H
#define KILN_TESTS_FIXTURE_BYTES_H

#include "test.h"

#include "text/tokenizer.h"
#include "text/tokenizer_files.h"

enum { BYTES_N = 256 };

static int bytes_scratches; /* that are there */

static inline struct status bytes_scratch_create(void **scratch, const struct tokenizer *t)
{
    (void)t;
    *scratch = malloc(1);
    EXPECT(*scratch != NULL, "memory");
    bytes_scratches++;
    return status_ok();
}

static inline void bytes_scratch_destroy(void *scratch)
{
    bytes_scratches -= scratch != NULL;
    free(scratch);
}

static inline struct status bytes_encode(void *scratch, struct token_list *out, const char *text, size_t n)
{
    (void)scratch;
    for (size_t i = 0; i < n; i++) {
        EXPECT(token_list_append(out, (struct token){(unsigned char)text[i], i, i + 1}), "memory");
    }
    return status_ok();
}

static inline struct status bytes_encode_ids(void *scratch, struct id_list *out, const char *text, size_t n)
{
    (void)scratch;
    for (size_t i = 0; i < n; i++) {
        EXPECT(id_list_append(out, (unsigned char)text[i]), "memory");
    }
    return status_ok();
}

static inline void bytes_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    (void)t;
    for (size_t i = 0; i < n; i++) {
        buf_putc(out, (char)ids[i]);
    }
}

static inline const char *bytes_piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    *n = 1;
    return (const char *)t->vocabulary + id;
}

static inline bool bytes_continues_word(const struct tokenizer *t, int32_t id)
{
    (void)t;
    return id != ' ';
}

static inline json_t *bytes_config(const struct tokenizer *t, int64_t max_length)
{
    (void)t;
    return json_pack("{s:s, s:I}", "tokenizer_class", "Bytes", "model_max_length", (json_int_t)max_length);
}

static inline struct status bytes_documents(json_t **documents, const struct tokenizer *t)
{
    (void)t;
    *documents = json_pack("{s:{s:i}}", "bytes.json", "n", BYTES_N);
    return status_ok();
}

static const char *const bytes_file_names[] = {"pieces.bin", "merges.txt", TOKENIZER_CONFIG_NAME,
                                               "bytes.json", NULL};

static const struct tokenizer_kind bytes_kind = {
    .name = "byte",
    .file_names = bytes_file_names,
    .has_letter_case = false,
    .scratch_create = bytes_scratch_create,
    .scratch_destroy = bytes_scratch_destroy,
    .encode = bytes_encode,
    .encode_ids = bytes_encode_ids,
    .decode = bytes_decode,
    .piece = bytes_piece,
    .continues_word = bytes_continues_word,
    .config = bytes_config,
    .documents = bytes_documents,
    .destroy = free,
};

static inline void bytes_tokenizer_init(struct tokenizer *t)
{
    char *pieces = malloc(BYTES_N);
    EXPECT(pieces != NULL, "memory");
    for (int i = 0; i < BYTES_N; i++) {
        pieces[i] = (char)i;
    }
    *t = (struct tokenizer){
        .kind = &bytes_kind, .n = BYTES_N, .special = {-1, -1, -1, -1, -1}, .vocabulary = pieces};
    const struct tokenizer_file files[] = {{"pieces.bin", pieces, BYTES_N}, {"merges.txt", "none\n", 5}};
    tokenizer_set_files(t, files, 2);
}

#endif
