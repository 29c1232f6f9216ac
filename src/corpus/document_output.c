#include "corpus/document_output.h"

#include "core/log.h"
#include "corpus/input_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { SUFFIX_ROOM = 40 }; /* bytes that are appended to a store's path */

static void make_path(char path[FILE_PATH_BYTES], const char *prefix, const char *suffix)
{
    snprintf(path, FILE_PATH_BYTES, "%.*s%s", FILE_PATH_BYTES - SUFFIX_ROOM, prefix, suffix);
}

struct status document_output_name(struct document_output *o, const char *prefix)
{
    o->lock.fd = -1;
    FAIL_IF(strlen(prefix) + SUFFIX_ROOM >= FILE_PATH_BYTES, STATUS_USAGE,
            "the path %.60s... is longer than %d bytes", prefix, FILE_PATH_BYTES - SUFFIX_ROOM);
    make_path(o->prefix, prefix, "");
    make_path(o->work, prefix, ".unfinished");
    return status_ok();
}

static struct status is_another(const char *path)
{
    return status_error(STATUS_USAGE,
                        "%s is there already, and is not what this run would write: choose another place, or "
                        "move it away",
                        path);
}

/* Before anything is written: what has the name of a description is one of a store.  Whose it is decides what
 * becomes of it. */
static struct status check_description(struct document_output *o)
{
    char path[FILE_PATH_BYTES], tokens[FILE_PATH_BYTES];
    struct token_store store;
    make_path(path, o->prefix, ".json");
    make_path(tokens, o->prefix, ".bin");
    if (!file_exists(path)) {
        return status_ok();
    }
    struct status s = token_store_open(&store, o->prefix);
    bool is_own = !failed(s) && strcmp(store.info.made_by, o->maker) == 0;
    o->rule = is_own ? DOCUMENT_OUTPUT_REPLACE : o->rule;
    token_store_close(&store);
    return failed(s) ? is_another(file_exists(tokens) ? tokens : path) : status_ok();
}

