#include "text/tokenizer_config.h"

#include <string.h>

struct status tokenizer_config_parse(struct tokenizer_config *c, const json_t *object, const char *source)
{
    const char *class_name = "BertTokenizer";
    *c = (struct tokenizer_config){.lower_case = true, .model_max_length = 512};
    TRY(json_get_bool(object, source, "do_lower_case", false, &c->lower_case));
    TRY(json_get_int(object, source, "model_max_length", false, &c->model_max_length));
    TRY(json_get_string(object, source, "tokenizer_class", false, &class_name));
    if (strncmp(class_name, "BertTokenizer", strlen("BertTokenizer")) != 0) {
        return status_error(STATUS_DATA, "%s: \"tokenizer_class\" is \"%s\"; only BertTokenizer is supported",
                            source, class_name);
    }
    return status_ok();
}

json_t *tokenizer_config_to_json(const struct tokenizer_config *c)
{
    return json_pack("{s:s, s:b, s:n, s:b, s:I, s:s, s:s, s:s, s:s, s:s}", "tokenizer_class", "BertTokenizer",
                     "do_lower_case", c->lower_case, "strip_accents", "tokenize_chinese_chars", 1,
                     "model_max_length", (json_int_t)c->model_max_length, "unk_token", "[UNK]", "sep_token",
                     "[SEP]", "pad_token", "[PAD]", "cls_token", "[CLS]", "mask_token", "[MASK]");
}
