/* api_classify: kiln_classify of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/classify_texts.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)KILN_ONE_LABEL == PROBLEM_SINGLE_LABEL && (int)KILN_ANY_LABELS == PROBLEM_MULTI_LABEL &&
                   (int)KILN_NUMBERS == PROBLEM_REGRESSION,
               "public problems are those of nn/label_names.h");

/* One block: the labels, then the names, each once. */
static struct status take_labels(struct kiln_labels *out, const struct model_labels *model,
                                 const struct classify_result *r)
{
    size_t n = (size_t)(r->n * r->n_labels), n_text = model->names->text.n;
    struct kiln_label *labels = malloc(n * sizeof *labels + n_text);
    FAIL_IF(labels == NULL, STATUS_MEMORY, "out of memory for %zu labels", n);
    char *names = (char *)(labels + n);
    memcpy(names, model->names->text.data, n_text);
    for (size_t i = 0; i < n; i++) {
        const struct class_reading *from = &r->readings[i];
        const char *name = label_names_get(model->names, from->label);
        labels[i] = (struct kiln_label){.id = from->label,
                                        .name = names + (name - model->names->text.data),
                                        .score = from->score,
                                        .logit = from->logit,
                                        .holds = from->holds};
    }
    *out = (struct kiln_labels){.labels = labels,
                                .n = r->n,
                                .n_labels = r->n_labels,
                                .problem = (enum kiln_problem)model->problem,
                                .n_cut = r->n_cut};
    return status_ok();
}

static struct status run(struct kiln_session *session, struct kiln_labels *out,
                         const struct text_bytes *texts, const struct text_bytes *pairs, size_t n)
{
    struct classify_result r;
    struct status s = classify_texts(&session->session, &r, texts, pairs, n);
    if (!failed(s)) {
        s = take_labels(out, &session->session.model->labels, &r);
    }
    classify_result_fini(&r);
    return s;
}

static struct status classify(struct kiln_session *session, struct kiln_labels *labels,
                              const struct kiln_text *texts, const struct kiln_text *pairs, size_t n)
{
    struct text_bytes *first = NULL, *second = NULL;
    TRY(api_begin_task(session, KILN_CLASSIFY));
    struct status s = api_take_texts(&first, texts, n, "texts");
    if (!failed(s) && pairs != NULL) {
        s = api_take_texts(&second, pairs, n, "pairs");
    }
    if (!failed(s)) {
        s = run(session, labels, first, second, n);
    }
    free(first);
    free(second);
    return s;
}

struct kiln_status kiln_classify(struct kiln_session *session, struct kiln_labels *labels,
                                 const struct kiln_text *texts, const struct kiln_text *pairs, size_t n_texts)
{
    if (labels == NULL) {
        return api_status(status_error(STATUS_USAGE, "labels is NULL"));
    }
    *labels = (struct kiln_labels){0};
    return api_status(classify(session, labels, texts, pairs, n_texts));
}

void kiln_labels_free(struct kiln_labels *labels)
{
    if (labels != NULL) {
        free(labels->labels);
        *labels = (struct kiln_labels){0};
    }
}
