/* fuzz_train: any bytes as the text of a vocabulary.  What comes out is a vocabulary that kiln reads. */
#include "text/vocab.h"
#include "text/word_counter.h"
#include "text/wordpiece_train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct word_tally tally;
    struct word_counter counter;
    struct wordpiece_train_options o = {400, 1 + (n > 0 ? data[0] % 3 : 0), 200, 0};
    struct progress silent = progress_begin(false);
    struct buf out = {0};
    struct wordpiece_train_result made = {0};
    CHECK(!failed(word_tally_init(&tally, NULL, WORD_TALLY_MEMORY_WORDS)), "memory");
    CHECK(!failed(word_counter_init(&counter, &tally, n % 2 == 0, 1)), "memory");
    CHECK(!failed(word_counter_add(&counter, (const char *)data, n)), "memory");
    CHECK(!failed(word_counter_end(&counter)), "memory");
    if (!failed(wordpiece_train(&out, &made, &tally, &o, &silent))) {
        struct vocab v;
        struct status s = vocab_init(&v, out.data, out.n, "trained");
        CHECK(!failed(s) && v.n == made.n_pieces && made.n_pieces <= o.vocab_size, "%s", s.message);
        vocab_fini(&v);
    }
    buf_fini(&out);
    word_counter_fini(&counter);
    word_tally_fini(&tally);
    return 0;
}
