#include "io/torch_file.h"

#include "core/bytes.h"
#include "io/torch_tensors.h"
#include "io/zip_file.h"

#include <stdlib.h>
#include <string.h>

/* Files before PyTorch 1.6 begin with this pickle of the magic number 0x1950a86a20f9469cfc6c; a version
 * follows. */
static const unsigned char magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                      0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
enum { LEGACY_VERSION = 1001 };

static const char zip_magic[] = {'P', 'K', 3, 4};

static bool begins_with(const void *bytes, size_t n, const void *beginning, size_t beginning_bytes)
{
    return n >= beginning_bytes && memcmp(bytes, beginning, beginning_bytes) == 0;
}

bool torch_file_is_one(const void *bytes, size_t n)
{
    return begins_with(bytes, n, zip_magic, sizeof zip_magic) || begins_with(bytes, n, magic, sizeof magic);
}

static struct status parse_pickle(struct pickle *p, const void *bytes, size_t n, const char *source)
{
    size_t n_allowed;
    const struct pickle_allowed *allowed = torch_tensors_allowed(&n_allowed);
    return pickle_parse(p, bytes, n, allowed, n_allowed, source);
}

/* The member `name` in the same folder as `of`. */
static const struct zip_member *find_member(const struct zip_file *z, const struct zip_member *of,
                                            const char *name)
{
    char path[FILE_PATH_BYTES];
    const char *slash = memchr(of->name, '/', of->name_bytes);
    size_t folder_bytes = (size_t)(slash - of->name) + 1;
    int n = snprintf(path, sizeof path, "%.*s%s", (int)folder_bytes, of->name, name);
    return n < (int)sizeof path ? zip_file_find(z, path, (size_t)n) : NULL;
}

/* ARCHIVE/data.pkl. */
static const struct zip_member *find_pickle(const struct zip_file *z)
{
    static const char name[] = "/data.pkl";
    for (size_t i = 0; i < z->n; i++) {
        const struct zip_member *m = &z->members[i];
        const char *slash = m->name_bytes == 0 ? NULL : memchr(m->name, '/', m->name_bytes);
        size_t rest = slash == NULL ? 0 : m->name_bytes - (size_t)(slash - m->name);
        if (rest == sizeof name - 1 && memcmp(slash, name, rest) == 0) {
            return m;
        }
    }
    return NULL;
}

static struct status check_archive(const struct zip_file *z, const struct zip_member *pickle,
                                   const char *source)
{
    FAIL_IF(pickle == NULL, STATUS_DATA,
            "%s is a ZIP archive, but torch.save did not write it: it has no data.pkl", source);
    FAIL_IF(find_member(z, pickle, "constants.pkl") != NULL, STATUS_DATA,
            "%s is a TorchScript program; save the model's state_dict with torch.save instead", source);
    for (size_t i = 0; i < z->n; i++) {
        if (!z->members[i].is_stored) {
            int shown = z->members[i].name_bytes < 80 ? (int)z->members[i].name_bytes : 80;
            return status_error(STATUS_DATA,
                                "%s: its member %.*s is compressed or encrypted, which torch.save never "
                                "does; unpack the archive, and pack it again with zip -0",
                                source, shown, z->members[i].name);
        }
    }
    const struct zip_member *order = find_member(z, pickle, "byteorder");
    FAIL_IF(order != NULL && (order->n != 6 || memcmp(order->data, "little", 6) != 0), STATUS_DATA,
            "%s was written on a big-endian machine, whose numbers kiln does not read", source);
    return status_ok();
}

/* Lists the members ARCHIVE/data/KEY; members are sorted by name, so these are sorted by key. */
static struct status list_storages(struct torch_storage **storages, size_t *n, const struct zip_file *z,
                                   const struct zip_member *pickle, const char *source)
{
    static const char folder[] = "/data/";
    const size_t archive_bytes = pickle->name_bytes - strlen("/data.pkl");
    const size_t prefix_bytes = archive_bytes + sizeof folder - 1;
    *n = 0;
    *storages = calloc(z->n + 1, sizeof **storages);
    FAIL_IF(*storages == NULL, STATUS_MEMORY, "out of memory for the storages of %s", source);
    for (size_t i = 0; i < z->n; i++) {
        const struct zip_member *m = &z->members[i];
        if (m->name_bytes > prefix_bytes && memcmp(m->name, pickle->name, archive_bytes) == 0 &&
            memcmp(m->name + archive_bytes, folder, sizeof folder - 1) == 0) {
            (*storages)[(*n)++] = (struct torch_storage){m->name + prefix_bytes, m->name_bytes - prefix_bytes,
                                                         m->data, m->n, 0};
        }
    }
    return status_ok();
}

