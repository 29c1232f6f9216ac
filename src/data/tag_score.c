#include "data/tag_score.h"

#include <stdlib.h>
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

static struct tag_type *types_of(const struct tag_counts *c)
{
    return (struct tag_type *)(void *)c->types.data;
}

static size_t n_types(const struct tag_counts *c)
{
    return c->types.n / sizeof(struct tag_type);
}

static void count_type(struct tag_counts *c, const char *type, int truth, int said, int hit)
{
    struct tag_type *types = types_of(c);
    size_t i = 0, n = n_types(c);
    while (i < n && strcmp(types[i].type, type) != 0) {
        i++;
    }
    if (i == n) {
        buf_append(&c->types, &(struct tag_type){.type = type}, sizeof *types);
        types = types_of(c);
    }
    if (!c->types.failed) {
        types[i].n_truth += truth;
        types[i].n_said += said;
        types[i].n_hit += hit;
    }
}

void tag_score_add(struct tag_counts *c, const char *const *truth, const char *const *said, int64_t n)
{
    for (int64_t i = 0; i <= n; i++) {
        struct entity t = step(&c->truth, i < n ? truth[i] : "O"), s = step(&c->said, i < n ? said[i] : "O");
        bool hit = t.ended && s.ended && t.begin == s.begin && strcmp(t.type, s.type) == 0;
        c->n_truth += t.ended;
        c->n_said += s.ended;
        c->n_hit += hit;
        if (t.ended) {
            count_type(c, t.type, 1, 0, hit);
        }
        if (s.ended) {
            count_type(c, s.type, 0, 1, 0);
        }
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

static int by_name(const void *a, const void *b)
{
    const struct tag_type *x = a, *y = b;
    return strcmp(x->type, y->type);
}

static void add_row(json_t *rows, const struct tag_type *t)
{
    json_array_append_new(rows, json_pack("[o, f, f, f, I, I]", json_text(t->type),
                                          quotient(t->n_hit, t->n_said), quotient(t->n_hit, t->n_truth),
                                          quotient(2 * t->n_hit, t->n_said + t->n_truth),
                                          (json_int_t)t->n_truth, (json_int_t)t->n_said));
}

struct status tag_score_tables(json_t *tables, const struct tag_counts *c)
{
    TRY(buf_status(&c->types));
    json_t *rows = json_array();
    add_row(rows, &(struct tag_type){"micro average", c->n_truth, c->n_said, c->n_hit});
    if (n_types(c) > 0) {
        qsort(types_of(c), n_types(c), sizeof(struct tag_type), by_name);
    }
    for (size_t i = 0; i < n_types(c); i++) {
        add_row(rows, &types_of(c)[i]);
    }
    json_array_append_new(tables,
                          json_pack("{s:s, s:[s, s, s, s, s, s], s:o}", "title", "Entities", "columns",
                                    "type", "precision", "recall", "F1", "true", "predicted", "rows", rows));
    return status_ok();
}

void tag_counts_fini(struct tag_counts *c)
{
    buf_fini(&c->types);
}
