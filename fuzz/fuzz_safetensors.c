/* Any bytes as a .safetensors file: refused, or every tensor of it lies inside them and can be read; and as a
 * set of slices of tensors: refused, or each is there from its first element to its last. */
#include "io/tensor_set.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void read_entry(const struct stored_tensor *e, size_t file_bytes)
{
    CHECK(e->bytes <= file_bytes, "%zu bytes of %zu", e->bytes, file_bytes);
    int64_t count = (int64_t)(e->bytes / dtype_bytes(e->dtype));
    tensor out = tensor_1d(malloc(e->bytes + 1), e->dtype, count);
    if (out.data != NULL && e->n_dims == 1) {
        CHECK(!failed(stored_tensor_read(e, out)), "%s does not read as what it says it is", e->name);
    } else if (out.data != NULL && e->n_dims > 1) {
        CHECK(failed(stored_tensor_read(e, out)), "%s reads as another shape", e->name);
    }
    free(out.data);
}

/* The last elements of a tensor that the slices must make whole: so many as have room. */
static void read_last(const struct stored_tensor *t)
{
    enum { MOST = 64 };
    double values[MOST];
    int64_t count = (int64_t)(t->bytes / dtype_bytes(t->dtype)), n = count < MOST ? count : MOST;
    bool real = t->dtype != DTYPE_U8 && t->dtype != DTYPE_I32 && t->dtype != DTYPE_I64;
    struct status s = stored_tensor_read_elements(t, count - n, tensor_1d(values, DTYPE_F64, n));
    CHECK(failed(s) != real, "%s: %s", t->name, s.message);
}

static void read_set(const struct safetensors *f)
{
    const struct tensor_set_file file = {f, "input"};
    struct tensor_set t;
    if (!failed(tensor_set_init(&t, &file, 1))) {
        for (int i = 0; i < t.n; i++) {
            read_last(tensor_set_find(&t, t.tensors[i].name));
        }
    }
    tensor_set_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct safetensors f;
    if (!failed(safetensors_parse(&f, bytes, n, "input"))) {
        for (int i = 0; i < f.n; i++) {
            read_entry(&f.entries[i], n);
        }
        read_set(&f);
        (void)failed(safetensors_check_sums(&f, "input"));
    }
    safetensors_close(&f);
    return 0;
}
