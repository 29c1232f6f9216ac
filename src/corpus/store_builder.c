#include "corpus/store_builder.h"

#include "core/rng.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint64_t PURPOSE_HOLDOUT = 0x686f6c64;

static const char *const store_names[STORE_COUNT] = {"train", "heldout"};
static const char *const suffixes[] = {".json", ".bin", ".idx"}; /* the description goes first */
enum { N_SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

struct status store_builder_prefix(char prefix[STORE_BUILDER_PATH_BYTES], const char *directory,
                                   enum store_builder_store store)
{
    enum { LONGEST_SUFFIX = 5 };
    int n = snprintf(prefix, STORE_BUILDER_PATH_BYTES, "%s/%s", directory, store_names[store]);
    FAIL_IF(n >= STORE_BUILDER_PATH_BYTES - LONGEST_SUFFIX, STATUS_USAGE,
            "the path %.60s... is longer than %d bytes", directory,
            STORE_BUILDER_PATH_BYTES - LONGEST_SUFFIX);
    return status_ok();
}

static void make_path(char path[STORE_BUILDER_PATH_BYTES + 8], const char *prefix, int suffix)
{
    snprintf(path, STORE_BUILDER_PATH_BYTES + 8, "%s%s", prefix, suffixes[suffix]);
}

/* Removes the files of a store, if it has any. */
static struct status remove_store(const char *prefix)
{
    for (int i = 0; i < N_SUFFIXES; i++) {
        char path[STORE_BUILDER_PATH_BYTES + 8];
        make_path(path, prefix, i);
        FAIL_IF(unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR, STATUS_IO, "cannot remove %s: %s",
                path, strerror(errno));
    }
    return status_ok();
}

static struct status open_stores(struct store_builder *b, struct store_builder_config config,
                                 const struct store_builder_place *from)
{
    *b = (struct store_builder){.config = config, .n_parts = from->n_parts, .part_ended = from->part_ended};
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(store_builder_prefix(b->prefixes[k], config.directory, k));
    }
    struct status s = status_ok();
    for (int k = 0; k < STORE_COUNT && !failed(s); k++) {
        s = indexed_writer_continue(&b->writers[k], b->prefixes[k], config.tokenizer->n, &from->stores[k]);
    }
    return s;
}

struct status store_builder_open(struct store_builder *b, struct store_builder_config config)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        char prefix[STORE_BUILDER_PATH_BYTES];
        TRY(store_builder_prefix(prefix, config.directory, k));
        TRY(remove_store(prefix));
    }
    struct status s = open_stores(b, config, &(struct store_builder_place){0});
    if (failed(s)) {
        store_builder_abandon(b);
    }
    return s;
}

static struct status read_part(struct store_builder *b, struct span *part)
{
    uint64_t n_sentences = bytes_read_u64(part);
    const void *ends = bytes_take_items(part, n_sentences, sizeof(uint64_t));
    FAIL_IF(part->failed || n_sentences > STORE_BUILDER_PART_SENTENCES, STATUS_DATA,
            "the state of an earlier run in %s is damaged", b->config.directory);
    for (uint64_t i = 0; i < n_sentences; i++) {
        uint64_t end;
        memcpy(&end, (const char *)ends + i * sizeof end, sizeof end);
        b->ends[i] = (size_t)end;
    }
    b->n_sentences = (int)n_sentences;
    uint64_t n_ids = n_sentences == 0 ? 0 : b->ends[n_sentences - 1];
    const void *ids = bytes_take_items(part, n_ids, sizeof(int32_t));
    FAIL_IF(part->failed, STATUS_DATA, "the state of an earlier run in %s is damaged", b->config.directory);
    buf_append(&b->ids, ids, (size_t)n_ids * sizeof(int32_t));
    return buf_status(&b->ids);
}

struct status store_builder_continue(struct store_builder *b, struct store_builder_config config,
                                     const struct store_builder_place *from, struct span *part)
{
    struct status s = open_stores(b, config, from);
    s = failed(s) ? s : read_part(b, part);
    if (failed(s)) {
        store_builder_close(b);
    }
    return s;
}

struct status store_builder_save(struct store_builder *b, struct store_builder_place *place, struct buf *part)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(indexed_writer_save(&b->writers[k], &place->stores[k]));
    }
    place->n_parts = b->n_parts;
    place->part_ended = b->part_ended;
    buf_append(part, &(uint64_t){(uint64_t)b->n_sentences}, sizeof(uint64_t));
    for (int i = 0; i < b->n_sentences; i++) {
        buf_append(part, &(uint64_t){b->ends[i]}, sizeof(uint64_t));
    }
    buf_append(part, b->ids.data, b->ids.n);
    return buf_status(part);
}

