#include "io/torch_writer.h"

#include "io/pickle_writer.h"
#include "io/zip_writer.h"

#include <stdio.h>

/* The folder inside the archive; readers take any. */
#define ARCHIVE "archive"

/* The number of the storage of an item: of the first item that has it. */
static int storage_of(const struct torch_item *items, int i)
{
    int k = 0;
    while (items[k].value.data != items[i].value.data || !tensor_same_shape(items[k].value, items[i].value)) {
        k++;
    }
    return k;
}

/* A storage of fp32, as a tuple: ("storage", torch.FloatStorage, key, "cpu", its number of elements). */
static void put_storage(struct buf *b, int key, int64_t n_elements)
{
    char text[16];
    snprintf(text, sizeof text, "%d", key);
    pickle_put_mark(b);
    pickle_put_text(b, "storage");
    pickle_put_global(b, "torch", "FloatStorage");
    pickle_put_text(b, text);
    pickle_put_text(b, "cpu");
    pickle_put_int(b, n_elements);
    pickle_put_tuple(b);
    pickle_put_outside(b);
}

static void put_sizes(struct buf *b, const int64_t *sizes, int n)
{
    pickle_put_mark(b);
    for (int i = 0; i < n; i++) {
        pickle_put_int(b, sizes[i]);
    }
    pickle_put_tuple(b);
}

/* torch._utils._rebuild_tensor_v2(storage, first element, sizes, strides, requires_grad, hooks) */
static void put_tensor(struct buf *b, tensor t, int storage)
{
    pickle_put_global(b, "torch._utils", "_rebuild_tensor_v2");
    pickle_put_mark(b);
    put_storage(b, storage, tensor_count(t));
    pickle_put_int(b, 0);
    put_sizes(b, t.dims, t.n_dims);
    put_sizes(b, t.strides, t.n_dims);
    pickle_put_false(b);
    pickle_put_ordered_dict(b);
    pickle_put_tuple(b);
    pickle_put_call(b);
}

static void put_pickle(struct buf *b, const char *key, const struct torch_item *items, int n)
{
    pickle_put_begin(b);
    pickle_put_dict(b);
    pickle_put_mark(b);
    pickle_put_text(b, key);
    pickle_put_ordered_dict(b);
    pickle_put_mark(b);
    for (int i = 0; i < n; i++) {
        pickle_put_text(b, items[i].name);
        put_tensor(b, items[i].value, storage_of(items, i));
    }
    pickle_put_items(b);
    pickle_put_items(b);
    pickle_put_end(b);
}

struct status torch_writer_save(const char *path, const char *key, const struct torch_item *items, int n)
{
    struct buf pickle = {0};
    struct zip_writer zip;
    put_pickle(&pickle, key, items, n);
    struct status s = buf_status(&pickle);
    if (!failed(s)) {
        s = zip_writer_open(&zip, path);
    }
    if (!failed(s)) {
        zip_writer_put(&zip, ARCHIVE "/data.pkl", pickle.data, pickle.n);
        zip_writer_put(&zip, ARCHIVE "/byteorder", "little", 6);
        for (int i = 0; i < n; i++) {
            char name[64];
            CHECK(tensor_is_dense(items[i].value) && items[i].value.dtype == DTYPE_F32, "%s", items[i].name);
            snprintf(name, sizeof name, ARCHIVE "/data/%d", i);
            if (storage_of(items, i) == i) {
                zip_writer_put(&zip, name, items[i].value.data, tensor_bytes(items[i].value));
            }
        }
        zip_writer_put(&zip, ARCHIVE "/version", "3\n", 2);
        s = zip_writer_commit(&zip);
    }
    buf_fini(&pickle);
    return s;
}
