/* Any text as a model's config.json: refused with a reason, or a configuration that is written and read back
 * the same. */
#include "nn/bert/bert_config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_round_trip(const struct bert_config *c)
{
    struct bert_config again;
    json_t *root = bert_config_to_json(c, "BertForPreTraining");
    if (root != NULL) {
        CHECK(!failed(bert_config_parse(&again, root, "own")), "kiln refuses its own config.json");
        CHECK(!failed(bert_config_same_architecture(c, &again)),
              "kiln's config.json is another architecture");
        json_decref(root);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    json_t *root;
    struct bert_config c;
    if (failed(json_parse(&root, (const char *)bytes, n, "input"))) {
        return 0;
    }
    if (json_is_object(root) && !failed(bert_config_parse(&c, root, "input"))) {
        check_round_trip(&c);
    }
    json_decref(root);
    return 0;
}
