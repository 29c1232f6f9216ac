#include "data/tag_score.h"

#include <string.h>

/* An entity that has ended, before the label that shows its end. */
struct entity {
    const char *type;
    int64_t begin;
    bool ended;
};

/* The part after the first letter and the dash: "PER" of "B-PER", "_" if empty. */
static const char *type_of(const char *label)
{
    const char *rest = label + 1;
    while (((unsigned char)*rest & 0xC0) == 0x80) {
        rest++;
    }
    const char *dash = strchr(rest, '-');
    rest = dash == NULL ? rest : dash + 1;
    return *rest == '\0' ? "_" : rest;
}

static bool is_one_of(char tag, const char *tags)
{
    return tag != '\0' && strchr(tags, tag) != NULL;
}

static bool ends(const struct tag_walk *w, char tag, const char *type)
{
    return is_one_of(w->tag, "ES") || (is_one_of(w->tag, "BI") && is_one_of(tag, "BSO")) ||
           (!is_one_of(w->tag, "O.") && strcmp(w->type, type) != 0);
}

static bool begins(const struct tag_walk *w, char tag, const char *type)
{
    return is_one_of(tag, "BS") || (is_one_of(w->tag, "ESO") && is_one_of(tag, "EI")) ||
           (!is_one_of(tag, "O.") && strcmp(w->type, type) != 0);
}

static struct entity step(struct tag_walk *w, const char *label)
{
    char tag = *label;
    const char *type = type_of(label);
    if (w->type == NULL) { /* the very first label */
        w->tag = 'O';
        w->type = "";
    }
    struct entity e = {w->type, w->begin, ends(w, tag, type)};
    w->begin = begins(w, tag, type) ? w->at : w->begin;
    w->tag = tag;
    w->type = type;
    w->at++;
    return e;
}

void tag_score_add(struct tag_counts *c, const char *const *truth, const char *const *said, int64_t n)
{
    for (int64_t i = 0; i <= n; i++) {
        struct entity t = step(&c->truth, i < n ? truth[i] : "O"), s = step(&c->said, i < n ? said[i] : "O");
        c->n_truth += t.ended;
        c->n_said += s.ended;
        c->n_hit += t.ended && s.ended && t.begin == s.begin && strcmp(t.type, s.type) == 0;
        c->n_right += i < n && strcmp(truth[i], said[i]) == 0;
    }
    c->n_tokens += n;
}

int64_t tag_score_entities(struct tag_entity *out, const char *const *labels, int64_t n)
{
    struct tag_walk walk = {0};
    int64_t n_found = 0;
    for (int64_t i = 0; i <= n; i++) {
        struct entity e = step(&walk, i < n ? labels[i] : "O");
        if (e.ended) { /* the first label ends nothing, so there are at most n */
            out[n_found++] = (struct tag_entity){e.type, e.begin, i};
        }
    }
    return n_found;
}

static double quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : (double)a / (double)b;
}

struct score_list tag_score(const struct tag_counts *c)
{
    struct score_list s = {0};
    score_list_add(&s, "precision", quotient(c->n_hit, c->n_said));
    score_list_add(&s, "recall", quotient(c->n_hit, c->n_truth));
    score_list_add(&s, "f1", quotient(2 * c->n_hit, c->n_said + c->n_truth));
    score_list_add(&s, "accuracy", quotient(c->n_right, c->n_tokens));
    return s;
}
