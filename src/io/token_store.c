#include "io/token_store.h"

#include "core/hash.h"
#include "io/json_file.h"

#include <inttypes.h>

enum { PATH_BYTES = 1024 };

static struct status info_path(char path[PATH_BYTES], const char *prefix)
{
    FAIL_IF((size_t)snprintf(path, PATH_BYTES, "%s.json", prefix) >= PATH_BYTES, STATUS_USAGE,
            "the path %.60s... is longer than %d bytes", prefix, PATH_BYTES - 1);
    return status_ok();
}

/* JSON readers' numbers do not hold 64 bits, so hashes are hexadecimal text. */
static struct status get_hex(const json_t *root, const char *path, const char *key, int n_digits,
                             uint64_t *value)
{
    const char *text = NULL;
    TRY(json_get_string(root, path, key, true, &text));
    FAIL_IF(strlen(text) != (size_t)n_digits || strspn(text, "0123456789abcdef") != (size_t)n_digits,
            STATUS_DATA, "%s: \"%s\" is \"%.40s\", but must have %d hexadecimal digits", path, key, text,
            n_digits);
    *value = strtoull(text, NULL, 16);
    return status_ok();
}

static struct status read_fields(struct token_store_info *info, const json_t *root, const char *path)
{
    const char *version = NULL, *made_by = "";
    uint64_t bin_crc = 0, idx_crc = 0;
    TRY(json_get_string(root, path, "kiln_version", true, &version));
    snprintf(info->kiln_version, sizeof info->kiln_version, "%s", version);
    TRY(json_get_string(root, path, "made_by", false, &made_by));
    snprintf(info->made_by, sizeof info->made_by, "%s", made_by);
    TRY(get_hex(root, path, "vocab_hash", 16, &info->vocab_hash));
    TRY(json_get_int(root, path, "vocab_size", true, &info->vocab_size));
    TRY(json_get_bool(root, path, "lower_case", true, &info->lower_case));
    TRY(json_get_bool(root, path, "answers", false, &info->has_answers));
    TRY(json_get_int(root, path, "documents", true, &info->n_documents));
    TRY(json_get_int(root, path, "sentences", true, &info->n_sentences));
    TRY(json_get_int(root, path, "tokens", true, &info->n_tokens));
    TRY(get_hex(root, path, "bin_crc32c", 8, &bin_crc));
    TRY(get_hex(root, path, "idx_crc32c", 8, &idx_crc));
    info->bin_crc = (uint32_t)bin_crc;
    info->idx_crc = (uint32_t)idx_crc;
    return status_ok();
}

/* The text of `key`, eight digits a block. */
static struct status read_sums(struct block_sums *b, const json_t *root, const char *path, const char *key)
{
    const char *text = NULL;
    TRY(json_get_string(root, path, key, false, &text));
    size_t n = text == NULL ? 0 : strlen(text);
    FAIL_IF(n % 8 != 0 || (n > 0 && strspn(text, "0123456789abcdef") != n), STATUS_DATA,
            "%s: \"%s\" must have 8 hexadecimal digits for each block", path, key);
    for (size_t i = 0; i < n; i += 8) {
        char digits[9] = "";
        memcpy(digits, text + i, 8);
        uint32_t crc = (uint32_t)strtoul(digits, NULL, 16);
        buf_append(&b->crcs, &crc, sizeof crc);
    }
    return buf_status(&b->crcs);
}

static struct status read_all_sums(struct indexed_sums *sums, const json_t *root, const char *path)
{
    int64_t block_bytes = BLOCK_SUMS_BYTES;
    TRY(json_get_int(root, path, "block_bytes", false, &block_bytes));
    FAIL_IF(block_bytes != BLOCK_SUMS_BYTES, STATUS_DATA,
            "%s: \"block_bytes\" is %" PRId64 ", but must be %d", path, block_bytes, BLOCK_SUMS_BYTES);
    TRY(read_sums(&sums->bin, root, path, "bin_blocks_crc32c"));
    return read_sums(&sums->idx, root, path, "idx_blocks_crc32c");
}

static struct status read_info(struct token_store *store, const char *prefix)
{
    char path[PATH_BYTES];
    TRY(info_path(path, prefix));
    FAIL_IF(!file_exists(path), STATUS_DATA,
            "%s is missing: there is no finished token store here; make it with `kiln prepare`", path);
    json_t *root;
    TRY(json_read_object(&root, path));
    struct status s = read_fields(&store->info, root, path);
    if (!failed(s)) {
        s = read_all_sums(&store->sums, root, path);
    }
    json_decref(root);
    return s;
}

static struct status check_counts(const struct token_store *s, const char *prefix)
{
    const struct token_store_info *i = &s->info;
    const struct indexed *x = &s->index;
    FAIL_IF(i->n_documents != x->n_documents || i->n_sentences != x->n_sequences ||
                i->n_tokens != x->n_tokens,
            STATUS_DATA,
            "%s.json names %" PRId64 " documents, %" PRId64 " sentences and %" PRId64
            " tokens, but %s.idx has %" PRId64 ", %" PRId64 " and %" PRId64 ": they come from different runs",
            prefix, i->n_documents, i->n_sentences, i->n_tokens, prefix, x->n_documents, x->n_sequences,
            x->n_tokens);
    return status_ok();
}

