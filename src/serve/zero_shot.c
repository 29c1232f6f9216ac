#include "serve/zero_shot.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool zero_shot_find(struct zero_shot_rule *z, const struct model_labels *model)
{
    for (z->entails = 0; z->entails < model->n; z->entails++) {
        if (strncasecmp(label_names_get(model->names, z->entails), "entail", 6) == 0) {
            z->contradicts = z->entails == 0 ? model->n - 1 : 0;
            return model->n > 1;
        }
    }
    return false;
}

void zero_shot_append_hypothesis(struct buf *out, const char *template, const char *label)
{
    const char *at = strstr(template, "{}");
    buf_append(out, template, (size_t)(at - template));
    buf_puts(out, label);
    buf_puts(out, at + 2);
}

/* Scores each label alone: entailment against contradiction. */
static void score_alone(struct class_reading *out, const struct zero_shot_rule *z,
                        const struct class_logits *l, size_t first, size_t n_labels)
{
    for (size_t k = 0; k < n_labels; k++) {
        const float *row = class_logits_get(l, (int64_t)(first + k));
        out[k].score = 1 / (1 + exp((double)row[z->contradicts] - row[z->entails]));
    }
}

/* The softmax of the entailment of all labels. */
static void score_together(struct class_reading *out, const struct zero_shot_rule *z,
                           const struct class_logits *l, size_t first, size_t n_labels)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < n_labels; k++) {
        out[k].score = class_logits_get(l, (int64_t)(first + k))[z->entails];
        most = fmax(most, out[k].score);
    }
    for (size_t k = 0; k < n_labels; k++) {
        out[k].score = exp(out[k].score - most);
        sum += out[k].score;
    }
    for (size_t k = 0; k < n_labels; k++) {
        out[k].score /= sum;
    }
}

void zero_shot_score(struct class_reading *out, const struct zero_shot_rule *z, const struct class_logits *l,
                     size_t text, size_t n_labels)
{
    for (size_t k = 0; k < n_labels; k++) {
        out[k].label = (int64_t)k;
    }
    (z->multi_label || n_labels == 1 ? score_alone : score_together)(out, z, l, text * n_labels, n_labels);
    class_logits_sort(out, n_labels);
}
