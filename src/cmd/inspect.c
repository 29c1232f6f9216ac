/* inspect: `kiln inspect PATH`, what a file or directory is, what is in it, and whether its checksums match.
 *
 * Each kind of file makes one JSON report; --json prints it as it is, otherwise to_text lays it out for
 * people. */
#define _GNU_SOURCE
#include "cmd/inspect.h"

#include "cmd/commands.h"
#include "cmd/inspect_store.h"
#include "cmd/settings.h"
#include "core/buf.h"
#include "io/tensor_file.h"
#include "model/checkpoint.h"
#include "model/model_dir.h"
#include "model/model_sums.h"
#include "serve/answer_kind.h"
#include "text/tokenizer_open.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct inspect_args {
    bool json;
    bool diff;
    struct command_flags common;
    struct inspect_store_args store;
    double atol, rtol;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("json", offsetof(struct inspect_args, json), "print one JSON object instead of a table"),
    OPTION_FLAG_ROW("diff", offsetof(struct inspect_args, diff),
                    "compare two paths, and name the first tensor that differs, where and by how much"),
    OPTION_REAL_ROW("atol", offsetof(struct inspect_args, atol), "0", 0, 1e300,
                    "with --diff, count a and b as equal if |a - b| <= atol + rtol |b|"),
    OPTION_REAL_ROW("rtol", offsetof(struct inspect_args, rtol), "0", 0, 1e300,
                    "relative part of this tolerance"),
    OPTION_STRING_ROW("documents", offsetof(struct inspect_args, store.documents), NULL, "N",
                      "token store: show the text of the first N documents, or of a range such as 10-12, "
                      "counted from 0"),
    OPTION_STRING_ROW("vocab_file", offsetof(struct inspect_args, store.vocabulary.vocab_file), NULL, "FILE",
                      "token store: its tokenizer, where it does not stand in the directory of the store"),
    MERGE_FILE_ROW(offsetof(struct inspect_args, store.vocabulary.merge_file)),
    DRY_RUN_ROW(offsetof(struct inspect_args, common.dry_run), "print what PATH is, without reading it"),
    {0},
};

/* ---- a report for people ---- */

enum { KEY_WIDTH = 32, MAX_COLUMNS = 8, INDENT = 2 };

static void append_printable(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        buf_putc(b, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
    }
}

/* One value on one line; a nested object is only shown as {...}. */
static void append_value(struct buf *b, const json_t *value)
{
    const json_t *item;
    size_t i;
    switch (json_typeof(value)) {
    case JSON_STRING: append_printable(b, json_string_value(value)); break;
    case JSON_INTEGER: buf_printf(b, "%" PRId64, (int64_t)json_integer_value(value)); break;
    case JSON_REAL: buf_printf(b, "%g", json_real_value(value)); break;
    case JSON_TRUE: buf_puts(b, "yes"); break;
    case JSON_FALSE: buf_puts(b, "no"); break;
    case JSON_NULL: buf_puts(b, "-"); break;
    case JSON_OBJECT: buf_puts(b, "{...}"); break;
    case JSON_ARRAY:
        buf_putc(b, '[');
        json_array_foreach(value, i, item)
        {
            buf_puts(b, i == 0 ? "" : ", ");
            append_value(b, item);
        }
        buf_putc(b, ']');
        break;
    }
}

static void append_spaces(struct buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_putc(b, ' ');
    }
}

static size_t width_of(const json_t *value)
{
    struct buf b = {0};
    append_value(&b, value);
    size_t n = b.n;
    buf_fini(&b);
    return n;
}

/* A table of objects with the same keys, one row each; the last column is not padded. */
static void append_table(struct buf *b, const json_t *rows, size_t indent)
{
    size_t widths[MAX_COLUMNS] = {0};
    const json_t *row;
    const char *key;
    json_t *value;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        size_t column = 0;
        json_object_foreach((json_t *)row, key, value)
        {
            size_t width = width_of(value);
            if (column < MAX_COLUMNS && width > widths[column]) {
                widths[column] = width;
            }
            column++;
        }
    }
    json_array_foreach(rows, i, row)
    {
        size_t column = 0;
        append_spaces(b, indent);
        json_object_foreach((json_t *)row, key, value)
        {
            append_value(b, value);
            bool last = column + 1 >= json_object_size(row) || column >= MAX_COLUMNS;
            append_spaces(b, last ? 0 : widths[column] - width_of(value) + INDENT);
            column++;
        }
        buf_putc(b, '\n');
    }
}

