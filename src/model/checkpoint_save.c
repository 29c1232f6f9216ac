/* checkpoint_save: writes one checkpoint, so that a crash at any instant leaves the old ones, or the old ones
 * and the complete new one. */
#include "core/clock.h"
#include "core/log.h"
#include "io/json_file.h"
#include "model/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A flat buffer, or a slice of one from element `begin` on, whose parameters are written under PREFIX +
 * name. */
struct section {
    const char *prefix;
    tensor flat;
    int64_t begin;
};

enum { PREFIX_BYTES = 16 };

/* The names and descriptions of a file of tensors that is written. */
struct tensor_text {
    char name[PREFIX_BYTES + PARAM_NAME_BYTES];
    char slice[TENSOR_SLICE_BYTES];
};

/* ---- before anything is written ---- */

/* Bytes of the parameters in a slice; 256 bytes a tensor are more than its entry in the header needs. */
static uint64_t section_bytes(const struct param_table *params, tensor flat, int64_t begin)
{
    int64_t n = 0, from, to;
    for (int i = 0; i < params->n && !tensor_is_null(flat); i++) {
        checkpoint_overlap(&params->params[i], begin, tensor_count(flat), &from, &to);
        n += to - from;
    }
    return tensor_is_null(flat) ? 0 : (uint64_t)n * dtype_bytes(flat.dtype) + 256 * (uint64_t)params->n;
}

struct status checkpoint_check_space(const char *directory, const struct checkpoint_contents *c)
{
    uint64_t needed = 1 << 20; /* configuration, state, manifest and the file system's overhead */
    for (int i = 0; i < c->n_vocabulary; i++) {
        needed += c->vocabulary[i].n;
    }
    for (int i = 0; i < c->n_extras; i++) {
        needed += tensor_bytes(c->extras[i].data);
    }
    needed += (section_bytes(c->params, c->master, c->master_begin) +
               section_bytes(c->params, c->exp_avg, c->moments_begin) +
               section_bytes(c->params, c->exp_avg_sq, c->moments_begin)) *
              (c->n_parts > 1 ? (uint64_t)c->n_parts : 1); /* other ranks write as much */
    uint64_t available = file_free_bytes(directory);
    FAIL_IF(available < needed, STATUS_IO,
            "saving step %" PRId64 " needs %" PRIu64 " bytes, but %s has only %" PRIu64
            " free; free some or keep fewer checkpoints",
            c->step, needed, directory, available);
    return status_ok();
}

struct status checkpoint_check_vocabulary(const struct tokenizer_file *files, int n_files)
{
    static const char *const taken[] = {CHECKPOINT_CONFIG, CHECKPOINT_TOKENIZER, CHECKPOINT_STATE};
    for (int i = 0; i < n_files; i++) {
        bool free =
            checkpoint_manifest_is_name(files[i].name) && strstr(files[i].name, ".safetensors") == NULL;
        for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++) {
            free = free && strcmp(files[i].name, taken[k]) != 0;
        }
        FAIL_IF(!free, STATUS_USAGE, "a checkpoint cannot hold a file of a vocabulary as '%.60s'",
                files[i].name);
    }
    return status_ok();
}

/* ---- files ---- */

static struct status file_path(char path[CHECKPOINT_PATH_BYTES], struct checkpoint_listed *file,
                               const char *directory, const char *name)
{
    *file = (struct checkpoint_listed){0};
    snprintf(file->name, sizeof file->name, "%s", name);
    return checkpoint_path(path, "%s/%s", directory, name);
}

/* Records for the manifest the bytes that a writer was given, not those on the disk. */
static void record(struct checkpoint_listed *file, const struct file_writer *w)
{
    file->bytes = w->n_bytes;
    file->crc = w->crc;
}

static struct status write_bytes(struct checkpoint_listed *file, const char *directory, const char *name,
                                 const void *bytes, size_t n)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct file_writer w;
    TRY(file_path(path, file, directory, name));
    TRY(file_writer_open(&w, path));
    file_writer_put(&w, bytes, n);
    TRY(file_writer_commit(&w));
    record(file, &w);
    return status_ok();
}

static struct status write_items(struct checkpoint_listed *file, const char *directory, const char *name,
                                 const struct safetensors_item *items, int n)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct safetensors_writer w;
    TRY(file_path(path, file, directory, name));
    TRY(safetensors_writer_open(&w, path, items, n));
    for (int i = 0; i < n; i++) {
        safetensors_writer_put(&w, items[i].shape);
    }
    TRY(safetensors_writer_commit(&w));
    record(file, &w.file);
    return status_ok();
}

