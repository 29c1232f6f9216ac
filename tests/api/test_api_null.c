/* NULL for each pointer of each function of include/kiln/kiln.h and engine.h: an error, 0, NULL or nothing,
 * as the header's rule has it, and a result that was passed is empty afterwards.  A function that the table
 * below lacks fails the test. */
#define _GNU_SOURCE
#include "session_case.h"

#include <kiln/engine.h>

#include <ctype.h>

static char directory[64];
static struct kiln_model *model, *asker;
static struct kiln_session *fill, *ask, *embed, *classify, *tag, *decoder;
static const char *function; /* whose test runs */

/* KILN_USAGE with a message that names the argument. */
static void expect_usage(struct kiln_status s, const char *argument)
{
    EXPECT(s.code == KILN_USAGE && strstr(s.message, argument) != NULL, "%s: code %d, '%s' lacks '%s'",
           function, (int)s.code, s.message, argument);
}

#define EXPECT_EMPTY(result)                                                                                 \
    do {                                                                                                     \
        static const char zeros[sizeof(result)];                                                             \
        EXPECT(memcmp(&(result), zeros, sizeof(result)) == 0, "%s leaves a result", function);               \
    } while (0)

static struct kiln_model *open_model(const char *name)
{
    char path[128];
    struct kiln_model *m;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT(kiln_model_open(&m, path).code == KILN_OK, "%s", path);
    return m;
}

static void null_nothing(void)
{
    EXPECT(kiln_version()[0] != '\0', "a version");
}

static void null_log(void)
{
    kiln_log_to(NULL, NULL, KILN_LOG_INFO);
}

static void null_decode(void)
{
    const int32_t id = 0;
    struct kiln_string text = {"x", 1};
    expect_usage(kiln_decode(NULL, &text, &id, 1, false), "model");
    EXPECT_EMPTY(text);
    text.n = 1;
    expect_usage(kiln_decode(model, &text, NULL, 1, false), "ids");
    EXPECT_EMPTY(text);
    expect_usage(kiln_decode(model, NULL, &id, 1, false), "text");
    kiln_string_free(NULL);
    kiln_string_free(&text);
}

static void null_model_open(void)
{
    struct kiln_model *m = model;
    expect_usage(kiln_model_open(NULL, directory), "model");
    expect_usage(kiln_model_open(&m, NULL), "path");
    EXPECT_EMPTY(m);
}

static void null_model_open_on(void)
{
    struct kiln_model *m = model;
    struct kiln_model_options o = kiln_model_defaults(), none = {.size = sizeof none};
    char path[128];
    expect_usage(kiln_model_open_on(NULL, directory, &o), "model");
    expect_usage(kiln_model_open_on(&m, NULL, &o), "path");
    EXPECT_EMPTY(m);
    snprintf(path, sizeof path, "%s/encoder", directory);
    EXPECT(kiln_model_open_on(&m, path, NULL).code == KILN_OK, "NULL options are the defaults");
    kiln_model_close(m);
    EXPECT(kiln_model_open_on(&m, path, &none).code == KILN_OK, "so are NULL texts in them");
    kiln_model_close(m);
}

static void null_model(void)
{
    size_t n = 7;
    kiln_model_close(NULL);
    EXPECT(kiln_model_width(NULL) == 0 && kiln_model_max_tokens(NULL) == 0 &&
               kiln_model_vocab_size(NULL) == 0 && kiln_model_tasks(NULL) == 0 &&
               kiln_model_special(NULL, KILN_TOKEN_END) == -1,
           "numbers of no model");
    EXPECT(kiln_model_piece(NULL, 0, &n) == NULL && n == 0, "a piece of no model");
    EXPECT(kiln_model_piece(model, 5, NULL) == NULL, "a piece without its length");
    EXPECT(kiln_model_piece(model, 5, &n) != NULL && n > 0, "no piece");
    EXPECT(kiln_model_label(NULL, 0) == NULL && kiln_model_label(model, 0) == NULL,
           "a label of no classifier");
}

