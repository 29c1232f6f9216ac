#define _GNU_SOURCE
#include "model/model_sums.h"

#include "io/safetensors.h"
#include "io/sum_list.h"
#include "model/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char LIST[] = "kiln.sha256";

bool model_sums_is_list(const char *name)
{
    return strcmp(name, LIST) == 0;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), n_ending = strlen(ending);
    return n > n_ending && strcmp(name + n - n_ending, ending) == 0;
}

static int is_safetensors(const struct dirent *e)
{
    return ends_with(e->d_name, ".safetensors");
}

static int is_listed(const struct dirent *e)
{
    return e->d_name[0] != '.' && (ends_with(e->d_name, ".json") || ends_with(e->d_name, ".txt"));
}

/* Calls `visit` with the path of each chosen file, in the order of names, until one fails. */
static struct status visit_files(const char *directory, int (*chosen)(const struct dirent *),
                                 struct status (*visit)(void *context, const char *path, const char *name),
                                 void *context)
{
    struct dirent **names;
    char path[CHECKPOINT_PATH_BYTES];
    struct status s = status_ok();
    int n = scandir(directory, &names, chosen, alphasort);
    FAIL_IF(n < 0, STATUS_IO, "cannot read the directory %s: %s", directory, strerror(errno));
    for (int i = 0; i < n; i++) {
        s = failed(s) ? s : checkpoint_path(path, "%s/%s", directory, names[i]->d_name);
        s = failed(s) ? s : visit(context, path, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return s;
}

static struct status add_line(void *context, const char *path, const char *name)
{
    struct digest_text sum;
    struct status s = sum_of_file(&sum, DIGEST_SHA256, path);
    if (failed(s)) {
        s.code = s.code == STATUS_DATA ? STATUS_IO : s.code; /* it was written a moment ago */
        return s;
    }
    buf_printf(context, "%s  %s\n", sum.text, name);
    return status_ok();
}

struct status model_sums_write(const char *directory)
{
    struct buf text = {0};
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", directory, LIST));
    struct status s = visit_files(directory, is_listed, add_line, &text);
    s = failed(s) ? s : buf_status(&text);
    s = failed(s) ? s : file_write_atomic(path, text.data, text.n);
    buf_fini(&text);
    return s;
}

/* A damaged file may be one of ours. */
static struct status find_rewritten(void *context, const char *path, const char *name)
{
    struct file_map map;
    struct safetensors f;
    (void)name;
    TRY(file_map_open(&map, path));
    if (!failed(safetensors_parse(&f, map.data, map.n, path)) && !safetensors_has_sums(&f)) {
        *(bool *)context = true;
    }
    safetensors_close(&f);
    file_map_close(&map);
    return status_ok();
}

static struct status check_listed(const struct sum_list *list, const char *directory)
{
    const char *name, *sum;
    char path[CHECKPOINT_PATH_BYTES];
    for (size_t at = 0; (sum = sum_list_next(list, &at, &name)) != NULL;) {
        TRY(checkpoint_path(path, "%s/%s", directory, name));
        struct status s = file_exists(path) ? sum_check_file(path, sum) : status_ok();
        FAIL_IF(s.code == STATUS_DATA, STATUS_DATA,
                "%s is not the file that kiln saved: its checksum is not the one in %s; if "
                "it was changed on purpose, remove %s/%s, else copy it or make it again",
                path, LIST, directory, LIST);
        TRY(s);
    }
    return status_ok();
}

struct status model_sums_check(const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct sum_list list;
    bool is_rewritten = false;
    TRY(checkpoint_path(path, "%s/%s", directory, LIST));
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(visit_files(directory, is_safetensors, find_rewritten, &is_rewritten));
    if (is_rewritten) {
        return status_ok();
    }
    TRY(status_context(sum_list_read(&list, path), "it was damaged, or changed: remove it"));
    struct status s = check_listed(&list, directory);
    sum_list_fini(&list);
    return s;
}
