/* Encoders answer in the dialects of text-embeddings-inference, OpenAI, Cohere and huggingface_hub: each row
 * of a table is a request, and what its answer must be; forms that say the same give the same numbers; and
 * what text-embeddings-inference gets wrong is right here. */
#define _GNU_SOURCE
#include "served_case.h"
#include "session_case.h"

#include "core/base64.h"
#include "serve/class_logits.h"
#include "service/call.h"
#include "text/utf8.h"

#include <math.h>

/* The models' windows have 24 tokens, and a letter is one.  The first of a kind answers where none is named:
 * "single" is a classifier of three labels, "regression" the reranker. */
static const char *const models[] = {"encoder", "masked_lm",  "question_answering", "tokens",   "single",
                                     "multi",   "regression", "entailment",         "identity", "nvidia"};

enum { N_MODELS = sizeof models / sizeof models[0] };

#define LONG    "\"aaaaaaaa bbbbbbbb cccccccc dddddddd\"" /* 34 tokens with [CLS] and [SEP] */
#define CONTEXT "\"\\u00c4 man had a dog\""

struct row {
    const char *path, *body; /* NULL: GET */
    int status;
    const char *checks[4][2]; /* a path of the reply, and what is there (served_is) */
};

static const struct row rows[] = {
    /* ---- text-embeddings-inference ---- */
    {"/embed", "{\"inputs\":\"a dog\"}", 200, {{"0.15", "*"}, {"0.16", ""}, {"1", ""}}},
    {"/embed", "{\"inputs\":[\"a dog\",[5,6],[2,5,3]]}", 200, {{"2.15", "*"}, {"3", ""}}},
    {"/embed", "{\"inputs\":[5,6,7]}", 200, {{"0.15", "*"}, {"1", ""}}},
    {"/embed", "{\"inputs\":\"a\",\"dimensions\":3,\"truncate\":null}", 200, {{"0.2", "*"}, {"0.3", ""}}},
    {"/embed", "{\"inputs\":" LONG "}", 200, {{"0.15", "*"}}},
    {"/embed",
     "{\"inputs\":" LONG ",\"truncate\":true,\"truncation_direction\":\"Left\"}",
     200,
     {{"0.15", "*"}}},
    {"/embed",
     "{\"inputs\":[\"a\"," LONG "],\"truncate\":false}",
     422,
     {{"error", "~text 1 has 34 tokens, special ones included, but the model reads at most 24"},
      {"error_type", "\"Validation\""}}},
    {"/embed",
     "{\"inputs\":\"a\",\"truncation_direction\":\"up\"}",
     422,
     {{"error", "~\"left\" or \"right\""}}},
    {"/embed", "{\"inputs\":\"a\",\"truncate\":1}", 422, {{"error", "~\"truncate\" must be true or false"}}},
    {"/embed",
     "{\"inputs\":\"a\",\"dimensions\":17}",
     422,
     {{"error", "~vectors of encoder have 16 numbers"}}},
    {"/embed", "{\"inputs\":\"a\",\"dimensions\":0}", 422, {{"error", "~\"dimensions\" is 0"}}},
    {"/embed", "{\"inputs\":\"a\",\"prompt_name\":\"query\"}", 422, {{"error", "~query"}}},
    {"/embed", "{\"inputs\":[]}", 400, {{"error_type", "\"Empty\""}}},
    {"/embed", "{\"inputs\":\"\"}", 422, {{"error", "~text 0 of \"inputs\" is empty"}}},
    {"/embed", "{\"inputs\":[\"a\",7]}", 422, {{"error", "~text 1 of \"inputs\" is neither a string nor"}}},
    {"/embed",
     "{\"inputs\":[5,37]}",
     422,
     {{"error", "~id 37 of text 0 is none of the model's, which are 0 to 36"}}},
    {"/embed",
     "{\"inputs\":[5,99999999999]}",
     422,
     {{"error", "~id 1 of text 0 is no whole number of 32 bits"}}},
    {"/embed", "{\"inputs\":[5,1.5]}", 422, {{"error", "~id 1 of text 0"}}},
    {"/embed", "{}", 422, {{"error", "~\"inputs\" must be"}}},
    {"/embed", "[]", 400, {{"error", "~must be a JSON object"}}},
    {"/embed", "{\"inputs\":", 400, {{"error", "~the body is not valid JSON"}}},
    {"/models/nvidia/embed", "{\"inputs\":\"a\"}", 200, {{"0.0", "*"}}},
    {"/embed_all",
     "{\"inputs\":[\"a\",\"a b\"]}",
     200,
     {{"0.2.15", "*"}, {"0.3", ""}, {"1.3.15", "*"}, {"1.4", ""}}},
    {"/similarity",
     "{\"inputs\":{\"source_sentence\":\"a dog\",\"sentences\":[\"a dog\",\"ice\"]}}",
     200,
     {{"1", "*"}, {"2", ""}}},
    {"/similarity",
     "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[]}}",
     400,
     {{"error_type", "\"Empty\""}}},
    {"/similarity", "{\"inputs\":{\"sentences\":[\"a\"]}}", 422, {{"error", "~source_sentence"}}},
    {"/similarity", "{\"inputs\":\"a\"}", 422, {{"error", "~\"inputs\" must be an object"}}},
    {"/predict", "{\"inputs\":\"a dog\"}", 200, {{"2.label", "*"}, {"2.score", "*"}, {"3", ""}}},
    {"/predict", "{\"inputs\":[\"a dog\"]}", 200, {{"2.label", "*"}, {"3", ""}}},
    {"/predict", "{\"inputs\":[\"a dog\",\"a man\"]}", 200, {{"2.label", "*"}, {"3", ""}}},
    {"/predict", "{\"inputs\":[[\"a\",\"b\"],[\"b\",\"c\"]]}", 200, {{"1.2.label", "*"}, {"2", ""}}},
    {"/predict", "{\"inputs\":[[\"a\"],[\"b\"]],\"raw_scores\":true}", 200, {{"1.2.label", "*"}}},
    {"/predict", "{\"inputs\":[\"a\",\"b\",\"c\"]}", 422, {{"error", "~one or two strings"}}},
    {"/predict", "{\"inputs\":[[\"a\"],[\"a\",\"b\"]]}", 422, {{"error", "~mixes single texts and pairs"}}},
    {"/predict", "{\"inputs\":[]}", 400, {{"error_type", "\"Empty\""}}},
    {"/predict", "{\"inputs\":\"\"}", 422, {{"error", "~empty"}}},
    {"/predict", "{\"inputs\":" LONG ",\"truncate\":false}", 422, {{"error", "~text 0 has 34 tokens"}}},
    {"/models/encoder/predict",
     "{\"inputs\":\"a\"}",
     424,
     {{"error_type", "\"Backend\""}, {"error", "~cannot do this"}}},
    {"/rerank",
     "{\"query\":\"a\",\"texts\":[\"b\",\"a\"],\"return_text\":true}",
     200,
     {{"0.text", "*"}, {"1.score", "*"}, {"2", ""}}},
    {"/rerank", "{\"query\":\"a\",\"texts\":[\"b\"]}", 200, {{"0.index", "0"}, {"0.text", ""}}},
    {"/rerank", "{\"query\":\"a\",\"texts\":[]}", 400, {{"error_type", "\"Empty\""}}},
    {"/rerank", "{\"texts\":[\"a\"]}", 422, {{"error", "~\"query\" is missing"}}},
    {"/rerank", "{\"query\":\"\",\"texts\":[\"a\"]}", 422, {{"error", "~\"query\" is empty"}}},
    {"/rerank", "{\"query\":\"a\"}", 422, {{"error", "~\"texts\" must be an array"}}},
    {"/rerank", "{\"query\":\"a\",\"texts\":[1]}", 422, {{"error", "~text 0 of \"texts\""}}},
    {"/rerank",
     "{\"query\":\"a\",\"texts\":[" LONG "],\"truncate\":false}",
     422,
     {{"error", "~reads at most 24"}}},
    {"/models/single/rerank", "{\"query\":\"a\",\"texts\":[\"a\"]}", 424, {{"error", "~has 3 labels"}}},
    {"/info",
     NULL,
     200,
     {{"model_type.embedding.pooling", "\"mean\""},
      {"max_input_length", "24"},
      {"served_model_name", "\"encoder\""}}},
    {"/models/single/info",
     NULL,
     200,
     {{"model_type.classifier.id2label.0", "\"no\""}, {"model_dtype", "\"fp32\""}}},
    {"/models/regression/info", NULL, 200, {{"model_type.reranker.label2id.LABEL_0", "0"}}},
    {"/models/tokens/info", NULL, 200, {{"model_type.token_classifier", "{}"}}},
    {"/health", NULL, 200, {{"", ""}}},
    {"/ping", NULL, 200, {{"", ""}}},
    {"/models/multi/health", NULL, 200, {{"", ""}}},
    {"/embed", NULL, 405, {{"error", "~is answered for POST"}}},

    /* ---- OpenAI ---- */
    {"/v1/embeddings",
     "{\"model\":\"encoder\",\"input\":[\"a\",\"b\"],\"user\":\"x\"}",
     200,
     {{"data.1.index", "1"},
      {"data.1.embedding.15", "*"},
      {"model", "\"encoder\""},
      {"usage", "{\"prompt_tokens\":6,\"total_tokens\":6}"}}},
    {"/embeddings",
     "{\"input\":[[5,6],[7]],\"dimensions\":4}",
     200,
     {{"data.1.embedding.3", "*"}, {"data.1.embedding.4", ""}}},
    {"/v1/embeddings", "{\"input\":\"a\",\"model\":\"dummy\"}", 200, {{"object", "\"list\""}}},
    {"/models/nvidia/v1/embeddings", "{\"input\":\"a\"}", 200, {{"model", "\"nvidia\""}}},
    {"/v1/embeddings", "{\"input\":\"\"}", 400, {{"error.message", "~empty"}, {"error.param", "\"input\""}}},
    {"/v1/embeddings", "{\"input\":[]}", 400, {{"error.type", "\"invalid_request_error\""}}},
    {"/v1/embeddings", "{}", 400, {{"error.param", "\"input\""}, {"error.code", "null"}}},
    {"/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":\"hex\"}", 400, {{"error.message", "~base64"}}},
    {"/v1/embeddings", "{\"input\":\"a\",\"dimensions\":17}", 400, {{"error.param", "\"dimensions\""}}},
    {"/v1/embeddings", "{\"input\":[70000]}", 400, {{"error.message", "~check_embedding_ctx_length=False"}}},
    {"/v1/embeddings", "{\"input\":\"a\",\"model\":\"gpt\"}", 404, {{"error.code", "\"model_not_found\""}}},
    {"/v1/embeddings", "{\"input\":\"a\",\"model\":7}", 400, {{"error.param", "\"model\""}}},

    /* ---- Cohere and Jina ---- */
    {"/v1/rerank",
     "{\"model\":\"regression\",\"query\":\"a\",\"documents\":[\"b\",{\"text\":\"a\"}],\"top_n\":1,\"return_"
     "documents\":true}",
     200,
     {{"results.0.document.text", "*"}, {"results.1", ""}, {"id", "~rerank-"}, {"usage.total_tokens", "10"}}},
    {"/v2/rerank",
     "{\"query\":\"a\",\"documents\":[\"b\",\"a\"]}",
     200,
     {{"results.1.relevance_score", "*"}, {"results.0.document", ""}}},
    {"/rerank",
     "{\"query\":\"a\",\"documents\":[\"b\",\"a\"],\"top_n\":0}",
     200,
     {{"results.1.relevance_score", "*"}}},
    {"/rerank", "{\"query\":\"a\",\"documents\":[]}", 400, {{"error.message", "~no texts"}}},
    {"/v2/rerank",
     "{\"query\":\"a\",\"documents\":[{\"title\":\"a\"}]}",
     400,
     {{"error.param", "\"documents\""}}},
    {"/v2/rerank",
     "{\"query\":\"a\",\"documents\":[\"a\"],\"top_n\":-1}",
     400,
     {{"error.param", "\"top_n\""}}},
    {"/v2/rerank",
     "{\"query\":\"a\",\"documents\":[\"a\"],\"model\":\"encoder\"}",
     400,
     {{"error.message", "~cannot do this"}}},

    /* ---- huggingface_hub ---- */
    {"/",
     "{\"inputs\":{\"question\":\"had?\",\"context\":" CONTEXT "},\"parameters\":{}}",
     200,
     {{"answer", "*"}, {"score", "*"}, {"start", "*"}, {"end", "*"}}},
    {"/",
     "{\"inputs\":{\"question\":\"had?\",\"context\":" CONTEXT "},\"parameters\":{\"top_k\":2}}",
     200,
     {{"1.answer", "*"}, {"2", ""}}},
    {"/",
     "{\"inputs\":[{\"question\":\"a\",\"context\":\"b\"},{\"question\":\"a\",\"context\":\"c\"}]}",
     200,
     {{"1.answer", "\"c\""}, {"2", ""}}},
    {"/models/question_answering", "{\"inputs\":\"a\"}", 400, {{"error", "~{\"question\": a string"}}},
    {"/", "{\"inputs\":{\"question\":\"a\",\"context\":\"\"}}", 400, {{"error", "~the context is empty"}}},
    {"/", "{\"inputs\":{\"question\":\"a\"}}", 400, {{"error", "~\"context\": a string"}}},
    {"/models/encoder",
     "{\"inputs\":{\"question\":\"a\",\"context\":\"b\"}}",
     400,
     {{"error", "~cannot do this"}}},
    {"/models/masked_lm",
     "{\"inputs\":\"a [MASK]\"}",
     200,
     {{"4.token_str", "*"}, {"5", ""}, {"0.sequence", "*"}}},
    {"/models/masked_lm",
     "{\"inputs\":[\"a [MASK]\",\"[MASK]\"],\"parameters\":{\"top_k\":1}}",
     200,
     {{"1.0.token", "*"}, {"1.1", ""}}},
    {"/models/masked_lm", "{\"inputs\":\"[MASK] [MASK]\"}", 200, {{"1.4.token", "*"}, {"2", ""}}},
    {"/models/masked_lm",
     "{\"inputs\":\"[MASK]\",\"parameters\":{\"targets\":\"b\"}}",
     200,
     {{"0.token", "6"}, {"1", ""}, {"0.sequence", "\"b\""}}},
    {"/models/masked_lm",
     "{\"inputs\":\"[MASK]\",\"parameters\":{\"targets\":[]}}",
     400,
     {{"error", "~\"targets\" has no word"}}},
    {"/models/masked_lm", "{\"inputs\":\"a\",\"parameters\":{}}", 400, {{"error", "~no [MASK]"}}},
    {"/models/masked_lm", "{\"inputs\":\"a\"}", 200, {{"0.15", "*"}}},
    {"/models/masked_lm",
     "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_k\":0}}",
     400,
     {{"error", "~\"top_k\" is 0"}}},
    {"/models/tokens",
     "{\"inputs\":\"a mad dog\",\"parameters\":{\"aggregation_strategy\":\"most\"}}",
     400,
     {{"error", "~none, simple"}}},
    {"/models/tokens", "{\"inputs\":\"\",\"parameters\":{}}", 200, {{"0", ""}}},
    {"/models/tokens",
     "{\"inputs\":" LONG ",\"parameters\":{\"ignore_labels\":[]}}",
     200,
     {{"31.index", "32"}, {"31.end", "35"}, {"32", ""}}},
    {"/models/tokens",
     "{\"inputs\":\"a\",\"parameters\":{\"stride\":22}}",
     400,
     {{"error", "~a stride of 22"}}},
    {"/models/tokens", "{\"inputs\":7}", 400, {{"error", "~must be a string"}}},
    {"/models/tokens",
     "{\"inputs\":\"a\",\"parameters\":7}",
     400,
     {{"error", "~\"parameters\" must be an object"}}},
    {"/models/single", "{\"inputs\":\"a dog\"}", 200, {{"0.2.label", "*"}, {"0.3", ""}, {"1", ""}}},
    {"/models/single",
     "{\"inputs\":[\"a\",\"b\"],\"parameters\":{\"top_k\":1}}",
     200,
     {{"1.0.label", "*"}, {"1.1", ""}}},
    {"/models/single", "{\"inputs\":{\"text\":\"a\",\"text_pair\":\"b\"}}", 200, {{"0.2.label", "*"}}},
    {"/models/single",
     "{\"inputs\":\"a\",\"parameters\":{\"function_to_apply\":\"tanh\"}}",
     400,
     {{"error", "~sigmoid"}}},
    {"/models/single", "{\"inputs\":[]}", 400, {{"error", "~1 to"}}},
    {"/models/single",
     "{\"inputs\":\"a\",\"parameters\":{\"candidate_labels\":[\"a\"]}}",
     400,
     {{"error", "~\"entailment\""}}},
    {"/models/entailment",
     "{\"inputs\":\"a\",\"parameters\":{\"candidate_labels\":[\"a\",\"b\"]}}",
     200,
     {{"1.label", "*"}, {"2", ""}}},
    {"/models/entailment",
     "{\"inputs\":[\"a\"],\"parameters\":{\"candidate_labels\":[\"a\"]}}",
     200,
     {{"0.0.score", "*"}}},
    {"/models/entailment",
     "{\"inputs\":\"a\",\"parameters\":{\"candidate_labels\":[\"a\"],\"hypothesis_template\":\"b\"}}",
     400,
     {{"error", "~{}"}}},
    {"/models/entailment",
     "{\"inputs\":\"a\",\"parameters\":{\"candidate_labels\":[7]}}",
     400,
     {{"error", "~1 to 1000 strings"}}},
    {"/",
     "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[\"a\"]},\"parameters\":{}}",
     200,
     {{"0", "*"}, {"1", ""}}},
    {"/", "{\"inputs\":\"a dog\",\"normalize\":false,\"dimensions\":3}", 200, {{"0.2", "*"}, {"0.3", ""}}},
    {"/", "{\"query\":\"a\",\"texts\":[\"b\"]}", 200, {{"0.index", "0"}}},
    {"/", "{}", 400, {{"error", "~\"inputs\" is missing"}}},
    {"/models/encoder/nothing", "{}", 404, {{"error", "*"}}},
};

