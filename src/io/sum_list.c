#include "io/sum_list.h"

#include "core/regular_file.h"
#include "core/stop.h"
#include "io/file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- lists ---- */

/* A list may come from the network: a name must stay in its directory. */
static bool is_plain_name(const char *name)
{
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '/' || *p == '\\' || (unsigned char)*p < ' ') {
            return false;
        }
    }
    return name[0] != '\0' && name[0] != '.' && name[0] != '-' && strlen(name) < 200;
}

/* Splits a line at its first blank; the second word loses the '*' by which md5sum says "binary". */
static bool read_line(struct sum_list *list, char *line)
{
    enum digest_kind kind;
    size_t n = strcspn(line, " \t");
    if (line[n] == '\0') {
        return false;
    }
    char *first = line, *second = line + n;
    *second++ = '\0';
    second += strspn(second, " \t");
    second += *second == '*';
    second[strcspn(second, " \t")] = '\0';
    bool is_sum_first = digest_kind_of(&kind, first);
    const char *sum = is_sum_first ? first : second, *name = is_sum_first ? second : first;
    if (!digest_kind_of(&kind, sum) || !is_plain_name(name)) {
        return false;
    }
    buf_append(&list->text, sum, strlen(sum) + 1);
    buf_append(&list->text, name, strlen(name) + 1);
    list->n++;
    return true;
}

static struct status read_lines(struct sum_list *list, char *text, const char *path)
{
    char *save = NULL;
    int64_t number = 0;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        number++;
        line[strcspn(line, "\r")] = '\0';
        FAIL_IF(line[0] != '\0' && line[0] != '#' && !read_line(list, line), STATUS_DATA,
                "%s line %lld, empty lines not counted: '%.60s' is not an MD5 or SHA-256 with a file name",
                path, (long long)number, line);
    }
    return buf_status(&list->text);
}

struct status sum_list_parse(struct sum_list *list, const void *bytes, size_t n, const char *path)
{
    enum { MOST_BYTES = 16 << 20 };
    struct buf text = {0};
    *list = (struct sum_list){0};
    FAIL_IF(n > MOST_BYTES || (n > 0 && memchr(bytes, '\0', n) != NULL), STATUS_DATA,
            "%s is not a list of checksums: it has %zu bytes, but a list is text of at most %d", path, n,
            MOST_BYTES);
    buf_append(&text, n > 0 ? bytes : "", n);
    struct status s = buf_status(&text);
    if (!failed(s) && text.n > 0) {
        s = read_lines(list, text.data, path);
    }
    buf_fini(&text);
    if (failed(s)) {
        sum_list_fini(list);
    }
    return s;
}

struct status sum_list_read(struct sum_list *list, const char *path)
{
    struct file_map m;
    *list = (struct sum_list){0};
    TRY(file_map_open(&m, path));
    struct status s = sum_list_parse(list, m.data, m.n, path);
    file_map_close(&m);
    return s;
}

void sum_list_fini(struct sum_list *list)
{
    buf_fini(&list->text);
    list->n = 0;
}

const char *sum_list_next(const struct sum_list *list, size_t *at, const char **name)
{
    if (*at >= list->text.n) {
        return NULL;
    }
    const char *sum = list->text.data + *at;
    *name = sum + strlen(sum) + 1;
    *at += strlen(sum) + strlen(*name) + 2;
    return sum;
}

/* enwiki-20240101-x and enwiki-latest-x: equal except for one word. */
static bool is_same_dump(const char *dated, const char *name)
{
    static const char latest[] = "-latest-";
    const char *at = strstr(name, latest);
    if (at == NULL) {
        return false;
    }
    size_t before = (size_t)(at - name);
    if (strncmp(dated, name, before) != 0 || dated[before] != '-') {
        return false;
    }
    const char *day = dated + before + 1;
    return strspn(day, "0123456789") == 8 && strcmp(day + 8, at + sizeof latest - 2) == 0;
}

const char *sum_list_find(const struct sum_list *list, const char *name)
{
    const char *found, *sum;
    for (size_t at = 0; (sum = sum_list_next(list, &at, &found)) != NULL;) {
        if (strcmp(found, name) == 0 || is_same_dump(found, name)) {
            return sum;
        }
    }
    return NULL;
}

/* ---- files ---- */

static struct status put_file(struct digest *d, int fd, const char *path)
{
    static const size_t BLOCK_BYTES = 1 << 20;
    struct buf block = {0};
    void *bytes = buf_extend(&block, BLOCK_BYTES);
    struct status s = buf_status(&block);
    for (ssize_t n = 1; !failed(s) && n > 0;) {
        n = read(fd, bytes, BLOCK_BYTES);
        if (n > 0) {
            digest_put(d, bytes, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (n < 0) {
            s = status_error(STATUS_IO, "reading %s failed: %s", path, strerror(errno));
        }
        if (stop_requested()) {
            s = status_error(STATUS_PREEMPTED, "stopped by a signal while checking %s", path);
        }
    }
    buf_fini(&block);
    return s;
}

struct status sum_of_file(struct digest_text *hex, enum digest_kind kind, const char *path)
{
    struct digest d;
    int fd;
    size_t n;
    TRY(regular_file_open(&fd, &n, path));
    digest_init(&d, kind);
    struct status s = put_file(&d, fd, path);
    close(fd);
    digest_end(&d, hex);
    return s;
}

struct status sum_check_file(const char *path, const char *sum)
{
    enum digest_kind kind;
    struct digest_text got;
    CHECK(digest_kind_of(&kind, sum), "'%s' is not a checksum", sum);
    TRY(sum_of_file(&got, kind, path));
    return strcasecmp(got.text, sum) == 0 ? status_ok()
                                          : status_error(STATUS_DATA, "the %s of %s is %s, but should be %s",
                                                         digest_name(kind), path, got.text, sum);
}
