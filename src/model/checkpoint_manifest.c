#include "model/checkpoint_manifest.h"

#include "core/buf.h"
#include "core/hash.h"
#include "core/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "kiln checkpoint";

enum { MAX_BYTES = 1 << 20, LAST_LINE_BYTES = sizeof "  \"manifest_crc32c\": \"00000000\"\n}\n" - 1 };

static const char *const file_names[] = {[CHECKPOINT_MODEL] = "model.safetensors",
                                         [CHECKPOINT_OPTIMIZER] = "optimizer.safetensors",
                                         [CHECKPOINT_CONFIG] = "config.json",
                                         [CHECKPOINT_VOCAB] = "vocab.txt",
                                         [CHECKPOINT_TOKENIZER] = "tokenizer_config.json",
                                         [CHECKPOINT_STATE] = "trainer_state.json",
                                         [CHECKPOINT_CHOICES] = "cublaslt.cache",
                                         [CHECKPOINT_FP8] = "fp8.safetensors"};

const char *checkpoint_manifest_file_name(enum checkpoint_file file)
{
    return file_names[file];
}

static bool may_lack(enum checkpoint_file file)
{
    return file == CHECKPOINT_CHOICES || file == CHECKPOINT_FP8;
}

bool checkpoint_manifest_has(const struct checkpoint_manifest *m, enum checkpoint_file file)
{
    return !may_lack(file) || m->files[file].bytes > 0;
}

static int version_of(const struct checkpoint_manifest *m)
{
    return checkpoint_manifest_has(m, CHECKPOINT_FP8)       ? 3
           : checkpoint_manifest_has(m, CHECKPOINT_CHOICES) ? 2
                                                            : 1;
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
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) {
        if (checkpoint_manifest_has(m, (enum checkpoint_file)i)) {
            buf_printf(&b, "%s    \"%s\": {\"bytes\": %" PRIu64 ", \"crc32c\": \"%08" PRIx32 "\"}",
                       i > 0 ? ",\n" : "", file_names[i], m->files[i].bytes, m->files[i].crc);
        }
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
    if (strlen(text) != digits || strspn(text, "0123456789abcdef") != digits) {
        return status_error(STATUS_DATA, "%s: \"%s\" must be %zu hexadecimal digits", source, key, digits);
    }
    *value = strtoull(text, NULL, 16);
    return status_ok();
}

static struct status read_files(struct checkpoint_manifest *m, const json_t *files, int64_t version,
                                const char *source)
{
    size_t n_files = 0;
    for (size_t i = 0; i < CHECKPOINT_N_FILES; i++) {
        const json_t *entry = json_object_get(files, file_names[i]);
        int64_t bytes = 0;
        uint64_t crc = 0;
        if (entry == NULL && may_lack((enum checkpoint_file)i)) {
            continue;
        }
        if (!json_is_object(entry)) {
            return status_error(STATUS_DATA, "%s does not list %s", source, file_names[i]);
        }
        n_files++;
        TRY(json_get_int(entry, source, "bytes", true, &bytes));
        TRY(get_hex(entry, source, "crc32c", 8, &crc));
        if (bytes < 0 || (bytes == 0 && may_lack((enum checkpoint_file)i))) {
            return status_error(STATUS_DATA, "%s: %s has a size of %" PRId64, source, file_names[i], bytes);
        }
        m->files[i].bytes = (uint64_t)bytes;
        m->files[i].crc = (uint32_t)crc;
    }
    if (json_object_size(files) != n_files) {
        return status_error(STATUS_DATA, "%s: \"files\" lists one that no checkpoint has", source);
    }
    if (version != version_of(m)) {
        return status_error(STATUS_DATA, "%s is of version %" PRId64 ", but lists files of version %d",
                            source, version, version_of(m));
    }
    return status_ok();
}

static struct status read_fields(struct checkpoint_manifest *m, const json_t *root, const char *source)
{
    const char *format = "";
    int64_t version = 0;
    TRY(json_get_string(root, source, "format", true, &format));
    TRY(json_get_int(root, source, "format_version", true, &version));
    if (strcmp(format, FORMAT) != 0 || version < 1 || version > CHECKPOINT_FORMAT_VERSION) {
        return status_error(STATUS_DATA,
                            "%s is a \"%.40s\" of version %" PRId64
                            "; this kiln reads a \"%s\" of versions 1 to %d",
                            source, format, version, FORMAT, CHECKPOINT_FORMAT_VERSION);
    }
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
    if (n < LAST_LINE_BYTES || n > MAX_BYTES) {
        return status_error(STATUS_DATA, "%s is not a manifest: it has %zu bytes", source, n);
    }
    size_t before = n - LAST_LINE_BYTES;
    format_last_line(last, bytes, before);
    if (memcmp((const char *)bytes + before, last, LAST_LINE_BYTES) != 0) {
        return status_error(STATUS_DATA, "%s is damaged: its own checksum does not hold", source);
    }
    json_t *root;
    TRY(json_parse(&root, bytes, n, source));
    struct status s = read_fields(m, root, source);
    json_decref(root);
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

struct status checkpoint_manifest_check(const struct checkpoint_manifest *m, enum checkpoint_file file,
                                        const struct file_map *map, const char *path)
{
    if (map->n != m->files[file].bytes) {
        return status_error(STATUS_DATA, "%s is damaged: it has %zu bytes, but was written with %" PRIu64,
                            path, map->n, m->files[file].bytes);
    }
    uint32_t crc = hash_crc32c(0, map->data, map->n);
    if (crc != m->files[file].crc) {
        return status_error(STATUS_DATA,
                            "%s is damaged: its CRC-32C is %08" PRIx32 ", but was %08" PRIx32 " when written",
                            path, crc, m->files[file].crc);
    }
    return status_ok();
}
