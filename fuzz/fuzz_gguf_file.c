/* fuzz_gguf_file: any bytes as a GGUF file: refused, or every tensor lies inside it and can be read. */
#include "io/gguf_file.h"
#include "read_stored.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct gguf_file f;
    struct status s = gguf_file_parse(&f, data, n, "m.gguf");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    read_stored(f.tensors, f.n);
    gguf_file_close(&f);
    return 0;
}
