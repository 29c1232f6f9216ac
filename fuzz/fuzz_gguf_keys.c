/* fuzz_gguf_keys: any bytes as a GGUF file whose keys are a configuration and a tokenizer: each is refused
 * with a reason, or the configuration makes a family's and is written again, and the tokenizer encodes a
 * text. */
#include "core/log.h"
#include "model/gguf_config.h"
#include "text/gguf_tokenizer.h"
#include "text/gguf_tokens.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_refused(struct status s)
{
    CHECK(s.code == STATUS_DATA || s.code == STATUS_UNAVAILABLE, "%s", s.message);
}

static void read_config(const struct gguf_file *f)
{
    const struct model_family *family;
    json_t *root;
    void *config;
    struct status s = gguf_config_read(&root, &family, f, "m.gguf");
    if (failed(s)) {
        check_refused(s);
        return;
    }
    s = gguf_config_in_words(model_family_parse_config(&family, &config, root, "m.gguf"), family);
    if (failed(s)) {
        check_refused(s);
    } else {
        struct gguf_writer w;
        gguf_writer_init(&w);
        CHECK(!failed(gguf_config_put(&w, family, config)), "kiln cannot write what it has read");
        gguf_writer_discard(&w);
        free(config);
    }
    json_decref(root);
}

static void encode(const struct tokenizer *t)
{
    static const char text[] = "The hand's 1234 \xC3\xA9t\xC3\xA9\n\n <s>\xFF";
    struct tokenizer_scratch scratch;
    struct id_list ids = {0};
    struct buf out = {0};
    CHECK(!failed(tokenizer_scratch_init(&scratch, t)), "no scratch");
    if (!failed(tokenizer_encode_document(&scratch, &ids, text, sizeof text - 1))) {
        CHECK(!failed(tokenizer_decode_text(t, &out, ids.ids, ids.n)), "an id that is none");
    }
    buf_fini(&out);
    id_list_fini(&ids);
    tokenizer_scratch_fini(&scratch);
}

static void read_tokenizer(const struct gguf_file *f)
{
    struct tokenizer t;
    struct gguf_writer w;
    struct status s = gguf_tokenizer_read(&t, f, "m.gguf");
    if (failed(s)) {
        check_refused(s);
        return;
    }
    encode(&t);
    gguf_writer_init(&w);
    s = gguf_tokens_put(&w, &t);
    CHECK(!failed(s) || s.code == STATUS_UNAVAILABLE, "%s", s.message);
    gguf_writer_discard(&w);
    tokenizer_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct gguf_file f;
    log_set_level(LOG_QUIET);
    struct status s = gguf_file_parse(&f, data, n, "m.gguf");
    if (failed(s)) {
        check_refused(s);
        return 0;
    }
    read_config(&f);
    read_tokenizer(&f);
    gguf_file_close(&f);
    return 0;
}
