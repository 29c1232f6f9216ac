#include "serve/tag_words.h"

#include "data/class_score.h"

#include <stdlib.h>

const float *tag_words_logits(const struct class_logits *l, const struct tag_word *w)
{
    return l->values + tag_examples_row(l->texts, w) * l->n_labels;
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

struct status tag_job_make(struct tag_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                           const struct tag_sentence *sentences, size_t n_sentences)
{
    *j = (struct tag_job){.labels = &s->model->labels};
    tag_examples_init(&j->sentences, "a sentence");
    TRY(put_sentences(&j->sentences, sentences, n_sentences));
    if (j->sentences.n_words > 0) { /* nothing is asked of a tokenizer for no words */
        TRY(tag_examples_encode(&j->sentences, scratch, s->max_length,
                                &(struct label_kind){.model = j->labels}));
    }
    TRY(class_logits_init(&j->logits, &j->sentences.texts, j->labels->n));
    j->request = class_logits_request(&j->logits);
    return status_ok();
}

/* Reads the label of each word; fills `names` with the labels' names, in which the entities are found. */
static void read_words(struct tag_result *r, const struct tag_job *j, struct class_reading *all,
                       const char **names)
{
    for (int64_t i = 0; i < r->n; i++) {
        const float *row = tag_words_logits(&j->logits, tag_examples_word(&j->sentences, i));
        class_logits_read(all, row, j->labels);
        r->words[i] = all[class_score_best(row, j->labels->n)];
        names[i] = label_names_get(j->labels->names, r->words[i].label);
    }
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

struct status tag_job_read(const struct tag_job *j, struct tag_result *r)
{
    size_t n = (size_t)j->sentences.n_words;
    struct class_reading *all = calloc((size_t)j->labels->n, sizeof *all);
    const char **names = calloc(n + 1, sizeof *names);
    *r = (struct tag_result){.words = calloc(n + 1, sizeof *r->words),
                             .entities = calloc(n + 1, sizeof *r->entities),
                             .n = j->sentences.n_words,
                             .n_cut = j->sentences.texts.n_cut};
    bool has_room = all != NULL && names != NULL && r->words != NULL && r->entities != NULL;
    if (has_room) {
        read_words(r, j, all, names);
        if (j->labels->problem == PROBLEM_SINGLE_LABEL) { /* numbers name no entities */
            find_entities(r, &j->sentences, names);
        }
    }
    free(all);
    free(names);
    return has_room ? status_ok()
                    : status_error(STATUS_MEMORY, "out of memory for the labels of %zu words", n);
}

void tag_job_fini(struct tag_job *j)
{
    class_logits_fini(&j->logits);
    tag_examples_fini(&j->sentences);
}

struct status tag_words(struct session *s, struct tag_result *result, const struct tag_sentence *sentences,
                        size_t n_sentences)
{
    struct tag_job j;
    *result = (struct tag_result){0};
    struct status status = tag_job_make(&j, s, &s->scratch, sentences, n_sentences);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    status = failed(status) ? status : tag_job_read(&j, result);
    tag_job_fini(&j);
    return status;
}

void tag_result_fini(struct tag_result *r)
{
    free(r->words);
    free(r->entities);
    *r = (struct tag_result){0};
}