static void test_row(const struct served_case *s, const struct row *r)
{
    struct served_answer a;
    served_ask(&a, s, r->body == NULL ? "GET" : "POST", r->path, r->body);
    EXPECT(a.status == r->status, "%s %s: %d, not %d: %s", r->path, r->body == NULL ? "" : r->body, a.status,
           r->status, buf_text(&a.text));
    for (int i = 0; i < 4 && r->checks[i][0] != NULL; i++) {
        EXPECT(served_is(a.json, r->checks[i][0], r->checks[i][1]), "%s %s: %s is not %s in %s", r->path,
               r->body == NULL ? "" : r->body, r->checks[i][0], r->checks[i][1], buf_text(&a.text));
    }
    served_answer_fini(&a);
}

/* ---- numbers ---- */

static struct served_answer ask(const struct served_case *s, const char *path, const char *body)
{
    struct served_answer a;
    served_ask(&a, s, "POST", path, body);
    EXPECT(a.status == 200, "%s %s: %d %s", path, body, a.status, buf_text(&a.text));
    return a;
}

static double number(const struct served_answer *a, const char *path)
{
    const json_t *found = served_at(a->json, path);
    EXPECT(json_is_number(found), "no number %s in %s", path, buf_text(&a->text));
    return json_number_value(found);
}

