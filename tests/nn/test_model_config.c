/* config.json of BERT, DistilBERT, GPT-2 and BLOOM: what is written is read again as the same model; unknown
 * keys are named, known ones are not; and what another model would need is refused by the name of its key. */
#include "captured_log.h"

#include "nn/bert/bert_config.h"
#include "nn/decoder/decoder_config.h"

/* A text with ' for ". */
static json_t *parsed(const char *text)
{
    char json[512], *quote;
    json_t *object;
    snprintf(json, sizeof json, "%s", text);
    while ((quote = strchr(json, '\'')) != NULL) {
        *quote = '"';
    }
    EXPECT_OK(json_parse(&object, json, strlen(json), "config.json"));
    return object;
}

static struct status parse_kind(struct bert_config *c, const struct bert_kind *kind, const char *text)
{
    json_t *object = parsed(text);
    struct status s = bert_config_parse_kind(c, kind, object, "config.json");
    json_decref(object);
    return s;
}

static struct status parse_bert(struct bert_config *c, const char *text)
{
    return parse_kind(c, &bert_kind, text);
}

static struct status parse_gpt(struct decoder_config *c, bool alibi, const char *text)
{
    json_t *object = parsed(text);
    struct status s = (alibi ? bloom_config_parse : gpt2_config_parse)(c, object, "config.json");
    json_decref(object);
    return s;
}

static const struct {
    const char *config, *warning; /* NULL: nothing is logged */
} keys[] = {
    {"{'hidden_size': 64, 'num_attention_heads': 4, 'use_cache': true, 'id2label': {'0': 'a'}}", NULL},
    {"{'model_type': 'bert', 'gated_layers': [], 'classifier_dropout': null, 'unk_token_id': 1}", NULL},
    {"{'hiden_size': 64}", "config.json: unknown here and ignored: \"hiden_size\"\n"},
    {"{'hidden_size': 64, 'num_attention_heads': 4, 'num_layers': 2, 'use_cache': true, 'rope': 1}",
     "ignored: \"num_layers\", \"rope\"\n"},
};

static void unknown_keys_are_named(void)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[CAPTURED_LOG_BYTES];
        struct bert_config c;
        struct captured_log log = captured_log_begin();
        struct status s = parse_bert(&c, keys[i].config);
        captured_log_end(&log, text);
        EXPECT_OK(s);
        EXPECT(keys[i].warning == NULL ? text[0] == '\0' : strstr(text, keys[i].warning) != NULL, "%s: '%s'",
               keys[i].config, text);
    }
}

static const struct {
    enum { BERT, GPT2, BLOOM, DISTILBERT } family;
    const char *config, *error;
} refused[] = {
    {BERT, "{'hidden_size': 7}", "\"hidden_size\" is 7, but must lie between 8 and 65536"},
    {BERT, "{'hidden_size': 65537}", "\"hidden_size\" is 65537"},
    {BERT, "{'hidden_dropout_prob': 1}", "\"hidden_dropout_prob\" is 1"},
    {BERT, "{'hidden_size': 100}", "100 is not a multiple of \"num_attention_heads\" 12"},
    {BERT, "{'hidden_act': 'relu'}", "\"hidden_act\" is \"relu\", but must be \"gelu\""},
    {BERT, "{'model_type': 'bert_pre_ln'}", "\"model_type\" is \"bert_pre_ln\""},
    {BERT, "{'num_labels': 0}", "\"num_labels\" is 0"},
    {BERT, "{'problem_type': 'ranking'}", "\"problem_type\" is \"ranking\""},
    {DISTILBERT, "{'dim': 7}", "\"dim\" is 7, but must lie between 8 and 65536"},
    {DISTILBERT, "{'dim': 100}", "\"dim\" 100 is not a multiple of \"n_heads\" 12"},
    {DISTILBERT, "{'activation': 'relu'}", "\"activation\" is \"relu\", but must be \"gelu\""},
    {DISTILBERT, "{'seq_classif_dropout': 1}", "\"seq_classif_dropout\" is 1"},
    {DISTILBERT, "{'qa_dropout': -0.5}", "\"qa_dropout\" is -0.5"},
    {DISTILBERT, "{'n_layers': 0}", "\"n_layers\" is 0"},
    {DISTILBERT, "{'sinusoidal_pos_embds': 1}", "\"sinusoidal_pos_embds\""},
    {DISTILBERT, "{'gated_layers': [1]}", "\"gated_layers\" is [1]"},
    {DISTILBERT, "{'tie_word_embeddings': false}", "\"tie_word_embeddings\" is false"},
    {DISTILBERT, "{'model_type': 'roberta'}", "\"model_type\" is \"roberta\", but must be \"distilbert\""},
    {GPT2, "{'n_embd': 7}", "\"n_embd\" is 7, but must lie between 8 and 65536"},
    {GPT2, "{'hidden_size': 7}", "\"hidden_size\" is 7"},
    {GPT2, "{'n_embd': 100}", "a width of 100 does not divide into 12 heads"},
    {GPT2, "{'activation_function': 'relu'}", "\"activation_function\" is \"relu\""},
    {GPT2, "{'scale_attn_weights': false}", "\"scale_attn_weights\" is false"},
    {GPT2, "{'add_cross_attention': true}", "\"add_cross_attention\" is true"},
    {BLOOM, "{'tie_word_embeddings': false}", "\"tie_word_embeddings\" is false"},
    {BLOOM, "{'apply_residual_connection_post_layernorm': true}",
     "\"apply_residual_connection_post_layernorm\" is true"},
};

