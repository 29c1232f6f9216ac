/* fuzz_train: any bytes as the text of a vocabulary.  What comes out is a vocabulary that kiln reads. */
#include "text/vocab.h"
#include "text/wordpiece_train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct wordpiece_train t;
    struct wordpiece_train_options o = {400, 1 + (n > 0 ? data[0] % 3 : 0), 200};
    struct progress silent = progress_begin(false);
    struct buf out = {0};
    int64_t n_pieces = 0;
    CHECK(!failed(wordpiece_train_init(&t, n % 2 == 0)), "memory");
    CHECK(!failed(wordpiece_train_add(&t, (const char *)data, n)), "memory");
    if (!failed(wordpiece_train_finish(&t, &out, &n_pieces, &o, &silent))) {
        struct vocab v;
        struct status s = vocab_init(&v, out.data, out.n, "trained");
        CHECK(!failed(s) && v.n == n_pieces && n_pieces <= o.vocab_size, "%s", s.message);
        vocab_fini(&v);
    }
    buf_fini(&out);
    wordpiece_train_fini(&t);
    return 0;
}
