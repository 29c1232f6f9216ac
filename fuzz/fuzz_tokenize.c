/* fuzz_tokenize: any bytes as text.  Ids do not depend on the way they are asked for, offsets stay inside,
 * ids become text again, and sentences come in order. */
#include "text/sentence.h"
#include "text/wordpiece.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char vocab_text[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\nb\n##b\nab\n##ab\n.\n!\n1\n##1\ne\n##e\n"
    "\xCE\xB1\n##\xCE\xB1\n\xE4\xB8\xAD\n\xE1\x84\x80\n##\xE1\x85\xA1\n##\xE3\x80\xAE\n";

static void check_tokens(struct wordpiece_scratch *t, const char *text, size_t n)
{
    static struct token_list tokens; /* kept from run to run, as a loader does */
    static struct id_list ids;
    tokens.n = 0;
    ids.n = 0;
    CHECK(!failed(wordpiece_encode(t, &tokens, text, n)), "tokens");
    CHECK(!failed(wordpiece_encode_ids(t, &ids, text, n)), "ids");
    CHECK(tokens.n == ids.n, "%zu tokens, %zu ids", tokens.n, ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        struct token k = tokens.tokens[i];
        CHECK(k.id == ids.ids[i] && k.start <= n && k.end <= n, "token %zu: %d", i, k.id);
    }
    struct buf readable = {0};
    CHECK(!failed(wordpiece_decode(t->vocab, &readable, ids.ids, ids.n)), "decode");
    buf_fini(&readable);
}

static void check_sentences(const char *text, size_t n)
{
    size_t at = 0, behind = 0;
    struct sentence s;
    while (sentence_next(&s, &at, text, n)) {
        CHECK(s.start >= behind && s.end > s.start && s.end <= n, "sentence %zu to %zu", s.start, s.end);
        behind = s.end;
    }
    CHECK(at == n, "sentences end at %zu of %zu", at, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct vocab v;
    static struct wordpiece_scratch uncased, cased;
    if (v.n == 0) {
        CHECK(!failed(vocab_init(&v, vocab_text, strlen(vocab_text), "fuzz")), "vocabulary");
        CHECK(!failed(wordpiece_scratch_init(&uncased, &v, true)) &&
                  !failed(wordpiece_scratch_init(&cased, &v, false)),
              "memory");
    }
    check_tokens(&uncased, (const char *)data, n);
    check_tokens(&cased, (const char *)data, n);
    check_sentences((const char *)data, n);
    return 0;
}