static void other_models_are_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct bert_config bert;
        struct decoder_config gpt;
        const struct bert_kind *kind = refused[i].family == DISTILBERT ? &distilbert_kind : &bert_kind;
        EXPECT_ERROR(refused[i].family == BERT || refused[i].family == DISTILBERT
                         ? parse_kind(&bert, kind, refused[i].config)
                         : parse_gpt(&gpt, refused[i].family == BLOOM, refused[i].config),
                     STATUS_DATA, refused[i].error);
    }
}

static void bert_is_read_as_written(void)
{
    struct bert_config c, again, other;
    char text[CAPTURED_LOG_BYTES];
    EXPECT_OK(parse_bert(&c, "{'vocab_size': 99, 'hidden_size': 64, 'num_hidden_layers': 3, "
                             "'num_attention_heads': 4, 'hidden_dropout_prob': 0.25, "
                             "'layer_norm_large_model': true, 'model_type': 'bert_pre_ln'}"));
    EXPECT(c.hidden_size == 64 && c.layer_norm_large_model && c.intermediate_size == 3072 &&
               c.labels.n == 2 && c.classifier_dropout == 0.25,
           "another model");
    json_t *written = bert_config_to_json(&c, "BertForPreTraining");
    struct captured_log log = captured_log_begin();
    struct status s = bert_config_parse(&again, written, "written");
    captured_log_end(&log, text);
    json_decref(written);
    EXPECT_OK(s);
    EXPECT(text[0] == '\0', "%s", text);
    EXPECT_OK(bert_config_same_architecture(&c, &again));
    EXPECT(again.hidden_dropout_prob == 0.25 && again.vocab_size == 99, "another dropout");
    other = again;
    other.hidden_dropout_prob = 0; /* which weights do not depend on */
    EXPECT_OK(bert_config_same_architecture(&c, &other));
    other.num_hidden_layers = 4;
    EXPECT_ERROR(bert_config_same_architecture(&c, &other), STATUS_DATA,
                 "\"num_hidden_layers\" is 3 there and 4 here");
    EXPECT(bert_config_padded_vocab(&c) == 128 && bert_config_n_words(&c) == 99, "%lld rows",
           (long long)bert_config_padded_vocab(&c));
    c.vocab_size = 128;
    EXPECT(bert_config_padded_vocab(&c) == 128, "padding without need");
}

static void a_classifier_is_read_as_written(void)
{
    struct bert_config c, again;
    struct label_names names = {0};
    EXPECT_OK(parse_bert(&c, "{'num_labels': 3, 'classifier_dropout': 0.5}"));
    EXPECT_OK(label_names_parse(&names, NULL, 3, "nowhere"));
    c.labels.names = &names;
    c.labels.problem = PROBLEM_MULTI_LABEL;
    json_t *written = bert_config_to_json(&c, "BertForSequenceClassification");
    EXPECT(written != NULL, "nothing is written");
    EXPECT_OK(bert_config_parse(&again, written, "written"));
    EXPECT(again.labels.n == 3 && again.labels.problem == PROBLEM_MULTI_LABEL &&
               again.classifier_dropout == 0.5 && again.hidden_dropout_prob == 0.1,
           "%lld labels, dropout %g", (long long)again.labels.n, again.classifier_dropout);
    json_decref(written);
    label_names_fini(&names);
}

/* A decoder in its own words or other programs', and as it is written. */
static void gpt_is_read_as_written(bool alibi, const char *own, const char *others)
{
    struct decoder_config c, other, again;
    EXPECT_OK(parse_gpt(&c, alibi, own));
    EXPECT_OK(parse_gpt(&other, alibi, others));
    json_t *written = (alibi ? bloom_config_to_json : gpt2_config_to_json)(&c);
    EXPECT_OK((alibi ? bloom_config_parse : gpt2_config_parse)(&again, written, "written"));
    json_decref(written);
    EXPECT(c.hidden_size == 32 && c.n_layers == 3 && c.n_heads == 4 && c.feed_forward_size == 128 &&
               c.hidden_dropout == 0.25 && again.hidden_dropout == 0.25 && c.embedding_norm == alibi,
           "another model");
    EXPECT_OK(decoder_config_same_architecture(&c, &other));
    EXPECT_OK(decoder_config_same_architecture(&c, &again));
    again.n_positions++;
    struct status s = decoder_config_same_architecture(&c, &again);
    EXPECT(failed(s) == !alibi, "a longer sequence: '%s'", s.message);
    other.n_heads = 2;
    EXPECT_ERROR(decoder_config_same_architecture(&c, &other), STATUS_DATA,
                 "\"n_head\" is 4 there and 2 here");
}

int main(void)
{
    unknown_keys_are_named();
    other_models_are_refused();
    bert_is_read_as_written();
    a_classifier_is_read_as_written();
    gpt_is_read_as_written(false, "{'n_embd': 32, 'n_layer': 3, 'n_head': 4, 'resid_pdrop': 0.25}",
                           "{'hidden_size': 32, 'num_hidden_layers': 3, 'num_attention_heads': 4}");
    gpt_is_read_as_written(true, "{'hidden_size': 32, 'n_layer': 3, 'n_head': 4, 'hidden_dropout': 0.25}",
                           "{'n_embed': 32, 'num_hidden_layers': 3, 'num_attention_heads': 4}");
    return 0;
}