/* Two requests whose answers have the same array of numbers. */
static const struct {
    const char *path, *body, *at, *other_path, *other_body, *other_at;
} equals[] = {
    {"/embed", "{\"inputs\":\"a b\"}", "0", "/embed", "{\"inputs\":[[5,6]]}", "0"},
    {"/embed", "{\"inputs\":\"a b\"}", "0", "/embed", "{\"inputs\":[\"ice\",[2,5,6,3]]}", "1"},
    {"/embed", "{\"inputs\":\"a b\"}", "0", "/v1/embeddings", "{\"input\":[\"c\",\"a b\"]}",
     "data.1.embedding"},
    {"/embed", "{\"inputs\":\"a b\"}", "0", "/models/encoder", "{\"inputs\":\"a b\"}", "0"},
    {"/embed", "{\"inputs\":\"a b\",\"dimensions\":5}", "0", "/v1/embeddings",
     "{\"input\":\"a b\",\"dimensions\":5}", "data.0.embedding"},
    {"/embed", "{\"inputs\":" LONG ",\"truncation_direction\":\"left\"}", "0", "/embed",
     "{\"inputs\":[22,22,22,22,22,22,7,23,23,23,23,23,23,23,8,24,24,24,24,24,24,24]}", "0"},
    {"/similarity", "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[\"b\",\"c\"]}}", "", "/",
     "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[\"b\",\"c\"]}}", ""},
};

