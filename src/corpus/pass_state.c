#include "corpus/pass_state.h"

#include "core/hash.h"
#include "core/json.h"
#include "io/json_file.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- fields: one list for writing and for reading ---- */

struct fields {
    json_t *root;
    bool writes;
    const char *path;
    struct status status;
};

static void field(struct fields *f, const char *name, int64_t *value)
{
    if (f->writes) {
        json_object_set_new(f->root, name, json_integer((json_int_t)*value));
    } else if (!failed(f->status)) {
        f->status = json_get_int(f->root, f->path, name, true, value);
    }
}

static void field_u64(struct fields *f, const char *name, uint64_t *value)
{
    int64_t number = (int64_t)*value;
    field(f, name, &number);
    *value = (uint64_t)number;
}

static void field_bool(struct fields *f, const char *name, bool *value)
{
    int64_t number = *value;
    field(f, name, &number);
    *value = number != 0;
}

static void field_mark(struct fields *f, const char *name, struct append_mark *mark)
{
    char key[64];
    uint64_t crc = mark->crc;
    snprintf(key, sizeof key, "%s_bytes", name);
    field_u64(f, key, &mark->n_bytes);
    snprintf(key, sizeof key, "%s_crc32c", name);
    field_u64(f, key, &crc);
    mark->crc = (uint32_t)crc;
}

static void fields_of_array(struct fields *f, const char *name, int64_t *values, int n)
{
    char key[64];
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s_%d", name, i);
        field(f, key, &values[i]);
    }
}

static void fields_of_place(struct fields *f, struct pass_state *s)
{
    struct text_place *text = &s->place.in_file.text;
    field(f, "file", &s->place.file);
    field_u64(f, "offset", &text->offset);
    field_u64(f, "before_offset", &text->before.offset);
    field_u64(f, "before_from_bit", &text->before.from_bit);
    field_u64(f, "before_from_offset", &text->before.from_offset);
    field(f, "line", &text->line);
    field_bool(f, "inside", &s->place.in_file.inside);
    field_bool(f, "has_text", &s->place.in_file.has_text);
    field(f, "pages", &s->place.in_file.n_pages);
    field_u64(f, "done_bytes", &s->done_bytes);
}

static void fields_of_counts(struct fields *f, struct pass_state *s)
{
    struct source_counts *c = &s->counts;
    field(f, "files", &c->n_files);
    fields_of_array(f, "files_of_format", c->n_by_format, SOURCE_N_FORMATS);
    field(f, "other_files", &c->n_other_files);
    field(f, "documents", &c->n_documents);
    field(f, "empty_documents", &c->n_empty_documents);
    field(f, "replaced", &c->n_replaced);
    field(f, "cut", &c->n_cut);
    field(f, "damaged_parts", &c->n_damaged_parts);
    field(f, "cut_files", &c->n_cut_files);
    field(f, "unclosed", &c->n_unclosed);
    field(f, "missing_pages", &c->n_missing_pages);
    field(f, "gutenberg", &c->n_gutenberg);
    fields_of_array(f, "fate", s->fates, DOCUMENT_N_FATES);
    fields_of_array(f, "dropped", s->cleaning.counts.documents, DOCUMENT_N_FATES);
    field(f, "dropped_lines", &s->cleaning.counts.n_lines);
    field(f, "unremembered", &s->cleaning.counts.n_unremembered);
    field_bool(f, "drops", &s->cleaning.drops);
}

static void all_fields(struct fields *f, struct pass_state *s)
{
    static const char *const stores[STORE_COUNT] = {"train", "heldout"};
    static const char *const parts[INDEXED_N_PARTS] = {"bin", "sizes", "bounds"};
    int64_t stage = (int64_t)s->stage;
    field(f, "stage", &stage);
    s->stage = (enum pass_stage)stage;
    fields_of_place(f, s);
    fields_of_counts(f, s);
    for (int k = 0; k < STORE_COUNT; k++) {
        for (int i = 0; i < INDEXED_N_PARTS; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%s", stores[k], parts[i]);
            field_mark(f, name, &s->store.stores[k].parts[i]);
        }
    }
    field(f, "parts", &s->store.n_parts);
    field_bool(f, "part_ended", &s->store.part_ended);
    field_mark(f, "text", &s->text.file);
    field(f, "text_documents", &s->text.n_documents);
    field_bool(f, "text_inside", &s->text.inside);
    field_bool(f, "text_begins", &s->text.begins);
    field_mark(f, "hashes", &s->cleaning.documents);
    field_mark(f, "near_hashes", &s->cleaning.near_documents);
    field_mark(f, "memory", &s->memory);
    field(f, "saves", &s->n_saves);
    int64_t ms = (int64_t)(s->seconds * 1e3);
    field(f, "milliseconds", &ms);
    s->seconds = (double)ms / 1e3;
}

/* ---- the files ---- */

static struct status memory_path(char path[FILE_PATH_BYTES], const struct pass_state *s,
                                 const char *directory)
{
    return file_make_path(path, "%s/%s", directory, s->n_saves % 2 == 0 ? "memory.0" : "memory.1");
}

