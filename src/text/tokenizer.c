#include "text/tokenizer.h"

#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const special_names[SPECIAL_COUNT] = {[SPECIAL_PAD] = "padding",
                                                         [SPECIAL_UNKNOWN] = "unknown",
                                                         [SPECIAL_BEGIN] = "begin",
                                                         [SPECIAL_SEPARATOR] = "separator",
                                                         [SPECIAL_MASK] = "mask"};

/* Names are short and files few, so their list fits on the stack and hashing cannot fail. */
static uint64_t hash_files(const struct tokenizer_file *files, int n_files)
{
    enum { LINE_BYTES = 80 };
    char list[TOKENIZER_MAX_FILES * LINE_BYTES];
    size_t n = 0;
    if (n_files == 1) {
        return hash_fnv1a(files[0].bytes, files[0].n);
    }
    for (int i = 0; i < n_files; i++) {
        int length = snprintf(list + n, LINE_BYTES, "%s %016" PRIx64 "\n", files[i].name,
                              hash_fnv1a(files[i].bytes, files[i].n));
        CHECK(length < LINE_BYTES, "a file of a vocabulary is called %s", files[i].name);
        n += (size_t)length;
    }
    return hash_fnv1a(list, n);
}

void tokenizer_set_files(struct tokenizer *t, const struct tokenizer_file *files, int n_files)
{
    CHECK(n_files >= 1 && n_files <= TOKENIZER_MAX_FILES, "%d files of a vocabulary", n_files);
    for (int i = 0; i < n_files; i++) {
        t->files[i] = files[i];
    }
    t->n_files = n_files;
    t->hash = hash_files(files, n_files);
}

void tokenizer_fini(struct tokenizer *t)
{
    if (t->kind != NULL) {
        t->kind->destroy(t->vocabulary);
    }
    *t = (struct tokenizer){0};
}

struct status tokenizer_set_lower_case(struct tokenizer *t, bool lower_case)
{
    if (lower_case && !t->kind->has_letter_case) {
        return status_error(STATUS_USAGE,
                            "a %s tokenizer reads text as it is and cannot lower its case; leave that out",
                            t->kind->name);
    }
    t->lower_case = lower_case;
    return status_ok();
}

struct status tokenizer_require(const struct tokenizer *t, unsigned wanted, const char *what)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if ((wanted >> i & 1) != 0 && t->special[i] < 0) {
            return status_error(STATUS_DATA,
                                "the vocabulary, of a %s tokenizer, has no %s token, which %s needs; take a "
                                "vocabulary that has one",
                                t->kind->name, special_names[i], what);
        }
    }
    return status_ok();
}

int32_t tokenizer_tail_id(const struct tokenizer *t)
{
    return t->special[SPECIAL_PAD] >= 0 ? t->special[SPECIAL_PAD] : 0;
}

const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *n)
{
    CHECK(id >= 0 && id < t->n, "id %d of a vocabulary of %d", id, t->n);
    return t->kind->piece(t, id, n);
}

bool tokenizer_continues_word(const struct tokenizer *t, int32_t id)
{
    CHECK(id >= 0 && id < t->n, "id %d of a vocabulary of %d", id, t->n);
    return t->kind->continues_word(t, id);
}

struct status tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= t->n) {
            return status_error(STATUS_DATA, "token %zu has the id %d, but the vocabulary has %d pieces", i,
                                ids[i], t->n);
        }
    }
    t->kind->decode(t, out, ids, n);
    return buf_status(out);
}

struct status tokenizer_scratch_init(struct tokenizer_scratch *s, const struct tokenizer *t)
{
    *s = (struct tokenizer_scratch){.tokenizer = t};
    if (t->n == 0) {
        return status_error(STATUS_DATA, "the vocabulary is not known, so no text can be encoded");
    }
    return t->kind->scratch_create(&s->own, t);
}

void tokenizer_scratch_fini(struct tokenizer_scratch *s)
{
    if (s->tokenizer != NULL) {
        s->tokenizer->kind->scratch_destroy(s->own);
    }
    *s = (struct tokenizer_scratch){0};
}

struct status tokenizer_encode(struct tokenizer_scratch *s, struct token_list *out, const char *text,
                               size_t n)
{
    return s->tokenizer->kind->encode(s->own, out, text, n);
}

struct status tokenizer_encode_ids(struct tokenizer_scratch *s, struct id_list *out, const char *text,
                                   size_t n)
{
    return s->tokenizer->kind->encode_ids(s->own, out, text, n);
}