static void test_equals(const struct served_case *s)
{
    for (size_t i = 0; i < sizeof equals / sizeof equals[0]; i++) {
        struct served_answer a = ask(s, equals[i].path, equals[i].body),
                             b = ask(s, equals[i].other_path, equals[i].other_body);
        const json_t *x = served_at(a.json, equals[i].at), *y = served_at(b.json, equals[i].other_at);
        bool same = json_array_size(x) > 1 && json_array_size(x) == json_array_size(y);
        for (size_t k = 0; same && k < json_array_size(x); k++) {
            same = fabs(json_number_value(json_array_get(x, k)) - json_number_value(json_array_get(y, k))) <
                   1e-6;
        }
        EXPECT(same, "row %zu: %s differs from %s", i, buf_text(&a.text), buf_text(&b.text));
        served_answer_fini(&a);
        served_answer_fini(&b);
    }
}

/* Base64 holds the bytes of the same fp32. */
static void test_base64(const struct served_case *s)
{
    struct served_answer a = ask(s, "/v1/embeddings", "{\"input\":\"a b\"}"),
                         b = ask(s, "/v1/embeddings", "{\"input\":\"a b\",\"encoding_format\":\"base64\"}");
    struct buf bytes = {0};
    EXPECT(base64_decode(&bytes, json_string_value(served_at(b.json, "data.0.embedding"))), "%s",
           buf_text(&b.text));
    EXPECT(bytes.n == 16 * sizeof(float), "%zu bytes", bytes.n);
    for (size_t i = 0; i < 16; i++) {
        float v;
        memcpy(&v, bytes.data + i * sizeof v, sizeof v);
        EXPECT((float)json_number_value(json_array_get(served_at(a.json, "data.0.embedding"), i)) == v,
               "number %zu", i);
    }
    buf_fini(&bytes);
    served_answer_fini(&a);
    served_answer_fini(&b);
}

