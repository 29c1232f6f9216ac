#include "data/gpt/index_files.h"

#include "io/npy_file.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *type;
    int n_dims;
} forms[SAMPLE_ORDER_N_ARRAYS] = {
    [SAMPLE_ORDER_DOCUMENT] = {"doc_idx", "<i4", 1},
    [SAMPLE_ORDER_STARTS] = {"sample_idx", "<i4", 2},
    [SAMPLE_ORDER_SHUFFLED] = {"shuffle_idx", "<u4", 1},
};

struct array {
    void *numbers; /* 4 bytes each */
    int64_t dims[NPY_MOST_DIMS];
};

static struct array array_of(const struct sample_order *o, enum sample_order_array which)
{
    switch (which) {
    case SAMPLE_ORDER_DOCUMENT: return (struct array){o->document, {o->n_documents, 1}};
    case SAMPLE_ORDER_STARTS: return (struct array){o->starts, {o->n_samples + 1, 2}};
    default: return (struct array){o->shuffled, {o->n_samples, 1}};
    }
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

static struct status read_array(const struct array *a, const char *path, enum sample_order_array which)
{
    struct npy_file f;
    TRY(npy_file_open(&f, path, forms[which].type, forms[which].n_dims));
    struct status status = status_ok();
    if (f.dims[0] == a->dims[0] && f.dims[1] == a->dims[1]) {
        memcpy(a->numbers, f.data, (size_t)(a->dims[0] * a->dims[1]) * sizeof(int32_t));
        status = file_map_check(&f.map, path);
    } else {
        status = status_error(STATUS_DATA,
                              "%s has [%" PRId64 ", %" PRId64 "] numbers, but the order of this store has "
                              "[%" PRId64 ", %" PRId64 "]: another store has made it; remove the file",
                              path, f.dims[0], f.dims[1], a->dims[0], a->dims[1]);
    }
    npy_file_close(&f);
    return status;
}

static struct status read_arrays(struct sample_order *o, const char *prefix, const char *split,
                                 const struct sample_order_config *config)
{
    char path[INDEX_FILES_PATH_BYTES];
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        const struct array a = array_of(o, (enum sample_order_array)i);
        TRY(index_files_path(path, prefix, split, config, (enum sample_order_array)i));
        TRY(read_array(&a, path, (enum sample_order_array)i));
    }
    enum sample_order_array wrong;
    TRY(sample_order_check(&wrong, o, config));
    if (wrong == SAMPLE_ORDER_N_ARRAYS) {
        return status_ok();
    }
    TRY(index_files_path(path, prefix, split, config, wrong));
    return status_error(STATUS_DATA, "%s is no order of this store: %s; remove the file", path,
                        wrong == SAMPLE_ORDER_STARTS
                            ? "its windows do not follow from the documents of doc_idx"
                            : "a number is missing, there twice or out of bounds");
}

struct status index_files_read(struct sample_order *o, const char *prefix, const char *split,
                               const struct sample_order_config *config)
{
    TRY(sample_order_plan(o, config));
    struct status status = read_arrays(o, prefix, split, config);
    if (failed(status)) {
        sample_order_fini(o);
    }
    return status;
}

struct status index_files_write(const struct sample_order *o, const char *prefix, const char *split,
                                const struct sample_order_config *config)
{
    for (int i = 0; i < SAMPLE_ORDER_N_ARRAYS; i++) {
        char path[INDEX_FILES_PATH_BYTES];
        const struct array a = array_of(o, (enum sample_order_array)i);
        TRY(index_files_path(path, prefix, split, config, (enum sample_order_array)i));
        TRY(npy_file_write(path, forms[i].type, forms[i].n_dims, a.dims, a.numbers));
    }
    return status_ok();
}