static struct status save(struct pass_state *s, const char *directory, const struct buf *memory)
{
    char path[FILE_PATH_BYTES];
    s->memory = (struct append_mark){memory->n, hash_crc32c(0, buf_text(memory), memory->n)};
    TRY(memory_path(path, s, directory));
    TRY(file_write_atomic(path, buf_text(memory), memory->n));
    struct fields f = {.root = json_object(), .writes = true};
    all_fields(&f, s);
    struct status status = file_make_path(path, "%s/%s", directory, "state.json");
    if (failed(status)) {
        json_decref(f.root);
        return status;
    }
    return json_file_write(path, f.root);
}

struct status pass_state_save(struct pass_state *s, const char *directory, const struct buf *memory)
{
    s->n_saves++;
    struct status status = save(s, directory, memory);
    s->n_saves -= failed(status);
    return status;
}

struct status pass_state_load(struct pass_state *s, const char *directory, bool *found)
{
    char path[FILE_PATH_BYTES];
    *s = (struct pass_state){0};
    TRY(file_make_path(path, "%s/%s", directory, "state.json"));
    *found = file_exists(path);
    if (!*found) {
        return status_ok();
    }
    struct fields f = {.path = path};
    TRY(json_read_object(&f.root, path));
    all_fields(&f, s);
    json_decref(f.root);
    bool is_good =
        s->stage >= PASS_READING && s->stage <= PASS_MOVING && s->place.file >= 0 && s->n_saves > 0;
    return failed(f.status) || is_good ? f.status : status_error(STATUS_DATA, "%s is damaged", path);
}

struct status pass_state_map_memory(struct file_map *map, const struct pass_state *s, const char *directory)
{
    char path[FILE_PATH_BYTES];
    TRY(memory_path(path, s, directory));
    TRY(file_map_open(map, path));
    if (map->n != s->memory.n_bytes || hash_crc32c(0, map->data, map->n) != s->memory.crc) {
        file_map_close(map);
        return status_error(STATUS_DATA, "%s is damaged", path);
    }
    return status_ok();
}

/* ---- what the run is ---- */

static json_t *describe_file(const struct input_file *f)
{
    json_t *row = json_array();
    json_array_append_new(row, json_text(f->path));
    json_array_append_new(row, json_integer((json_int_t)f->n_bytes));
    json_array_append_new(row, json_integer((json_int_t)f->changed_ns));
    return row;
}

struct status pass_state_write_run(const char *path, json_t *settings, const struct input_files *f)
{
    json_t *root = json_object(), *files = json_array();
    json_object_set(root, "settings", settings);
    for (int64_t i = 0; i < f->n; i++) {
        json_array_append_new(files, describe_file(&f->files[i]));
    }
    json_object_set_new(root, "inputs", files);
    return json_file_write(path, root);
}

/* A value for a message: "--name 128", or "without --name". */
static void tell_value(char *text, size_t n, const json_t *value)
{
    if (json_is_string(value)) {
        snprintf(text, n, "%s", json_string_value(value));
    } else {
        char *dumped = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        snprintf(text, n, "%s", dumped == NULL || json_is_null(value) ? "not given" : dumped);
        free(dumped);
    }
}

static const char *const otherwise = "; give the same as before, or start over with --overwrite";

static struct status compare_settings(const json_t *old, const json_t *now)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)now, name, value)
    {
        const json_t *before = json_object_get(old, name);
        if (!json_equal(before, value)) {
            char was[80], is[80];
            tell_value(was, sizeof was, before);
            tell_value(is, sizeof is, value);
            return status_error(STATUS_USAGE, "the run to resume had another %s: %s, now %s%s", name, was, is,
                                otherwise);
        }
    }
    return status_ok();
}

static struct status compare_inputs(const json_t *old, const struct input_files *f)
{
    FAIL_IF((int64_t)json_array_size(old) != f->n, STATUS_USAGE,
            "the run to resume had %zu input files, but now there are %" PRId64 "%s", json_array_size(old),
            f->n, otherwise);
    for (int64_t i = 0; i < f->n; i++) {
        json_t *row = describe_file(&f->files[i]);
        const json_t *before = json_array_get(old, (size_t)i);
        bool same_path = json_equal(json_array_get(before, 0), json_array_get(row, 0));
        bool same = json_equal(before, row);
        json_decref(row);
        FAIL_IF(!same, STATUS_USAGE, "%s %s since the run to resume began%s", f->files[i].path,
                same_path ? "has changed" : "is in another place in the list of inputs", otherwise);
    }
    return status_ok();
}

struct status pass_state_check_run(const char *path, const json_t *settings, const struct input_files *f)
{
    json_t *root;
    TRY(json_read_object(&root, path));
    struct status s = compare_settings(json_object_get(root, "settings"), settings);
    s = failed(s) ? s : compare_inputs(json_object_get(root, "inputs"), f);
    json_decref(root);
    return s;
}
