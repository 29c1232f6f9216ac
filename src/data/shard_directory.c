#define _GNU_SOURCE
#include "data/shard_directory.h"

#include "core/json.h"
#include "io/file.h"
#include "io/json_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static int is_shard(const struct dirent *e)
{
    return e->d_name[0] != '.' && (ends_with(e->d_name, ".hdf5") || ends_with(e->d_name, ".h5"));
}

static int in_byte_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

bool shard_directory_is_one(const char *directory)
{
    char path[PATH_BYTES];
    struct dirent **names;
    int n = scandir(directory, &names, is_shard, NULL);
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    bool has_store =
        (size_t)snprintf(path, sizeof path, "%s/train.json", directory) < sizeof path && file_exists(path);
    return n > 0 && !has_store;
}

/* Whether its last name is `name`. */
static bool is_called(const char *directory, const char *name)
{
    size_t n = strlen(directory), m = strlen(name);
    while (n > 0 && directory[n - 1] == '/') {
        n--;
    }
    return n >= m && memcmp(directory + n - m, name, m) == 0 && (n == m || directory[n - m - 1] == '/');
}

/* A path that is too long does not exist. */
static bool is_at(const char *path, int length)
{
    return length < SHARD_DIRECTORY_PATH_BYTES && shard_directory_is_one(path);
}

bool shard_directory_find(char found[SHARD_DIRECTORY_PATH_BYTES], const char *directory, const char *word)
{
    if (!shard_directory_is_one(directory) &&
        is_at(found, snprintf(found, SHARD_DIRECTORY_PATH_BYTES, "%s/%s", directory, word))) {
        return true;
    }
    return is_at(found, snprintf(found, SHARD_DIRECTORY_PATH_BYTES, "%s", directory));
}

bool shard_directory_find_test(char found[SHARD_DIRECTORY_PATH_BYTES], const char *training)
{
    return is_called(training, "training") &&
           is_at(found, snprintf(found, SHARD_DIRECTORY_PATH_BYTES, "%s/../test", training));
}

static struct status add_paths(struct shard_list *list, const char *directory, struct dirent **names, int n,
                               const char *word)
{
    for (int i = 0; i < n; i++) {
        list->named |= strstr(names[i]->d_name, word) != NULL;
    }
    list->paths = calloc((size_t)n, sizeof *list->paths);
    for (int i = 0; i < n && list->paths != NULL; i++) {
        if (list->named && strstr(names[i]->d_name, word) == NULL) {
            continue;
        }
        if (asprintf(&list->paths[list->n], "%s/%s", directory, names[i]->d_name) < 0) {
            list->paths[list->n] = NULL;
            return status_error(STATUS_MEMORY, "out of memory for the files of %s", directory);
        }
        list->n++;
    }
    return list->paths != NULL ? status_ok()
                               : status_error(STATUS_MEMORY, "out of memory for the files of %s", directory);
}

struct status shard_directory_list(struct shard_list *list, const char *directory, const char *word)
{
    struct dirent **names;
    *list = (struct shard_list){0};
    int n = scandir(directory, &names, is_shard, in_byte_order);
    FAIL_IF(n < 0, STATUS_DATA, "cannot read the directory %s: %s", directory, strerror(errno));
    struct status s = n > 0 ? add_paths(list, directory, names, n, word)
                            : status_error(STATUS_DATA, "%s has no file named *.hdf5 or *.h5", directory);
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
    if (failed(s)) {
        shard_list_fini(list);
    }
    return s;
}

void shard_list_fini(struct shard_list *list)
{
    for (int64_t i = 0; i < list->n; i++) {
        free(list->paths[i]);
    }
    free(list->paths);
    *list = (struct shard_list){0};
}

/* PARENT/NAME_metadata.json; the directory must exist, so that "." and "x/" have names too. */
static struct status metadata_path(char path[PATH_BYTES], const char *directory)
{
    char *real = realpath(directory, NULL);
    FAIL_IF(real == NULL, STATUS_DATA, "cannot find the directory %s: %s", directory, strerror(errno));
    int n = snprintf(path, PATH_BYTES, "%s_metadata.json", real);
    free(real);
    return n < PATH_BYTES ? status_ok()
                          : status_error(STATUS_USAGE, "the path %.60s... is too long", directory);
}

struct status shard_directory_read_average(const char *directory, bool *found, double *average)
{
    char path[PATH_BYTES];
    json_t *root;
    TRY(metadata_path(path, directory));
    *found = file_exists(path);
    if (!*found) {
        return status_ok();
    }
    TRY(json_read_object(&root, path));
    struct status s = json_get_real(root, path, "avg_seq_per_sample", true, average);
    json_decref(root);
    if (!failed(s) && !(*average >= 1 && *average <= 1e6)) {
        s = status_error(STATUS_DATA, "%s: \"avg_seq_per_sample\" is %g, but must be at least 1", path,
                         *average);
    }
    return s;
}

static json_t *describe(const struct shard_packing *p)
{
    double n = (double)p->n_sequences, packs = (double)p->n_packs, length = (double)p->seq_length;
    json_int_t tokens = (json_int_t)p->n_tokens;
    json_t *top = json_array();
    for (int i = 0; i < 8 && p->top_strategies[i] >= 0; i++) {
        json_array_append_new(top, json_integer((json_int_t)p->top_strategies[i]));
    }
    return json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:o}", "avg_seq_per_sample",
                     n / packs, "compression_ratio", 1 - packs / n, "expected_speed_up", n / packs,
                     "new_number_of_samples", (json_int_t)p->n_packs, "number_of_sequences_dropped",
                     (json_int_t)0, "number_of_strategies_utilized", (json_int_t)p->n_strategies,
                     "original_number_of_samples", (json_int_t)p->n_sequences, "packing_efficiency",
                     (double)p->n_tokens / (packs * length), "padding_tokens_original_dataset",
                     (json_int_t)(p->n_sequences * p->seq_length) - tokens, "padding_tokens_packed_dataset",
                     (json_int_t)(p->n_packs * p->seq_length) - tokens, "theoretical_speed_up",
                     n * length / (double)p->n_tokens, "top_8_strategies", top);
}

struct status shard_directory_write_packing(const char *directory, const struct shard_packing *p)
{
    char path[PATH_BYTES];
    TRY(metadata_path(path, directory));
    return json_file_write(path, describe(p));
}