static void append_object(struct buf *b, const json_t *object, size_t indent)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        append_spaces(b, indent);
        append_printable(b, key);
        if (json_is_object(value) && indent < KEY_WIDTH / 2) {
            buf_putc(b, '\n');
            append_object(b, value, indent + INDENT);
        } else if (json_is_object(json_array_get(value, 0))) {
            buf_putc(b, '\n');
            append_table(b, value, indent + INDENT);
        } else {
            size_t used = indent + strlen(key);
            append_spaces(b, used + 1 < KEY_WIDTH ? KEY_WIDTH - used : 1);
            append_value(b, value);
            buf_putc(b, '\n');
        }
    }
}

/* Lays out a JSON object for people: a line per value, objects indented, lists of objects as tables; control
 * characters are shown as '?'.  free() the text; NULL if memory runs out. */
static char *to_text(const json_t *object)
{
    struct buf b = {0};
    append_object(&b, object, 0);
    if (b.failed) {
        buf_fini(&b);
    }
    return b.data;
}

/* ---- kinds of files ---- */

/* A kind of file or directory and the function that reports it.  The report of a damaged one is an error. */
struct kind {
    const char *name;
    struct status (*report)(json_t **out, const char *path);
};

static struct status report_collection(json_t **out, const char *path);

static const struct kind checkpoint_kind = {"checkpoint", inspect_report_checkpoint};
static const struct kind model_kind = {"model", inspect_report_model};
static const struct kind safetensors_kind = {"safetensors file", inspect_report_safetensors};
static const struct kind torch_kind = {"PyTorch file", inspect_report_foreign};
static const struct kind gguf_kind = {"GGUF file", inspect_report_foreign};
static const struct kind bundle_kind = {"TensorFlow checkpoint", inspect_report_foreign};
static const struct kind store_kind = {"token store", inspect_report_store};
static const struct kind shard_kind = {"HDF5 shard", inspect_report_shard};
static const struct kind collection_kind = {"directory", report_collection};

static bool has_file(const char *directory, const char *name)
{
    char path[CHECKPOINT_PATH_BYTES];
    return !failed(checkpoint_path(path, "%s/%s", directory, name)) && file_exists(path);
}

static bool has_vocabulary(const char *directory)
{
    char path[FILE_PATH_BYTES];
    bool found;
    return !failed(tokenizer_open_find(path, &found, directory)) && found;
}

bool inspect_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    return n > strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

/* Files of other programs, by how they begin, and prefixes. */
static struct status detect_foreign(const struct kind **kind, const char *path)
{
    char index[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(index, "%s.index", path));
    bool exists = file_exists(path);
    if (exists ? inspect_ends_with(path, ".index") : file_exists(index)) {
        *kind = &bundle_kind;
        return status_ok();
    }
    if (exists) {
        struct file_map map;
        TRY(file_map_open(&map, path));
        enum tensor_file_format format;
        bool is_known = tensor_file_recognize(&format, map.data, map.n);
        file_map_close(&map);
        if (is_known) {
            *kind = format == TENSOR_FILE_GGUF ? &gguf_kind : &torch_kind;
            return status_ok();
        }
    }
    return status_error(
        STATUS_DATA, "%s %s", path,
        exists ? "is not a directory, .safetensors file, .hdf5 file, file of torch.save, GGUF file or token "
                 "store"
               : "does not exist, and there is no token store or TensorFlow checkpoint of that name");
}

/* Finds out what `path` is, from file names where these tell; a store's suffix is removed from `path`. */
static struct status detect(const struct kind **kind, char *path)
{
    static const char *const store_suffixes[] = {".idx", ".bin", ".json", ""};
    if (file_is_directory(path)) {
        bool is_model =
            has_file(path, "model.safetensors") && has_file(path, "config.json") && has_vocabulary(path);
        *kind = has_file(path, "manifest.json") ? &checkpoint_kind
                : is_model                      ? &model_kind
                                                : &collection_kind;
        return status_ok();
    }
    if (inspect_ends_with(path, ".safetensors")) {
        *kind = &safetensors_kind;
        return status_ok();
    }
    if (inspect_ends_with(path, ".hdf5") || inspect_ends_with(path, ".h5")) {
        *kind = &shard_kind;
        return status_ok();
    }
    for (int i = 0; i < 4; i++) {
        char index[CHECKPOINT_PATH_BYTES];
        int n = (int)strlen(path) - (int)strlen(store_suffixes[i]);
        if (inspect_ends_with(path, store_suffixes[i]) &&
            !failed(checkpoint_path(index, "%.*s.idx", n, path)) && file_exists(index)) {
            path[n] = '\0';
            *kind = &store_kind;
            return status_ok();
        }
    }
    return detect_foreign(kind, path);
}