static void null_session_open(void)
{
    struct kiln_session *s = fill;
    expect_usage(kiln_session_open(NULL, model, KILN_FILL), "session");
    expect_usage(kiln_session_open(&s, NULL, KILN_FILL), "model");
    EXPECT_EMPTY(s);
}

static void null_session(void)
{
    kiln_session_close(NULL);
    kiln_session_cancel(NULL);
    kiln_session_resume(NULL);
    kiln_session_set_threads(NULL, 1);
}

static void null_memory(void)
{
    struct kiln_memory memory = {1, 1};
    expect_usage(kiln_model_memory(model, NULL, KILN_FILL, NULL), "memory");
    expect_usage(kiln_model_memory(NULL, &memory, KILN_FILL, NULL), "model");
    EXPECT_EMPTY(memory);
}

static void null_tokenize(void)
{
    struct kiln_tokens t = {.n = 3};
    expect_usage(kiln_model_tokenize(NULL, &t, "a", 1), "model");
    EXPECT_EMPTY(t);
    expect_usage(kiln_model_tokenize(model, NULL, "a", 1), "tokens");
    t.n = 3;
    expect_usage(kiln_tokenize(NULL, &t, "a", 1), "session");
    EXPECT_EMPTY(t);
    t.n = 3;
    expect_usage(kiln_tokenize(fill, NULL, "a", 1), "tokens");
    expect_usage(kiln_tokenize(fill, &t, NULL, 1), "text");
    EXPECT_EMPTY(t);
    kiln_tokens_free(NULL);
    kiln_tokens_free(&t);
}

static void null_fill(void)
{
    struct kiln_words w = {.n_masks = 3};
    expect_usage(kiln_fill(NULL, &w, "[MASK]", 6, 1), "session");
    EXPECT_EMPTY(w);
    w.n_masks = 3;
    expect_usage(kiln_fill(fill, NULL, "[MASK]", 6, 1), "words");
    expect_usage(kiln_fill(fill, &w, NULL, 6, 1), "text");
    EXPECT_EMPTY(w);
    kiln_words_free(NULL);
    kiln_words_free(&w);
}

static void null_ask(void)
{
    struct kiln_ask_options o = kiln_ask_defaults();
    struct kiln_answers a = {.n = 3};
    expect_usage(kiln_ask(NULL, &a, "a dog?", "a dog", 5, &o), "session");
    EXPECT_EMPTY(a);
    expect_usage(kiln_ask(ask, NULL, "a dog?", "a dog", 5, &o), "answers");
    expect_usage(kiln_ask(ask, &a, NULL, "a dog", 5, &o), "question");
    a.n = 3;
    expect_usage(kiln_ask(ask, &a, "a dog?", NULL, 5, &o), "context");
    EXPECT_EMPTY(a);
    EXPECT(kiln_ask(ask, &a, "a dog?", "a dog", 5, NULL).code == KILN_OK, "NULL options are the defaults");
    kiln_answers_free(&a);
    kiln_answers_free(NULL);
}

static void null_embed(void)
{
    struct kiln_embed_options o = kiln_embed_defaults();
    struct kiln_text text = {"a", 1}, none = {NULL, 1}, empty = {NULL, 0};
    struct kiln_vectors v = {.n = 3};
    expect_usage(kiln_embed(NULL, &v, &text, 1, &o), "session");
    EXPECT_EMPTY(v);
    expect_usage(kiln_embed(embed, NULL, &text, 1, &o), "vectors");
    expect_usage(kiln_embed(embed, &v, NULL, 1, &o), "texts");
    v.n = 3;
    expect_usage(kiln_embed(embed, &v, &none, 1, &o), "text");
    EXPECT_EMPTY(v);
    EXPECT(kiln_embed(embed, &v, &empty, 1, NULL).code == KILN_OK && v.n == 1, "an empty text, the defaults");
    kiln_vectors_free(&v);
    kiln_vectors_free(NULL);
}

