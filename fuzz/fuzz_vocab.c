/* fuzz_vocab: any bytes as vocab.txt.  What is accepted finds each of its pieces again. */
#include "text/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct vocab v;
    if (failed(vocab_init(&v, (const char *)data, n, "fuzz"))) {
        return 0;
    }
    for (int32_t id = 0; id < v.n; id++) {
        size_t n_piece;
        const char *piece = vocab_piece(&v, id, &n_piece);
        CHECK(vocab_find(&v, piece, n_piece) == id, "piece %d is lost", id);
        size_t n_matched = 0;
        int32_t match = vocab_match(&v, false, piece, n_piece, &n_matched);
        CHECK(match < v.n && n_matched <= n_piece, "piece %d matches %d", id, match);
    }
    vocab_fini(&v);
    return 0;
}
