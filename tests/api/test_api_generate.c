/* kiln_generate: the texts of `kiln generate`, told as they grow and cut before stops; the same alone,
 * beside others and in bf16; ended by the caller and by cancellation, after which the session goes on; and
 * wrong arguments.
 *
 * With arguments it is a tool for tests/cli: `test_api_generate unpack DIR` writes the decoders of
 * tests/golden/decoders.safetensors into DIR. */
#define _GNU_SOURCE
#include "expect_kiln.h"
#include "session_case.h"

#include "api/api.h"

enum { PATH = 256, N = 3, NEW = 9 };

static const char *const prompts[N] = {"and the", "the", "and"};
static char directory[64];

static void unpack(const char *to)
{
    session_case_unpack_golden(to, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
}

static struct kiln_session *open_session(const char *name, const char *dtype)
{
    char path[PATH];
    struct kiln_model *m;
    struct kiln_session *s;
    struct kiln_model_options o = {.size = sizeof o, .dtype = dtype};
    snprintf(path, PATH, "%s/%s", directory, name);
    EXPECT_KILN_OK(kiln_model_open_on(&m, path, &o));
    EXPECT_KILN_OK(kiln_session_open(&s, m, KILN_GENERATE));
    kiln_model_close(m);
    return s;
}

static struct kiln_text prompt_of(int i)
{
    return (struct kiln_text){prompts[i], strlen(prompts[i])};
}

/* What was told of each text. */
struct story {
    char text[N][400];
    size_t n[N], n_tokens[N];
    size_t stops_after; /* tokens of all texts; 0: never */
    size_t n_all;
    struct kiln_session *cancels;
};

static bool told(void *context, size_t text, int32_t id, const char *bytes, size_t n)
{
    struct story *s = context;
    EXPECT(text < N && id >= 0 && s->n[text] + n < sizeof s->text[0], "text %zu, id %d, %zu bytes", text, id,
           n);
    memcpy(s->text[text] + s->n[text], bytes, n);
    s->n[text] += n;
    s->n_tokens[text]++;
    s->n_all++;
    if (s->cancels != NULL && s->n_all == 4) {
        kiln_session_cancel(s->cancels);
    }
    return s->n_all != s->stops_after;
}

static struct kiln_generate_options options_of(double temperature, struct story *story)
{
    struct kiln_generate_options o = kiln_generate_defaults();
    o.max_new_tokens = NEW;
    o.temperature = temperature;
    o.told = story == NULL ? NULL : told;
    o.context = story;
    return o;
}

static void test_texts(const char *name, const char *dtype, double temperature)
{
    struct kiln_session *s = open_session(name, dtype);
    struct story story = {0};
    struct kiln_generate_options o = options_of(temperature, &story);
    struct kiln_text in[N];
    struct kiln_continuations all, again;
    for (int i = 0; i < N; i++) {
        in[i] = prompt_of(i);
    }
    EXPECT_KILN_OK(kiln_generate(s, &all, in, N, &o));
    EXPECT(all.n == N, "%zu texts", all.n);
    for (int i = 0; i < N; i++) {
        const struct kiln_continuation *t = &all.texts[i];
        EXPECT(t->n == strlen(t->text) && t->n == story.n[i] && memcmp(t->text, story.text[i], t->n) == 0,
               "text %d was told otherwise", i);
        EXPECT(t->n_ids == story.n_tokens[i] && t->n_ids <= NEW &&
                   (t->end == KILN_AT_LENGTH) == (t->n_ids == NEW),
               "text %d: %zu ids, end %d", i, t->n_ids, (int)t->end);
    }
    o.told = NULL;
    EXPECT_KILN_OK(kiln_generate(s, &again, in, 1, &o));
    EXPECT(again.texts[0].n == all.texts[0].n && strcmp(again.texts[0].text, all.texts[0].text) == 0,
           "%s in %s at %g: another text alone", name, dtype, temperature);
    kiln_continuations_free(&again);
    kiln_continuations_free(&all);
    kiln_continuations_free(&all);
    EXPECT_KILN_OK(kiln_generate(s, &all, NULL, 0, NULL));
    EXPECT(all.n == 0, "texts of nothing");
    kiln_continuations_free(&all);
    kiln_session_close(s);
}

static void test_stop(void)
{
    struct kiln_session *s = open_session("gpt2", "fp32");
    struct kiln_generate_options o = options_of(0, NULL);
    struct kiln_text in = prompt_of(0);
    struct kiln_continuations whole, cut;
    char stop[4] = {0};
    const char *const stops[] = {"none of this", stop};
    EXPECT_KILN_OK(kiln_generate(s, &whole, &in, 1, &o));
    memcpy(stop, whole.texts[0].text + 2, 2);
    o.stops = stops, o.n_stops = 2;
    EXPECT_KILN_OK(kiln_generate(s, &cut, &in, 1, &o));
    size_t at = (size_t)(strstr(whole.texts[0].text, stop) - whole.texts[0].text);
    EXPECT(cut.texts[0].end == KILN_AT_STOP && cut.texts[0].n == at, "%zu bytes before the stop at %zu",
           cut.texts[0].n, at);
    kiln_continuations_free(&cut);
    kiln_continuations_free(&whole);
    kiln_session_close(s);
}

static void test_ends(void)
{
    struct kiln_session *s = open_session("bloom", "fp32");
    struct kiln_text in[N] = {prompt_of(0), prompt_of(1), prompt_of(2)};
    struct kiln_continuations found;
    struct story stops = {.stops_after = 5}, cancels = {.cancels = s};
    struct kiln_generate_options o = options_of(1, &stops);
    o.ignore_end = true;
    EXPECT(kiln_generate(s, &found, in, N, &o).code == KILN_CANCELLED && found.texts == NULL,
           "the caller's end");
    EXPECT(stops.n_all == 5, "%zu tokens after the end", stops.n_all);
    o.context = &cancels;
    EXPECT(kiln_generate(s, &found, in, N, &o).code == KILN_CANCELLED, "a cancelled session");
    EXPECT(cancels.n_all < N * NEW, "%zu tokens after cancellation", cancels.n_all);
    EXPECT(kiln_generate(s, &found, in, N, &o).code == KILN_CANCELLED, "it stays so");
    kiln_session_resume(s);
    for (int i = 0; i < 20; i++) { /* pages of texts that were given up are free again */
        EXPECT_KILN_OK(kiln_generate(s, &found, in, N, NULL));
        kiln_continuations_free(&found);
    }
    kiln_session_close(s);
}

static void expect_usage(struct kiln_session *s, const struct kiln_generate_options *o, const char *text)
{
    struct kiln_text in = prompt_of(0);
    struct kiln_continuations found;
    struct kiln_status status = kiln_generate(s, &found, &in, 1, o);
    EXPECT(status.code == KILN_USAGE && strstr(status.message, text) != NULL, "%d: %s", (int)status.code,
           status.message);
}

static void test_arguments(void)
{
    struct kiln_session *s = open_session("gpt2", "fp32");
    const char *const none[] = {NULL}, *const empty[] = {""};
    struct kiln_continuations found;
    struct kiln_session *embed;
    struct kiln_text nothing = {NULL, 0}, in[1] = {prompt_of(0)};
#define WRONG(field, value, text)                                                                            \
    do {                                                                                                     \
        struct kiln_generate_options o = kiln_generate_defaults();                                           \
        o.field = value;                                                                                     \
        expect_usage(s, &o, text);                                                                           \
    } while (0)
    WRONG(max_new_tokens, 0, "max_new_tokens");
    WRONG(temperature, -1, "temperature");
    WRONG(temperature, (double)NAN, "temperature");
    WRONG(top_k, -1, "top_k");
    WRONG(top_p, 1.5, "top_p");
    WRONG(repetition_penalty, 0, "repetition_penalty");
    WRONG(n_stops, 1, "stops is NULL");
    struct kiln_generate_options o = options_of(0, NULL);
    o.n_stops = 1, o.stops = none;
    expect_usage(s, &o, "NULL");
    o.stops = empty;
    expect_usage(s, &o, "empty");
    o.n_stops = 0;
    EXPECT(kiln_generate(s, &found, &nothing, 1, &o).code == KILN_OK, "an empty prompt begins a text");
    kiln_continuations_free(&found);
    o.max_new_tokens = 24;
    struct kiln_status status = kiln_generate(s, &found, in, 1, &o);
    EXPECT(status.code == KILN_DATA && strstr(status.message, "at most 24 (context_shift goes on") != NULL &&
               strstr(status.message, "and max_new_tokens is 24: ") != NULL,
           "%s", status.message);
    EXPECT(strstr(kiln_session_open(&embed, s->model, KILN_EMBED).message, "only predicts the next word") !=
               NULL,
           "a decoder makes no vectors");
    o.context_shift = true;
    o.ignore_end = true;
    EXPECT(kiln_generate(s, &found, in, 1, &o).code == KILN_OK && found.texts[0].n_ids == 24, "%zu tokens",
           found.n);
    kiln_continuations_free(&found);
    kiln_session_close(s);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "unpack") == 0) {
        unpack(argv[2]);
        return 0;
    }
    session_case_directory(directory, sizeof directory);
    unpack(directory);
    test_texts("gpt2", "fp32", 0);
    test_texts("gpt2", "bf16", 1);
    test_texts("bloom", "fp32", 1);
    test_stop();
    test_ends();
    test_arguments();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