static void null_classify(void)
{
    struct kiln_text text = {"a", 1}, none = {NULL, 1}, empty = {NULL, 0};
    struct kiln_labels l = {.n = 3};
    expect_usage(kiln_classify(NULL, &l, &text, NULL, 1), "session");
    EXPECT_EMPTY(l);
    expect_usage(kiln_classify(classify, NULL, &text, NULL, 1), "labels");
    expect_usage(kiln_classify(classify, &l, NULL, NULL, 1), "texts");
    l.n = 3;
    expect_usage(kiln_classify(classify, &l, &none, NULL, 1), "text");
    EXPECT_EMPTY(l);
    expect_usage(kiln_classify(classify, &l, &text, &none, 1), "text");
    EXPECT_EMPTY(l);
    EXPECT(kiln_classify(classify, &l, &empty, NULL, 1).code == KILN_OK && l.n == 1, "no pairs");
    kiln_labels_free(&l);
    kiln_labels_free(NULL);
}

static void null_tag(void)
{
    struct kiln_text text = {"a", 1}, none = {NULL, 1}, empty = {NULL, 0};
    struct kiln_sentence one = {&text, 1}, lost = {&none, 1}, gap = {&empty, 1}, missing = {NULL, 1};
    struct kiln_tags t = {.n = 3};
    expect_usage(kiln_tag(NULL, &t, &one, 1), "session");
    EXPECT_EMPTY(t);
    expect_usage(kiln_tag(tag, NULL, &one, 1), "tags");
    expect_usage(kiln_tag(tag, &t, NULL, 1), "sentences");
    t.n = 3;
    expect_usage(kiln_tag(tag, &t, &missing, 1), "words");
    EXPECT_EMPTY(t);
    expect_usage(kiln_tag(tag, &t, &lost, 1), "text");
    EXPECT_EMPTY(t);
    EXPECT(kiln_tag(tag, &t, &gap, 1).code == KILN_OK && t.n == 1, "an empty word");
    kiln_tags_free(&t);
    kiln_tags_free(NULL);
}

static void null_rows(void)
{
    struct kiln_rows r = {.n = 3};
    expect_usage(kiln_embed_tokens(NULL, &r, "a", 1), "session");
    EXPECT_EMPTY(r);
    expect_usage(kiln_tag_tokens(NULL, &r, "a", 1), "session");
    expect_usage(kiln_embed_tokens(embed, NULL, "a", 1), "rows");
    expect_usage(kiln_tag_tokens(tag, NULL, "a", 1), "rows");
    r.n = 3;
    expect_usage(kiln_embed_tokens(embed, &r, NULL, 1), "text");
    EXPECT_EMPTY(r);
    expect_usage(kiln_tag_tokens(tag, &r, NULL, 1), "text");
    expect_usage(kiln_tag_tokens(embed, &r, "a", 1), "cannot tag");
    EXPECT(kiln_embed_tokens(embed, &r, NULL, 0).code == KILN_OK && r.n == 2,
           "an empty text has special tokens");
    kiln_rows_free(&r);
    EXPECT(kiln_tag_tokens(tag, &r, NULL, 0).code == KILN_OK && r.n == 0, "an empty text has no token");
    kiln_rows_free(&r);
    kiln_rows_free(NULL);
}

static void null_generate(void)
{
    struct kiln_text text = {"and", 3}, none = {NULL, 1};
    struct kiln_continuations c = {.n = 3};
    struct kiln_generate_options o = kiln_generate_defaults();
    expect_usage(kiln_generate(NULL, &c, &text, 1, &o), "session");
    EXPECT_EMPTY(c);
    expect_usage(kiln_generate(decoder, NULL, &text, 1, &o), "continuations");
    c.n = 3;
    expect_usage(kiln_generate(decoder, &c, NULL, 1, &o), "prompts");
    EXPECT_EMPTY(c);
    expect_usage(kiln_generate(decoder, &c, &none, 1, &o), "text");
    EXPECT_EMPTY(c);
    o.n_stops = 1;
    expect_usage(kiln_generate(decoder, &c, &text, 1, &o), "stops");
    EXPECT_EMPTY(c);
    o.n_stops = 0, o.max_new_tokens = 3;
    EXPECT(kiln_generate(decoder, &c, &text, 1, &o).code == KILN_OK && c.n == 1, "no stops, nobody is told");
    kiln_continuations_free(&c);
    kiln_continuations_free(NULL);
}

