/* What test_h5py holds with h5py at hand, from goldens, everywhere: the files that kiln writes have the
 * names, types, compression and values that h5py found in them when each record had passed
 * tests/golden/check_h5py.py, which then wrote tests/golden/kiln_padded.hdf5 and kiln_packed.hdf5; the
 * metadata are those it looked at.
 *
 * With arguments it is that script's tool: `test_shard_goldens write DIR` writes the files into DIR. */
#include "fixture_store.h"

#include "data/shard_writer.h"
#include "io/hdf5_file.h"

#include <sys/stat.h>

#if KILN_HAVE_HDF5
#    include <hdf5.h>

enum { VOCAB = 40, S = 48, P = 8 };

/* DIRECTORY/padded/kiln_training_0.hdf5 or DIRECTORY/packed/kiln_training_0.hdf5 and its metadata. */
static void write_shard(const struct indexed *store, const char *directory, bool packed)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, packed ? "packed" : "padded");
    EXPECT(mkdir(path, 0777) == 0, "mkdir %s", path);
    struct shard_writer_report report;
    struct shard_writer_config c = {.samples = {.store = store,
                                                .vocab_size = VOCAB,
                                                .pad_id = FIXTURE_PAD,
                                                .cls_id = FIXTURE_CLS,
                                                .sep_id = FIXTURE_SEP,
                                                .mask_id = FIXTURE_MASK,
                                                .seed = 3,
                                                .batch.max_seq_length = S,
                                                .max_predictions_per_seq = P,
                                                .batch.train_batch_size = 1,
                                                .batch.gradient_accumulation_steps = 1,
                                                .masked_lm_prob = 0.15,
                                                .short_seq_prob = 0.5},
                                    .directory = path,
                                    .word = "training",
                                    .dupe_factor = 1,
                                    .n_shards = 1,
                                    .packed = packed};
    EXPECT_OK(shard_writer_run(&report, &c));
    if (packed) {
        EXPECT_OK(shard_directory_write_packing(path, &report.packing));
    }
}

static void write_shards(const char *directory)
{
    struct indexed store;
    fixture_store(&store, "store", 60, 12, 9, VOCAB);
    write_shard(&store, directory, false);
    write_shard(&store, directory, true);
    indexed_close(&store);
}

struct dataset {
    hid_t id, type;
    hsize_t dims[2];
    int n_dims;
    size_t n;
    long long *values;
};

static H5Z_filter_t filter_at(hid_t list, unsigned i)
{
    size_t n_flags = 0;
    return H5Pget_filter2(list, i, NULL, &n_flags, NULL, 0, NULL, NULL);
}

static struct dataset read_dataset(hid_t file, const char *name)
{
    struct dataset d = {.id = H5Dopen2(file, name, H5P_DEFAULT), .dims = {1, 1}};
    EXPECT(d.id >= 0, "there is no %s", name);
    d.type = H5Dget_type(d.id);
    hid_t space = H5Dget_space(d.id), list = H5Dget_create_plist(d.id);
    d.n_dims = H5Sget_simple_extent_ndims(space);
    EXPECT((d.n_dims == 1 || d.n_dims == 2) && H5Sget_simple_extent_dims(space, d.dims, NULL) == d.n_dims,
           "%s has %d dimensions", name, d.n_dims);
    EXPECT(H5Pget_nfilters(list) == 2 && filter_at(list, 0) == H5Z_FILTER_SHUFFLE &&
               filter_at(list, 1) == H5Z_FILTER_DEFLATE,
           "%s is not shuffled and deflated", name);
    H5Pclose(list);
    H5Sclose(space);
    d.n = (size_t)(d.dims[0] * d.dims[1]);
    d.values = malloc(d.n * sizeof *d.values);
    EXPECT(d.values != NULL && H5Dread(d.id, H5T_NATIVE_LLONG, H5S_ALL, H5S_ALL, H5P_DEFAULT, d.values) >= 0,
           "%s cannot be read", name);
    return d;
}

static void close_dataset(struct dataset *d)
{
    free(d->values);
    H5Tclose(d->type);
    H5Dclose(d->id);
}

static void expect_same_file(const char *path, const char *golden_path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t golden = H5Fopen(golden_path, H5F_ACC_RDONLY, H5P_DEFAULT);
    EXPECT(file >= 0 && golden >= 0, "%s or %s cannot be opened", path, golden_path);
    H5G_info_t of_file, of_golden;
    EXPECT(H5Gget_info(file, &of_file) >= 0 && H5Gget_info(golden, &of_golden) >= 0 &&
               of_file.nlinks == of_golden.nlinks && of_golden.nlinks >= 6,
           "%s has %lld datasets, not %lld", path, (long long)of_file.nlinks, (long long)of_golden.nlinks);
    for (hsize_t i = 0; i < of_golden.nlinks; i++) {
        char name[64];
        EXPECT(H5Lget_name_by_idx(golden, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name,
                                  H5P_DEFAULT) > 0,
               "name %d", (int)i);
        struct dataset a = read_dataset(file, name), b = read_dataset(golden, name);
        EXPECT(H5Tequal(a.type, b.type) > 0, "%s: %s has another type than in %s", path, name, golden_path);
        EXPECT(a.n_dims == b.n_dims && a.dims[0] == b.dims[0] && a.dims[1] == b.dims[1],
               "%s: %s has %lld x %lld values", path, name, (long long)a.dims[0], (long long)a.dims[1]);
        for (size_t k = 0; k < a.n; k++) {
            EXPECT(a.values[k] == b.values[k], "%s: %s[%zu] is %lld, not %lld", path, name, k, a.values[k],
                   b.values[k]);
        }
        close_dataset(&a);
        close_dataset(&b);
    }
    H5Fclose(golden);
    H5Fclose(file);
}

static void expect_same_bytes(const char *path, const char *golden_path)
{
    struct file_map a, b;
    EXPECT_OK(file_map_open(&a, path));
    EXPECT_OK(file_map_open(&b, golden_path));
    EXPECT(a.n == b.n && memcmp(a.data, b.data, a.n) == 0, "%s is not %s: %.*s", path, golden_path, (int)a.n,
           (const char *)a.data);
    file_map_close(&a);
    file_map_close(&b);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        write_shards(argv[2]);
        fixture_remove();
        return 0;
    }
    fixture_path(".");
    write_shards(fixture_directory);
    expect_same_file(fixture_path("padded/kiln_training_0.hdf5"),
                     KILN_SOURCE_DIR "/tests/golden/kiln_padded.hdf5");
    expect_same_file(fixture_path("packed/kiln_training_0.hdf5"),
                     KILN_SOURCE_DIR "/tests/golden/kiln_packed.hdf5");
    expect_same_bytes(fixture_path("packed_metadata.json"),
                      KILN_SOURCE_DIR "/tests/golden/kiln_packed_metadata.json");
    fixture_remove();
    return 0;
}

#else

int main(void)
{
    test_skip("hdf5", TEST_NO_HDF5);
}

#endif
