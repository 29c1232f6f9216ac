#include "model/checkpoint_manifest.h"

#include "core/buf.h"
#include "core/hash.h"
#include "core/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "kiln checkpoint";

enum { MAX_BYTES = 1 << 20, LAST_LINE_BYTES = sizeof "  \"manifest_crc32c\": \"00000000\"\n}\n" - 1 };

/* The files of versions before 4: all of these except the optional ones, and no others. */
static const struct {
    const char *name;
    int since; /* the version that introduced it, if it is optional; else 1 */
} closed_list[] = {{"model.safetensors", 1}, {"optimizer.safetensors", 1}, {CHECKPOINT_CONFIG, 1},
                   {"vocab.txt", 1},         {CHECKPOINT_TOKENIZER, 1},    {CHECKPOINT_STATE, 1},
                   {"cublaslt.cache", 2},    {"fp8.safetensors", 3}};
enum { N_CLOSED = sizeof closed_list / sizeof closed_list[0] };

void checkpoint_manifest_fini(struct checkpoint_manifest *m)
{
    free(m->files);
    *m = (struct checkpoint_manifest){0};
}

bool checkpoint_manifest_is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    return n > 0 && n < CHECKPOINT_NAME_BYTES && strspn(name, allowed) == n && name[0] != '.' &&
           strcmp(name, "manifest.json") != 0 && strcmp(name, "run.json") != 0;
}

const struct checkpoint_listed *checkpoint_manifest_find(const struct checkpoint_manifest *m,
                                                         const char *name)
{
    for (int i = 0; i < m->n; i++) {
        if (strcmp(m->files[i].name, name) == 0) {
            return &m->files[i];
        }
    }
    return NULL;
}

struct status checkpoint_manifest_add(struct checkpoint_manifest *m, const struct checkpoint_listed *file)
{
    FAIL_IF(!checkpoint_manifest_is_name(file->name) || m->n == CHECKPOINT_MAX_FILES, STATUS_USAGE,
            "'%.60s' cannot be a file of a checkpoint: there may be at most %d files, named "
            "with letters, digits, '.', '_' and '-'",
            file->name, CHECKPOINT_MAX_FILES);
    FAIL_IF(checkpoint_manifest_find(m, file->name) != NULL, STATUS_USAGE,
            "a checkpoint cannot have two files named %s", file->name);
    struct checkpoint_listed *files = realloc(m->files, (size_t)(m->n + 1) * sizeof *files);
    FAIL_IF(files == NULL, STATUS_MEMORY, "out of memory for a list of %d files", m->n + 1);
    m->files = files;
    m->files[m->n++] = *file;
    return status_ok();
}

void checkpoint_manifest_part_name(char name[CHECKPOINT_NAME_BYTES], const char *set, int part, int n_parts)
{
    CHECK(0 <= part && part < n_parts && n_parts <= CHECKPOINT_MAX_FILES && strlen(set) < 24,
          "part %d of %d of %s", part, n_parts, set);
    if (n_parts == 1) {
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s.safetensors", set);
    } else {
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s-%05d-of-%05d.safetensors", set, part + 1, n_parts);
    }
}

bool checkpoint_manifest_is_of_set(const char *name, const char *set, int *part, int *n_parts)
{
    size_t n = strlen(set);
    char whole[CHECKPOINT_NAME_BYTES];
    int number = 1, of = 1;
    if (strncmp(name, set, n) != 0) {
        return false;
    }
    bool numbered = sscanf(name + n, "-%5d-of-%5d", &number, &of) == 2;
    if (numbered && (number < 1 || of < 2 || number > of || of > CHECKPOINT_MAX_FILES)) {
        return false;
    }
    *part = numbered ? number - 1 : 0;
    *n_parts = numbered ? of : 1;
    checkpoint_manifest_part_name(whole, set, *part, *n_parts);
    return strcmp(name, whole) == 0;
}

