/* Whether a decoder guesses the last words of texts, and their nats, are what `transformers` says
 * (tests/golden/make_last_words.py), of texts that are longer than the model reads too; texts without such
 * a word are refused. */
#define _GNU_SOURCE
#include "session_case.h"

#include "core/json.h"
#include "serve/last_words.h"

static void add_texts(struct last_words *l, struct tokenizer_scratch *scratch, const json_t *texts)
{
    size_t i;
    const json_t *text;
    json_array_foreach(texts, i, text)
    {
        EXPECT_OK(last_words_add(l, scratch, json_string_value(text), json_string_length(text)));
    }
}

static void check_words(const struct last_words *l, const json_t *wanted, const char *name)
{
    size_t i;
    const json_t *word;
    double nats = 0, guessed = 0;
    json_array_foreach(wanted, i, word)
    {
        const struct last_word *w = (const struct last_word *)(void *)l->words.data + i;
        double expected = json_number_value(json_object_get(word, "nats"));
        EXPECT(w->n == json_integer_value(json_object_get(word, "tokens")), "%s, text %zu: %lld tokens", name,
               i, (long long)w->n);
        EXPECT(fabs(w->nats - expected) < 1e-4, "%s, text %zu: %.6f nats, not %.6f", name, i, w->nats,
               expected);
        EXPECT(w->guessed == json_is_true(json_object_get(word, "guessed")), "%s, text %zu: guessed is %d",
               name, i, w->guessed);
        nats += expected;
        guessed += w->guessed;
    }
    EXPECT(fabs(last_words_nats(l) - nats / (double)l->n) < 1e-4, "%s: the mean is %g", name,
           last_words_nats(l));
    EXPECT(last_words_accuracy(l) == guessed / (double)l->n, "%s: accuracy %g", name, last_words_accuracy(l));
}

static void check_model(struct session *s, const json_t *golden, const char *name)
{
    struct last_words l = {.session = s};
    char long_word[83] = "a ";
    memset(long_word + 2, 'b', 80);
    EXPECT_ERROR(last_words_make(&l), STATUS_DATA, "there is no text");
    EXPECT_ERROR(last_words_add(&l, &s->scratch, "alone", 5), STATUS_DATA,
                 "the text has no word after another");
    EXPECT_ERROR(last_words_add(&l, &s->scratch, " \n", 2), STATUS_DATA,
                 "the text has no word after another");
    EXPECT_ERROR(last_words_add(&l, &s->scratch, long_word, strlen(long_word)), STATUS_DATA,
                 "the last word has 81 tokens, more than are asked for");
    add_texts(&l, &s->scratch, json_object_get(golden, "texts"));
    EXPECT(l.n == (int64_t)json_array_size(json_object_get(golden, "texts")), "a refused text counts");
    EXPECT_OK(last_words_make(&l));
    EXPECT_OK(packer_answer(&s->packer, &l.request));
    check_words(&l, json_object_get(golden, name), name);
    last_words_fini(&l);
}

int main(void)
{
    static const char *const names[] = {"gpt2", "bloom"};
    char directory[SESSION_CASE_PATH / 2], path[SESSION_CASE_PATH];
    json_t *golden;
    session_case_directory(directory, sizeof directory);
    EXPECT_OK(json_read_object(&golden, KILN_SOURCE_DIR "/tests/golden/last_words.json"));
    session_case_unpack_golden(directory, KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    for (int i = 0; i < 2; i++) {
        struct session s;
        struct session_options o = session_defaults();
        o.batching = BATCHING_FEW_ASKED;
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        EXPECT_OK(session_open(&s, path, MODEL_TASK_CAUSAL_LM, &o));
        check_model(&s, golden, names[i]);
        session_close(&s);
    }
    json_decref(golden);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
