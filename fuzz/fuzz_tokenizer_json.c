/* Any text as a tokenizer.json or a tokenizer_config.json: refused with a reason, or a vocabulary that kiln
 * writes and reads back the same. */
#include "core/log.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Each piece of a has the same id in b. */
static void check_same_ids(const struct vocab *a, const struct vocab *b)
{
    CHECK(a->n == b->n, "%d pieces become %d", a->n, b->n);
    for (int32_t id = 0; id < a->n; id++) {
        size_t n;
        const char *piece = vocab_piece(a, id, &n);
        int32_t in_a = vocab_find(a, piece, n), in_b = vocab_find(b, piece, n);
        CHECK(in_a == in_b, "piece %d is found as %d, then as %d", id, in_a, in_b);
    }
}

static void check_round_trip(const struct tokenizer_json *t)
{
    struct vocab v, v_again;
    struct tokenizer_json again;
    json_t *root;
    if (failed(vocab_init(&v, t->vocab.data, t->vocab.n, "input"))) {
        return;
    }
    CHECK(!failed(tokenizer_json_make(&root, &v, t->lower_case, &t->added, &t->frame)),
          "kiln cannot write what it has read");
    char *text = json_to_text(root);
    CHECK(text != NULL && !failed(tokenizer_json_parse(&again, text, strlen(text), "own")),
          "kiln refuses its own tokenizer.json");
    CHECK(again.lower_case == t->lower_case, "another case");
    CHECK(!failed(vocab_init(&v_again, again.vocab.data, again.vocab.n, "own")),
          "kiln refuses its own pieces");
    check_same_ids(&v, &v_again);
    vocab_fini(&v_again);
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
    if (!failed(tokenizer_config_parse(&c, (const char *)bytes, n, TOKENIZER_CLASS_ANY, "input"))) {
        CHECK(c.model_max_length >= 1, "%lld tokens", (long long)c.model_max_length);
    }
    return 0;
}