static void null_generator(void)
{
    struct kiln_model *m = open_model("gpt2");
    struct kiln_generator *g = (struct kiln_generator *)m;
    struct kiln_step step = {.n = 1};
    uint64_t text;
    expect_usage(kiln_generator_open(NULL, m, NULL), "generator");
    expect_usage(kiln_generator_open(&g, NULL, NULL), "model");
    EXPECT_EMPTY(g);
    EXPECT(kiln_generator_open(&g, m, NULL).code == KILN_OK, "NULL options are the defaults");
    kiln_model_close(m);
    expect_usage(kiln_generator_add(NULL, &text, "the", 3, NULL), "generator");
    expect_usage(kiln_generator_add(g, NULL, "the", 3, NULL), "text");
    expect_usage(kiln_generator_add(g, &text, NULL, 3, NULL), "prompt");
    expect_usage(kiln_generator_step(NULL, &step), "generator");
    EXPECT_EMPTY(step);
    expect_usage(kiln_generator_step(g, NULL), "step");
    kiln_generator_cancel(NULL, 0);
    kiln_generator_close(NULL);
    kiln_generator_close(g);
    kiln_step_free(NULL);
    kiln_step_free(&step);
}

static void null_run(void)
{
    struct kiln_setting none = {NULL, "x"};
    struct kiln_run *r = (struct kiln_run *)directory;
    struct kiln_string event = {"x", 1};
    bool more = true;
    expect_usage(kiln_run_open(NULL, "classify", &none, 0), "run");
    expect_usage(kiln_run_open(&r, NULL, &none, 0), "command");
    EXPECT_EMPTY(r);
    expect_usage(kiln_run_open(&r, "classify", NULL, 1), "settings");
    expect_usage(kiln_run_open(&r, "classify", &none, 1), "setting 0");
    expect_usage(kiln_run_next_event(NULL, &event, 0, &more), "run");
    EXPECT_EMPTY(event);
    EXPECT(!more, "no run goes on");
    EXPECT(kiln_run_open(&r, "classify", NULL, 0).code == KILN_OK, "a run that lacks settings ends later");
    expect_usage(kiln_run_next_event(r, NULL, 0, &more), "event");
    expect_usage(kiln_run_next_event(r, &event, 0, NULL), "more");
    kiln_run_cancel(NULL);
    kiln_run_close(NULL);
    kiln_run_close(r);
}

static void null_score(void)
{
    struct kiln_text text = {"the", 3}, nothing = {NULL, 3};
    struct kiln_scores scores = {.n = 1};
    expect_usage(kiln_score(NULL, &scores, &text, 1, NULL), "session");
    EXPECT_EMPTY(scores);
    expect_usage(kiln_score(decoder, NULL, &text, 1, NULL), "scores");
    expect_usage(kiln_score(decoder, &scores, NULL, 1, NULL), "texts");
    expect_usage(kiln_score(decoder, &scores, &nothing, 1, NULL), "text");
    kiln_scores_free(NULL);
    kiln_scores_free(&scores);
}

