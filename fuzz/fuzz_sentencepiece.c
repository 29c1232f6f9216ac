/* Any bytes as a tokenizer.model, and as a tokenizer.json of SentencePiece's pieces: refused with a reason,
 * or a model that encodes any bytes to ids of its vocabulary, with places in the text. */
#include "core/log.h"
#include "text/sentencepiece_json.h"
#include "text/sentencepiece_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_encoding(const struct sentencepiece *p, const char *text, size_t n)
{
    struct sentencepiece_scratch s;
    struct token_list tokens = {0};
    struct id_list ids = {0};
    const struct sentencepiece_output to_tokens = {.tokens = &tokens}, to_ids = {.ids = &ids};
    CHECK(!failed(sentencepiece_scratch_init(&s, p)), "no memory");
    if (!failed(sentencepiece_encode(&s, &to_tokens, text, n,
                                     TOKENIZER_AT_START))) { /* an expression may give up */
        CHECK(!failed(sentencepiece_encode(&s, &to_ids, text, n, TOKENIZER_AT_START)), "no memory");
        CHECK(ids.n == tokens.n, "%zu ids, %zu tokens", ids.n, tokens.n);
    }
    for (size_t i = 0; i < ids.n; i++) {
        struct token k = tokens.tokens[i];
        CHECK(ids.ids[i] == k.id && k.id >= 0 && k.id < p->bpe.merges.n && k.start <= k.end && k.end <= n,
              "token %zu", i);
    }
    token_list_fini(&tokens);
    id_list_fini(&ids);
    sentencepiece_scratch_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct sentencepiece p;
    struct sentencepiece_specials specials;
    struct added_tokens added = {0};
    json_t *root;
    log_set_level(LOG_QUIET);
    if (!failed(sentencepiece_model_read(&p, &specials, bytes, n, "input"))) {
        check_encoding(&p, (const char *)bytes, n);
        sentencepiece_fini(&p);
    }
    if (!failed(json_parse(&root, (const char *)bytes, n, "input"))) {
        if (sentencepiece_json_is(root) && !failed(sentencepiece_json_read(&p, &added, root, "input"))) {
            check_encoding(&p, (const char *)bytes, n);
            sentencepiece_fini(&p);
        }
        added_tokens_fini(&added);
        json_decref(root);
    }
    return 0;
}