/* Scores by the model's problem, by its activation, and as logits. */
static void test_scores(const struct served_case *s)
{
    struct served_answer one = ask(s, "/models/single/predict", "{\"inputs\":\"a\"}"),
                         raw = ask(s, "/models/multi/predict", "{\"inputs\":\"a\",\"raw_scores\":true}"),
                         many = ask(s, "/models/multi/predict", "{\"inputs\":\"a\"}"),
                         logit = ask(s, "/rerank", "{\"query\":\"a\",\"texts\":[\"b\"],\"raw_scores\":true}"),
                         score = ask(s, "/rerank", "{\"query\":\"a\",\"texts\":[\"b\"]}"),
                         relevance = ask(s, "/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}"),
                         number_of =
                             ask(s, "/models/identity/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}");
    double sigmoid = 1 / (1 + exp(-number(&logit, "0.score")));
    EXPECT_NEAR(number(&one, "0.score") + number(&one, "1.score") + number(&one, "2.score"), 1, 1e-6);
    EXPECT_NEAR(number(&many, "0.score"), 1 / (1 + exp(-number(&raw, "0.score"))), 1e-6);
    EXPECT(number(&raw, "0.score") > number(&raw, "1.score"), "%s", buf_text(&raw.text));
    EXPECT_NEAR(number(&score, "0.score"), sigmoid, 1e-6);
    EXPECT_NEAR(number(&relevance, "results.0.relevance_score"), sigmoid, 1e-6);
    EXPECT_NEAR(number(&number_of, "results.0.relevance_score"), number(&logit, "0.score"), 1e-6);
    struct served_answer *all[] = {&one, &raw, &many, &logit, &score, &relevance, &number_of};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        served_answer_fini(all[i]);
    }
}

