#include "text/tokenizer_config.h"

#include <string.h>

struct tokenizer_config tokenizer_config_defaults(void)
{
    return (struct tokenizer_config){.lower_case = true, .model_max_length = INT64_MAX};
}

static struct status check_class(const json_t *object, enum tokenizer_classes allowed, const char *source)
{
    enum { N_CLASSES = 6, N_BERT_CLASSES = 4 };
    static const char *const classes[N_CLASSES] = {"BertTokenizer",           "BertTokenizerFast",
                                                   "DistilBertTokenizer",     "DistilBertTokenizerFast",
                                                   "PreTrainedTokenizerFast", "TokenizersBackend"};
    const char *name = classes[0];
    TRY(json_get_string(object, source, "tokenizer_class", false, &name));
    int i = 0, n = allowed == TOKENIZER_CLASS_BERT ? N_BERT_CLASSES : N_CLASSES;
    while (i < n && strcmp(name, classes[i]) != 0) {
        i++;
    }
    FAIL_IF(i == n && allowed != TOKENIZER_CLASS_ANY, STATUS_DATA,
            "%s: \"tokenizer_class\" is \"%.60s\", but the files beside it are of BERT's tokenizer; with "
            "them only "
            "BertTokenizer is supported",
            source, name);
    return status_ok();
}

/* "No limit" is written as 1e30, which no integer type of ours holds. */
static struct status parse_length(struct tokenizer_config *c, const json_t *object, const char *source)
{
    const double none = 1e15;
    double length = none;
    TRY(json_get_real(object, source, "model_max_length", false, &length));
    FAIL_IF(!(length >= 1), STATUS_DATA, "%s: \"model_max_length\" is %g, but must be at least 1", source,
            length);
    if (length < none) {
        c->model_max_length = (int64_t)length;
    }
    return status_ok();
}

/* A flag that may be null or absent, which means BERT's default. */
static struct status check_flag(const json_t *object, const char *source, const char *key, bool wanted)
{
    const json_t *value = json_object_get(object, key);
    FAIL_IF(json_is_boolean(value) && json_is_true(value) != wanted, STATUS_DATA,
            "%s: \"%s\" is %s; only %s is supported here", source, key, wanted ? "false" : "true",
            wanted ? "true" : "false");
    return status_ok();
}

static struct status parse_object(struct tokenizer_config *c, const json_t *object,
                                  enum tokenizer_classes allowed, const char *source)
{
    FAIL_IF(!json_is_object(object), STATUS_DATA, "%s: the file must hold one JSON object {...}", source);
    TRY(check_class(object, allowed, source));
    TRY(parse_length(c, object, source));
    TRY(json_get_bool(object, source, "do_lower_case", false, &c->lower_case));
    TRY(check_flag(object, source, "strip_accents", c->lower_case));
    TRY(check_flag(object, source, "do_basic_tokenize", true));
    TRY(check_flag(object, source, "tokenize_chinese_chars", true));
    TRY(c->adds_space ? status_ok() : check_flag(object, source, "add_prefix_space", false));
    const json_t *decoder = json_object_get(object, "added_tokens_decoder");
    return c->added == NULL ? status_ok() : added_tokens_read_decoder(c->added, decoder, source);
}

struct status tokenizer_config_parse(struct tokenizer_config *c, const char *text, size_t n,
                                     enum tokenizer_classes allowed, const char *source)
{
    json_t *object;
    TRY(json_parse_real(&object, text, n, source));
    struct status s = parse_object(c, object, allowed, source);
    json_decref(object);
    return s;
}

json_t *tokenizer_config_to_json(const struct tokenizer_config *c)
{
    return json_pack("{s:s, s:b, s:n, s:b, s:I}", "tokenizer_class", "BertTokenizer", "do_lower_case",
                     c->lower_case, "strip_accents", "tokenize_chinese_chars", 1, "model_max_length",
                     (json_int_t)c->model_max_length);
}
