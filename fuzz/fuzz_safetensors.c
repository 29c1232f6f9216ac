/* Any bytes as a .safetensors file: refused, or every tensor of it lies inside them and can be read. */
#include "io/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void read_entry(const struct safetensors_entry *e, size_t file_bytes)
{
    CHECK(e->bytes <= file_bytes, "%zu bytes of %zu", e->bytes, file_bytes);
    int64_t count = (int64_t)(e->bytes / dtype_bytes(e->dtype));
    tensor out = tensor_1d(malloc(e->bytes + 1), e->dtype, count);
    if (out.data != NULL && e->n_dims == 1) {
        CHECK(!failed(safetensors_read(e, out)), "%s does not read as what it says it is", e->name);
    } else if (out.data != NULL && e->n_dims > 1) {
        CHECK(failed(safetensors_read(e, out)), "%s reads as another shape", e->name);
    }
    free(out.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct safetensors f;
    if (!failed(safetensors_parse(&f, bytes, n, "input"))) {
        for (int i = 0; i < f.n; i++) {
            read_entry(&f.entries[i], n);
        }
    }
    safetensors_close(&f);
    return 0;
}