/* The logits for which text-embeddings-inference computes NaN: it subtracts the one of largest magnitude. */
static void test_large_logits(void)
{
    struct model_labels labels = {.n = 2, .problem = PROBLEM_SINGLE_LABEL};
    struct class_reading readings[2];
    class_logits_read(readings, (const float[]){-1000, 5}, &labels);
    EXPECT_NEAR(readings[0].score, 0, 1e-9);
    EXPECT_NEAR(readings[1].score, 1, 1e-9);
}

/* An answer's headers, and that of texts that were cut. */
static void test_headers(const struct served_case *s)
{
    static const char *const names[] = {
        "x-compute-type: cpu",  "x-compute-time: ",   "x-compute-characters: 36",
        "x-compute-tokens: 27", "x-total-time: ",     "x-tokenization-time: ",
        "x-queue-time: ",       "x-inference-time: ", "kiln-truncated: 1"};
    struct served_answer a = ask(s, "/", "{\"inputs\":[\"a\"," LONG "],\"truncate\":true}");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT(strcasestr(buf_text(&a.head), names[i]) != NULL, "no %s in %s", names[i], buf_text(&a.head));
    }
    served_answer_fini(&a);
    a = ask(s, "/embed", "{\"inputs\":\"a\"}");
    EXPECT(strcasestr(buf_text(&a.head), "kiln-truncated") == NULL, "%s", buf_text(&a.head));
    served_answer_fini(&a);
    served_ask(&a, s, "HEAD", "/", NULL);
    EXPECT(a.status == 200 && a.text.n == 0, "HEAD /: %d", a.status);
    served_answer_fini(&a);
}

