/* fuzz_onnx_file: any bytes as an ONNX file, and as the file of its data: refused, or every tensor lies
 * inside one of the two and can be read. */
#include "io/onnx_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static unsigned char room[MOST_BYTES];
    struct onnx_file f;
    struct status s = onnx_file_parse(&f, data, n, data, n, "m.onnx");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < f.n; i++) {
        const struct stored_tensor *t = &f.tensors[i];
        if (t->unreadable == NULL && t->bytes > 0 && t->bytes <= MOST_BYTES) {
            int64_t count = (int64_t)(t->bytes / dtype_bytes(t->dtype));
            s = stored_tensor_read_elements(t, 0, tensor_1d(room, t->dtype, count));
            CHECK(!failed(s), "%s", s.message);
        }
    }
    onnx_file_close(&f);
    return 0;
}
