#include "data/squad_cache.h"

#include "core/bytes.h"
#include "core/hash.h"
#include "io/file.h"

#include <stdlib.h>
#include <string.h>

static const int64_t MAGIC = 0x313051536E6C696B; /* "kilnSQ01"; change it with the layout */

enum { N_KEY = 9, N_COUNTS = 8, N_HEADER = N_KEY + N_COUNTS, N_ARRAYS = 8 };

/* For each array, the address of its pointer and its size. */
struct array {
    void **items;
    size_t item_bytes;
    int64_t n;
};

struct status squad_cache_key_init(struct squad_cache_key *key, const char *data_file,
                                   const struct tokenizer *tokenizer, struct squad_feature_options options,
                                   bool version_2)
{
    struct file_map m;
    TRY(file_map_open(&m, data_file));
    *key = (struct squad_cache_key){hash_fnv1a(m.data, m.n), tokenizer->hash, options, tokenizer->lower_case,
                                    version_2};
    file_map_close(&m);
    return status_ok();
}

void squad_cache_name(struct buf *out, const char *data_file, const char *cache_dir, const char *model,
                      const struct squad_feature_options *options)
{
    const char *slash = strrchr(data_file, '/');
    if (cache_dir != NULL) {
        buf_printf(out, "%s/%s", cache_dir, slash != NULL ? slash + 1 : data_file);
    } else {
        buf_puts(out, data_file);
    }
    slash = strrchr(model, '/');
    buf_printf(out, "_%s_%lld_%lld_%lld", slash != NULL ? slash + 1 : model,
               (long long)options->max_seq_length, (long long)options->doc_stride,
               (long long)options->max_query_length);
}

static void write_key(int64_t out[N_KEY], const struct squad_cache_key *key)
{
    const struct squad_feature_options *o = &key->options;
    int64_t fields[N_KEY] = {
        MAGIC,         (int64_t)key->file_hash, (int64_t)key->vocab_hash, o->max_seq_length,
        o->doc_stride, o->max_query_length,     key->lower_case,          o->training,
        key->version_2};
    memcpy(out, fields, sizeof fields);
}

/* The arrays of f, whose counts are set. */
static void list_arrays(struct array arrays[N_ARRAYS], struct squad_features *f, int64_t n_question_ids,
                        int64_t n_context_ids)
{
    struct array all[N_ARRAYS] = {
        {(void **)&f->features, sizeof *f->features, f->n},
        {(void **)&f->first_features, sizeof *f->first_features, f->n_examples + 1},
        {(void **)&f->question_starts, sizeof *f->question_starts, f->n_examples + 1},
        {(void **)&f->question_ids, sizeof *f->question_ids, n_question_ids},
        {(void **)&f->example_contexts, sizeof *f->example_contexts, f->n_examples},
        {(void **)&f->context_starts, sizeof *f->context_starts, f->n_contexts + 1},
        {(void **)&f->context_ids, sizeof *f->context_ids, n_context_ids},
        {(void **)&f->token_words, sizeof *f->token_words, n_context_ids},
    };
    memcpy(arrays, all, sizeof all);
}

struct status squad_cache_write(const char *path, const struct squad_features *f,
                                const struct squad_cache_key *key)
{
    struct squad_features copy = *f;
    int64_t n_question_ids = f->question_starts[f->n_examples],
            n_context_ids = f->context_starts[f->n_contexts];
    int64_t header[N_HEADER] = {0};
    write_key(header, key);
    int64_t counts[N_COUNTS] = {f->n,   f->n_examples, f->n_contexts,  f->cls,
                                f->sep, f->max_length, n_question_ids, n_context_ids};
    memcpy(header + N_KEY, counts, sizeof counts);
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_put(&w, header, sizeof header);
    struct array arrays[N_ARRAYS];
    list_arrays(arrays, &copy, n_question_ids, n_context_ids);
    for (int i = 0; i < N_ARRAYS; i++) {
        file_writer_put(&w, *arrays[i].items, (size_t)arrays[i].n * arrays[i].item_bytes);
    }
    uint32_t crc = w.crc;
    file_writer_put(&w, &crc, sizeof crc);
    return file_writer_commit(&w);
}

static struct status damaged(const char *path)
{
    return status_error(STATUS_DATA, "the feature cache %s is damaged; remove it, it will be made again",
                        path);
}

