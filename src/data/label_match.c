#include "data/label_match.h"

#include "core/log.h"

#include <string.h>

static const char usual[] = "LABEL_";

/* Whether the name is `prefix` and a whole number from 0 to n - 1, and that number. */
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
static bool matches_by_number(const struct label_match *m)
{
    bool all = m->file.n > 0;
    int64_t number;
    for (int64_t i = 0; i < m->model->n && all; i++) {
        all = number_of(&number, label_names_get(m->model, i), usual, m->model->n) && number == i;
    }
    for (int64_t i = 0; i < m->file.n && all; i++) {
        const char *name = label_names_get(&m->file, i);
        all = strcmp(name, "-1") == 0 || number_of(&number, name, "", m->model->n);
    }
    return all;
}

void label_match_init(struct label_match *m, const struct label_names *model, struct label_names *file,
                      const char *path)
{
    *m = (struct label_match){.model = model, .file = *file};
    *file = (struct label_names){0};
    m->by_number = matches_by_number(m);
    if (m->by_number) {
        log_info("%s: the model's labels are LABEL_0 to LABEL_%lld: label i of the file is LABEL_i", path,
                 (long long)model->n - 1);
    }
}

void label_match_fini(struct label_match *m)
{
    label_names_fini(&m->file);
}

int64_t label_match_find(const struct label_match *m, const char *name, size_t n)
{
    int64_t number;
    char whole[16];
    if (!m->by_number || n >= sizeof whole) {
        return label_names_find(m->model, name, n);
    }
    memcpy(whole, name, n);
    whole[n] = '\0';
    return number_of(&number, whole, "", m->model->n) ? number : -1;
}

void label_match_list(struct buf *out, const struct label_names *names)
{
    enum { SHOWN = 20 };
    for (int64_t i = 0; i < names->n && i < SHOWN; i++) {
        buf_printf(out, "%s%.40s", i == 0 ? "" : ", ", label_names_get(names, i));
    }
    buf_puts(out, names->n > SHOWN ? ", ..." : "");
}

struct status label_match_refuse(const struct label_match *m, const char *path, int64_t line,
                                 const char *name)
{
    struct buf model = {0}, file = {0};
    label_match_list(&model, m->model);
    label_match_list(&file, &m->file);
    struct status s = status_error(
        STATUS_DATA,
        "%s line %lld: the model has no label %.80s; the model's labels are %.300s; the file's are %.300s",
        path, (long long)line, name, buf_text(&model), buf_text(&file));
    buf_fini(&model);
    buf_fini(&file);
    return s;
}
