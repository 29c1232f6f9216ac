#include "data/gpt/index_files.h"

#include "core/stop.h"
#include "io/file_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name, *type;
    int n_dims;
} forms[SAMPLE_ORDER_N_ARRAYS] = {
    [SAMPLE_ORDER_DOCUMENT] = {"doc_idx", "<i4", 1},
    [SAMPLE_ORDER_STARTS] = {"sample_idx", "<i4", 2},
    [SAMPLE_ORDER_SHUFFLED] = {"shuffle_idx", "<u4", 1},
};

/* The numbers of each dimension. */
static void find_dims(int64_t dims[NPY_MOST_DIMS], const struct sample_order *o,
                      enum sample_order_array which)
{
    dims[0] = which == SAMPLE_ORDER_DOCUMENT ? o->n_documents
              : which == SAMPLE_ORDER_STARTS ? o->n_samples + 1
                                             : o->n_samples;
    dims[1] = which == SAMPLE_ORDER_STARTS ? 2 : 1;
}

struct status index_files_path(char path[INDEX_FILES_PATH_BYTES], const char *prefix, const char *split,
                               const struct sample_order_config *config, enum sample_order_array which)
{
    int n = snprintf(path, INDEX_FILES_PATH_BYTES,
                     "%s_%s_indexmap_%" PRId64 "ns_%" PRId64 "sl_%" PRIu32 "s_%s.npy", prefix, split,
                     config->n_wanted, config->seq_length, config->seed, forms[which].name);
    return n < INDEX_FILES_PATH_BYTES
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "the paths of the index files of %.80s... are longer than %d bytes", prefix,
                              INDEX_FILES_PATH_BYTES);
}

bool index_files_exist(const char *prefix, const char *split, const struct sample_order_config *config)
{
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        char path[INDEX_FILES_PATH_BYTES];
        if (failed(index_files_path(path, prefix, split, config, (enum sample_order_array)i)) ||
            access(path, F_OK) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- reading ---- */

static struct status open_array(struct npy_file *f, const char *path, const struct sample_order *o,
                                enum sample_order_array which)
{
    int64_t dims[NPY_MOST_DIMS];
    find_dims(dims, o, which);
    TRY(npy_file_open(f, path, forms[which].type, forms[which].n_dims));
    return f->dims[0] == dims[0] && f->dims[1] == dims[1]
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s has [%" PRId64 ", %" PRId64 "] numbers, but the order of this store has "
                              "[%" PRId64 ", %" PRId64 "]: another store has made it; remove the file",
                              path, f->dims[0], f->dims[1], dims[0], dims[1]);
}

static struct status check_numbers(const struct index_files *f, const struct sample_order *o,
                                   const char *prefix, const char *split,
                                   const struct sample_order_config *config)
{
    char path[INDEX_FILES_PATH_BYTES];
    enum sample_order_array wrong;
    TRY(sample_order_check(&wrong, o, config));
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        TRY(index_files_path(path, prefix, split, config, (enum sample_order_array)i));
        TRY(file_map_check(&f->of[i].map, path));
    }
    if (wrong == SAMPLE_ORDER_N_ARRAYS) {
        return status_ok();
    }
    TRY(index_files_path(path, prefix, split, config, wrong));
    return status_error(STATUS_DATA, "%s is no order of this store: %s; remove the file", path,
                        wrong == SAMPLE_ORDER_STARTS
                            ? "its windows do not follow from the documents of doc_idx"
                            : "a number is missing, there twice or out of bounds");
}

static struct status open_arrays(struct index_files *f, const struct sample_order *o, const char *prefix,
                                 const char *split, const struct sample_order_config *config)
{
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        char path[INDEX_FILES_PATH_BYTES];
        TRY(index_files_path(path, prefix, split, config, (enum sample_order_array)i));
        TRY(open_array(&f->of[i], path, o, (enum sample_order_array)i));
    }
    return status_ok();
}

struct status index_files_open(struct index_files *f, struct sample_order *o, const char *prefix,
                               const char *split, const struct sample_order_config *config, bool checks)
{
    *f = (struct index_files){0};
    struct status s = open_arrays(f, o, prefix, split, config);
    o->document = f->of[SAMPLE_ORDER_DOCUMENT].data;
    o->starts = f->of[SAMPLE_ORDER_STARTS].data;
    o->shuffled = f->of[SAMPLE_ORDER_SHUFFLED].data;
    if (!failed(s) && checks) {
        s = check_numbers(f, o, prefix, split, config);
    }
    if (failed(s)) {
        index_files_close(f);
        o->document = o->starts = NULL;
        o->shuffled = NULL;
    }
    return s;
}