static struct status bind_archive(struct torch_file *f, const struct zip_file *z, const char *source)
{
    const struct zip_member *pickle = find_pickle(z);
    struct torch_storage *storages;
    size_t n;
    TRY(check_archive(z, pickle, source));
    TRY(parse_pickle(&f->pickle, pickle->data, pickle->n, source));
    struct status s = list_storages(&storages, &n, z, pickle, source);
    if (!failed(s)) {
        s = torch_tensors_bind(&f->pickle, storages, n, source);
    }
    free(storages);
    return s;
}

static struct status parse_archive(struct torch_file *f, const void *bytes, size_t n, const char *source)
{
    struct zip_file z;
    TRY(zip_file_parse(&z, bytes, n, source));
    struct status s = bind_archive(f, &z, source);
    zip_file_close(&z);
    return s;
}

/* Reads one of the small pickles before the object: `value` is the int it holds, or the value of `key` in its
 * dict; -1 if there is none. */
static struct status read_number(struct span *s, int64_t *value, const char *key, const char *source)
{
    struct pickle p;
    TRY(parse_pickle(&p, s->data + s->at, bytes_left(s), source));
    bytes_take(s, p.n_read);
    const struct pickle_node *node = key == NULL ? p.root : pickle_find(p.root, key);
    *value = node != NULL && (node->kind == PICKLE_INT || node->kind == PICKLE_BOOL) ? node->integer : -1;
    pickle_close(&p);
    return status_ok();
}

/* The storages that the object's pickle uses, sorted by key. */
static struct status list_wanted(struct torch_storage **storages, size_t *n, const struct pickle *p,
                                 const char *source)
{
    size_t count = 0;
    for (const struct pickle_node *i = p->persistents; i != NULL; i = i->persistent.next) {
        count++;
    }
    *n = 0;
    *storages = calloc(count + 1, sizeof **storages);
    FAIL_IF(*storages == NULL, STATUS_MEMORY, "out of memory for the storages of %s", source);
    for (const struct pickle_node *i = p->persistents; i != NULL; i = i->persistent.next) {
        TRY(torch_tensors_storage(&(*storages)[*n], i, source));
        ++*n;
    }
    qsort(*storages, *n, sizeof **storages, torch_tensors_compare_keys);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) { /* tensors that share a storage each list it */
        if (kept == 0 || torch_tensors_compare_keys(&(*storages)[kept - 1], &(*storages)[i]) != 0) {
            (*storages)[kept++] = (*storages)[i];
        }
    }
    *n = kept;
    return status_ok();
}

/* After the list of keys come the storages in its order, each as a number of elements and the elements. */
static struct status place_storages(struct torch_storage *storages, size_t n, const struct pickle_node *keys,
                                    struct span *s, const char *source)
{
    for (size_t i = 0; keys->kind == PICKLE_LIST && i < keys->list.n; i++) {
        const struct pickle_node *key = keys->list.items[i];
        struct torch_storage wanted = {.key = NULL};
        if (key->kind == PICKLE_TEXT) {
            wanted.key = key->text.data;
            wanted.key_bytes = key->text.n;
        }
        struct torch_storage *found =
            n == 0 ? NULL : bsearch(&wanted, storages, n, sizeof wanted, torch_tensors_compare_keys);
        FAIL_IF(found == NULL || found->data != NULL, STATUS_DATA,
                "%s contains a storage that its pickle does not use, or contains it twice", source);
        int64_t n_elements = bytes_read_i64(s);
        found->data = bytes_take(s, found->n);
        FAIL_IF(s->failed, STATUS_DATA, "%s is cut short: it ends in storage %zu of %zu", source, i + 1,
                keys->list.n);
        FAIL_IF(n_elements != found->n_elements, STATUS_DATA,
                "%s: its storage %zu has %lld elements, but its pickle says %lld", source, i,
                (long long)n_elements, (long long)found->n_elements);
    }
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(storages[i].data == NULL, STATUS_DATA, "%s lacks a storage that its pickle uses", source);
    }
    return status_ok();
}