static struct status check_sums(const struct token_store *s, const char *prefix)
{
    const struct indexed_sums *b = &s->sums;
    size_t n_bin = b->bin.crcs.n / sizeof(uint32_t), n_idx = b->idx.crcs.n / sizeof(uint32_t);
    FAIL_IF(n_bin + n_idx > 0 &&
                (n_bin != block_sums_count(s->index.bin.n) || n_idx != block_sums_count(s->index.idx.n)),
            STATUS_DATA,
            "%s.json has checksums of %zu and %zu blocks of 1 MiB, which does not match "
            "%s.bin with %zu bytes and %s.idx with %zu: they come from different runs",
            prefix, n_bin, n_idx, prefix, s->index.bin.n, prefix, s->index.idx.n);
    return status_ok();
}

struct status token_store_open(struct token_store *s, const char *prefix)
{
    *s = (struct token_store){0};
    struct status opened = read_info(s, prefix);
    if (!failed(opened)) {
        opened = indexed_open(&s->index, prefix);
    }
    if (!failed(opened)) {
        opened = check_counts(s, prefix);
    }
    if (!failed(opened)) {
        opened = check_sums(s, prefix);
    }
    if (failed(opened)) {
        token_store_close(s);
    }
    return opened;
}

struct status token_store_open_any(struct token_store *s, const char *prefix)
{
    char path[PATH_BYTES];
    *s = (struct token_store){0};
    TRY(info_path(path, prefix));
    return file_exists(path) ? token_store_open(s, prefix) : indexed_open(&s->index, prefix);
}

void token_store_close(struct token_store *s)
{
    indexed_close(&s->index);
    block_sums_fini(&s->sums.bin);
    block_sums_fini(&s->sums.idx);
}

/* The first block whose checksum differs, or the complete file if blocks have no checksums. */
static struct status verify_file(const struct file_map *map, uint32_t crc, const struct block_sums *sums,
                                 const char *path, const atomic_bool *stop)
{
    uint32_t whole = 0;
    bool in_blocks = sums->crcs.n > 0;
    for (size_t at = 0; at < map->n && !(stop != NULL && atomic_load(stop)); at += BLOCK_SUMS_BYTES) {
        size_t n = map->n - at < BLOCK_SUMS_BYTES ? map->n - at : BLOCK_SUMS_BYTES;
        whole = hash_crc32c(whole, map->data + at, n);
        if (in_blocks) {
            uint32_t wanted, found = hash_crc32c(0, map->data + at, n);
            memcpy(&wanted, sums->crcs.data + at / BLOCK_SUMS_BYTES * sizeof wanted, sizeof wanted);
            FAIL_IF(found != wanted, STATUS_DATA,
                    "%s is damaged: the CRC-32C of its bytes %zu to %zu is %08x, not %08x; "
                    "make it again with `kiln prepare`",
                    path, at, at + n - 1, found, wanted);
        }
    }
    FAIL_IF(whole != crc && !(stop != NULL && atomic_load(stop)), STATUS_DATA,
            "%s is damaged: its CRC-32C is %08x, not %08x; make it again with `kiln prepare`", path, whole,
            crc);
    return status_ok();
}

struct status token_store_verify(const struct token_store *s, const char *prefix, const atomic_bool *stop)
{
    char path[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s.idx", prefix);
    TRY(verify_file(&s->index.idx, s->info.idx_crc, &s->sums.idx, path, stop));
    snprintf(path, sizeof path, "%s.bin", prefix);
    return verify_file(&s->index.bin, s->info.bin_crc, &s->sums.bin, path, stop);
}

struct status token_store_open_whole(struct token_store *s, const char *prefix)
{
    TRY(token_store_open_any(s, prefix));
    struct status whole = s->info.vocab_size > 0 ? token_store_verify(s, prefix, NULL) : status_ok();
    if (failed(whole)) {
        token_store_close(s);
    }
    return whole;
}

struct status token_store_check_vocab(const struct token_store *s, const char *prefix, uint64_t vocab_hash,
                                      int64_t vocab_size)
{
    FAIL_IF(s->info.vocab_hash != vocab_hash || s->info.vocab_size != vocab_size, STATUS_DATA,
            "the token store %s was made with another vocabulary (%" PRId64 " words, hash %016" PRIx64
            ") than the one given (%" PRId64 " words, hash %016" PRIx64 ")",
            prefix, s->info.vocab_size, s->info.vocab_hash, vocab_size, vocab_hash);
    return status_ok();
}

/* The checksums of the blocks, which may be many, as one text; NULL if memory runs out. */
static json_t *sums_to_json(const struct block_sums *b)
{
    struct buf text = {0};
    for (size_t i = 0; i < b->crcs.n; i += sizeof(uint32_t)) {
        uint32_t crc;
        memcpy(&crc, b->crcs.data + i, sizeof crc);
        buf_printf(&text, "%08" PRIx32, crc);
    }
    json_t *value = failed(buf_status(&text)) ? NULL : json_string(buf_text(&text));
    buf_fini(&text);
    return value;
}

static bool put_sums(json_t *root, const struct indexed_sums *sums)
{
    return sums == NULL || (json_object_set_new(root, "block_bytes", json_integer(BLOCK_SUMS_BYTES)) == 0 &&
                            json_object_set_new(root, "bin_blocks_crc32c", sums_to_json(&sums->bin)) == 0 &&
                            json_object_set_new(root, "idx_blocks_crc32c", sums_to_json(&sums->idx)) == 0);
}

struct status token_store_write_info(const char *prefix, const struct token_store_info *info,
                                     const struct indexed_sums *sums)
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
    bool is_own = info->made_by[0] != '\0';
    if (root != NULL && ((is_own && json_object_set_new(root, "made_by", json_string(info->made_by)) != 0) ||
                         (info->has_answers && json_object_set_new(root, "answers", json_true()) != 0) ||
                         !put_sums(root, sums))) {
        json_decref(root);
        root = NULL;
    }
    return json_file_write(path, root);
}
