/* api_tag: kiln_tag of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/tag_words.h"

#include <stdlib.h>
#include <string.h>

/* Two blocks: the words' labels, then the names of all labels; the entities, then their types. */
static struct status take_words(struct kiln_tags *out, const struct label_names *names,
                                const struct tag_result *r)
{
    size_t n = (size_t)r->n;
    out->words = malloc(n * sizeof *out->words + names->text.n);
    FAIL_IF(out->words == NULL, STATUS_MEMORY, "out of memory for the labels of %zu words", n);
    char *text = (char *)(out->words + n);
    memcpy(text, names->text.data, names->text.n);
    for (size_t i = 0; i < n; i++) {
        const char *name = label_names_get(names, r->words[i].label);
        out->words[i] =
            (struct kiln_word_label){r->words[i].label, text + (name - names->text.data), r->words[i].score};
    }
    return status_ok();
}

static struct status take_entities(struct kiln_tags *out, const struct tag_result *r)
{
    size_t n = (size_t)r->n_entities, n_text = 1; /* never an empty block */
    for (size_t i = 0; i < n; i++) {
        n_text += strlen(r->entities[i].type) + 1;
    }
    out->entities = malloc(n * sizeof *out->entities + n_text);
    FAIL_IF(out->entities == NULL, STATUS_MEMORY, "out of memory for %zu entities", n);
    char *text = (char *)(out->entities + n);
    for (size_t i = 0; i < n; i++) {
        const struct tag_entity *e = &r->entities[i];
        size_t n_type = strlen(e->type) + 1;
        memcpy(text, e->type, n_type);
        out->entities[i] = (struct kiln_entity){text, e->begin, e->end};
        text += n_type;
    }
    return status_ok();
}

static struct status take_tags(struct kiln_tags *out, const struct label_names *names,
                               const struct tag_result *r)
{
    struct kiln_tags t = {.n = r->n, .n_entities = r->n_entities, .n_cut = r->n_cut};
    struct status s = take_words(&t, names, r);
    if (!failed(s)) {
        s = take_entities(&t, r);
    }
    if (failed(s)) {
        kiln_tags_free(&t);
    }
    *out = t;
    return s;
}

static struct status run(struct kiln_session *session, struct kiln_tags *out,
                         const struct tag_sentence *sentences, size_t n)
{
    struct tag_result r;
    struct status s = tag_words(&session->session, &r, sentences, n);
    if (!failed(s)) {
        s = take_tags(out, session->session.model->labels.names, &r);
    }
    tag_result_fini(&r);
    return s;
}

/* Converts the sentences to inner form, each with its own block of words. */
static struct status take_sentences(struct tag_sentence *out, const struct kiln_sentence *sentences, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct text_bytes *words = NULL;
        TRY(api_take_texts(&words, sentences[i].words, sentences[i].n, "words of a sentence"));
        out[i] = (struct tag_sentence){words, sentences[i].n};
    }
    return status_ok();
}

static struct status tag(struct kiln_session *session, struct kiln_tags *tags,
                         const struct kiln_sentence *sentences, size_t n)
{
    TRY(api_begin_task(session, KILN_TAG));
    FAIL_IF(sentences == NULL && n > 0, STATUS_USAGE, "sentences is NULL, but has %zu", n);
    struct tag_sentence *inner = n == SIZE_MAX ? NULL : calloc(n + 1, sizeof *inner);
    struct status s = inner == NULL ? status_error(STATUS_MEMORY, "out of memory for %zu sentences", n)
                                    : take_sentences(inner, sentences, n);
    if (!failed(s)) {
        s = run(session, tags, inner, n);
    }
    for (size_t i = 0; inner != NULL && i < n; i++) {
        free((void *)inner[i].words);
    }
    free(inner);
    return s;
}

struct kiln_status kiln_tag(struct kiln_session *session, struct kiln_tags *tags,
                            const struct kiln_sentence *sentences, size_t n_sentences)
{
    if (tags == NULL) {
        return api_status(status_error(STATUS_USAGE, "tags is NULL"));
    }
    *tags = (struct kiln_tags){0};
    return api_status(tag(session, tags, sentences, n_sentences));
}

void kiln_tags_free(struct kiln_tags *tags)
{
    if (tags != NULL) {
        free(tags->words);
        free(tags->entities);
        *tags = (struct kiln_tags){0};
    }
}
