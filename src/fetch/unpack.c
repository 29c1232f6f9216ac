/* unpack: the part that needs no libarchive. */
#include "fetch/unpack.h"

#include "io/sum_list.h"

#include <string.h>

enum unpack_kind unpack_target(char target[FILE_PATH_BYTES], const char *archive)
{
    static const struct {
        const char *end;
        enum unpack_kind kind;
    } ends[] = {
        {".tar.gz", UNPACK_DIRECTORY}, {".tar.bz2", UNPACK_DIRECTORY}, {".tgz", UNPACK_DIRECTORY},
        {".tar", UNPACK_DIRECTORY},    {".zip", UNPACK_DIRECTORY},     {".gz", UNPACK_FILE},
        {".bz2", UNPACK_FILE},
    };
    size_t n = strlen(archive);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i].end);
        if (n > end && n < FILE_PATH_BYTES && archive[n - end - 1] != '/' &&
            strcmp(archive + n - end, ends[i].end) == 0) {
            memcpy(target, archive, n - end);
            target[n - end] = '\0';
            return ends[i].kind;
        }
    }
    return UNPACK_NONE;
}

static bool is_safe(const char *path)
{
    size_t n = strlen(path);
    if (n == 0 || n >= 512 || path[0] == '/') {
        return false;
    }
    for (const char *p = path; *p != '\0'; p++) {
        if ((unsigned char)*p < ' ' || *p == '\\' || *p == 0x7F) {
            return false;
        }
    }
    for (const char *part = path; part != NULL;
         part = strchr(part, '/') == NULL ? NULL : strchr(part, '/') + 1) {
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return false;
        }
    }
    return true;
}

bool unpack_name(const char **name, const char *path, const char *top)
{
    size_t n = strlen(top);
    *name = path;
    if (!is_safe(path)) {
        return false;
    }
    while (strncmp(*name, "./", 2) == 0) {
        *name += 2 + strspn(*name + 2, "/");
    }
    if (strncmp(*name, top, n) == 0 && ((*name)[n] == '/' || (*name)[n] == '\0')) {
        *name += n + strspn(*name + n, "/");
    }
    return true;
}

struct status unpack_check(const char *directory, const struct unpack_sum *sums)
{
    for (const struct unpack_sum *s = sums; s != NULL && s->name != NULL; s++) {
        char path[TEMPORARY_PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s/%s", directory, s->name);
        FAIL_IF(!file_exists(path), STATUS_DATA, "%s is missing", path);
        TRY(sum_check_file(path, s->sum));
    }
    return status_ok();
}
