/* fuzz_tokenize: any bytes as text.  Ids do not depend on the way they are asked for, offsets stay inside,
 * ids become text again, and sentences come in order. */
#include "text/sentence.h"
#include "text/wordpiece.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char vocab_text[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\nb\n##b\nab\n##ab\n.\n!\n1\n##1\ne\n##e\n"
    "\xCE\xB1\n##\xCE\xB1\n\xE4\xB8\xAD\n\xE1\x84\x80\n##\xE1\x85\xA1\n##\xE3\x80\xAE\n";

static void check_tokens(struct tokenizer_scratch *t, const char *text, size_t n)
{
    static struct token_list tokens; /* kept from run to run, as a loader does */
    static struct id_list ids;
    tokens.n = 0;
    ids.n = 0;
    CHECK(!failed(tokenizer_encode(t, &tokens, text, n)), "tokens");
    CHECK(!failed(tokenizer_encode_ids(t, &ids, text, n)), "ids");
    CHECK(tokens.n == ids.n, "%zu tokens, %zu ids", tokens.n, ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        struct token k = tokens.tokens[i];
        CHECK(k.id == ids.ids[i] && k.start <= n && k.end <= n, "token %zu: %d", i, k.id);
    }
    struct buf readable = {0};
    CHECK(!failed(tokenizer_decode(t->tokenizer, &readable, ids.ids, ids.n)), "decode");
    buf_fini(&readable);
}

static void check_sentences(const char *text, size_t n)
{
    size_t at = 0, behind = 0;
    struct sentence s;
    while (sentence_next(&s, &at, NULL, text, n)) {
        CHECK(s.start >= behind && s.end > s.start && s.end <= n, "sentence %zu to %zu", s.start, s.end);
        behind = s.end;
    }
    CHECK(at == n, "sentences end at %zu of %zu", at, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tokenizer tokenizers[2];
    static struct tokenizer_scratch scratches[2];
    for (int i = 0; i < 2 && tokenizers[i].n == 0; i++) {
        CHECK(
            !failed(wordpiece_tokenizer_init(&tokenizers[i], vocab_text, strlen(vocab_text), "fuzz", i == 0)),
            "vocabulary");
        CHECK(!failed(tokenizer_scratch_init(&scratches[i], &tokenizers[i])), "memory");
    }
    check_tokens(&scratches[0], (const char *)data, n);
    check_tokens(&scratches[1], (const char *)data, n);
    check_sentences((const char *)data, n);
    return 0;
}
