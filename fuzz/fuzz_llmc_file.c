/* fuzz_llmc_file: any bytes as a model file of llm.c: refused, or every tensor lies inside it. */
#include "io/llmc_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct llmc_file f;
    struct status s = llmc_file_parse(&f, data, n, "m.bin");
    CHECK(!failed(s) || s.code == STATUS_DATA, "%s", s.message);
    for (int i = 0; i < f.n; i++) {
        const struct stored_tensor *t = &f.tensors[i];
        CHECK(t->data >= data && t->data + t->bytes <= data + n, "%s", t->name);
    }
    llmc_file_close(&f);
    return 0;
}
