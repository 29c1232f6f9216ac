/* fuzz_npy_file: any bytes as an array of numpy.  What is accepted has all its numbers inside the file. */
#include "io/npy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    for (int n_dims = 1; n_dims <= NPY_MOST_DIMS; n_dims++) {
        struct npy_file f = {.map = {.data = data, .n = n, .fd = -1}};
        if (!failed(npy_file_parse(&f, "fuzz", "<i4", n_dims))) {
            const unsigned char *numbers = f.data;
            CHECK(numbers >= data && numbers + f.dims[0] * f.dims[1] * 4 == data + n, "%lld numbers",
                  (long long)f.dims[0]);
        }
    }
    return 0;
}