/* The places of entities and answers are characters: the first letter of the text has two bytes. */
static void test_places(const struct served_case *s)
{
    struct served_answer a = ask(s, "/models/tokens",
                                 "{\"inputs\":\"\\u00c4b c\",\"parameters\":{\"ignore_labels\":[]}}"),
                         b = ask(s, "/", "{\"inputs\":{\"question\":\"a?\",\"context\":" CONTEXT "}}");
    size_t n = json_array_size(a.json);
    EXPECT(n == 3 && number(&a, "0.end") == 1 && number(&a, "1.start") == 1 && number(&a, "2.start") == 3 &&
               number(&a, "2.end") == 4,
           "%s", buf_text(&a.text));
    const char *answer = json_string_value(served_at(b.json, "answer"));
    EXPECT(answer != NULL &&
               number(&b, "end") - number(&b, "start") == (double)utf8_count(answer, strlen(answer)),
           "%s", buf_text(&b.text));
    served_answer_fini(&a);
    served_answer_fini(&b);
}

static void copy_model(const char *directory, const char *from, const char *to, const char *old,
                       const char *new)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json"};
    char path[SESSION_CASE_PATH];
    snprintf(path, sizeof path, "%s/%s", directory, to);
    EXPECT_OK(file_make_directories(path));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct file_map map;
        snprintf(path, sizeof path, "%s/%s/%s", directory, from, files[i]);
        EXPECT_OK(file_map_open(&map, path));
        snprintf(path, sizeof path, "%s/%s/%s", directory, to, files[i]);
        EXPECT_OK(file_write_atomic(path, map.data, map.n));
        file_map_close(&map);
    }
    snprintf(path, sizeof path, "%s/%s/config.json", directory, to);
    session_case_edit(path, old, new);
}

int main(void)
{
    char directory[64], paths[N_MODELS][SESSION_CASE_PATH];
    struct served_source sources[N_MODELS];
    struct served_case s;
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_classifiers(directory);
    copy_model(directory, "single", "entailment", "\"yes\"", "\"Entailment\"");
    copy_model(directory, "regression", "identity", "{",
               "{\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"},");
    for (int i = 0; i < N_MODELS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", directory, models[i]);
        sources[i] = (struct served_source){.path = paths[i]};
    }
    served_case_open(&s, sources, N_MODELS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(&s, &rows[i]);
    }
    test_equals(&s);
    test_base64(&s);
    test_scores(&s);
    test_large_logits();
    test_headers(&s);
    test_places(&s);
    served_case_close(&s);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