/* ---- what one rank writes ---- */

/* Who has the same as the first slice, or a copy, writes nothing of it. */
static bool is_written(const struct param_table *params, const struct param *p)
{
    return !p->is_copy && (params->part.slice == 0 || !param_is_full(p));
}

/* The elements of a parameter that the section has; false if it has none. */
static bool fill_item(struct safetensors_item *item, struct tensor_text *text, const struct section *s,
                      const struct param *p)
{
    int64_t from, to;
    checkpoint_overlap(p, s->begin, tensor_count(s->flat), &from, &to);
    bool whole = to - from == param_full_count(p);
    tensor values = from < to ? tensor_slice(s->flat, p->offset + from - s->begin, to - from) : NULL_TENSOR;
    snprintf(text->name, sizeof text->name, "%s%s", s->prefix, p->name);
    *item = (struct safetensors_item){.name = text->name, .shape = values};
    if (whole && p->n_dims == 2) {
        item->shape = tensor_2d(values.data, values.dtype, p->dims[0], p->dims[1]);
    } else if (!whole) {
        struct tensor_slice slice = checkpoint_slice(p, from, to);
        tensor_slice_format(text->slice, &slice);
        item->slice = text->slice;
    }
    return from < to;
}

/* Writes sections of the same elements into this rank's file of the set. */
static struct status write_sections(struct checkpoint_part *part, const char *directory,
                                    const struct checkpoint_contents *c, const char *set,
                                    const struct section *sections, int n_sections)
{
    const struct param_table *params = c->params;
    char name[CHECKPOINT_NAME_BYTES];
    bool all = tensor_count(sections->flat) == params->n_elements && param_part_is_all(&params->part);
    size_t most = (size_t)n_sections * (size_t)params->n;
    struct tensor_text *texts = calloc(most + 1, sizeof *texts);
    struct safetensors_item *items = calloc(most + 1, sizeof *items);
    struct status status =
        texts == NULL || items == NULL
            ? status_error(STATUS_MEMORY, "out of memory for the names of %zu tensors", most)
            : status_ok();
    int n = 0;
    for (size_t k = 0; k < most && !failed(status); k++) {
        const struct param *p = &params->params[k % (size_t)params->n];
        n += is_written(params, p) && fill_item(&items[n], &texts[n], &sections[k / (size_t)params->n], p);
    }
    if (!failed(status)) {
        checkpoint_manifest_part_name(name, set, all ? 0 : c->part, all ? 1 : c->n_parts);
        status = write_items(&part->files[part->n++], directory, name, items, n);
    }
    free(items);
    free(texts);
    return status;
}

struct status checkpoint_save_part(struct checkpoint_part *part, const char *path,
                                   const struct checkpoint_contents *c)
{
    const struct section weights[] = {{"", c->master, c->master_begin}};
    const struct section moments[] = {{"exp_avg.", c->exp_avg, c->moments_begin},
                                      {"exp_avg_sq.", c->exp_avg_sq, c->moments_begin}};
    *part = (struct checkpoint_part){0};
    if (!tensor_is_null(c->master)) {
        TRY(write_sections(part, path, c, CHECKPOINT_MODEL, weights, 1));
    }
    return tensor_is_null(c->exp_avg) ? status_ok()
                                      : write_sections(part, path, c, CHECKPOINT_OPTIMIZER, moments, 2);
}

/* ---- the other files ---- */

static json_t *command_line(void)
{
    char text[16384];
    FILE *file = fopen("/proc/self/cmdline", "rb");
    size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    json_t *words = json_array();
    text[n] = '\0';
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
        json_array_append_new(words, json_text(text + at));
    }
    if (file != NULL) {
        fclose(file);
    }
    return words;
}

/* run.json: what differs between two runs of the same training; for people, not in a checksum. */
static struct status write_run(const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    char host[256] = "";
    char when[32] = "";
    time_t now = (time_t)clock_wall_s();
    struct tm utc;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    json_t *root = json_pack("{s:s, s:o, s:I, s:o}", "saved_at", when, "host", json_text(host), "pid",
                             (json_int_t)getpid(), "command_line", command_line());
    struct status status = checkpoint_path(path, "%s/run.json", directory);
    if (failed(status)) {
        json_decref(root);
        return status;
    }
    return json_file_write(path, root);
}

