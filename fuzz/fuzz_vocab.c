/* fuzz_vocab: any bytes as vocab.txt.  What is accepted finds each of its pieces again, but for the empty
 * ones, which nothing matches, and the first of two that are the same. */
#include "core/log.h"
#include "text/vocab.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct vocab v;
    log_set_level(LOG_QUIET);
    if (failed(vocab_init(&v, (const char *)data, n, "fuzz"))) {
        return 0;
    }
    for (int32_t id = 0; id < v.n; id++) {
        size_t n_piece;
        const char *piece = vocab_piece(&v, id, &n_piece);
        int32_t found = vocab_find(&v, piece, n_piece);
        size_t n_found = 0;
        CHECK(n_piece == 0 ? found == -1 : found >= id, "piece %d is found as %d", id, found);
        CHECK(n_piece == 0 ||
                  (memcmp(vocab_piece(&v, found, &n_found), piece, n_piece) == 0 && n_found == n_piece),
              "piece %d is found as another, %d", id, found);
        size_t n_matched = 0;
        int32_t match = vocab_match(&v, false, piece, n_piece, &n_matched);
        CHECK(match < v.n && n_matched <= n_piece, "piece %d matches %d", id, match);
    }
    vocab_fini(&v);
    return 0;
}