/* The first version that has exactly this list of files. */
static int version_of(const struct checkpoint_manifest *m)
{
    int version = 1, n = 0;
    for (int i = 0; i < N_CLOSED; i++) {
        bool listed = checkpoint_manifest_find(m, closed_list[i].name) != NULL;
        if (!listed && closed_list[i].since == 1) {
            return CHECKPOINT_FORMAT_VERSION;
        }
        n += listed;
        version = listed ? closed_list[i].since : version; /* since rises */
    }
    return n == m->n ? version : CHECKPOINT_FORMAT_VERSION;
}

/* `out` holds LAST_LINE_BYTES and a NUL. */
static void format_last_line(char *out, const void *before, size_t n)
{
    snprintf(out, LAST_LINE_BYTES + 1, "  \"manifest_crc32c\": \"%08" PRIx32 "\"\n}\n",
             hash_crc32c(0, before, n));
}

struct status checkpoint_manifest_write(const struct checkpoint_manifest *m, const char *path)
{
    struct buf b = {0};
    buf_printf(&b, "{\n  \"format\": \"%s\",\n  \"format_version\": %d,\n  \"kiln_version\": \"%s\",\n",
               FORMAT, version_of(m), KILN_VERSION);
    buf_printf(&b, "  \"step\": %" PRId64 ",\n  \"phase_end\": %s,\n  \"vocab_hash\": \"%016" PRIx64 "\",\n",
               m->step, m->phase_end ? "true" : "false", m->vocab_hash);
    buf_puts(&b, "  \"files\": {\n");
    for (int i = 0; i < m->n; i++) {
        buf_printf(&b, "%s    \"%s\": {\"bytes\": %" PRIu64 ", \"crc32c\": \"%08" PRIx32 "\"}",
                   i > 0 ? ",\n" : "", m->files[i].name, m->files[i].bytes, m->files[i].crc);
    }
    buf_puts(&b, "\n  },\n");
    char last[LAST_LINE_BYTES + 1];
    format_last_line(last, buf_text(&b), b.n);
    buf_puts(&b, last);
    struct status s = buf_status(&b);
    if (!failed(s)) {
        s = file_write_atomic(path, b.data, b.n);
    }
    buf_fini(&b);
    return s;
}

/* A value of exactly `digits` lower-case hexadecimal digits. */
static struct status get_hex(const json_t *object, const char *source, const char *key, size_t digits,
                             uint64_t *value)
{
    const char *text = NULL;
    TRY(json_get_string(object, source, key, true, &text));
    FAIL_IF(strlen(text) != digits || strspn(text, "0123456789abcdef") != digits, STATUS_DATA,
            "%s: \"%s\" must be %zu hexadecimal digits", source, key, digits);
    *value = strtoull(text, NULL, 16);
    return status_ok();
}

static struct status read_file(struct checkpoint_manifest *m, const char *name, const json_t *entry,
                               const char *source)
{
    struct checkpoint_listed file = {0};
    int64_t bytes = 0;
    uint64_t crc = 0;
    FAIL_IF(!checkpoint_manifest_is_name(name) || m->n == CHECKPOINT_MAX_FILES || !json_is_object(entry),
            STATUS_DATA,
            "%s: \"files\" must map at most %d names of files in its directory to their "
            "sizes, but has '%.60s'",
            source, CHECKPOINT_MAX_FILES, name);
    snprintf(file.name, sizeof file.name, "%s", name);
    TRY(json_get_int(entry, source, "bytes", true, &bytes));
    TRY(get_hex(entry, source, "crc32c", 8, &crc));
    FAIL_IF(bytes < 0, STATUS_DATA, "%s: %s has a size of %" PRId64, source, name, bytes);
    file.bytes = (uint64_t)bytes;
    file.crc = (uint32_t)crc;
    return checkpoint_manifest_add(m, &file);
}

/* STATUS_DATA unless a set of tensors has its only file, or all the parts that the names count. */
static struct status check_set(const struct checkpoint_manifest *m, const char *set, const char *source)
{
    char name[CHECKPOINT_NAME_BYTES];
    int part, n_parts = 1, all = 1;
    for (int i = 0; i < m->n; i++) {
        all = checkpoint_manifest_is_of_set(m->files[i].name, set, &part, &n_parts) ? n_parts : all;
    }
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        n += checkpoint_manifest_is_of_set(m->files[i].name, set, &part, &n_parts);
    }
    for (int i = 0; i < all; i++) {
        checkpoint_manifest_part_name(name, set, i, all);
        FAIL_IF(checkpoint_manifest_find(m, name) == NULL, STATUS_DATA, "%s does not list %s", source, name);
    }
    return n == all ? status_ok()
                    : status_error(STATUS_DATA,
                                   "%s lists %d files of the %s, but the name of one says that there are %d",
                                   source, n, set, all);
}

