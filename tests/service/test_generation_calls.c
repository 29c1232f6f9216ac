/* Decoders answer in the dialects of OpenAI, TGI and Ollama: each row of a table is a request, and what its
 * answer must be; streams give the same texts as answers at once; and tokens are as probable as the model
 * finds them. */
#define _GNU_SOURCE
#include "served_case.h"
#include "session_case.h"

#include <math.h>

/* The model's window has 24 tokens, and a letter is one. */
static const struct {
    const char *path, *body;
    int status;
    const char *checks[4][2]; /* a path of the reply, and what is there (served_is) */
} rows[] = {
    {"/v1/completions",
     "{\"model\":\"gpt2\",\"prompt\":\"the\",\"max_tokens\":4,\"temperature\":0,\"ignore_eos\":true}",
     200,
     {{"object", "\"text_completion\""},
      {"choices.0.finish_reason", "\"length\""},
      {"usage", "{\"prompt_tokens\":1,\"completion_tokens\":4,\"total_tokens\":5}"},
      {"id", "~cmpl-"}}},
    {"/completions", "{\"prompt\":\"the\",\"seed\":1}", 200, {{"choices.0.logprobs", "null"}}},
    {"/v1/completions", "{\"model\":\"dummy\",\"prompt\":null}", 200, {{"usage.prompt_tokens", "1"}}},
    {"/v1/completions",
     "{\"prompt\":[\"a\",[104,101],\"\"],\"n\":2,\"max_tokens\":1,\"ignore_eos\":true}",
     200,
     {{"choices.5.index", "5"},
      {"choices.6", ""},
      {"usage.prompt_tokens", "4"},
      {"usage.completion_tokens", "6"}}},
    {"/v1/completions",
     "{\"prompt\":[1,2,3],\"max_tokens\":0,\"echo\":true}",
     200,
     {{"usage.completion_tokens", "0"}, {"choices.0.finish_reason", "\"length\""}}},
    {"/v1/completions",
     "{\"prompt\":\"the\",\"max_tokens\":0,\"echo\":true,\"logprobs\":2}",
     200,
     {{"choices.0.text", "\"the\""},
      {"choices.0.logprobs.tokens", "[\"the\"]"},
      {"choices.0.logprobs.token_logprobs", "[null]"},
      {"choices.0.logprobs.text_offset", "[0]"}}},
    {"/v1/completions",
     "{\"prompt\":\"and the an\",\"max_tokens\":1,\"echo\":true,\"logprobs\":0,\"ignore_eos\":true}",
     200,
     {{"choices.0.logprobs.tokens.3", "\"an\""},
      {"choices.0.logprobs.text_offset.3", "8"},
      {"choices.0.logprobs.top_logprobs.0", "null"},
      {"choices.0.logprobs.top_logprobs.1", "*"}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"logit_bias\":{\"256\":100},\"max_tokens\":3}",
     200,
     {{"choices.0.text", "\"ththth\""}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"logit_bias\":{\"256\":100},\"max_tokens\":3,\"stop\":\"hth\"}",
     200,
     {{"choices.0.text", "\"t\""}, {"choices.0.finish_reason", "\"stop\""}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"logit_bias\":{\"261\":100}}",
     200,
     {{"choices.0.text", "\"\""}, {"choices.0.finish_reason", "\"stop\""}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"top_k\":-1,\"min_p\":0.1,\"repetition_penalty\":1.1,\"best_of\":1,\"suffix\":\"\","
     "\"presence_penalty\":1,\"frequency_penalty\":-1,\"top_p\":0.5,\"user\":\"u\",\"stop\":[],\"max_"
     "tokens\":2}",
     200,
     {{"model", "\"gpt2\""}}},
    /* what is too long */
    {"/v1/completions",
     "{\"prompt\":\"0123456789\",\"max_tokens\":20}",
     400,
     {{"error.message", "~This model's maximum context length is 24 tokens. However, you requested 30 tokens "
                        "(10 in the prompt, 20 for the completion)"},
      {"error.code", "\"context_length_exceeded\""},
      {"error.param", "\"prompt\""},
      {"error.type", "\"invalid_request_error\""}}},
    {"/v1/completions", "{\"prompt\":\"0123456789\"}", 200, {{"choices", "*"}}},
    {"/v1/completions",
     "{\"prompt\":\"01234567890123456789ab\",\"ignore_eos\":true}",
     200,
     {{"usage.completion_tokens", "2"}}},
    {"/v1/completions", "{\"prompt\":\"01234567890123456789abcd\"}", 400, {{"error.message", "~24 tokens"}}},
    /* what is wrong */
    {"/v1/completions",
     "{\"model\":\"other\",\"prompt\":\"x\"}",
     404,
     {{"error.code", "\"model_not_found\""}, {"error.message", "~gpt2"}}},
    {"/v1/completions", "{\"prompt\":[]}", 400, {{"error.param", "\"prompt\""}}},
    {"/v1/completions", "{\"prompt\":5}", 400, {{"error.message", "~prompt must be a string"}}},
    {"/v1/completions", "{\"prompt\":[null]}", 400, {{"error.message", "~prompt[0] must be"}}},
    {"/v1/completions", "{\"prompt\":[1,\"a\"]}", 400, {{"error.message", "~prompt[1] must be an integer"}}},
    {"/v1/completions",
     "{\"prompt\":[1,100277]}",
     400,
     {{"error.message", "~prompt[1] is the id 100277"}, {"error.message", "~send texts"}}},
    {"/v1/completions", "{\"prompt\":[[1],[-1]]}", 400, {{"error.message", "~prompt[1][0] is the id -1"}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"temperature\":2.1}", 400, {{"error.param", "\"temperature\""}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"temperature\":\"hot\"}",
     400,
     {{"error.param", "\"temperature\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"n\":0}", 400, {{"error.param", "\"n\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"n\":2,\"best_of\":3}", 400, {{"error.param", "\"best_of\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"suffix\":\"y\"}", 400, {{"error.param", "\"suffix\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"logprobs\":6}", 400, {{"error.param", "\"logprobs\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"max_tokens\":-1}", 400, {{"error.param", "\"max_tokens\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"stop\":[\"\"]}", 400, {{"error.param", "\"stop\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"stop\":[1]}", 400, {{"error", "*"}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"stream_options\":{}}",
     400,
     {{"error.param", "\"stream_options\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"logit_bias\":{\"the\":1}}", 400, {{"error.message", "~'the'"}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"logit_bias\":{\"262\":1}}", 400, {{"error.message", "~'262'"}}},
    {"/v1/completions",
     "{\"prompt\":\"x\",\"logit_bias\":{\"1\":101}}",
     400,
     {{"error.param", "\"logit_bias\""}}},
    {"/v1/completions", "{\"prompt\":\"x\",\"logit_bias\":[]}", 400, {{"error.param", "\"logit_bias\""}}},
    {"/v1/completions", "[]", 400, {{"error.message", "*"}}},
    {"/v1/completions", "{\"prompt\":", 400, {{"error.message", "*"}}},
    /* chats: the template says "<|endoftext|>u:the=" */
    {"/models/chat/v1/chat/completions",
     "{\"model\":\"dummy\",\"messages\":[{\"role\":\"user\",\"content\":\"the\"}],\"max_tokens\":4,\"ignore_"
     "eos\":true}",
     200,
     {{"object", "\"chat.completion\""},
      {"usage", "{\"prompt_tokens\":5,\"completion_tokens\":4,\"total_tokens\":9}"},
      {"choices.0.message.role", "\"assistant\""},
      {"id", "~chatcmpl-"}}},
    {"/chat/completions",
     "{\"model\":\"chat\",\"n\":2,\"messages\":[{\"role\":\"user\",\"name\":\"x\",\"content\":[{\"type\":"
     "\"text\",\"text\":"
     "\"the\"},{\"type\":\"text\",\"text\":\"a\"}]}],\"logit_bias\":{\"256\":100},\"max_completion_tokens\":"
     "2,"
     "\"max_tokens\":9,\"temperature\":0,\"tools\":[],\"tool_choice\":\"none\",\"response_format\":{\"type\":"
     "\"text\"}}",
     200,
     {{"choices.0.message", "{\"role\":\"assistant\",\"content\":\"thth\",\"refusal\":null}"},
      {"choices.1.index", "1"},
      {"choices.0.logprobs", "null"},
      {"usage.prompt_tokens", "7"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"<|endoftext|>\"}],\"max_tokens\":1,"
     "\"logprobs\":true,"
     "\"top_logprobs\":20,\"logit_bias\":{\"256\":100},\"stop\":[\"zz\"],\"seed\":1}",
     200,
     {{"usage.prompt_tokens", "5"},
      {"choices.0.logprobs.content.0.bytes", "[116,104]"},
      {"choices.0.logprobs.content.0.top_logprobs.19.token", "*"},
      {"choices.0.logprobs.content.0.top_logprobs.20", ""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"the\"}],\"max_tokens\":30}",
     400,
     {{"error.code", "\"context_length_exceeded\""}, {"error.message", "~(5 in the messages, 30 for"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"the\"}],\"ignore_eos\":true}",
     200,
     {{"usage.total_tokens", "24"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"tool\",\"content\":\"the\"}]}",
     400,
     {{"error.message", "~chat_template, line 2: users alone speak"}, {"error.param", "\"messages\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"odd\",\"messages\":[]}",
     400,
     {{"error.message", "~chat_template, line 1: the filter map is not read by kiln"}}},
    {"/v1/chat/completions", "{\"model\":\"chat\",\"messages\":[]}", 400, {{"error.param", "\"messages\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{}]}",
     400,
     {{"error.message", "~messages[0] must"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":null}]}",
     400,
     {{"error.message", "~messages[0].content must"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
     400,
     {{"error.message", "~kiln reads texts alone"}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"\",\"tool_calls\":[1]}]}",
     400,
     {{"error.message", "~messages[0].tool_calls"}}},
    {"/v1/chat/completions", "{\"model\":\"chat\",\"tools\":[{}]}", 400, {{"error.param", "\"tools\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"functions\":[{}]}",
     400,
     {{"error.param", "\"functions\""}}},
    {"/v1/chat/completions", "{\"model\":\"chat\",\"audio\":{}}", 400, {{"error.param", "\"audio\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"response_format\":{\"type\":\"json_object\"}}",
     400,
     {{"error.param", "\"response_format\""}}},
    {"/v1/chat/completions", "{\"model\":\"chat\",\"logprobs\":1}", 400, {{"error.param", "\"logprobs\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"top_logprobs\":1}",
     400,
     {{"error.param", "\"top_logprobs\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"chat\",\"max_tokens\":0}",
     400,
     {{"error.param", "\"max_tokens\""}}},
    {"/v1/chat/completions",
     "{\"model\":\"gpt2\",\"messages\":[]}",
     400,
     {{"error.message", "~default chat template is no longer allowed"},
      {"error.message", "~use /v1/completions"}}},
    {"/v1/responses", "{}", 404, {{"error.code", "null"}, {"error.param", "null"}}},
    /* the models */
    {"/v1/models", NULL, 200, {{"data.0.id", "\"gpt2\""}, {"data.0.object", "\"model\""}, {"data.5", ""}}},
    {"/models", NULL, 200, {{"object", "\"list\""}}},
    {"/v1/models/bloom", NULL, 200, {{"id", "\"bloom\""}, {"owned_by", "\"kiln\""}}},
    {"/v1/models/other", NULL, 404, {{"error.code", "\"model_not_found\""}}},
    /* TGI */
    {"/generate",
     "{\"inputs\":\"the\",\"parameters\":{\"max_new_tokens\":3}}",
     200,
     {{"generated_text", "*"}, {"details", ""}}},
    {"/generate",
     "{\"inputs\":\"the\",\"parameters\":{\"max_new_tokens\":1,\"details\":true,\"decoder_input_details\":"
     "true,"
     "\"return_full_text\":true,\"top_n_tokens\":2,\"do_sample\":true,\"seed\":9}}",
     200,
     {{"generated_text", "~the"},
      {"details.seed", "9"},
      {"details.prefill.0.logprob", "null"},
      {"details.top_tokens.0.1.id", "*"}}},
    {"/models/bloom/generate",
     "{\"inputs\":\"abc\",\"parameters\":{\"truncate\":2,\"max_new_tokens\":1,"
     "\"details\":true,\"decoder_input_details\":true}}",
     200,
     {{"details.prefill.0.text", "\"b\""}, {"details.prefill.2", ""}}},
    {"/generate",
     "{\"inputs\":\"the\",\"parameters\":{\"max_new_tokens\":50}}",
     422,
     {{"error", "~`inputs` tokens + `max_new_tokens` must be <= 24. Given: 1 `inputs` tokens and 50"},
      {"error_type", "*"}}},
    {"/generate", "{\"inputs\":[\"the\"]}", 422, {{"error", "~inputs"}}},
    {"/generate", "{\"inputs\":\"x\",\"parameters\":{\"grammar\":{}}}", 422, {{"error", "~grammar"}}},
    {"/generate", "{\"inputs\":\"x\",\"parameters\":{\"best_of\":2}}", 422, {{"error", "~best_of"}}},
    {"/generate", "{\"inputs\":\"x\",\"parameters\":[]}", 422, {{"error", "~parameters"}}},
    {"/generate_stream",
     "{\"inputs\":\"x\",\"parameters\":{\"decoder_input_details\":true}}",
     422,
     {{"error", "~not supported when streaming"}}},
    /* Ollama */
    {"/api/generate",
     "{\"model\":\"gpt2:latest\",\"prompt\":\"the\",\"stream\":false,"
     "\"options\":{\"num_predict\":2,\"seed\":1}}",
     200,
     {{"done", "true"}, {"model", "\"gpt2\""}, {"prompt_eval_count", "1"}, {"eval_count", "*"}}},
    {"/api/generate", "{\"model\":\"gpt2\"}", 200, {{"done_reason", "\"load\""}, {"response", "\"\""}}},
    {"/api/generate", "{\"model\":\"gpt2\",\"prompt\":\"x\",\"system\":\"be\"}", 400, {{"error", "~system"}}},
    {"/api/generate", "{\"model\":\"other\",\"prompt\":\"x\"}", 404, {{"error", "~other"}}},
    {"/api/generate", "{\"prompt\":\"x\",\"options\":{\"num_predict\":24}}", 400, {{"error", "~at most 24"}}},
    {"/api/embed", "{\"model\":\"gpt2\",\"input\":\"a\"}", 400, {{"error", "~gpt2"}}},
    {"/api/embed",
     "{\"model\":\"mlm\",\"input\":[\"a\",\"a dog\"],\"dimensions\":2}",
     200,
     {{"embeddings.1.1", "*"}, {"embeddings.1.2", ""}, {"embeddings.2", ""}, {"prompt_eval_count", "9"}}},
    {"/api/embeddings", "{\"model\":\"mlm:latest\",\"prompt\":\"a\"}", 200, {{"embedding.15", "*"}}},
    {"/api/embeddings", "{\"model\":\"mlm\",\"prompt\":[\"a\"]}", 400, {{"error", "~prompt"}}},
    {"/api/tags", NULL, 200, {{"models.1.name", "\"bloom\""}, {"models.0.details.family", "\"gpt2\""}}},
    {"/api/ps", NULL, 200, {{"models.0.context_length", "24"}}},
    {"/api/show",
     "{\"model\":\"gpt2\"}",
     200,
     {{"capabilities", "[\"completion\"]"}, {"model_info.gpt2.context_length", ""}, {"model_info", "*"}}},
    {"/api/version", NULL, 200, {{"version", "*"}}},
    /* tokens */
    {"/models/mlm/tokenize",
     "{\"inputs\":\"a dog\"}",
     200,
     {{"0.0", "{\"id\":2,\"text\":\"[CLS]\",\"special\":true,\"start\":null,\"stop\":null}"},
      {"0.2.text", "\"d\""},
      {"0.2.start", "2"}}},
    {"/models/mlm/decode", "{\"ids\":[2,3]}", 200, {{"0", "\"\""}}},
    {"/tokenize",
     "{\"prompt\":\"the an\",\"return_token_strs\":true}",
     200,
     {{"tokens", "[257,220,259]"},
      {"count", "3"},
      {"max_model_len", "24"},
      {"token_strs", "[\"the\",\" \",\"an\"]"}}},
    {"/tokenize", "{\"model\":\"other\",\"prompt\":\"x\"}", 404, {{"error.code", "\"model_not_found\""}}},
    {"/tokenize", "{\"content\":\"the\"}", 200, {{"tokens", "[257]"}}},
    {"/tokenize",
     "{\"content\":\"\\u00e9\",\"with_pieces\":true}",
     200,
     {{"tokens.0.piece", "[195]"}, {"tokens.1.piece", "[169]"}}},
    {"/tokenize",
     "{\"inputs\":[\"\\u00e9 the\",\"a\"]}",
     200,
     {{"0.2", "{\"id\":258,\"text\":\" the\",\"special\":false,\"start\":2,\"stop\":6}"},
      {"1.0.start", "0"}}},
    {"/tokenize", "{\"inputs\":\"x\",\"prompt_name\":\"query\"}", 422, {{"error", "~prompt"}}},
    {"/tokenize", "{}", 422, {{"error", "~inputs"}}},
    {"/models/bloom/tokenizer_info", NULL, 200, {{"eos_token", "*"}}},
    {"/detokenize", "{\"tokens\":[257,258]}", 200, {{"prompt", "\"the the\""}, {"content", "\"the the\""}}},
    {"/detokenize", "{\"tokens\":[999]}", 400, {{"error.message", "~999"}}},
    {"/detokenize", "{}", 400, {{"error.param", "\"tokens\""}}},
    {"/decode", "{\"ids\":[257,261]}", 200, {{"0", "\"the\""}}},
    {"/decode",
     "{\"ids\":[[257,261],[256]],\"skip_special_tokens\":false}",
     200,
     {{"0", "\"the<|endoftext|>\""}, {"1", "\"th\""}}},
    {"/decode", "{\"ids\":[]}", 422, {{"error", "~empty"}}},
    {"/decode", "{\"ids\":[[1],2]}", 422, {{"error", "~array"}}},
};

static void check_rows(const struct served_case *s)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct served_answer a;
        const char *body = rows[i].body == NULL ? "" : rows[i].body;
        served_ask(&a, s, rows[i].body == NULL ? "GET" : "POST", rows[i].path, rows[i].body);
        EXPECT(a.status == rows[i].status && a.json != NULL, "%s %s: %d, not %d: %s", rows[i].path, body,
               a.status, rows[i].status, buf_text(&a.text));
        for (int k = 0; k < 4 && rows[i].checks[k][0] != NULL; k++) {
            const char *path = rows[i].checks[k][0], *wanted = rows[i].checks[k][1];
            EXPECT(served_is(a.json, path, wanted), "%s %s: %s is not %s in %s", rows[i].path, body, path,
                   wanted, buf_text(&a.text));
        }
        served_answer_fini(&a);
    }
    printf("%zu requests\n", sizeof rows / sizeof rows[0]);
}

/* ---- streams ---- */

/* Appends the strings at a path of each line of a stream, of the events of choice `index` where there are
 * choices; -1: of all. */
static void join(struct buf *out, const char *stream, const char *path, int index)
{
    for (const char *line = stream; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *json_text = strncmp(line, "data: ", 6) == 0 ? line + 6 : line;
        json_t *event = json_loadb(json_text, strcspn(json_text, "\n"), JSON_ALLOW_NUL, NULL);
        const json_t *said = served_at(event, path), *number = served_at(event, "choices.0.index");
        if (json_is_string(said) && (index < 0 || json_integer_value(number) == index)) {
            buf_puts(out, json_string_value(said));
        }
        json_decref(event);
    }
}

/* What a stream says is what is said at once. */
static const struct {
    const char *path, *stream_path, *body, *at_once, *streamed; /* the body's begin, and what asks for each */
    const char *whole, *piece;                                  /* where the text is */
    const char *type;
    int index;
} streams[] = {
    {"/v1/completions", "/completions", "{\"prompt\":[\"and\",\"the\"],\"n\":2,\"seed\":7,\"echo\":true", "}",
     ",\"stream\":true}", "choices.2.text", "choices.0.text", "text/event-stream", 2},
    {"/v1/completions", "/completions",
     "{\"prompt\":\"x\",\"seed\":7,\"stop\":[\"h\",\"a\"],\"logprobs\":3,\"temperature\":2", "}",
     ",\"stream\":true}", "choices.0.text", "choices.0.text", "text/event-stream", 0},
    {"/v1/chat/completions", "/chat/completions",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"seed\":7,\"logprobs\":true,"
     "\"n\":2",
     "}", ",\"stream\":true}", "choices.1.message.content", "choices.0.delta.content", "text/event-stream",
     1},
    {"/generate", "/generate_stream",
     "{\"inputs\":\"x\",\"parameters\":{\"seed\":5,\"do_sample\":true,\"max_new_tokens\":20}", "}", "}",
     "generated_text", "token.text", "text/event-stream", -1},
    {"/api/generate", "/api/generate", "{\"prompt\":\"x\",\"options\":{\"seed\":5}", ",\"stream\":false}",
     "}", "response", "response", "application/x-ndjson", -1},
};

static void check_streams(const struct served_case *s)
{
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        char body[512];
        struct served_answer at_once, streamed;
        struct buf said = {0};
        snprintf(body, sizeof body, "%s%s", streams[i].body, streams[i].at_once);
        served_ask(&at_once, s, "POST", streams[i].path, body);
        snprintf(body, sizeof body, "%s%s", streams[i].body, streams[i].streamed);
        served_ask(&streamed, s, "POST", streams[i].stream_path, body);
        EXPECT(at_once.status == 200 && streamed.status == 200, "%s", buf_text(&streamed.text));
        EXPECT(strstr(buf_text(&streamed.head), streams[i].type) != NULL, "%s", buf_text(&streamed.head));
        join(&said, buf_text(&streamed.text), streams[i].piece, streams[i].index);
        const char *whole = json_string_value(served_at(at_once.json, streams[i].whole));
        EXPECT(whole != NULL && strcmp(whole, buf_text(&said)) == 0, "%s: '%s', but at once '%s'", body,
               buf_text(&said), whole);
        buf_fini(&said);
        served_answer_fini(&at_once);
        served_answer_fini(&streamed);
    }
}

/* Counts come last, and each other event says that it has none. */
static void check_usage(const struct served_case *s)
{
    static const char body[] = "{\"prompt\":\"the\",\"max_tokens\":2,\"ignore_eos\":true,\"stream\":true,"
                               "\"logprobs\":0,\"stream_options\":{\"include_usage\":true}}";
    static const char end[] = "\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,"
                              "\"total_tokens\":3}}\n\ndata: [DONE]\n\n";
    struct served_answer a;
    served_ask(&a, s, "POST", "/v1/completions", body);
    const char *text = buf_text(&a.text), *first = strstr(text, "\"usage\":null");
    size_t n = strlen(end);
    EXPECT(first != NULL && strstr(first + 1, "\"usage\":null") != NULL, "%s", text);
    EXPECT(a.text.n > n && strcmp(text + a.text.n - n, end) == 0, "%s", text);
    served_answer_fini(&a);
}

/* A chat is the completion of what its template says; its stream begins with who speaks, and ends with why it
 * ended. */
static void check_chat(const struct served_case *s)
{
    static const char ask[] = "{\"model\":\"chat\",\"seed\":4,\"max_tokens\":6,\"ignore_eos\":true,";
    static const char messages[] = "\"messages\":[{\"role\":\"user\",\"content\":\"the\"}]";
    char body[256];
    struct served_answer text, chat, stream;
    snprintf(body, sizeof body, "%s\"prompt\":\"u:the=\"}", ask);
    served_ask(&text, s, "POST", "/v1/completions", body);
    snprintf(body, sizeof body, "%s%s}", ask, messages);
    served_ask(&chat, s, "POST", "/v1/chat/completions", body);
    const char *said = json_string_value(served_at(chat.json, "choices.0.message.content"));
    const char *wanted = json_string_value(served_at(text.json, "choices.0.text"));
    EXPECT(said != NULL && wanted != NULL && strcmp(said, wanted) == 0, "'%s', not '%s'", said, wanted);
    snprintf(body, sizeof body, "%s\"stream\":true,\"stream_options\":{\"include_usage\":true},%s}", ask,
             messages);
    served_ask(&stream, s, "POST", "/v1/chat/completions", body);
    const char *first = strstr(buf_text(&stream.text), "\"delta\"");
    const char *last =
        strstr(buf_text(&stream.text), "\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"");
    EXPECT(first != NULL && strstr(first, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}") == first,
           "%s", first);
    EXPECT(last != NULL && strstr(last + 1, "\"delta\"") == NULL, "%s", buf_text(&stream.text));
    EXPECT(strstr(last, "\"prompt_tokens\":5,\"completion_tokens\":6") != NULL, "%s", last);
    served_answer_fini(&text);
    served_answer_fini(&chat);
    served_answer_fini(&stream);
}

/* ---- probabilities ---- */

/* A text that was generated is as probable when it is read. */
static void check_probabilities(const struct served_case *s)
{
    enum { N_PROMPT = 3, N_NEW = 5 };
    static const char ask[] = "{\"prompt\":[1,2,3],\"max_tokens\":5,\"logprobs\":5,\"ignore_eos\":true,"
                              "\"logit_bias\":{\"65\":100,\"66\":100},\"seed\":3}";
    struct served_answer new, read;
    char body[256];
    served_ask(&new, s, "POST", "/v1/completions", ask);
    const json_t *tokens = served_at(new.json, "choices.0.logprobs.tokens");
    EXPECT(json_array_size(tokens) == N_NEW, "%s", buf_text(&new.text));
    int n = snprintf(body, sizeof body, "{\"max_tokens\":0,\"echo\":true,\"logprobs\":1,\"prompt\":[1,2,3");
    for (int i = 0; i < N_NEW; i++) { /* the ids of b and c */
        char c = json_string_value(json_array_get(tokens, (size_t)i))[0];
        EXPECT(c == 'b' || c == 'c', "%s", buf_text(&new.text));
        n += snprintf(body + n, sizeof body - (size_t)n, ",%d", 65 + c - 'b');
    }
    snprintf(body + n, sizeof body - (size_t)n, "]}");
    served_ask(&read, s, "POST", "/v1/completions", body);
    for (int i = 0; i < N_NEW; i++) {
        char at[64], then[64];
        snprintf(at, sizeof at, "choices.0.logprobs.token_logprobs.%d", i);
        snprintf(then, sizeof then, "choices.0.logprobs.token_logprobs.%d", N_PROMPT + i);
        EXPECT_NEAR(json_real_value(served_at(read.json, then)), json_real_value(served_at(new.json, at)),
                    1e-4);
        EXPECT(json_real_value(served_at(new.json, at)) < -1, "%s", buf_text(&new.text));
    }
    served_answer_fini(&new);
    served_answer_fini(&read);
}

/* Copies of gpt2: "chat" has a template, and a tokenizer that puts a token before prompts; that of "odd" is
 * none that kiln reads. */
static void write_chats(const char *directory)
{
    static const char frame[] =
        "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
        "\"<|endoftext|>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": "
        "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], "
        "\"special_tokens\": {\"<|endoftext|>\": {\"id\": \"<|endoftext|>\", \"ids\": [261], \"tokens\": "
        "[\"<|endoftext|>\"]}}}";
    static const char *const copies[][3] = {
        {"chat", "tokenizer_config.json",
         "{\"bos_token\": \"<|endoftext|>\", \"chat_template\": \"{{ bos_token }}{% for m in messages %}\\n"
         "{{ raise_exception('users alone speak') if m.role != 'user' }}{{ m.role[0] + ':' + m.content }}"
         "{% endfor %}{{ '=' if add_generation_prompt }}\"}"},
        {"odd", "chat_template.jinja", "{{ messages|map('x') }}"},
    };
    struct safetensors golden;
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors"));
    for (int i = 0; i < 2; i++) {
        char path[SESSION_CASE_PATH], file[SESSION_CASE_PATH];
        snprintf(path, sizeof path, "%s/copies_%d", directory, i);
        session_case_write(&golden, path, "gpt2");
        snprintf(file, sizeof file, "%s/gpt2/tokenizer.json", path);
        session_case_edit(file, "\"post_processor\": null", frame);
        snprintf(file, sizeof file, "%s/gpt2/%s", path, copies[i][1]);
        EXPECT_OK(file_write_atomic(file, copies[i][2], strlen(copies[i][2])));
    }
    safetensors_close(&golden);
}

int main(void)
{
    enum { N = 5, PATH = 256 };
    static const char *const folders[N][2] = {{NULL, "gpt2"},
                                              {NULL, "bloom"},
                                              {"mlm", "masked_lm"},
                                              {"chat", "copies_0/gpt2"},
                                              {"odd", "copies_1/gpt2"}};
    char directory[64], paths[N][PATH];
    struct served_source sources[N];
    struct served_case s;
    session_case_directory(directory, sizeof directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    session_case_unpack(directory);
    write_chats(directory);
    for (int i = 0; i < N; i++) {
        snprintf(paths[i], PATH, "%s/%s", directory, folders[i][1]);
        sources[i] = (struct served_source){folders[i][0], paths[i]};
    }
    served_case_open(&s, sources, N);
    check_rows(&s);
    check_streams(&s);
    check_usage(&s);
    check_chat(&s);
    check_probabilities(&s);
    served_case_close(&s);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
