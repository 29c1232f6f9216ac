#include "io/torch_writer.h"

#include "io/pickle_writer.h"
#include "io/zip_writer.h"

#include <stdio.h>
#include <string.h>

/* The folder inside the archive; readers take any. */
#define ARCHIVE "archive"

static tensor tensor_at(const struct torch_writer *w, int i)
{
    tensor t;
    memcpy(&t, w->tensors.data + (size_t)i * sizeof t, sizeof t);
    return t;
}

/* The number of the storage of a tensor: of the first that has it. */
static int storage_of(const struct torch_writer *w, int i)
{
    int k = 0;
    tensor wanted = tensor_at(w, i), t = tensor_at(w, 0);
    if (wanted.data == NULL) {
        return i;
    }
    while (t.data != wanted.data || !tensor_same_shape(t, wanted)) {
        t = tensor_at(w, ++k);
    }
    return k;
}

/* A storage of fp32, as a tuple: ("storage", torch.FloatStorage, key, "cpu", its number of elements). */
static void put_storage(struct buf *b, int key, int64_t n_elements)
{
    char text[16];
    snprintf(text, sizeof text, "%d", key);
    pickle_put(b, MARK);
    pickle_put_text(b, "storage");
    pickle_put_global(b, "torch", "FloatStorage");
    pickle_put_text(b, text);
    pickle_put_text(b, "cpu");
    pickle_put_int(b, n_elements);
    pickle_put(b, TUPLE);
    pickle_put(b, BINPERSID);
}

static void put_sizes(struct buf *b, const int64_t *sizes, int n)
{
    pickle_put(b, MARK);
    for (int i = 0; i < n; i++) {
        pickle_put_int(b, sizes[i]);
    }
    pickle_put(b, TUPLE);
}

/* torch._utils._rebuild_tensor_v2(storage, first element, sizes, strides, requires_grad, hooks) */
void torch_writer_put_tensor(struct torch_writer *w, tensor t)
{
    struct buf *b = &w->pickle;
    int n = (int)(w->tensors.n / sizeof t);
    CHECK(tensor_is_dense(t) && t.dtype == DTYPE_F32, "tensor %d is not dense and fp32", n);
    buf_append(&w->tensors, &t, sizeof t);
    if (failed(buf_status(&w->tensors))) {
        return;
    }
    pickle_put_global(b, "torch._utils", "_rebuild_tensor_v2");
    pickle_put(b, MARK);
    put_storage(b, storage_of(w, n), tensor_count(t));
    pickle_put_int(b, 0);
    put_sizes(b, t.dims, t.n_dims);
    put_sizes(b, t.strides, t.n_dims);
    pickle_put_bool(b, false);
    pickle_put_ordered_dict(b);
    pickle_put(b, TUPLE);
    pickle_put(b, REDUCE);
}

void torch_writer_init(struct torch_writer *w)
{
    *w = (struct torch_writer){0};
    pickle_put_begin(&w->pickle);
}

void torch_writer_put_dict(struct torch_writer *w, const struct torch_item *items, int n)
{
    pickle_put_ordered_dict(&w->pickle);
    pickle_put(&w->pickle, MARK);
    for (int i = 0; i < n; i++) {
        pickle_put_text(&w->pickle, items[i].name);
        torch_writer_put_tensor(w, items[i].value);
    }
    pickle_put(&w->pickle, SETITEMS);
}

void torch_writer_put_size(struct buf *pickle, tensor shape)
{
    pickle_put_global(pickle, "torch", "Size");
    pickle_put(pickle, MARK);
    put_sizes(pickle, shape.dims, shape.n_dims);
    pickle_put(pickle, TUPLE);
    pickle_put(pickle, REDUCE);
}

/* The torch_source of a writer whose tensors were put with their values. */
static struct status take_own(void *context, int number, tensor *values)
{
    *values = tensor_at(context, number);
    return status_ok();
}

static struct status put_values(struct zip_writer *zip, const struct torch_writer *w, int i,
                                torch_source *source, void *context)
{
    char name[64];
    tensor t, shape = tensor_at(w, i);
    TRY(source(context, i, &t));
    CHECK(t.data != NULL && t.dtype == DTYPE_F32 && tensor_is_dense(t) && tensor_same_shape(t, shape),
          "tensor %d", i);
    snprintf(name, sizeof name, ARCHIVE "/data/%d", i);
    zip_writer_put(zip, name, t.data, tensor_bytes(t));
    return status_ok();
}

static struct status write_archive(const struct torch_writer *w, const char *path, torch_source *source,
                                   void *context)
{
    struct zip_writer zip;
    int n = (int)(w->tensors.n / sizeof(tensor));
    TRY(buf_status(&w->pickle));
    TRY(buf_status(&w->tensors));
    TRY(zip_writer_open(&zip, path));
    zip_writer_put(&zip, ARCHIVE "/data.pkl", w->pickle.data, w->pickle.n);
    zip_writer_put(&zip, ARCHIVE "/byteorder", "little", 6);
    for (int i = 0; i < n && !failed(zip.file.status); i++) {
        struct status s = storage_of(w, i) == i ? put_values(&zip, w, i, source, context) : status_ok();
        zip.file.status = failed(s) ? s : zip.file.status;
    }
    zip_writer_put(&zip, ARCHIVE "/version", "3\n", 2);
    return zip_writer_commit(&zip);
}

struct status torch_writer_commit_from(struct torch_writer *w, const char *path, torch_source *source,
                                       void *context)
{
    pickle_put(&w->pickle, STOP);
    struct status s = write_archive(w, path, source, context);
    buf_fini(&w->pickle);
    buf_fini(&w->tensors);
    return s;
}

struct status torch_writer_commit(struct torch_writer *w, const char *path)
{
    return torch_writer_commit_from(w, path, take_own, w);
}