static struct status read_files(struct checkpoint_manifest *m, const json_t *files, int64_t version,
                                const char *source)
{
    static const char *const of_each[] = {CHECKPOINT_CONFIG, CHECKPOINT_TOKENIZER, CHECKPOINT_STATE};
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)files, name, entry)
    {
        TRY(read_file(m, name, entry, source));
    }
    TRY(check_set(m, CHECKPOINT_MODEL, source));
    TRY(check_set(m, CHECKPOINT_OPTIMIZER, source));
    for (size_t i = 0; i < sizeof of_each / sizeof of_each[0]; i++) {
        FAIL_IF(checkpoint_manifest_find(m, of_each[i]) == NULL, STATUS_DATA, "%s does not list %s", source,
                of_each[i]);
    }
    FAIL_IF(version != version_of(m), STATUS_DATA,
            "%s has version %" PRId64 ", but lists files of version %d", source, version, version_of(m));
    return status_ok();
}

static struct status read_fields(struct checkpoint_manifest *m, const json_t *root, const char *source)
{
    const char *format = "";
    int64_t version = 0;
    TRY(json_get_string(root, source, "format", true, &format));
    TRY(json_get_int(root, source, "format_version", true, &version));
    FAIL_IF(strcmp(format, FORMAT) != 0 || version < 1 || version > CHECKPOINT_FORMAT_VERSION, STATUS_DATA,
            "%s is a \"%.40s\" of version %" PRId64 "; this kiln reads a \"%s\" of versions 1 to %d", source,
            format, version, FORMAT, CHECKPOINT_FORMAT_VERSION);
    TRY(json_get_int(root, source, "step", true, &m->step));
    TRY(json_get_bool(root, source, "phase_end", true, &m->phase_end));
    TRY(get_hex(root, source, "vocab_hash", 16, &m->vocab_hash));
    return read_files(m, json_object_get(root, "files"), version, source);
}

struct status checkpoint_manifest_parse(struct checkpoint_manifest *m, const void *bytes, size_t n,
                                        const char *source)
{
    char last[LAST_LINE_BYTES + 1];
    *m = (struct checkpoint_manifest){0};
    FAIL_IF(n < LAST_LINE_BYTES || n > MAX_BYTES, STATUS_DATA, "%s is not a manifest: it has %zu bytes",
            source, n);
    size_t before = n - LAST_LINE_BYTES;
    format_last_line(last, bytes, before);
    FAIL_IF(memcmp((const char *)bytes + before, last, LAST_LINE_BYTES) != 0, STATUS_DATA,
            "%s is damaged: its own checksum is wrong", source);
    json_t *root;
    TRY(json_parse(&root, bytes, n, source));
    struct status s = read_fields(m, root, source);
    json_decref(root);
    if (failed(s)) {
        checkpoint_manifest_fini(m);
    }
    return s;
}

struct status checkpoint_manifest_read(struct checkpoint_manifest *m, const char *path)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status s = checkpoint_manifest_parse(m, map.data, map.n, path);
    file_map_close(&map);
    return s;
}

struct status checkpoint_manifest_check(const struct checkpoint_listed *listed, const struct file_map *map,
                                        const char *path)
{
    FAIL_IF(map->n != listed->bytes, STATUS_DATA,
            "%s is damaged: it has %zu bytes, but was written with %" PRIu64, path, map->n, listed->bytes);
    uint32_t crc = hash_crc32c(0, map->data, map->n);
    FAIL_IF(crc != listed->crc, STATUS_DATA,
            "%s is damaged: its CRC-32C is %08" PRIx32 ", but was %08" PRIx32 " when written", path, crc,
            listed->crc);
    return status_ok();
}