/* Whether the report of a directory lists this entry. */
static int is_listed(const struct dirent *e)
{
    static const char *const ends[] = {".idx", ".safetensors", ".gguf", ".hdf5", ".h5", ".pt", ".index"};
    static const char *const torch_begin = "pytorch_model";
    bool listed =
        strncmp(e->d_name, "ckpt_", 5) == 0 ||
        (strncmp(e->d_name, torch_begin, strlen(torch_begin)) == 0 && inspect_ends_with(e->d_name, ".bin"));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        listed |= inspect_ends_with(e->d_name, ends[i]);
    }
    return listed;
}

struct member_counts {
    int n_damaged, n_not_finite;
};

static json_t *describe_member(const char *directory, const char *name, struct member_counts *counts)
{
    char path[CHECKPOINT_PATH_BYTES];
    const struct kind *kind = NULL;
    json_t *report = NULL;
    struct status s = checkpoint_path(path, "%s/%s", directory, name);
    if (!failed(s)) {
        s = detect(&kind, path);
    }
    if (!failed(s)) {
        s = kind->report(&report, path);
    }
    const char *first = inspect_first_nonfinite(report);
    char state[160] = "whole";
    if (first != NULL) {
        snprintf(state, sizeof state, "whole, but %.100s has NaN or infinity", first);
    }
    counts->n_damaged += failed(s);
    counts->n_not_finite += first != NULL;
    json_decref(report);
    return json_pack("{s:s, s:o, s:o}", "kind", kind == NULL ? "unknown" : kind->name, "name",
                     json_text(name), "state", json_text(failed(s) ? s.message : state));
}

/* A directory with stores, checkpoints or tensor files: one line for each. */
static struct status report_collection(json_t **out, const char *path)
{
    struct dirent **names;
    TRY(model_sums_check(path));
    int n = scandir(path, &names, is_listed, versionsort);
    FAIL_IF(n < 0, STATUS_IO, "cannot read the directory %s: %s", path, strerror(errno));
    struct member_counts counts = {0, 0};
    json_t *members = json_array();
    bool stored = members != NULL;
    for (int i = 0; i < n; i++) {
        stored &= json_array_append_new(members, describe_member(path, names[i]->d_name, &counts)) == 0;
        free(names[i]);
    }
    free(names);
    *out = stored ? json_pack("{s:i, s:i, s:O}", "damaged", counts.n_damaged, "with_nan_or_infinity",
                              counts.n_not_finite, "members", members)
                  : NULL;
    json_decref(members);
    FAIL_IF(n == 0, STATUS_DATA,
            "%s holds no checkpoint, token store, .safetensors, .gguf, .hdf5 or .pt file", path);
    return inspect_complete(*out);
}

static struct status print(const json_t *report, bool as_json)
{
    char *text = as_json ? json_to_text(report) : to_text(report);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory for the report");
    fputs(text, stdout); /* main checks whether it was written */
    free(text);
    return status_ok();
}

static struct status run_diff(const struct inspect_args *a, const char *const *paths)
{
    json_t *report = NULL;
    bool same = true;
    TRY(inspect_diff(&report, &same, paths[0], paths[1], (struct tensor_tolerance){a->atol, a->rtol}));
    struct status s = print(report, a->json);
    const char *first = json_string_value(json_object_get(json_object_get(report, "first"), "tensor"));
    if (!failed(s) && !same) {
        s = status_error(STATUS_DIFFERENT, "they differ, first in %.300s",
                         first == NULL ? "a tensor that only one of them has" : first);
    }
    json_decref(report);
    return s;
}

/* Status of a report, for the exit code. */
static struct status judge(const json_t *details, const char *path)
{
    int64_t n_damaged = json_integer_value(json_object_get(details, "damaged"));
    int64_t n_not_finite = json_integer_value(json_object_get(details, "with_nan_or_infinity"));
    const char *first = inspect_first_nonfinite(details);
    FAIL_IF(n_damaged > 0, STATUS_DATA, "%s holds %" PRId64 " damaged items, named above", path, n_damaged);
    FAIL_IF(n_not_finite > 0, STATUS_NUMERIC, "%s holds %" PRId64 " items with NaN or infinity, named above",
            path, n_not_finite);
    return first == NULL
               ? status_ok()
               : status_error(STATUS_NUMERIC, "%s has NaN or infinity, first in %.80s", path, first);
}