static const char *const suffixes[] = {".bin", ".idx", ".json"};
enum { N_SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

struct status document_output_check_new(const struct document_output *o)
{
    for (int i = 0; i < N_SUFFIXES; i++) {
        char path[FILE_PATH_BYTES];
        make_path(path, o->prefix, suffixes[i]);
        FAIL_IF(access(path, F_OK) == 0, STATUS_USAGE, "%s already exists; --overwrite replaces it", path);
    }
    return status_ok();
}

struct status document_output_claim(struct document_output *o, const struct input_files *inputs,
                                    enum document_output_rule rule, bool dry_run)
{
    o->rule = rule;
    TRY(dry_run ? status_ok() : dir_lock_acquire_beside(&o->lock, o->prefix));
    for (int i = 0; i < N_SUFFIXES; i++) {
        char path[FILE_PATH_BYTES];
        make_path(path, o->prefix, suffixes[i]);
        TRY(input_files_check_output(inputs, "--output_prefix", path));
        TRY(dry_run ? status_ok() : file_check_output(path, 0));
    }
    TRY(rule == DOCUMENT_OUTPUT_NEW ? document_output_check_new(o) : status_ok());
    return rule == DOCUMENT_OUTPUT_OWN ? check_description(o) : status_ok();
}

static bool is_shuffled(const struct document_output *o)
{
    return o->shuffle.directory[0] != '\0';
}

struct status document_output_open(struct document_output *o, int64_t vocab_size,
                                   const struct document_shuffle_config *shuffle)
{
    char directory[FILE_PATH_BYTES];
    make_path(directory, o->work, ".parts");
    TRY(indexed_writer_open(&o->writer, o->work, vocab_size));
    return shuffle->seed < 0 ? status_ok()
                             : document_shuffle_open(&o->shuffle, shuffle, directory, o->writer.token_bytes);
}

struct status document_output_save(struct document_output *o, struct indexed_place *place)
{
    return indexed_writer_save(&o->writer, place);
}

struct status document_output_continue(struct document_output *o, int64_t vocab_size,
                                       const struct indexed_place *from)
{
    return indexed_writer_continue(&o->writer, o->work, vocab_size, from);
}

void document_output_add(struct document_output *o, const int32_t *ids, int64_t n)
{
    if (is_shuffled(o)) {
        document_shuffle_add(&o->shuffle, ids, n);
    } else {
        indexed_writer_add(&o->writer, ids, n);
    }
}

void document_output_end_document(struct document_output *o)
{
    if (is_shuffled(o)) {
        document_shuffle_end_document(&o->shuffle);
    } else {
        indexed_writer_end_document(&o->writer);
    }
}

struct status document_output_status(const struct document_output *o)
{
    return is_shuffled(o) ? document_shuffle_status(&o->shuffle) : indexed_writer_status(&o->writer);
}

int64_t document_output_count(const struct document_output *o)
{
    return is_shuffled(o) ? o->shuffle.n_documents : o->writer.n_documents;
}

/* Compares a file that is there with the one that was written.  STATUS_USAGE: they differ. */
static struct status check_same(const struct document_output *o, const char *suffix)
{
    char written[FILE_PATH_BYTES], path[FILE_PATH_BYTES];
    struct file_map new, old;
    make_path(written, o->work, suffix);
    make_path(path, o->prefix, suffix);
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(file_map_open(&new, written));
    struct status s = file_map_open(&old, path);
    if (!failed(s) && (new.n != old.n || memcmp(new.data, old.data, new.n) != 0)) {
        s = is_another(path);
    }
    file_map_close(&old);
    file_map_close(&new);
    return s;
}

/* A file that is not there was moved before. */
static struct status move(const struct document_output *o, const char *suffix)
{
    char from[FILE_PATH_BYTES], to[FILE_PATH_BYTES];
    make_path(from, o->work, suffix);
    make_path(to, o->prefix, suffix);
    return !file_exists(from) || rename(from, to) == 0
               ? status_ok()
               : status_error(STATUS_IO, "renaming %s to %s failed: %s", from, to, strerror(errno));
}

static struct status sync_directory_of(const char *path)
{
    char directory[FILE_PATH_BYTES];
    file_parent(directory, path);
    return file_sync_directory(directory);
}

struct status document_output_complete(struct document_output *o, struct token_store_info *info)
{
    struct indexed_writer *w = &o->writer;
    TRY(is_shuffled(o) ? document_shuffle_pour(&o->shuffle, w) : status_ok());
    snprintf(info->kiln_version, sizeof info->kiln_version, "%s", KILN_VERSION);
    snprintf(info->made_by, sizeof info->made_by, "%s", o->maker != NULL ? o->maker : "");
    info->n_documents = w->n_documents;
    info->n_sentences = w->n_sequences;
    info->n_tokens = w->n_tokens;
    TRY(indexed_writer_commit(w, &o->sums));
    o->is_committed = true;
    if (o->rule == DOCUMENT_OUTPUT_OWN) {
        TRY(check_same(o, ".bin"));
        TRY(check_same(o, ".idx"));
    }
    info->bin_crc = w->parts[INDEXED_BIN].mark.crc;
    info->idx_crc = w->idx.crc;
    return token_store_write_info(o->work, info, &o->sums);
}

struct status document_output_move(const struct document_output *o)
{
    char old[FILE_PATH_BYTES], new[FILE_PATH_BYTES];
    make_path(old, o->prefix, ".json");
    make_path(new, o->work, ".json");
    if (file_exists(new)) {
        unlink(old);
    }
    TRY(move(o, ".bin"));
    TRY(move(o, ".idx"));
    TRY(sync_directory_of(o->prefix));
    TRY(move(o, ".json"));
    return sync_directory_of(o->prefix);
}

struct status document_output_finish(struct document_output *o, struct token_store_info *info)
{
    TRY(document_output_complete(o, info));
    TRY(document_output_move(o));
    log_info("wrote %s.bin and .idx: %" PRId64 " documents, %" PRId64 " tokens of %d bytes", o->prefix,
             info->n_documents, info->n_tokens, o->writer.token_bytes);
    return status_ok();
}

void document_output_close(struct document_output *o)
{
    static const char *const parts[] = {".bin", ".idx", ".sizes", ".bounds", ".json"};
    char path[FILE_PATH_BYTES];
    document_shuffle_close(&o->shuffle);
    if (o->lock.fd < 0) {
        return; /* nothing was written: what is there is another run's */
    }
    if (!o->is_committed && !o->keeps) {
        indexed_writer_abandon(&o->writer);
    }
    indexed_writer_close(&o->writer);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !o->keeps; i++) {
        make_path(path, o->work, parts[i]);
        unlink(path);
    }
    block_sums_fini(&o->sums.bin);
    block_sums_fini(&o->sums.idx);
    dir_lock_release(&o->lock);
}
