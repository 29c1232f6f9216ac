#include "serve/tag_words.h"

#include "data/class_score.h"
#include "serve/predict.h"

#include <stdlib.h>

const float *tag_words_logits(const struct class_logits *l, const struct tag_word *w)
{
    return class_logits_get(l, w->example) + w->piece * l->n_labels;
}

static struct status put_sentences(struct tag_examples *e, const struct tag_sentence *sentences, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sentences[i].n > 0) { /* else there is nothing to label */
            TRY(tag_examples_add_sentence(e));
        }
        for (size_t k = 0; k < sentences[i].n; k++) {
            TRY(tag_examples_add_word(e, sentences[i].words[k].bytes, sentences[i].words[k].n, NULL, 0, 0));
        }
    }
    return status_ok();
}

/* Reads the label of each word; fills `names` with the labels' names, in which the entities are found. */
static void read_words(struct tag_result *r, const struct tag_examples *e, const struct class_logits *logits,
                       const struct model_labels *model, struct class_reading *all, const char **names)
{
    for (int64_t i = 0; i < e->n_words; i++) {
        const float *row = tag_words_logits(logits, tag_examples_word(e, i));
        class_logits_read(all, row, model);
        r->words[i] = all[class_score_best(row, model->n)];
        names[i] = label_names_get(model->names, r->words[i].label);
    }
    r->n = e->n_words;
}

static void find_entities(struct tag_result *r, const struct tag_examples *e, const char *const *names)
{
    for (int64_t s = 0; s < e->n; s++) {
        int64_t first = tag_examples_first(e, s);
        struct tag_entity *found = r->entities + r->n_entities;
        int64_t n = tag_score_entities(found, names + first, tag_examples_first(e, s + 1) - first);
        for (int64_t i = 0; i < n; i++) {
            found[i].begin += first;
            found[i].end += first;
        }
        r->n_entities += n;
    }
}

static struct status take(struct tag_result *r, const struct tag_examples *e,
                          const struct class_logits *logits, const struct model_labels *model)
{
    size_t n = (size_t)e->n_words;
    struct class_reading *all = calloc((size_t)model->n, sizeof *all);
    const char **names = calloc(n, sizeof *names);
    r->words = calloc(n, sizeof *r->words);
    r->entities = calloc(n, sizeof *r->entities);
    bool has_room = all != NULL && names != NULL && r->words != NULL && r->entities != NULL;
    if (has_room) {
        read_words(r, e, logits, model, all, names);
        find_entities(r, e, names);
    }
    free(all);
    free(names);
    return has_room ? status_ok()
                    : status_error(STATUS_MEMORY, "out of memory for the labels of %zu words", n);
}

static struct status run(struct session *s, struct tag_result *r, struct tag_examples *e)
{
    const struct model_labels *model = &s->model->labels;
    struct class_logits logits;
    TRY(tag_examples_encode(e, s->tokenizer, s->max_length, model, false));
    struct status status = class_logits_init(&logits, &e->texts, model->n);
    if (!failed(status)) {
        struct request request = class_logits_request(&logits);
        status = predict_run(&s->packer, &request, &(struct predict_options){0});
    }
    if (!failed(status)) {
        status = take(r, e, &logits, model);
    }
    class_logits_fini(&logits);
    r->n_cut = e->n_cut;
    return status;
}

struct status tag_words(struct session *s, struct tag_result *result, const struct tag_sentence *sentences,
                        size_t n_sentences)
{
    struct tag_examples e;
    *result = (struct tag_result){0};
    tag_examples_init(&e, "a sentence");
    struct status status = put_sentences(&e, sentences, n_sentences);
    if (!failed(status) && e.n_words > 0) {
        status = run(s, result, &e);
    }
    tag_examples_fini(&e);
    if (failed(status)) {
        tag_result_fini(result);
    }
    return status;
}

void tag_result_fini(struct tag_result *r)
{
    free(r->words);
    free(r->entities);
    *r = (struct tag_result){0};
}