static void null_engine_open(void)
{
    static const char config[] =
        "{\"train_batch_size\": 2, \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.1}}}";
    struct kiln_parameter p = {.name = "w", .n_dims = 1, .dims = {3}}, nameless = {.n_dims = 1, .dims = {3}};
    char path[160];
    struct kiln_engine *e = (struct kiln_engine *)path;
    snprintf(path, sizeof path, "%s/ds.json", directory);
    EXPECT_OK(file_write_atomic(path, config, sizeof config - 1));
    expect_usage(kiln_engine_open(NULL, path, &p, 1, NULL), "engine");
    expect_usage(kiln_engine_open(&e, NULL, &p, 1, NULL), "deepspeed_config");
    EXPECT(e == NULL, "an engine");
    expect_usage(kiln_engine_open(&e, path, NULL, 1, NULL), "parameters");
    expect_usage(kiln_engine_open(&e, path, &nameless, 1, NULL), "name");
    EXPECT(e == NULL, "an engine");
    EXPECT(kiln_engine_open(&e, path, &p, 1, NULL).code == KILN_OK, "values are not needed");
    EXPECT(kiln_engine_weights_bf16(e, 0) == NULL, "there is no copy");
    EXPECT(kiln_engine_backward(e, 1).code == KILN_OK && kiln_engine_step(e, NULL).code == KILN_OK, "a step");
    expect_usage(kiln_engine_save(e, NULL), "directory");
    bool found = true;
    expect_usage(kiln_engine_load(e, NULL, &found), "directory");
    expect_usage(kiln_engine_load(e, path, NULL), "found");
    EXPECT(!found, "found in nothing");
    kiln_engine_close(e);
}

static void null_engine(void)
{
    bool is = true;
    EXPECT(kiln_engine_weights(NULL, 0) == NULL && kiln_engine_weights_bf16(NULL, 0) == NULL &&
               kiln_engine_gradient(NULL, 0) == NULL && kiln_engine_info(NULL).n_ranks == 0,
           "of no engine");
    expect_usage(kiln_engine_backward(NULL, 0), "engine");
    expect_usage(kiln_engine_step(NULL, &is), "engine");
    EXPECT(!is, "no engine has updated");
    is = true;
    expect_usage(kiln_engine_save(NULL, "x"), "engine");
    expect_usage(kiln_engine_load(NULL, "x", &is), "engine");
    EXPECT(!is, "found in nothing");
    kiln_engine_close(NULL);
}