void index_files_close(struct index_files *f)
{
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        npy_file_close(&f->of[i]);
    }
}

/* ---- making ---- */

size_t index_files_make_bytes(const struct sample_order *o)
{
    return sizeof(int32_t) * (size_t)(o->n_documents + o->n_samples);
}

/* The rows of `starts` follow from the documents, one after the other. */
static void put_starts(struct file_writer *w, const struct sample_order *o,
                       const struct sample_order_config *config, const int32_t *document,
                       struct progress *progress)
{
    enum { BETWEEN_LOOKS = 1 << 16 };
    struct sample_start at = {0};
    for (int64_t i = 0; i <= o->n_samples; i++) {
        file_writer_put(w, &at, sizeof at);
        if (i < o->n_samples) {
            sample_start_next(&at, document, config);
        }
        if (i % BETWEEN_LOOKS == 0 && progress_due(progress)) {
            progress_show(progress, "cutting windows: %.0f %%", 100 * (double)i / (double)o->n_samples);
        }
    }
}

static struct status write_arrays(const struct sample_order *o, const char *prefix, const char *split,
                                  const struct sample_order_config *config, const int32_t *document,
                                  const uint32_t *shuffled, struct progress *progress)
{
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        char path[INDEX_FILES_PATH_BYTES];
        int64_t dims[NPY_MOST_DIMS];
        struct file_writer w = {0};
        find_dims(dims, o, (enum sample_order_array)i);
        TRY(index_files_path(path, prefix, split, config, (enum sample_order_array)i));
        TRY(npy_file_create(&w, path, forms[i].type, forms[i].n_dims, dims));
        if (i == SAMPLE_ORDER_STARTS) {
            put_starts(&w, o, config, document, progress);
        } else {
            file_writer_put(&w, i == SAMPLE_ORDER_DOCUMENT ? (const void *)document : shuffled,
                            (size_t)dims[0] * sizeof(int32_t));
        }
        TRY(file_writer_commit(&w));
    }
    return status_ok();
}

static struct status make_arrays(const struct sample_order *o, const char *prefix, const char *split,
                                 const struct sample_order_config *config)
{
    char path[INDEX_FILES_PATH_BYTES];
    TRY(index_files_path(path, prefix, split, config, SAMPLE_ORDER_STARTS));
    TRY(file_check_output(path, sample_order_bytes(o)));
    int32_t *document = malloc(((size_t)o->n_documents + 1) * sizeof *document);
    uint32_t *shuffled = malloc(((size_t)o->n_samples + 1) * sizeof *shuffled);
    struct status s =
        document != NULL && shuffled != NULL
            ? status_ok()
            : status_error(STATUS_MEMORY, "out of memory for the order of %" PRId64 " samples", o->n_samples);
    if (!failed(s)) {
        struct progress progress = progress_begin(true);
        sample_order_shuffle(o, config, document, shuffled, &progress);
        s = write_arrays(o, prefix, split, config, document, shuffled, &progress);
        progress_end(&progress);
    }
    free(document);
    free(shuffled);
    return s;
}

/* One lock for a directory's index files.  A file system without locks has none: then each process makes the
 * same bytes. */
static struct status lock(int *fd, const char *prefix)
{
    char directory[FILE_PATH_BYTES], path[FILE_PATH_BYTES + 24];
    file_parent(directory, prefix);
    snprintf(path, sizeof path, "%s/.indexmap.lock", directory);
    TRY(file_lock_open(fd, path));
    struct status s = status_ok();
    while (!failed(s) && !file_lock_try(*fd) && (errno == EWOULDBLOCK || errno == EINTR)) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        s = stop_before_work();
    }
    if (failed(s)) {
        close(*fd);
    }
    return s;
}

struct status index_files_make(bool *made, const struct sample_order *o, const char *prefix,
                               const char *split, const struct sample_order_config *config)
{
    int fd;
    *made = false;
    if (index_files_exist(prefix, split, config)) {
        return status_ok();
    }
    TRY(lock(&fd, prefix));
    struct status s = status_ok();
    if (!index_files_exist(prefix, split, config)) { /* nobody has made them while this process waited */
        s = make_arrays(o, prefix, split, config);
        *made = !failed(s);
    }
    close(fd);
    return s;
}