static void write_part(struct store_builder *b, enum store_builder_store store)
{
    struct indexed_writer *w = &b->writers[store];
    const int32_t *ids = (const int32_t *)(const void *)buf_text(&b->ids);
    size_t begin = 0;
    for (int i = 0; i < b->n_sentences; i++) {
        indexed_writer_add(w, ids + begin, (int64_t)(b->ends[i] - begin));
        begin = b->ends[i];
    }
    indexed_writer_end_document(w);
    buf_clear(&b->ids);
    b->n_sentences = 0;
    b->part_ended = false;
    b->n_parts++;
}

static enum store_builder_store choose_store(const struct store_builder *b)
{
    uint64_t key = rng_key(b->config.seed, PURPOSE_HOLDOUT);
    bool held_out = rng_uniform_at(key, (uint64_t)b->n_parts) < b->config.holdout_fraction;
    return held_out ? STORE_HELDOUT : STORE_TRAIN;
}

static enum store_builder_store choose_last_store(const struct store_builder *b)
{
    if (b->writers[STORE_TRAIN].n_documents == 0) {
        return STORE_TRAIN;
    }
    bool wanted = b->config.holdout_fraction > 0;
    return wanted && b->writers[STORE_HELDOUT].n_documents == 0 ? STORE_HELDOUT : choose_store(b);
}

static struct status add_sentence(struct store_builder *b, const int32_t *ids, size_t n)
{
    if (b->part_ended) {
        write_part(b, choose_store(b));
        TRY(indexed_writer_status(&b->writers[STORE_TRAIN]));
        TRY(indexed_writer_status(&b->writers[STORE_HELDOUT]));
    }
    buf_append(&b->ids, ids, n * sizeof *ids);
    TRY(buf_status(&b->ids));
    b->ends[b->n_sentences++] = b->ids.n / sizeof *ids;
    b->part_ended = b->n_sentences == STORE_BUILDER_PART_SENTENCES;
    return status_ok();
}

void store_builder_begin_document(struct store_builder *b)
{
    b->part_ended |= b->n_sentences > 0;
}

struct status store_builder_add_sentences(struct store_builder *b, const struct document_ids *d,
                                          int64_t first, int64_t end)
{
    size_t start = first == 0 ? 0 : d->ends[first - 1];
    for (int64_t i = first; i < end; i++) {
        TRY(add_sentence(b, d->ids.ids + start, d->ends[i] - start));
        start = d->ends[i];
    }
    return status_ok();
}

/* Completes a store, its description last. */
static struct status commit_store(struct store_builder *b, enum store_builder_store store)
{
    struct indexed_writer *w = &b->writers[store];
    struct token_store_info *info = &b->infos[store];
    const struct tokenizer *t = b->config.tokenizer;
    struct indexed_sums sums = {0};
    *info = (struct token_store_info){.kiln_version = KILN_VERSION,
                                      .vocab_hash = t->hash,
                                      .vocab_size = t->n,
                                      .lower_case = t->lower_case,
                                      .n_documents = w->n_documents,
                                      .n_sentences = w->n_sequences,
                                      .n_tokens = w->n_tokens};
    if (info->n_documents == 0) {
        return status_ok();
    }
    TRY(indexed_writer_commit(w, &sums));
    info->bin_crc = w->parts[INDEXED_BIN].mark.crc;
    info->idx_crc = w->idx.crc;
    struct status s = token_store_write_info(b->prefixes[store], info, &sums);
    block_sums_fini(&sums.bin);
    block_sums_fini(&sums.idx);
    return s;
}

struct status store_builder_commit(struct store_builder *b)
{
    if (b->n_sentences > 0) {
        write_part(b, choose_last_store(b));
    }
    FAIL_IF(b->n_parts == 0, STATUS_DATA, "the input has no text");
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(commit_store(b, k));
    }
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(b->infos[k].n_documents == 0 ? remove_store(b->prefixes[k]) : status_ok());
    }
    store_builder_close(b);
    return status_ok();
}

void store_builder_abandon(struct store_builder *b)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        indexed_writer_abandon(&b->writers[k]);
    }
    buf_fini(&b->ids);
}

void store_builder_close(struct store_builder *b)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        indexed_writer_close(&b->writers[k]);
    }
    buf_fini(&b->ids);
}
