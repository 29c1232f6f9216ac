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
    if (n >= STORE_BUILDER_PATH_BYTES - LONGEST_SUFFIX) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", directory,
                            STORE_BUILDER_PATH_BYTES - LONGEST_SUFFIX);
    }
    return status_ok();
}

static void make_path(char path[STORE_BUILDER_PATH_BYTES + 8], const char *prefix, int suffix)
{
    snprintf(path, STORE_BUILDER_PATH_BYTES + 8, "%s%s", prefix, suffixes[suffix]);
}

const char *store_builder_find_existing(const char *directory)
{
    static const char *const names[] = {"train.json",   "train.bin",   "train.idx",
                                        "heldout.json", "heldout.bin", "heldout.idx"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[STORE_BUILDER_PATH_BYTES + 16];
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (file_exists(path)) {
            return names[i];
        }
    }
    return NULL;
}

struct status store_builder_open(struct store_builder *b, struct store_builder_config config)
{
    *b = (struct store_builder){.config = config};
    for (int k = 0; k < STORE_COUNT; k++) {
        b->writers[k].bin.fd = b->writers[k].idx.fd = -1;
        TRY(store_builder_prefix(b->prefixes[k], config.directory, k));
    }
    struct status s = status_ok();
    for (int k = 0; k < STORE_COUNT && !failed(s); k++) {
        s = indexed_writer_open(&b->writers[k], b->prefixes[k], config.tokenizer->n);
        b->writers[k].bin_sums = &b->sums[k].bin;
        b->writers[k].idx_sums = &b->sums[k].idx;
    }
    if (failed(s)) {
        store_builder_abandon(b);
    }
    return s;
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
    if (indexed_writer_n_documents(&b->writers[STORE_TRAIN]) == 0) {
        return STORE_TRAIN;
    }
    bool wanted = b->config.holdout_fraction > 0;
    return wanted && indexed_writer_n_documents(&b->writers[STORE_HELDOUT]) == 0 ? STORE_HELDOUT
                                                                                 : choose_store(b);
}

static struct status add_sentence(struct store_builder *b, const int32_t *ids, size_t n)
{
    if (b->part_ended) {
        write_part(b, choose_store(b));
        TRY(b->writers[STORE_TRAIN].bin.status); /* so that a full disk ends a long run soon */
        TRY(b->writers[STORE_HELDOUT].bin.status);
    }
    buf_append(&b->ids, ids, n * sizeof *ids);
    TRY(buf_status(&b->ids));
    b->ends[b->n_sentences++] = b->ids.n / sizeof *ids;
    b->part_ended = b->n_sentences == STORE_BUILDER_PART_SENTENCES;
    return status_ok();
}

struct status store_builder_add(struct store_builder *b, const struct document_ids *d, bool begins)
{
    if (begins && b->n_sentences > 0) {
        b->part_ended = true;
    }
    size_t start = 0;
    for (int64_t i = 0; i < d->n_sentences; i++) {
        TRY(add_sentence(b, d->ids.ids + start, d->ends[i] - start));
        start = d->ends[i];
    }
    return status_ok();
}

/* Removes the files of a store, if it has any. */
static struct status remove_store(const char *prefix)
{
    for (int i = 0; i < N_SUFFIXES; i++) {
        char path[STORE_BUILDER_PATH_BYTES + 8];
        make_path(path, prefix, i);
        if (unlink(path) != 0 && errno != ENOENT) {
            return status_error(STATUS_IO, "cannot remove %s: %s", path, strerror(errno));
        }
    }
    return status_ok();
}

/* Writes everything of a store except its description. */
static struct status commit_tokens(struct store_builder *b, enum store_builder_store store)
{
    struct indexed_writer *w = &b->writers[store];
    struct token_store_info *info = &b->infos[store];
    const struct tokenizer *t = b->config.tokenizer;
    *info = (struct token_store_info){.kiln_version = KILN_VERSION,
                                      .vocab_hash = t->hash,
                                      .vocab_size = t->n,
                                      .lower_case = t->lower_case,
                                      .n_documents = indexed_writer_n_documents(w),
                                      .n_sentences = w->n_sequences,
                                      .n_tokens = w->n_tokens};
    if (info->n_documents == 0) {
        return status_ok();
    }
    TRY(indexed_writer_commit(w));
    info->bin_crc = w->bin.crc;
    info->idx_crc = w->idx.crc;
    return status_ok();
}

static struct status commit_stores(struct store_builder *b)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(remove_store(b->prefixes[k]));
    }
    for (int k = 0; k < STORE_COUNT; k++) {
        TRY(commit_tokens(b, k));
    }
    for (int k = 0; k < STORE_COUNT; k++) {
        if (b->infos[k].n_documents > 0) {
            TRY(token_store_write_info(b->prefixes[k], &b->infos[k], &b->sums[k]));
        }
    }
    return status_ok();
}

struct status store_builder_commit(struct store_builder *b)
{
    if (b->n_sentences > 0) {
        write_part(b, choose_last_store(b));
    }
    struct status s = b->n_parts > 0 ? status_ok() : status_error(STATUS_DATA, "the input has no text");
    if (!failed(s)) {
        s = commit_stores(b);
        for (int k = 0; k < STORE_COUNT && failed(s); k++) {
            remove_store(b->prefixes[k]);
        }
    }
    store_builder_abandon(b);
    return s;
}

void store_builder_abandon(struct store_builder *b)
{
    for (int k = 0; k < STORE_COUNT; k++) {
        indexed_writer_abandon(&b->writers[k]);
        block_sums_fini(&b->sums[k].bin);
        block_sums_fini(&b->sums[k].idx);
    }
    buf_fini(&b->ids);
}
