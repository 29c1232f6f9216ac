#include "cmd/inspect.h"

#include "core/hash.h"
#include "data/shard_process.h"
#include "io/stored_reader.h"
#include "io/tensor_file.h"
#include "io/token_store.h"
#include "model/checkpoint.h"
#include "model/model_sums.h"
#include "text/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/* The key under which a report lists tensors with NaN or infinity. */
static const char NOT_FINITE[] = "not_finite";

struct status inspect_complete(const json_t *report)
{
    return report == NULL ? status_error(STATUS_MEMORY, "out of memory for the report") : status_ok();
}

static json_t *hex(uint64_t value)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

/* A slice says of what, in a column of its own. */
static json_t *describe_tensor(const struct stored_tensor *t, const char *slice)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->n_dims; i++) {
        if (json_array_append_new(shape, json_integer(t->dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:I, s:s, s:s*}", "dtype", t->dtype_label, "shape", shape, "bytes",
                     (json_int_t)t->bytes, "name", t->name, "slice", slice);
}

/* A row per tensor; NULL if memory runs out. */
static json_t *describe_tensors(const struct safetensors *f)
{
    json_t *rows = json_array();
    for (int i = 0; i < f->n; i++) {
        const struct stored_tensor *t = &f->entries[i];
        if (json_array_append_new(rows, describe_tensor(t, safetensors_slice_text(f, t))) != 0) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

/* Describes the tensors of another program's file.  Those that kiln cannot read have the reason in a column
 * of their own. */
static json_t *describe_foreign(const struct tensor_file *f, json_int_t *n_elements)
{
    json_t *rows = json_array();
    *n_elements = 0;
    for (int i = 0; i < f->n; i++) {
        const struct stored_tensor *t = &f->tensors[i];
        json_t *row = describe_tensor(t, NULL);
        bool noted =
            t->unreadable == NULL || json_object_set_new(row, "unreadable", json_text(t->unreadable)) == 0;
        if (json_array_append_new(rows, row) != 0 || !noted) {
            json_decref(rows);
            return NULL;
        }
        *n_elements += t->unreadable == NULL ? (json_int_t)(t->bytes / dtype_bytes(t->dtype)) : 0;
    }
    return rows;
}

json_t *inspect_place(const struct stored_tensor *t, int64_t element)
{
    json_t *place = json_array();
    for (int i = t->n_dims - 1; i >= 0; i--) {
        json_array_insert_new(place, 0, json_integer(element % t->dims[i]));
        element /= t->dims[i];
    }
    return place;
}

/* Adds a row to the report if the tensor has NaN or infinity. */
static struct status add_nonfinite(json_t *report, const struct stored_tensor *t)
{
    struct stored_nonfinite found;
    char value[32];
    TRY(stored_reader_find_nonfinite(&found, t));
    if (found.first < 0) {
        return status_ok();
    }
    json_t *rows = json_object_get(report, NOT_FINITE);
    if (rows == NULL) {
        rows = json_array();
        json_object_set_new(report, NOT_FINITE, rows);
    }
    snprintf(value, sizeof value, "%g", found.value);
    json_t *row = json_pack("{s:I, s:I, s:o, s:s, s:s}", "nan", (json_int_t)found.n_nan, "infinity",
                            (json_int_t)found.n_infinite, "first", inspect_place(t, found.first), "value",
                            value, "name", t->name);
    return json_array_append_new(rows, row) == 0 ? status_ok() : inspect_complete(NULL);
}

static struct status add_nonfinite_of(json_t *report, const struct safetensors *f)
{
    TRY(inspect_complete(report));
    for (int i = 0; i < f->n; i++) {
        TRY(add_nonfinite(report, &f->entries[i]));
    }
    return status_ok();
}

/* Adds the rows of all files, moments too. */
static struct status add_nonfinite_in(json_t *report, const struct checkpoint *c)
{
    struct status s = inspect_complete(report);
    for (int i = 0; i < c->n_files && !failed(s); i++) {
        s = add_nonfinite_of(report, &c->files[i].tensors);
    }
    return s;
}

/* Describes the tensors of all files of weights. */
static json_t *describe_weights(const struct checkpoint *c)
{
    json_t *rows = json_array();
    int part, n_parts;
    for (int i = 0; i < c->n_files && rows != NULL; i++) {
        if (checkpoint_manifest_is_of_set(c->files[i].name, CHECKPOINT_MODEL, &part, &n_parts)) {
            json_t *more = describe_tensors(&c->files[i].tensors);
            if (more == NULL || json_array_extend(rows, more) != 0) {
                json_decref(rows);
                rows = NULL;
            }
            json_decref(more);
        }
    }
    return rows;
}

static json_int_t count_weights(const struct checkpoint *c)
{
    json_int_t n = 0;
    for (int i = 0; i < c->model.n; i++) {
        n += (json_int_t)(c->model.tensors[i].bytes / dtype_bytes(c->model.tensors[i].dtype));
    }
    return n;
}

static json_int_t count_elements(const struct safetensors *f)
{
    json_int_t n = 0;
    for (int i = 0; i < f->n; i++) {
        n += (json_int_t)(f->entries[i].bytes / dtype_bytes(f->entries[i].dtype));
    }
    return n;
}

/* File names to sizes; NULL if memory runs out. */
static json_t *describe_files(const struct checkpoint *c)
{
    json_t *sizes = json_object();
    for (int i = 0; i < c->n_files; i++) {
        json_t *bytes = json_integer((json_int_t)c->files[i].map.n);
        if (json_object_set_new(sizes, c->files[i].name, bytes) != 0) {
            json_decref(sizes);
            return NULL;
        }
    }
    return sizes;
}

struct status inspect_report_checkpoint(json_t **out, const char *path)
{
    struct checkpoint c;
    TRY(checkpoint_open(&c, path));
    *out = json_pack("{s:I, s:b, s:o, s:s, s:I, s:I, s:o, s:O, s:O, s:o}", "step",
                     (json_int_t)c.manifest.step, "phase_end", (int)c.manifest.phase_end, "vocab_hash",
                     hex(c.manifest.vocab_hash), "checksums", "hold", "parameters", count_weights(&c),
                     "optimizer_tensors", (json_int_t)c.optimizer.n, "file_bytes", describe_files(&c),
                     "config", c.config, "trainer_state", c.state, "tensors", describe_weights(&c));
    struct status s = add_nonfinite_in(*out, &c);
    checkpoint_close(&c);
    return s;
}

/* Whether the tensors of a model have checksums, and hold. */
static struct status check_sums(const char **found, const struct checkpoint *c)
{
    const struct checkpoint_file *weights = checkpoint_find(c, CHECKPOINT_MODEL ".safetensors");
    *found = safetensors_has_sums(&weights->tensors) ? "hold" : "there are none: no manifest.json";
    return safetensors_check_sums(&weights->tensors, weights->path);
}

struct status inspect_report_model(json_t **out, const char *path)
{
    struct checkpoint c;
    const char *checksums;
    TRY(model_sums_check(path));
    TRY(checkpoint_open_model(&c, path));
    struct status s = check_sums(&checksums, &c);
    if (failed(s)) {
        checkpoint_close(&c);
        return s;
    }
    const struct file_map *vocab = &checkpoint_find(&c, "vocab.txt")->map;
    *out = json_pack("{s:o, s:s, s:I, s:I, s:O, s:o}", "vocab_hash", hex(hash_fnv1a(vocab->data, vocab->n)),
                     "checksums", checksums, "parameters", count_weights(&c), "bytes",
                     (json_int_t)checkpoint_find(&c, CHECKPOINT_MODEL ".safetensors")->map.n, "config",
                     c.config, "tensors", describe_weights(&c));
    s = add_nonfinite_in(*out, &c);
    checkpoint_close(&c);
    return s;
}

/* Copies the metadata without checksums, which were compared. */
static json_t *describe_metadata(const struct safetensors *f)
{
    json_t *metadata = f->metadata == NULL ? json_object() : json_deep_copy(f->metadata);
    for (int i = 0; i < f->n; i++) {
        char key[256];
        snprintf(key, sizeof key, SAFETENSORS_SUM "%s", f->entries[i].name);
        json_object_del(metadata, key);
    }
    return metadata;
}

struct status inspect_report_safetensors(json_t **out, const char *path)
{
    struct safetensors f;
    TRY(safetensors_open(&f, path));
    *out = json_pack("{s:I, s:s, s:I, s:o, s:o}", "bytes", (json_int_t)f.map.n, "checksums",
                     safetensors_has_sums(&f) ? "hold" : "there are none", "parameters", count_elements(&f),
                     "metadata", describe_metadata(&f), "tensors", describe_tensors(&f));
    struct status s = add_nonfinite_of(*out, &f);
    safetensors_close(&f);
    return s;
}

/* A value of a GGUF file; of a list its length, of a long text its beginning. */
static json_t *describe_pair(const struct gguf_pair *p)
{
    enum { MOST = 80 };
    if (p->is_list) {
        return json_sprintf("%llu %s", (unsigned long long)p->n,
                            p->type == GGUF_VALUE_TEXT ? "texts" : "numbers");
    }
    json_t *value = gguf_pair_to_json(p);
    if (value == NULL) {
        return json_null();
    }
    size_t n = json_string_length(value);
    if (n > MOST) {
        size_t whole = utf8_find_invalid(json_string_value(value), MOST); /* a character may be cut */
        json_t *cut = json_sprintf("%.*s... (%zu bytes)", (int)whole, json_string_value(value), n);
        json_decref(value);
        return cut;
    }
    return value;
}

/* The keys of a GGUF file, in its order; an empty object for other files. */
static json_t *describe_keys(const struct tensor_file *f)
{
    json_t *keys = json_object();
    for (int i = 0; f->format == TENSOR_FILE_GGUF && i < f->gguf.n_pairs; i++) {
        json_object_set_new(keys, f->gguf.pairs[i].key, describe_pair(&f->gguf.pairs[i]));
    }
    return keys;
}

struct status inspect_report_foreign(json_t **out, const char *path)
{
    struct tensor_file f;
    json_int_t n_elements;
    TRY(tensor_file_open(&f, path));
    json_t *tensors = describe_foreign(&f, &n_elements), *keys = describe_keys(&f);
    *out = json_pack("{s:s, s:I}", "format", tensor_file_format_name(f.format), "elements", n_elements);
    if (json_object_size(keys) > 0) {
        json_object_set(*out, "keys", keys);
    }
    bool whole = json_object_set_new(*out, "tensors", tensors) == 0;
    json_decref(keys);
    if (!whole) {
        json_decref(*out);
        *out = NULL;
    }
    struct status s = inspect_complete(*out);
    for (int i = 0; i < f.n && !failed(s); i++) {
        s = add_nonfinite(*out, &f.tensors[i]);
    }
    tensor_file_close(&f);
    return s;
}

static json_t *describe_index(const struct indexed *x)
{
    return json_pack("{s:I, s:I, s:I, s:i, s:I}", "documents", (json_int_t)x->n_documents, "sequences",
                     (json_int_t)x->n_sequences, "tokens", (json_int_t)x->n_tokens, "bytes_per_token",
                     x->token_bytes, "bytes", (json_int_t)(x->bin.n + x->idx.n));
}

/* A store written by another program has no PREFIX.json. */
static struct status report_foreign_store(json_t **out, const char *prefix)
{
    struct indexed x;
    TRY(indexed_open(&x, prefix));
    *out = describe_index(&x);
    indexed_close(&x);
    bool noted =
        json_object_set_new(*out, "checksums", json_string("there are none: not made by kiln prepare")) == 0;
    return inspect_complete(noted ? *out : NULL);
}

struct status inspect_report_store(json_t **out, const char *prefix)
{
    char info[CHECKPOINT_PATH_BYTES];
    struct token_store s;
    TRY(checkpoint_path(info, "%s.json", prefix));
    if (!file_exists(info)) {
        return report_foreign_store(out, prefix);
    }
    TRY(token_store_open(&s, prefix));
    struct status verified = token_store_verify(&s, prefix, NULL);
    if (!failed(verified)) {
        json_t *made =
            json_pack("{s:s, s:o, s:I, s:b, s:s}", "kiln_version", s.info.kiln_version, "vocab_hash",
                      hex(s.info.vocab_hash), "vocab_size", (json_int_t)s.info.vocab_size, "lower_case",
                      (int)s.info.lower_case, "checksums", "hold");
        *out = describe_index(&s.index);
        json_object_update(*out, made);
        json_decref(made);
        verified = inspect_complete(*out);
    }
    token_store_close(&s);
    return verified;
}

struct status inspect_report_shard(json_t **out, const char *path)
{
    struct shard_process p;
    struct shard_shape shape;
    TRY(shard_process_open(&p));
    struct status s = shard_process_measure(&p, path, &shape);
    s = failed(s) ? s : shard_format_check(&shape, path);
    s = failed(s) ? s : shard_process_make_room(&p, shard_format_bytes(&shape));
    s = failed(s) ? s : shard_process_ask(&p, path, &shape, 0);
    s = failed(s) ? s : shard_process_wait(&p);
    shard_process_close(&p);
    if (failed(s)) {
        return s;
    }
    *out = json_pack("{s:s, s:I, s:I, s:I}", "layout", shape.packed ? "packed" : "padded",
                     shape.packed ? "packs" : "sequences", (json_int_t)shape.n, "tokens_per_row",
                     (json_int_t)shape.seq_length, "predictions_per_row", (json_int_t)shape.n_predictions);
    return inspect_complete(*out);
}

const char *inspect_first_nonfinite(const json_t *report)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(report, NOT_FINITE), 0), "name"));
}
