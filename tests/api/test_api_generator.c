/* kiln_generator: texts with options of their own that are added while others run, each the same as
 * kiln_generate's alone; texts that are cancelled before and after they begin, all
 * of them while another thread steps; and wrong arguments. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include <pthread.h>

enum { PATH = 256, N = 6, NEW = 9 };

static const char *const prompts[N] = {"and the", "the", "and", "the end", "end", "and the end"};
static char directory[64];
static struct kiln_model *model;

/* Options that differ from text to text. */
static struct kiln_generate_options options_of(int i, const char *const *stops)
{
    struct kiln_generate_options o = kiln_generate_defaults();
    o.max_new_tokens = NEW - i % 3;
    o.temperature = i % 2;
    o.seed = (uint64_t)i;
    o.ignore_end = i == 4;
    o.n_candidates = i % 3;
    o.stops = i == 5 ? stops : NULL;
    o.n_stops = i == 5;
    return o;
}

struct told {
    uint64_t number;
    char text[400];
    size_t n, n_tokens, n_candidates;
    double log_probability;
    enum kiln_end end;
};

static struct told *find(struct told *told, uint64_t number)
{
    int i = 0;
    while (i < N && told[i].number != number) {
        i++;
    }
    EXPECT(i < N, "text %llu is nobody's", (unsigned long long)number);
    return &told[i];
}

/* One step; the texts that are left. */
static size_t step(struct kiln_generator *g, struct told *told)
{
    struct kiln_step s;
    EXPECT_KILN_OK(kiln_generator_step(g, &s));
    for (size_t i = 0; i < s.n; i++) {
        const struct kiln_grown *new = &s.texts[i];
        struct told *t = find(told, new->text);
        EXPECT(t->end == 0 && strlen(new->bytes) == new->n &&new->code == KILN_OK &&new->message[0] == '\0',
               "text %llu after its end: %s", (unsigned long long)new->text, new->message);
        memcpy(t->text + t->n, new->bytes, new->n + 1);
        t->n += new->n;
        t->n_tokens += new->id >= 0;
        t->n_candidates += new->candidates != NULL &&new->candidates[0].id >= 0;
        t->log_probability += new->log_probability;
        t->end = new->end;
    }
    size_t n_left = s.n_left;
    kiln_step_free(&s);
    kiln_step_free(&s);
    return n_left;
}

/* The same text of kiln_generate. */
static void expect_alone(const struct told *t, int i, const char *const *stops)
{
    struct kiln_session *s;
    struct kiln_continuations c;
    struct kiln_text in = {prompts[i], strlen(prompts[i])};
    struct kiln_generate_options o = options_of(i, stops);
    double sum = 0;
    EXPECT_KILN_OK(kiln_session_open(&s, model, KILN_GENERATE));
    EXPECT_KILN_OK(kiln_generate(s, &c, &in, 1, &o));
    for (size_t k = 0; k < c.texts[0].n_ids && c.texts[0].log_probabilities != NULL; k++) {
        sum += c.texts[0].log_probabilities[k];
    }
    EXPECT(t->n == c.texts[0].n && strcmp(t->text, c.texts[0].text) == 0 && t->end == c.texts[0].end &&
               t->n_tokens == c.texts[0].n_ids && t->log_probability == sum &&
               t->n_candidates == (o.n_candidates > 0 ? t->n_tokens : 0),
           "text %d: '%s' of %zu tokens, alone '%s' of %zu", i, t->text, t->n_tokens, c.texts[0].text,
           c.texts[0].n_ids);
    kiln_continuations_free(&c);
    kiln_session_close(s);
}

static void add(struct kiln_generator *g, struct told *told, int i, const char *const *stops)
{
    struct kiln_generate_options o = options_of(i, stops);
    char prompt[40];
    snprintf(prompt, sizeof prompt, "%s", prompts[i]);
    EXPECT_KILN_OK(kiln_generator_add(g, &told[i].number, prompt, strlen(prompt), &o));
    memset(prompt, 'x', sizeof prompt);
}

