/* fuzz_torch_file: any bytes as a file of torch.save, and as the pickle in a file that is otherwise whole:
 * refused, or every tensor of it lies inside it and can be read; and what is "optimizer" in it is refused, or
 * has moments or none. */
#include "fixture_zip.h"
#include "io/torch_file.h"
#include "io/torch_optimizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_BYTES = 1 << 16 };

static void read_tensor(const struct stored_tensor *t)
{
    static unsigned char room[MOST_BYTES];
    tensor out = tensor_1d(room, t->dtype, 1);
    int64_t n = 1;
    if (t->unreadable != NULL || t->n_dims > TENSOR_MAX_DIMS || t->bytes > MOST_BYTES || t->bytes == 0) {
        return;
    }
    out.n_dims = t->n_dims > 0 ? t->n_dims : 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        out.dims[i] = t->dims[i];
        out.strides[i] = n;
        n *= t->dims[i];
    }
    struct status s = stored_tensor_read(t, out);
    CHECK(!failed(s), "%s does not read as what it says it is: %s", t->name, s.message);
}

static void try_optimizer(const struct pickle_node *root)
{
    struct torch_optimizer o;
    struct status s = torch_optimizer_open(&o, root, "input");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < o.n; i++) {
        CHECK(o.items[i].group < o.n_groups && (o.items[i].exp_avg != NULL) == o.has_moments, "item %d", i);
    }
    torch_optimizer_close(&o);
}

static void try_file(const void *bytes, size_t n)
{
    struct torch_file f;
    struct status s = torch_file_parse(&f, bytes, n, "input");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < f.n; i++) {
        read_tensor(&f.tensors[i]);
    }
    if (!failed(s)) {
        try_optimizer(pickle_find(f.root, "optimizer"));
        try_optimizer(f.root);
    }
    torch_file_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct zip_maker z = {0};
    try_file(data, n);
    zip_put(&z, "archive/data.pkl", data, n);
    zip_put(&z, "archive/data/0", data, n < 24 ? n : 24);
    zip_finish(&z, "");
    try_file(z.out.data, z.out.n);
    zip_fini(&z);
    return 0;
}