static struct status bind_legacy(struct torch_file *f, struct span *s, const char *source)
{
    struct torch_storage *storages = NULL;
    struct pickle keys = {0};
    size_t n;
    struct status status = list_wanted(&storages, &n, &f->pickle, source);
    if (!failed(status)) {
        status = parse_pickle(&keys, s->data + s->at, bytes_left(s), source);
    }
    if (!failed(status)) {
        bytes_take(s, keys.n_read);
        status = place_storages(storages, n, keys.root, s, source);
    }
    if (!failed(status)) {
        status = torch_tensors_bind(&f->pickle, storages, n, source);
    }
    pickle_close(&keys);
    free(storages);
    return status;
}

static struct status parse_legacy(struct torch_file *f, const void *bytes, size_t n, const char *source)
{
    struct span s = bytes_span(bytes, n);
    int64_t version, is_little;
    bytes_take(&s, sizeof magic);
    TRY(read_number(&s, &version, NULL, source));
    FAIL_IF(version != LEGACY_VERSION, STATUS_DATA,
            "%s has version %lld of the format of PyTorch before 1.6; kiln reads version %d", source,
            (long long)version, LEGACY_VERSION);
    TRY(read_number(&s, &is_little, "little_endian", source));
    FAIL_IF(is_little != 1, STATUS_DATA,
            "%s was written on a big-endian machine, whose numbers kiln does not read", source);
    TRY(parse_pickle(&f->pickle, s.data + s.at, bytes_left(&s), source));
    bytes_take(&s, f->pickle.n_read);
    return bind_legacy(f, &s, source);
}

static struct status parse(struct torch_file *f, const void *bytes, size_t n, const char *source)
{
    if (begins_with(bytes, n, zip_magic, sizeof zip_magic)) {
        TRY(parse_archive(f, bytes, n, source));
    } else if (begins_with(bytes, n, magic, sizeof magic)) {
        TRY(parse_legacy(f, bytes, n, source));
    } else {
        return status_error(STATUS_DATA,
                            "%s is not a file of torch.save: it begins neither as a ZIP archive nor as a "
                            "file of PyTorch before 1.6",
                            source);
    }
    f->root = f->pickle.root;
    return torch_tensors_list(&f->tensors, &f->n, &f->pickle, source);
}

struct status torch_file_parse(struct torch_file *f, const void *bytes, size_t n, const char *source)
{
    *f = (struct torch_file){0};
    struct status s = parse(f, bytes, n, source);
    if (failed(s)) {
        torch_file_close(f);
    }
    return s;
}

/* Compares the sums of a file that is an archive; the form before PyTorch 1.6 has none. */
static struct status check_sums(const struct file_map *map, const char *path)
{
    struct zip_file z;
    if (!begins_with(map->data, map->n, zip_magic, sizeof zip_magic)) {
        return status_ok();
    }
    TRY(zip_file_parse(&z, map->data, map->n, path));
    struct status s = zip_file_check_sums(&z, path);
    zip_file_close(&z);
    return s;
}

struct status torch_file_open(struct torch_file *f, const char *path)
{
    struct file_map map;
    *f = (struct torch_file){0};
    TRY(file_map_open(&map, path));
    struct status s = torch_file_parse(f, map.data, map.n, path);
    s = failed(s) ? s : check_sums(&map, path);
    if (failed(s)) {
        torch_file_close(f);
        file_map_close(&map);
        return s;
    }
    f->map = map;
    return s;
}

void torch_file_close(struct torch_file *f)
{
    free(f->tensors);
    pickle_close(&f->pickle);
    file_map_close(&f->map);
    *f = (struct torch_file){0};
}