static const struct {
    const char *name;
    void (*test)(void);
} functions[] = {
    {"kiln_version", null_nothing},
    {"kiln_model_open", null_model_open},
    {"kiln_model_open_on", null_model_open_on},
    {"kiln_model_close", null_model},
    {"kiln_model_width", null_model},
    {"kiln_model_max_tokens", null_model},
    {"kiln_model_vocab_size", null_model},
    {"kiln_model_piece", null_model},
    {"kiln_log_to", null_log},
    {"kiln_model_special", null_model},
    {"kiln_model_tasks", null_model},
    {"kiln_decode", null_decode},
    {"kiln_string_free", null_decode},
    {"kiln_model_label", null_model},
    {"kiln_session_open", null_session_open},
    {"kiln_session_close", null_session},
    {"kiln_session_cancel", null_session},
    {"kiln_session_resume", null_session},
    {"kiln_session_set_threads", null_session},
    {"kiln_tokenize", null_tokenize},
    {"kiln_model_tokenize", null_tokenize},
    {"kiln_model_memory", null_memory},
    {"kiln_tokens_free", null_tokenize},
    {"kiln_fill", null_fill},
    {"kiln_words_free", null_fill},
    {"kiln_ask", null_ask},
    {"kiln_answers_free", null_ask},
    {"kiln_embed", null_embed},
    {"kiln_vectors_free", null_embed},
    {"kiln_classify", null_classify},
    {"kiln_labels_free", null_classify},
    {"kiln_tag", null_tag},
    {"kiln_tags_free", null_tag},
    {"kiln_embed_tokens", null_rows},
    {"kiln_tag_tokens", null_rows},
    {"kiln_rows_free", null_rows},
    {"kiln_generate", null_generate},
    {"kiln_continuations_free", null_generate},
    {"kiln_generator_open", null_generator},
    {"kiln_generator_close", null_generator},
    {"kiln_generator_add", null_generator},
    {"kiln_generator_cancel", null_generator},
    {"kiln_generator_step", null_generator},
    {"kiln_step_free", null_generator},
    {"kiln_run_open", null_run},
    {"kiln_run_next_event", null_run},
    {"kiln_run_cancel", null_run},
    {"kiln_run_close", null_run},
    {"kiln_score", null_score},
    {"kiln_scores_free", null_score},
    {"kiln_engine_open", null_engine_open},
    {"kiln_engine_close", null_engine},
    {"kiln_engine_info", null_engine},
    {"kiln_engine_weights", null_engine},
    {"kiln_engine_weights_bf16", null_engine},
    {"kiln_engine_gradient", null_engine},
    {"kiln_engine_backward", null_engine},
    {"kiln_engine_step", null_engine},
    {"kiln_engine_save", null_engine},
    {"kiln_engine_load", null_engine},
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static void run(const char *name)
{
    int i = 0;
    while (i < N_FUNCTIONS && strcmp(functions[i].name, name) != 0) {
        i++;
    }
    EXPECT(i < N_FUNCTIONS, "the header has %s, which this test does not know", name);
    function = name;
    functions[i].test();
}

/* The end of a declaration or comment that begins at `p`. */
static const char *skip(const char *p)
{
    const char *end = strncmp(p, "/*", 2) == 0 ? strstr(p, "*/") : NULL;
    return end == NULL ? p + 1 : end + 2;
}

/* Every name in front of a "(" in the header, outside comments. */
static int run_header(const char *path)
{
    struct file_map map;
    int n = 0;
    EXPECT_OK(file_map_open(&map, path));
    char *text = strndup((const char *)map.data, map.n);
    for (const char *p = text; *p != '\0'; p = skip(p)) {
        char name[64];
        size_t length = 0;
        while (strncmp(p, "kiln_", 5) == 0 && (isalnum((unsigned char)p[length]) || p[length] == '_')) {
            length++;
        }
        if (length > 0 && length < sizeof name && p[length] == '(') {
            snprintf(name, sizeof name, "%.*s", (int)length, p);
            run(name);
            n++;
        }
        p += length > 0 ? length - 1 : 0;
    }
    free(text);
    file_map_close(&map);
    return n;
}

/* A session of its own model. */
static struct kiln_session *open_alone(const char *name, enum kiln_task task)
{
    struct kiln_model *m = open_model(name);
    struct kiln_session *s;
    EXPECT(kiln_session_open(&s, m, task).code == KILN_OK, "%s", name);
    kiln_model_close(m);
    return s;
}

int main(void)
{
    session_case_directory(directory, sizeof directory);
    session_case_unpack(directory);
    session_case_unpack_classifiers(directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    model = open_model("pretraining");
    asker = open_model("question_answering");
    EXPECT(kiln_session_open(&fill, model, KILN_FILL).code == KILN_OK, "fill");
    EXPECT(kiln_session_open(&embed, model, KILN_EMBED).code == KILN_OK, "embed");
    EXPECT(kiln_session_open(&ask, asker, KILN_ASK).code == KILN_OK, "ask");
    classify = open_alone("single", KILN_CLASSIFY);
    tag = open_alone("tokens", KILN_TAG);
    decoder = open_alone("gpt2", KILN_GENERATE);
    int n = run_header(KILN_SOURCE_DIR "/include/kiln/kiln.h") +
            run_header(KILN_SOURCE_DIR "/include/kiln/engine.h");
    EXPECT(n == N_FUNCTIONS, "%d functions in the headers, %d here", n, N_FUNCTIONS);
    kiln_session_close(classify);
    kiln_session_close(tag);
    kiln_session_close(decoder);
    kiln_session_close(fill);
    kiln_session_close(embed);
    kiln_session_close(ask);
    kiln_model_close(model);
    kiln_model_close(asker);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
