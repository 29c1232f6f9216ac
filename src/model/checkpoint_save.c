/* checkpoint_save: writing one checkpoint, so that a crash at any instant leaves the old ones or the old ones
 * and the whole new one. */
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

/* A save under way. */
struct save {
    const struct checkpoint_contents *contents;
    char final[CHECKPOINT_PATH_BYTES]; /* the name it gets */
    struct temporary temporary;        /* the directory that is filled */
    struct checkpoint_manifest manifest;
};

/* A flat buffer whose parameters are written under PREFIX + name. */
struct section {
    const char *prefix;
    tensor flat;
};

enum { PREFIX_BYTES = 16 };

struct status checkpoint_check_space(const char *directory, const struct checkpoint_contents *c)
{
    const uint64_t header_bytes = 256;    /* per tensor, more than its entry takes */
    const uint64_t other_bytes = 1 << 20; /* configuration, state, manifest and the file system's own */
    uint64_t count = (uint64_t)param_table_count(c->params);
    uint64_t vocabulary_bytes = 0;
    for (int i = 0; i < c->n_vocabulary; i++) {
        vocabulary_bytes += c->vocabulary[i].n;
    }
    uint64_t needed = 3 * (count * dtype_bytes(c->master.dtype) + header_bytes * (uint64_t)c->params->n) +
                      vocabulary_bytes + c->choices_bytes + tensor_bytes(c->histories) + other_bytes;
    uint64_t available = file_free_bytes(directory);
    if (available < needed) {
        return status_error(STATUS_IO,
                            "saving step %" PRId64 " needs %" PRIu64 " bytes, but %s has only %" PRIu64
                            " free; free some or keep fewer checkpoints",
                            c->step, needed, directory, available);
    }
    return status_ok();
}

struct status checkpoint_check_vocabulary(const struct tokenizer_file *files, int n_files)
{
    const char *name = checkpoint_manifest_file_name(CHECKPOINT_VOCAB);
    return n_files == 1 && strcmp(files->name, name) == 0
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "a checkpoint holds a vocabulary as %s alone, but this one is %s%s", name,
                              files->name, n_files > 1 ? " and others" : "");
}

/* Notes for the manifest what a writer was given, not what the disk made of it. */
static void record(struct save *s, enum checkpoint_file file, const struct file_writer *w)
{
    s->manifest.files[file].bytes = w->n_bytes;
    s->manifest.files[file].crc = w->crc;
}

static struct status write_bytes(struct save *s, enum checkpoint_file file, const void *bytes, size_t n)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct file_writer w;
    TRY(checkpoint_path(path, "%s/%s", s->temporary.path, checkpoint_manifest_file_name(file)));
    TRY(file_writer_open(&w, path));
    file_writer_put(&w, bytes, n);
    TRY(file_writer_commit(&w));
    record(s, file, &w);
    return status_ok();
}

static struct status write_json(struct save *s, enum checkpoint_file file, const json_t *root)
{
    char *text = json_to_text(root);
    if (text == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %s", checkpoint_manifest_file_name(file));
    }
    struct status status = write_bytes(s, file, text, strlen(text));
    free(text);
    return status;
}

static struct status put_sections(struct save *s, enum checkpoint_file file, const struct section *sections,
                                  int n_sections, const struct safetensors_item *items)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct safetensors_writer w;
    const struct param_table *params = s->contents->params;
    TRY(checkpoint_path(path, "%s/%s", s->temporary.path, checkpoint_manifest_file_name(file)));
    TRY(safetensors_writer_open(&w, path, items, n_sections * params->n));
    for (int k = 0; k < n_sections; k++) {
        for (int i = 0; i < params->n; i++) {
            safetensors_writer_put(&w, param_view(&params->params[i], sections[k].flat));
        }
    }
    TRY(safetensors_writer_commit(&w));
    record(s, file, &w.file);
    return status_ok();
}

