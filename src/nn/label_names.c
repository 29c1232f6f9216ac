#include "nn/label_names.h"

#include "core/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void label_names_fini(struct label_names *l)
{
    buf_fini(&l->text);
    buf_fini(&l->starts);
    buf_fini(&l->order);
    *l = (struct label_names){0};
}

void label_names_destroy(struct label_names *l)
{
    if (l != NULL) {
        label_names_fini(l);
        free(l);
    }
}

struct status label_names_add(struct label_names *l, const char *name, size_t n)
{
    size_t start = l->text.n;
    buf_append(&l->starts, &start, sizeof start);
    buf_append(&l->text, name, n);
    buf_putc(&l->text, '\0');
    l->n++;
    TRY(buf_status(&l->starts));
    return buf_status(&l->text);
}

const char *label_names_get(const struct label_names *l, int64_t i)
{
    return l->text.data + ((const size_t *)(const void *)l->starts.data)[i];
}

/* A name, for qsort. */
struct named {
    const char *name;
    long long value;
    int64_t label;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->label > y->label) - (x->label < y->label);
}

static int by_value(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? -1 : 1) : by_name(a, b);
}

static struct status list_names(const struct label_names *l, struct named **list)
{
    *list = malloc(((size_t)l->n + 1) * sizeof **list);
    FAIL_IF(*list == NULL, STATUS_MEMORY, "out of memory for %lld labels", (long long)l->n);
    for (int64_t i = 0; i < l->n; i++) {
        (*list)[i] = (struct named){label_names_get(l, i), 0, i};
    }
    return status_ok();
}

struct status label_names_index(struct label_names *l)
{
    struct named *list;
    TRY(list_names(l, &list));
    qsort(list, (size_t)l->n, sizeof *list, by_name);
    buf_clear(&l->order);
    for (int64_t i = 0; i < l->n; i++) {
        buf_append(&l->order, &list[i].label, sizeof list[i].label);
    }
    free(list);
    return buf_status(&l->order);
}

/* Parses the names into values; false if they are not all whole numbers. */
static bool take_values(struct named *list, int64_t n)
{
    bool all = true;
    for (int64_t i = 0; i < n && all; i++) {
        char *end;
        errno = 0;
        list[i].value = strtoll(list[i].name, &end, 10);
        all = end != list[i].name && *end == '\0' && errno == 0;
    }
    return all;
}

struct status label_names_sort(struct label_names *l)
{
    struct label_names sorted = {0};
    struct named *list;
    TRY(list_names(l, &list));
    bool numbers = take_values(list, l->n);
    qsort(list, (size_t)l->n, sizeof *list, numbers ? by_value : by_name);
    struct status s = status_ok();
    for (int64_t i = 0; i < l->n && !failed(s); i++) {
        if (i == 0 || strcmp(list[i].name, list[i - 1].name) != 0) {
            s = label_names_add(&sorted, list[i].name, strlen(list[i].name));
        }
    }
    free(list);
    label_names_fini(l);
    *l = sorted;
    return failed(s) ? s : label_names_index(l);
}

struct status label_names_gather(struct label_names *l, const char *name, size_t n)
{
    enum { MANY = 1 << 20 };
    TRY(label_names_add(l, name, n));
    return l->n % MANY == 0 ? label_names_sort(l) : status_ok();
}

int64_t label_names_find(const struct label_names *l, const char *name, size_t n)
{
    const int64_t *order = (const int64_t *)(const void *)l->order.data;
    int64_t first = 0, last = l->n; /* the first that is not less lies in [first, last] */
    while (first < last) {
        int64_t middle = first + (last - first) / 2;
        const char *there = label_names_get(l, order[middle]);
        int less = strncmp(there, name, n);
        bool before = less < 0; /* a longer name with this prefix comes later */
        first = before ? middle + 1 : first;
        last = before ? last : middle;
    }
    bool found = first < l->n && strncmp(label_names_get(l, order[first]), name, n) == 0 &&
                 label_names_get(l, order[first])[n] == '\0';
    return found ? order[first] : -1;
}