static void test_texts(int64_t n_texts)
{
    struct kiln_generator *g;
    struct told told[N] = {0};
    char *stop = strdup("e");
    const char *const given[] = {stop}, *const stops[] = {"e"};
    struct kiln_generator_options o = kiln_generator_defaults();
    o.n_texts = n_texts;
    EXPECT_KILN_OK(kiln_generator_open(&g, model, &o));
    EXPECT(step(g, told) == 0, "texts of nobody");
    add(g, told, 5, given);
    free(stop);
    for (int i = 0; i < N - 1; i++) {
        add(g, told, i, NULL);
        EXPECT(step(g, told) >= 1, "no text is left");
    }
    while (step(g, told) > 0) {
    }
    for (int i = 0; i < N; i++) {
        expect_alone(&told[i], i, stops);
    }
    memset(told, 0, sizeof told);
    add(g, told, 0, NULL); /* closed while a text runs, and one waits */
    step(g, told);
    kiln_generator_close(g);
}

static void test_cancel(void)
{
    struct kiln_generator *g;
    struct told told[N] = {0};
    struct kiln_generator_options o = kiln_generator_defaults();
    o.n_texts = 1;
    EXPECT_KILN_OK(kiln_generator_open(&g, model, &o));
    add(g, told, 4, NULL);
    add(g, told, 1, NULL);
    add(g, told, 2, NULL);
    EXPECT(step(g, told) == 3 && told[4].n_tokens == 1, "the first text has begun");
    kiln_generator_cancel(g, told[4].number);
    kiln_generator_cancel(g, told[2].number); /* it has not begun */
    kiln_generator_cancel(g, 12345);
    while (step(g, told) > 0) {
    }
    EXPECT(told[4].end == KILN_AT_CANCEL && told[2].end == KILN_AT_CANCEL && told[4].n_tokens == 1 &&
               told[2].n_tokens == 0,
           "ends %d and %d", (int)told[4].end, (int)told[2].end);
    expect_alone(&told[1], 1, NULL);
    kiln_generator_close(g);
}

static void *step_on(void *generator)
{
    struct kiln_step s;
    struct kiln_status status;
    do {
        status = kiln_generator_step(generator, &s);
        kiln_step_free(&s);
    } while (status.code == KILN_OK);
    EXPECT(status.code == KILN_CANCELLED, "%s", status.message);
    return NULL;
}

/* The end of all texts ends the steps of another thread. */
static void test_cancel_all(void)
{
    struct kiln_generator *g;
    struct told told[N] = {0};
    pthread_t thread;
    EXPECT_KILN_OK(kiln_generator_open(&g, model, NULL));
    add(g, told, 0, NULL);
    EXPECT(pthread_create(&thread, NULL, step_on, g) == 0, "no thread");
    kiln_generator_cancel(g, 0);
    pthread_join(thread, NULL);
    kiln_generator_close(g);
}

static void test_wrong(void)
{
    struct kiln_generator *g;
    uint64_t text;
    struct kiln_generate_options o = kiln_generate_defaults();
    struct kiln_generator_options none = kiln_generator_defaults();
    none.n_texts = 0;
    EXPECT_KILN_ERROR(kiln_generator_open(&g, model, &none), KILN_USAGE, "n_texts is 0");
    EXPECT_KILN_OK(kiln_generator_open(&g, model, NULL));
    o.max_new_tokens = 100;
    EXPECT_KILN_ERROR(kiln_generator_add(g, &text, "the", 3, &o), KILN_DATA, "max_new_tokens is 100");
    o.max_new_tokens = 1;
    o.top_p = 2;
    EXPECT_KILN_ERROR(kiln_generator_add(g, &text, "the", 3, &o), KILN_USAGE, "top_p");
    EXPECT_KILN_ERROR(kiln_generator_add(g, &text, NULL, 3, NULL), KILN_USAGE, "prompt is NULL");
    kiln_generator_close(g);
}

int main(void)
{
    char path[PATH];
    session_case_directory(directory, sizeof directory);
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    snprintf(path, sizeof path, "%s/gpt2", directory);
    EXPECT_KILN_OK(kiln_model_open(&model, path));
    test_texts(1);
    test_texts(4);
    test_texts(8);
    test_cancel();
    test_cancel_all();
    test_wrong();
    kiln_model_close(model);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