static struct status write_sections(struct save *s, enum checkpoint_file file, const struct section *sections,
                                    int n_sections)
{
    const struct param_table *params = s->contents->params;
    size_t n = (size_t)n_sections * (size_t)params->n;
    char(*names)[PREFIX_BYTES + PARAM_NAME_BYTES] = calloc(n + 1, sizeof *names);
    struct safetensors_item *items = calloc(n + 1, sizeof *items);
    struct status status = names == NULL || items == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for the names of %zu tensors", n)
                               : status_ok();
    for (size_t k = 0; k < n && !failed(status); k++) {
        const struct section *section = &sections[k / (size_t)params->n];
        const struct param *p = &params->params[k % (size_t)params->n];
        snprintf(names[k], sizeof names[k], "%s%s", section->prefix, p->name);
        items[k] = (struct safetensors_item){names[k], param_view(p, section->flat), NULL};
    }
    if (!failed(status)) {
        status = put_sections(s, file, sections, n_sections, items);
    }
    free(items);
    free(names);
    return status;
}

static struct status write_histories(struct save *s, tensor histories)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct safetensors_writer w;
    const struct safetensors_item item = {CHECKPOINT_HISTORIES, histories, NULL};
    TRY(checkpoint_path(path, "%s/%s", s->temporary.path, checkpoint_manifest_file_name(CHECKPOINT_FP8)));
    TRY(safetensors_writer_open(&w, path, &item, 1));
    safetensors_writer_put(&w, histories);
    TRY(safetensors_writer_commit(&w));
    record(s, CHECKPOINT_FP8, &w.file);
    return status_ok();
}

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

/* run.json: what differs between two runs of the same training; for people, in no checksum. */
static struct status write_run(const struct save *s)
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
    struct status status = checkpoint_path(path, "%s/run.json", s->temporary.path);
    if (failed(status)) {
        json_decref(root);
        return status;
    }
    return json_file_write(path, root);
}

/* The manifest comes last, but no reader relies on that: the directory has no name yet that one would look
 * for. */
static struct status fill(struct save *s)
{
    const struct checkpoint_contents *c = s->contents;
    const struct section weights[] = {{"", c->master}};
    const struct section moments[] = {{"exp_avg.", c->exp_avg}, {"exp_avg_sq.", c->exp_avg_sq}};
    char path[CHECKPOINT_PATH_BYTES];
    TRY(write_sections(s, CHECKPOINT_MODEL, weights, 1));
    TRY(write_sections(s, CHECKPOINT_OPTIMIZER, moments, 2));
    TRY(write_json(s, CHECKPOINT_CONFIG, c->config));
    TRY(checkpoint_check_vocabulary(c->vocabulary, c->n_vocabulary));
    TRY(write_bytes(s, CHECKPOINT_VOCAB, c->vocabulary->bytes, c->vocabulary->n));
    TRY(write_json(s, CHECKPOINT_TOKENIZER, c->tokenizer));
    TRY(write_json(s, CHECKPOINT_STATE, c->state));
    if (c->choices_bytes > 0) {
        TRY(write_bytes(s, CHECKPOINT_CHOICES, c->choices, c->choices_bytes));
    }
    if (!tensor_is_null(c->histories)) {
        TRY(write_histories(s, c->histories));
    }
    TRY(write_run(s));
    TRY(checkpoint_path(path, "%s/manifest.json", s->temporary.path));
    return checkpoint_manifest_write(&s->manifest, path);
}

struct status checkpoint_save(const char *directory, const struct checkpoint_contents *c)
{
    struct save s = {.contents = c};
    s.manifest.step = c->step;
    s.manifest.phase_end = c->phase_end;
    s.manifest.vocab_hash = c->vocab_hash;
    TRY(checkpoint_path(s.final, "%s/ckpt_%" PRId64, directory, c->step));
    TRY(checkpoint_check_space(directory, c));
    struct status status = temporary_create_directory(&s.temporary, s.final);
    if (!failed(status)) {
        status = fill(&s);
    }
    if (!failed(status)) {
        status = temporary_put_directory(&s.temporary, s.final);
    }
    temporary_remove(&s.temporary);
    return status_context(status, "cannot save the checkpoint of step %" PRId64, c->step);
}
