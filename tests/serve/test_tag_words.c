/* Sentences that are labelled together have the labels and entities that each has alone, counted over all
 * their words; those without words have none. */
#define _GNU_SOURCE
#include "serve/tag_words.h"
#include "session_case.h"

enum { SENTENCES = 4, MOST = 8 };

/* NULL ends a sentence. */
static const char *const words[SENTENCES][MOST] = {
    {"a", "mad", "dog"}, {NULL}, {"had", "man", "and", "a", "big", "black", "cage"}, {"ice", "on", "lake"}};

static struct text_bytes bytes[SENTENCES][MOST];
static struct tag_sentence sentences[SENTENCES];

static void fill_sentences(void)
{
    for (int s = 0; s < SENTENCES; s++) {
        size_t n = 0;
        for (; words[s][n] != NULL; n++) {
            bytes[s][n] = (struct text_bytes){words[s][n], strlen(words[s][n])};
        }
        sentences[s] = (struct tag_sentence){bytes[s], n};
    }
}

/* The results of one sentence are those of `all` from *word and *entity on, which it moves behind them. */
static void expect_alone(struct session *s, int sentence, const struct tag_result *all, int64_t *word,
                         int64_t *entity)
{
    struct tag_result r;
    EXPECT_OK(tag_words(s, &r, &sentences[sentence], 1));
    EXPECT(r.n == (int64_t)sentences[sentence].n && r.n_cut == 0, "%lld words", (long long)r.n);
    for (int64_t i = 0; i < r.n; i++) {
        const struct class_reading *a = &r.words[i], *b = &all->words[*word + i];
        EXPECT(a->label == b->label, "word %lld of sentence %d: label %lld, and %lld alone", (long long)i,
               sentence, (long long)b->label, (long long)a->label);
        EXPECT_NEAR(b->score, a->score, 1e-5);
    }
    for (int64_t i = 0; i < r.n_entities; i++) {
        const struct tag_entity *a = &r.entities[i], *b = &all->entities[*entity + i];
        EXPECT(*entity + i < all->n_entities && b->begin == *word + a->begin && b->end == *word + a->end &&
                   strcmp(a->type, b->type) == 0,
               "entity %lld of sentence %d: %s in [%lld, %lld), not %s", (long long)i, sentence, b->type,
               (long long)b->begin, (long long)b->end, a->type);
    }
    *word += r.n;
    *entity += r.n_entities;
    tag_result_fini(&r);
}

int main(void)
{
    char directory[64], path[SESSION_CASE_PATH];
    struct session_options options = session_defaults();
    struct session s;
    struct tag_result all;
    int64_t word = 0, entity = 0, in_first;
    session_case_directory(directory, sizeof directory);
    session_case_unpack_classifiers(directory);
    snprintf(path, sizeof path, "%s/tokens", directory);
    fill_sentences();
    EXPECT_OK(session_open(&s, path, MODEL_TASK_TOKEN_CLASSIFICATION, &options));
    EXPECT_OK(tag_words(&s, &all, sentences, SENTENCES));
    expect_alone(&s, 0, &all, &word, &entity);
    in_first = entity;
    for (int i = 1; i < SENTENCES; i++) {
        expect_alone(&s, i, &all, &word, &entity);
    }
    EXPECT(word == all.n && entity == all.n_entities && entity > in_first, "%lld words, %lld entities",
           (long long)all.n, (long long)all.n_entities);
    tag_result_fini(&all);
    session_close(&s);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
