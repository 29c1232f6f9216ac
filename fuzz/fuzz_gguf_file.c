/* fuzz_gguf_file: any bytes as a GGUF file: refused, or every tensor lies inside it and can be read. */
#include "io/gguf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static unsigned char room[MOST_BYTES];
    struct gguf_file f;
    struct status s = gguf_file_parse(&f, data, n, "m.gguf");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < f.n; i++) {
        const struct stored_tensor *t = &f.tensors[i];
        if (t->unreadable == NULL && t->bytes > 0 && t->bytes <= MOST_BYTES) {
            int64_t count = (int64_t)(t->bytes / dtype_bytes(t->dtype));
            s = stored_tensor_read_elements(t, 0, tensor_1d(room, t->dtype, count));
            CHECK(!failed(s), "%s", s.message);
        }
    }
    gguf_file_close(&f);
    return 0;
}
