/* fuzz_onnx_file: any bytes as an ONNX file, and as the file of its data: refused, or every tensor lies
 * inside one of the two and can be read. */
#include "io/onnx_file.h"
#include "read_stored.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct onnx_file f;
    struct status s = onnx_file_parse(&f, data, n, data, n, "m.onnx");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    read_stored(f.tensors, f.n);
    onnx_file_close(&f);
    return 0;
}