/* Files of a checkpoint that its first rank writes. */
struct filling {
    const char *directory;
    struct checkpoint_manifest manifest;
};

static struct status add_bytes(struct filling *f, const char *name, const void *bytes, size_t n)
{
    struct checkpoint_listed file;
    TRY(write_bytes(&file, f->directory, name, bytes, n));
    return checkpoint_manifest_add(&f->manifest, &file);
}

static struct status add_json(struct filling *f, const char *name, const json_t *root)
{
    char *text = json_to_text(root);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory for %s", name);
    struct status status = add_bytes(f, name, text, strlen(text));
    free(text);
    return status;
}

static struct status add_extra(struct filling *f, const struct checkpoint_extra *e)
{
    struct checkpoint_listed file;
    const struct safetensors_item item = {.name = e->tensor, .shape = e->data};
    if (e->tensor == NULL) {
        return add_bytes(f, e->file, e->data.data, tensor_bytes(e->data));
    }
    TRY(write_items(&file, f->directory, e->file, &item, 1));
    return checkpoint_manifest_add(&f->manifest, &file);
}

/* Adds the files that a run resumes from, and that a model does not have. */
static struct status add_progress(struct filling *f, const struct checkpoint_contents *c)
{
    TRY(add_json(f, CHECKPOINT_STATE, c->state));
    for (int i = 0; i < c->n_extras; i++) {
        TRY(add_extra(f, &c->extras[i]));
    }
    return write_run(f->directory);
}

/* The manifest comes last, but no reader relies on that: the directory still has a name that no reader looks
 * for. */
static struct status fill(struct filling *f, const struct checkpoint_contents *c,
                          const struct checkpoint_part *parts, int n_parts)
{
    char path[CHECKPOINT_PATH_BYTES];
    for (int i = 0; i < n_parts; i++) {
        for (int k = 0; k < parts[i].n; k++) {
            TRY(checkpoint_manifest_add(&f->manifest, &parts[i].files[k]));
        }
    }
    TRY(add_json(f, CHECKPOINT_CONFIG, c->config));
    TRY(checkpoint_check_vocabulary(c->vocabulary, c->n_vocabulary));
    for (int i = 0; i < c->n_vocabulary; i++) {
        TRY(add_bytes(f, c->vocabulary[i].name, c->vocabulary[i].bytes, c->vocabulary[i].n));
    }
    TRY(add_json(f, CHECKPOINT_TOKENIZER, c->tokenizer));
    TRY(add_progress(f, c));
    TRY(checkpoint_path(path, "%s/manifest.json", f->directory));
    return checkpoint_manifest_write(&f->manifest, path);
}

/* ---- a save ---- */

struct status checkpoint_save_begin(struct checkpoint_save *s, const char *directory,
                                    const struct checkpoint_contents *c)
{
    *s = (struct checkpoint_save){.temporary = {.fd = -1}};
    TRY(checkpoint_path(s->final, "%s/ckpt_%" PRId64, directory, c->step));
    TRY(checkpoint_check_space(directory, c));
    return temporary_create_directory(&s->temporary, s->final);
}

struct status checkpoint_save_commit(struct checkpoint_save *s, const struct checkpoint_contents *c,
                                     const struct checkpoint_part *parts, int n_parts)
{
    struct filling f = {
        .directory = s->temporary.path,
        .manifest = {.step = c->step, .phase_end = c->phase_end, .vocab_hash = c->vocab_hash}};
    struct status status = fill(&f, c, parts, n_parts);
    checkpoint_manifest_fini(&f.manifest);
    return failed(status) ? status : temporary_put_directory(&s->temporary, s->final);
}

void checkpoint_save_end(struct checkpoint_save *s)
{
    temporary_remove(&s->temporary);
}

struct status checkpoint_save(const char *directory, const struct checkpoint_contents *c)
{
    struct checkpoint_save s;
    struct checkpoint_part part;
    struct status status = checkpoint_save_begin(&s, directory, c);
    if (!failed(status)) {
        status = checkpoint_save_part(&part, s.temporary.path, c);
    }
    if (!failed(status)) {
        status = checkpoint_save_commit(&s, c, &part, 1);
    }
    checkpoint_save_end(&s);
    return status_context(status, "cannot save the checkpoint of step %" PRId64, c->step);
}
