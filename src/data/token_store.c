#include "data/token_store.h"

#include "core/hash.h"
#include "core/json.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PATH_BYTES = 1024 };

static struct status info_path(char path[PATH_BYTES], const char *prefix)
{
    if ((size_t)snprintf(path, PATH_BYTES, "%s.json", prefix) >= PATH_BYTES) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", prefix,
                            PATH_BYTES - 1);
    }
    return status_ok();
}

/* 64 bits do not fit the numbers of JSON readers, so hashes are hexadecimal text. */
static struct status get_hex(const json_t *root, const char *path, const char *key, int n_digits,
                             uint64_t *value)
{
    const char *text = NULL;
    TRY(json_get_string(root, path, key, true, &text));
    if (strlen(text) != (size_t)n_digits || strspn(text, "0123456789abcdef") != (size_t)n_digits) {
        return status_error(STATUS_DATA, "%s: \"%s\" is \"%.40s\", expected %d hexadecimal digits", path, key,
                            text, n_digits);
    }
    *value = strtoull(text, NULL, 16);
    return status_ok();
}

static struct status read_fields(struct token_store_info *info, const json_t *root, const char *path)
{
    const char *version = NULL;
    uint64_t bin_crc = 0, idx_crc = 0;
    TRY(json_get_string(root, path, "kiln_version", true, &version));
    snprintf(info->kiln_version, sizeof info->kiln_version, "%s", version);
    TRY(get_hex(root, path, "vocab_hash", 16, &info->vocab_hash));
    TRY(json_get_int(root, path, "vocab_size", true, &info->vocab_size));
    TRY(json_get_bool(root, path, "lower_case", true, &info->lower_case));
    TRY(json_get_int(root, path, "documents", true, &info->n_documents));
    TRY(json_get_int(root, path, "sentences", true, &info->n_sentences));
    TRY(json_get_int(root, path, "tokens", true, &info->n_tokens));
    TRY(get_hex(root, path, "bin_crc32c", 8, &bin_crc));
    TRY(get_hex(root, path, "idx_crc32c", 8, &idx_crc));
    info->bin_crc = (uint32_t)bin_crc;
    info->idx_crc = (uint32_t)idx_crc;
    return status_ok();
}

static struct status read_info(struct token_store_info *info, const char *prefix)
{
    char path[PATH_BYTES];
    TRY(info_path(path, prefix));
    if (!file_exists(path)) {
        return status_error(STATUS_DATA,
                            "%s is missing: there is no finished token store here; make it by `kiln prepare`",
                            path);
    }
    json_t *root;
    TRY(json_read_object(&root, path));
    struct status s = read_fields(info, root, path);
    json_decref(root);
    return s;
}

static struct status check_counts(const struct token_store *s, const char *prefix)
{
    const struct token_store_info *i = &s->info;
    const struct indexed *x = &s->index;
    if (i->n_documents != x->n_documents || i->n_sentences != x->n_sequences || i->n_tokens != x->n_tokens) {
        return status_error(STATUS_DATA,
                            "%s.json tells of %" PRId64 " documents, %" PRId64 " sentences, %" PRId64
                            " tokens, but %s.idx of %" PRId64 ", %" PRId64 ", %" PRId64
                            ": they are not of one run",
                            prefix, i->n_documents, i->n_sentences, i->n_tokens, prefix, x->n_documents,
                            x->n_sequences, x->n_tokens);
    }
    return status_ok();
}

struct status token_store_open(struct token_store *s, const char *prefix)
{
    *s = (struct token_store){0};
    TRY(read_info(&s->info, prefix));
    TRY(indexed_open(&s->index, prefix));
    struct status checked = check_counts(s, prefix);
    if (failed(checked)) {
        token_store_close(s);
    }
    return checked;
}

void token_store_close(struct token_store *s)
{
    indexed_close(&s->index);
}

struct status token_store_verify(const struct token_store *s, const char *prefix)
{
    const struct {
        const struct file_map *map;
        uint32_t crc;
        const char *suffix;
    } files[] = {{&s->index.bin, s->info.bin_crc, "bin"}, {&s->index.idx, s->info.idx_crc, "idx"}};
    for (int i = 0; i < 2; i++) {
        uint32_t crc = hash_crc32c(0, files[i].map->data, files[i].map->n);
        if (crc != files[i].crc) {
            return status_error(
                STATUS_DATA,
                "%s.%s is damaged: its CRC-32C is %08x, not %08x; make it anew by `kiln prepare`", prefix,
                files[i].suffix, crc, files[i].crc);
        }
    }
    return status_ok();
}

struct status token_store_check_vocab(const struct token_store *s, const char *prefix, uint64_t vocab_hash,
                                      int64_t vocab_size)
{
    if (s->info.vocab_hash != vocab_hash || s->info.vocab_size != vocab_size) {
        return status_error(STATUS_DATA,
                            "the token store %s was made with another vocabulary (%" PRId64
                            " words, hash %016" PRIx64 ") than the one given (%" PRId64
                            " words, hash %016" PRIx64 ")",
                            prefix, s->info.vocab_size, s->info.vocab_hash, vocab_size, vocab_hash);
    }
    return status_ok();
}

struct status token_store_write_info(const char *prefix, const struct token_store_info *info)
{
    char path[PATH_BYTES], vocab_hash[17], bin_crc[9], idx_crc[9];
    TRY(info_path(path, prefix));
    snprintf(vocab_hash, sizeof vocab_hash, "%016" PRIx64, info->vocab_hash);
    snprintf(bin_crc, sizeof bin_crc, "%08" PRIx32, info->bin_crc);
    snprintf(idx_crc, sizeof idx_crc, "%08" PRIx32, info->idx_crc);
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:b, s:I, s:I, s:I, s:s, s:s}", "kiln_version", info->kiln_version, "vocab_hash",
        vocab_hash, "vocab_size", (json_int_t)info->vocab_size, "lower_case", (int)info->lower_case,
        "documents", (json_int_t)info->n_documents, "sentences", (json_int_t)info->n_sentences, "tokens",
        (json_int_t)info->n_tokens, "bin_crc32c", bin_crc, "idx_crc32c", idx_crc);
    char *text = root == NULL ? NULL : json_to_text(root);
    json_decref(root);
    if (text == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %s", path);
    }
    struct status s = file_write_atomic(path, text, strlen(text));
    free(text);
    return s;
}