/* Whether starts[0..n] ascend from 0. */
static bool ascend(const int64_t *starts, int64_t n)
{
    bool ok = starts[0] == 0;
    for (int64_t i = 0; i < n; i++) {
        ok = ok && starts[i] <= starts[i + 1];
    }
    return ok;
}

/* Whether every index in the arrays is inside them. */
static bool is_sound(const struct squad_features *f, int64_t n_question_ids, int64_t n_context_ids)
{
    if (!ascend(f->first_features, f->n_examples) || f->first_features[f->n_examples] != f->n ||
        !ascend(f->question_starts, f->n_examples) || f->question_starts[f->n_examples] != n_question_ids ||
        !ascend(f->context_starts, f->n_contexts) || f->context_starts[f->n_contexts] != n_context_ids) {
        return false;
    }
    bool ok = true;
    for (int64_t x = 0; x < f->n_examples && ok; x++) {
        ok = f->example_contexts[x] >= 0 && f->example_contexts[x] < f->n_contexts;
        for (int64_t i = f->first_features[x]; i < f->first_features[x + 1] && ok; i++) {
            const struct squad_feature *w = &f->features[i];
            const int64_t *context = f->context_starts + f->example_contexts[x];
            ok = w->example == x && w->window_start >= 0 && w->window_length >= 1 &&
                 w->window_start + (int64_t)w->window_length <= context[1] - context[0] &&
                 squad_feature_length(f, i) <= f->max_length && w->start >= 0 && w->end >= 0 &&
                 w->start < squad_feature_length(f, i) && w->end < squad_feature_length(f, i);
        }
    }
    return ok;
}

static struct status read_arrays(struct squad_features *f, struct span *s, const char *path,
                                 int64_t n_question_ids, int64_t n_context_ids)
{
    struct array arrays[N_ARRAYS];
    list_arrays(arrays, f, n_question_ids, n_context_ids);
    for (int i = 0; i < N_ARRAYS; i++) {
        const unsigned char *bytes = bytes_take_items(s, (uint64_t)arrays[i].n, arrays[i].item_bytes);
        size_t n_bytes = (size_t)arrays[i].n * arrays[i].item_bytes;
        if (bytes == NULL) {
            return damaged(path);
        }
        *arrays[i].items = malloc(n_bytes + 1);
        if (*arrays[i].items == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for the feature cache %s", path);
        }
        memcpy(*arrays[i].items, bytes, n_bytes);
    }
    return bytes_left(s) == sizeof(uint32_t) && is_sound(f, n_question_ids, n_context_ids) ? status_ok()
                                                                                           : damaged(path);
}

static struct status read_features(struct squad_features *f, const unsigned char *data, size_t n,
                                   const char *path, const struct squad_cache_key *key)
{
    int64_t header[N_HEADER], wanted[N_KEY];
    struct span s = bytes_span(data, n);
    const unsigned char *bytes = bytes_take(&s, sizeof header);
    uint32_t crc;
    if (bytes == NULL || bytes_left(&s) < sizeof crc) {
        return damaged(path);
    }
    memcpy(header, bytes, sizeof header);
    write_key(wanted, key);
    if (memcmp(header, wanted, sizeof wanted) != 0) {
        return status_error(
            STATUS_DATA,
            "the feature cache %s was made from other data, another vocabulary or other settings", path);
    }
    memcpy(&crc, data + n - sizeof crc, sizeof crc);
    if (crc != hash_crc32c(0, data, n - sizeof crc)) {
        return damaged(path);
    }
    const int64_t *counts = header + N_KEY;
    for (int i = 0; i < N_COUNTS; i++) {
        if (counts[i] < 0 || counts[i] > INT64_MAX / 2) {
            return damaged(path);
        }
    }
    f->n = counts[0];
    f->n_examples = counts[1];
    f->n_contexts = counts[2];
    f->cls = (int32_t)counts[3];
    f->sep = (int32_t)counts[4];
    f->max_length = counts[5];
    return read_arrays(f, &s, path, counts[6], counts[7]);
}

struct status squad_cache_read(struct squad_features *f, const char *path, const struct squad_cache_key *key)
{
    *f = (struct squad_features){0};
    struct file_map m;
    TRY(file_map_open(&m, path));
    struct status s = read_features(f, m.data, m.n, path, key);
    file_map_close(&m);
    if (failed(s)) {
        squad_features_fini(f);
    }
    return s;
}