/* The facts of a model by its configuration, files and tokenizer, and the commands that it answers. */
static json_t *facts_of(const struct model_dir *m)
{
    const struct model_family_sizes sizes = model_dir_sizes(m);
    struct param_table params = {0};
    struct buf answers = {0}, ends = {0}, piece = {0};
    json_t *facts = json_pack("{s:s}", "model", m->family->class_of(m->task));
    if (!failed(model_dir_declare(m, &params, m->task))) {
        json_object_set_new(facts, "parameters", json_integer(param_table_count(&params)));
    }
    param_table_fini(&params);
    for (int i = 0; i < m->tokenizer.n_ends; i++) {
        buf_clear(&piece);
        tokenizer_decode(&m->tokenizer, &piece, &m->tokenizer.ends[i], 1);
        buf_printf(&ends, "%s%d %s", i > 0 ? ", " : "", m->tokenizer.ends[i], buf_text(&piece));
    }
    answer_kind_list(&answers, m->task);
    json_t *rest = json_pack("{s:I, s:I, s:I, s:I, s:s}", "layers", (json_int_t)sizes.n_layers, "heads",
                             (json_int_t)sizes.heads.n, "vocabulary", (json_int_t)sizes.vocab_size,
                             "positions", (json_int_t)sizes.max_length, "answers", buf_text(&answers));
    if (ends.n > 0) {
        json_object_set_new(rest, "ends_at", json_text(buf_text(&ends)));
    }
    if (m->files.n_tensors > 0) {
        json_object_set_new(rest, "dtype", json_string(dtype_name(m->files.tensors[0].stored.dtype)));
    }
    json_object_update(facts, rest);
    json_decref(rest);
    buf_fini(&answers);
    buf_fini(&ends);
    buf_fini(&piece);
    return facts;
}

/* Adds the facts of a directory with a model; other paths have none. */
static void add_facts(json_t *report, const struct kind *kind, const char *path)
{
    struct model_dir m;
    bool may_be = kind == &checkpoint_kind || kind == &model_kind || kind == &collection_kind;
    if (may_be && !failed(model_dir_open(&m, path))) {
        json_t *facts = facts_of(&m);
        json_object_update(report, facts);
        json_decref(facts);
        model_dir_close(&m);
    }
}

static struct status run_one(const struct inspect_args *a, const char *given)
{
    const struct kind *kind;
    char path[CHECKPOINT_PATH_BYTES];
    json_t *details = NULL;
    TRY(checkpoint_path(path, "%s", given));
    TRY(detect(&kind, path));
    struct buf texts = {0};
    FAIL_IF(kind != &store_kind && a->store.documents != NULL, STATUS_USAGE,
            "--documents shows those of a token store, and %s is a %s", path, kind->name);
    struct status s = a->common.dry_run ? status_ok() : kind->report(&details, path);
    if (!failed(s) && !a->common.dry_run && kind == &store_kind) {
        s = inspect_store(details, &texts, path, &a->store);
    }
    if (!failed(s)) {
        json_t *report = json_pack("{s:s, s:o}", "kind", kind->name, "path", json_text(path));
        if (!a->common.dry_run) {
            add_facts(report, kind, path);
        }
        json_object_update(report, details);
        if (!a->json) {
            json_object_del(report, "texts");
        }
        s = print(report, a->json);
        json_decref(report);
        fputs(a->json ? "" : buf_text(&texts), stdout);
    }
    buf_fini(&texts);
    s = failed(s) ? s : judge(details, path);
    json_decref(details);
    return s;
}

static struct status run_inspect(const void *args, int n_positional, const char *const *positional)
{
    const struct inspect_args *a = args;
    FAIL_IF(n_positional != (a->diff ? 2 : 1), STATUS_USAGE,
            a->diff ? "--diff compares two paths, not %d"
                    : "%d paths: one is shown, or two are compared with --diff",
            n_positional);
    if (a->diff && !a->common.dry_run) {
        return run_diff(a, positional);
    }
    for (int i = 0; i < n_positional; i++) {
        TRY(run_one(a, positional[i]));
    }
    return status_ok();
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "show what is in a model, checkpoint, tensor file or token store, and whether it is whole",
    .details =
        "PATH is a checkpoint (ckpt_STEP), a directory with config.json, vocab.txt and model.safetensors, a "
        ".safetensors file, a file of torch.save (.pt, .bin), a .gguf file, the prefix of a TensorFlow "
        "checkpoint, an "
        ".hdf5 shard, a token store (its prefix, or one of its files), or a directory with several of these. "
        " Of a store it also says how long the documents are and, with the tokenizer, which tokens they "
        "have, "
        "and --documents shows their text. The exit code is 65 if a checksum does not match, and 99 if a "
        "tensor has NaN or infinity: "
        "not_finite lists such tensors, with the number of such elements and the first.\n\n--diff compares "
        "two logs of tensors (files or directories of --tensor_logger_path), checkpoints or models, also of "
        "different programs, in the order of computation.  The exit code is 1 if they differ.",
    .positional_usage = "PATH, or --diff PATH PATH",
    .min_positional = 1,
    .max_positional = 2,
    .options = options,
    .args_bytes = sizeof(struct inspect_args),
    .run = run_inspect,
};
