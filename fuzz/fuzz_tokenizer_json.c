/* Any text as a tokenizer.json or a tokenizer_config.json: refused with a reason, or a vocabulary that kiln
 * writes and reads back the same. */
#include "core/log.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_round_trip(const struct tokenizer_json *t)
{
    struct vocab v;
    struct tokenizer_json again;
    json_t *root;
    if (failed(vocab_init(&v, t->vocab.data, t->vocab.n, "input"))) {
        return;
    }
    CHECK(!failed(tokenizer_json_make(&root, &v, t->lower_case)), "kiln cannot write what it has read");
    char *text = json_to_text(root);
    CHECK(text != NULL && !failed(tokenizer_json_parse(&again, text, strlen(text), "own")),
          "kiln refuses its own tokenizer.json");
    CHECK(again.lower_case == t->lower_case && again.vocab.n == t->vocab.n &&
              memcmp(again.vocab.data, t->vocab.data, t->vocab.n) == 0,
          "the vocabulary changes on the way");
    tokenizer_json_fini(&again);
    free(text);
    json_decref(root);
    vocab_fini(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct tokenizer_json t;
    struct tokenizer_config c = tokenizer_config_defaults();
    log_set_level(LOG_QUIET);
    if (!failed(tokenizer_json_parse(&t, (const char *)bytes, n, "input"))) {
        check_round_trip(&t);
        tokenizer_json_fini(&t);
    }
    if (!failed(tokenizer_config_parse(&c, (const char *)bytes, n, true, "input"))) {
        CHECK(c.model_max_length >= 1, "%lld tokens", (long long)c.model_max_length);
    }
    return 0;
}