/* Warns if "label2id", which maps names to labels, disagrees with "id2label". */
static void warn_of_other_ids(const struct label_names *l, const json_t *config, const char *source)
{
    const json_t *ids = json_object_get(config, "label2id");
    for (int64_t i = 0; i < l->n && json_object_size(ids) > 0; i++) {
        const json_t *id = json_object_get(ids, label_names_get(l, i));
        if (!json_is_integer(id) || json_integer_value(id) != i) {
            log_warning(
                "%s: \"id2label\" calls label %lld '%.60s', but \"label2id\" does not; \"id2label\" is used",
                source, (long long)i, label_names_get(l, i));
            return;
        }
    }
}

struct status label_names_parse(struct label_names *l, const json_t *config, int64_t num_labels,
                                const char *source)
{
    const json_t *names = json_object_get(config, "id2label");
    bool given = json_is_object(names) && (int64_t)json_object_size(names) == num_labels;
    for (int64_t i = 0; i < num_labels; i++) {
        char id[24], usual[32];
        snprintf(id, sizeof id, "%lld", (long long)i);
        snprintf(usual, sizeof usual, "LABEL_%lld", (long long)i);
        const char *name = usual;
        if (given) {
            TRY(status_context(json_get_string(names, source, id, true, &name), "id2label"));
        }
        TRY(label_names_add(l, name, strlen(name)));
    }
    if (given) {
        warn_of_other_ids(l, config, source);
    }
    return label_names_index(l);
}

bool label_names_to_json(const struct label_names *l, json_t *config)
{
    json_t *names = json_object(), *ids = json_object();
    bool complete = true;
    for (int64_t i = 0; i < l->n; i++) {
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)i);
        complete &= json_object_set_new(names, id, json_string(label_names_get(l, i))) == 0;
        complete &= json_object_set_new(ids, label_names_get(l, i), json_integer(i)) == 0;
    }
    complete &= json_object_set_new(config, "id2label", names) == 0;
    return (json_object_set_new(config, "label2id", ids) == 0) && complete;
}

static const char *const problems[] = {
    [PROBLEM_SINGLE_LABEL] = "single_label_classification",
    [PROBLEM_MULTI_LABEL] = "multi_label_classification",
    [PROBLEM_REGRESSION] = "regression",
};

const char *label_problem_name(enum label_problem p)
{
    return problems[p];
}

bool label_problem_find(enum label_problem *p, const char *name)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (strcmp(name, problems[i]) == 0) {
            *p = (enum label_problem)i;
            return true;
        }
    }
    return false;
}

struct status model_labels_parse(struct model_labels *l, const json_t *config, const char *source)
{
    enum { MOST_LABELS = 65536, USUAL_LABELS = 2 };
    const json_t *names = json_object_get(config, "id2label");
    const char *problem = NULL;
    l->n = json_is_object(names) ? (int64_t)json_object_size(names) : USUAL_LABELS;
    TRY(json_get_int(config, source, "num_labels", false, &l->n));
    FAIL_IF(l->n < 1 || l->n > MOST_LABELS, STATUS_DATA,
            "%s: \"num_labels\" is %lld, but must lie between 1 and %d", source, (long long)l->n,
            MOST_LABELS);
    l->problem = l->n == 1 ? PROBLEM_REGRESSION : PROBLEM_SINGLE_LABEL;
    if (json_is_null(json_object_get(config, "problem_type"))) {
        return status_ok();
    }
    TRY(json_get_string(config, source, "problem_type", false, &problem));
    return problem == NULL || label_problem_find(&l->problem, problem)
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"problem_type\" is \"%.60s\", but must be %s, %s or %s",
                              source, problem, label_problem_name(PROBLEM_SINGLE_LABEL),
                              label_problem_name(PROBLEM_MULTI_LABEL),
                              label_problem_name(PROBLEM_REGRESSION));
}

bool model_labels_to_json(const struct model_labels *l, json_t *config)
{
    return l->names == NULL ||
           (label_names_to_json(l->names, config) &&
            json_object_set_new(config, "problem_type", json_string(label_problem_name(l->problem))) == 0);
}
