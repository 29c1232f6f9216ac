#include "data/label_kind.h"

#include "core/batch.h"
#include "core/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usual[] = "LABEL_";

/* Whether the name is `prefix` and an integer from 0 to n - 1, and that number. */
static bool number_of(int64_t *number, const char *name, const char *prefix, int64_t n)
{
    size_t skip = strlen(prefix);
    if (strncmp(name, prefix, skip) != 0 || name[skip] == '\0' ||
        name[skip + strspn(name + skip, "0123456789")] != '\0' || strlen(name + skip) > 9) {
        return false;
    }
    *number = strtoll(name + skip, NULL, 10);
    return *number < n;
}

/* "-1", GLUE's mark of no label, is of every set. */
static bool matches_by_number(const struct label_kind *k)
{
    bool all = k->file.n > 0;
    int64_t number;
    for (int64_t i = 0; i < k->model->n && all; i++) {
        all = number_of(&number, label_names_get(k->model->names, i), usual, k->model->n) && number == i;
    }
    for (int64_t i = 0; i < k->file.n && all; i++) {
        const char *name = label_names_get(&k->file, i);
        all = strcmp(name, "-1") == 0 || number_of(&number, name, "", k->model->n);
    }
    return all;
}

void label_kind_read(struct label_kind *k, struct label_names *names)
{
    k->file = *names;
    *names = (struct label_names){0};
    k->is_labelled = true;
    k->by_number = matches_by_number(k);
    if (k->by_number) {
        log_info("%s: the model's labels are LABEL_0 to LABEL_%lld: label i of the file is LABEL_i", k->path,
                 (long long)k->model->n - 1);
    }
}

void label_kind_fini(struct label_kind *k)
{
    label_names_fini(&k->file);
}

int64_t label_kind_find(const struct label_kind *k, const char *name, size_t n)
{
    int64_t number;
    char whole[16];
    if (!k->by_number || n >= sizeof whole) {
        return label_names_find(k->model->names, name, n);
    }
    memcpy(whole, name, n);
    whole[n] = '\0';
    return number_of(&number, whole, "", k->model->n) ? number : -1;
}

void label_kind_list(struct buf *out, const struct label_names *names)
{
    enum { SHOWN = 20 };
    for (int64_t i = 0; i < names->n && i < SHOWN; i++) {
        buf_printf(out, "%s%.40s", i == 0 ? "" : ", ", label_names_get(names, i));
    }
    buf_puts(out, names->n > SHOWN ? ", ..." : "");
}

/* Both sets of names are in the message. */
static struct status refuse(const struct label_kind *k, const char *name, int64_t line)
{
    struct buf model = {0}, file = {0};
    label_kind_list(&model, k->model->names);
    label_kind_list(&file, &k->file);
    struct status s = status_error(
        STATUS_DATA,
        "%s line %lld: the model has no label %.80s; the model's labels are %.300s; the file's are %.300s",
        k->path, (long long)line, name, buf_text(&model), buf_text(&file));
    buf_fini(&model);
    buf_fini(&file);
    return s;
}

/* ---- labels as a batch holds them ---- */

int64_t label_kind_width(const struct model_labels *model)
{
    return model->problem == PROBLEM_SINGLE_LABEL ? 1 : model->n;
}

void label_kind_clear(const struct label_kind *k, int32_t *labels)
{
    bool any = k->is_labelled && k->model->problem == PROBLEM_MULTI_LABEL;
    for (int64_t i = 0; i < label_kind_width(k->model); i++) {
        labels[i] = any ? 0 : k->model->problem == PROBLEM_SINGLE_LABEL ? -1 : BATCH_NO_NUMBER;
    }
}

static void put_number(int32_t *label, double value)
{
    float number = (float)value;
    memcpy(label, &number, sizeof number);
}

struct status label_kind_put(const struct label_kind *k, int32_t *labels, int64_t at, const char *name,
                             size_t n, int64_t line)
{
    enum label_problem problem = k->model->problem;
    if (problem == PROBLEM_REGRESSION) {
        double value;
        FAIL_IF(!label_kind_is_number(name, &value) || at >= k->model->n, STATUS_DATA,
                "%s line %lld: not one of the numbers of this regression: %.80s", k->path, (long long)line,
                name);
        put_number(&labels[at], value);
        return status_ok();
    }
    int64_t label = label_kind_find(k, name, n);
    if (label < 0) {
        return refuse(k, name, line);
    }
    if (problem == PROBLEM_SINGLE_LABEL) {
        labels[0] = (int32_t)label;
        return status_ok();
    }
    put_number(&labels[label], 1);
    return status_ok();
}

bool label_kind_is_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && end[strspn(end, " \t")] == '\0' && isfinite(*value);
}

void label_guess_add(struct label_guess *g, const char *label)
{
    double value;
    g->n++;
    g->n_numbers += label_kind_is_number(label, &value);
    g->n_points += strpbrk(label, ".eE") != NULL;
}

enum label_problem label_guess_problem(const struct label_guess *g)
{
    bool numbers = g->n > 0 && g->n_numbers == g->n && g->n_points > 0;
    return numbers ? PROBLEM_REGRESSION : PROBLEM_SINGLE_LABEL;
}
