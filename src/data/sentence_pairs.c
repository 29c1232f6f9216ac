#define _GNU_SOURCE
#include "data/sentence_pairs.h"

#include "data/table_file.h"

#include <stdlib.h>
#include <string.h>

const struct pair_level_name pair_level_names[PAIR_N_LEVELS] = {
    [PAIR_PARADIGM] = {"UID", "paradigm"},
    [PAIR_CLASS] = {"linguistics_term", "class"},
    [PAIR_FIELD] = {"field", "field"},
};

/* A table that is being read. */
struct pair_reader {
    struct sentence_pairs *pairs;
    const struct pair_options *options;
    struct table_file table;
    int64_t file;
    int64_t columns[PAIR_N_SIDES], levels[PAIR_N_LEVELS];
    char *file_name;  /* without folders and ending */
    int64_t n_differ; /* pairs whose sentences differ */
};

static struct pair_group *groups_of(const struct sentence_pairs *p, enum pair_level level)
{
    return (struct pair_group *)(void *)p->groups[level].data;
}

/* The number of the group of this name, a new one if there was none.  Pairs of a group follow each other in
 * most files, so the search begins with the newest. */
static struct status find_group(struct sentence_pairs *p, int64_t *group, enum pair_level level,
                                const char *name)
{
    for (int64_t i = p->n_groups[level] - 1; i >= 0; i--) {
        if (strcmp(groups_of(p, level)[i].name, name) == 0) {
            *group = i;
            return status_ok();
        }
    }
    struct pair_group new = {.name = strdup(name)};
    if (new.name == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the name of a %s",
                            pair_level_names[level].word);
    }
    buf_append(&p->groups[level], &new, sizeof new);
    TRY(buf_status(&p->groups[level]));
    *group = p->n_groups[level]++;
    return status_ok();
}

/* The group of a level that the row names; a paradigm has always a name. */
static struct status read_group(const struct pair_reader *r, struct sentence_pair *pair,
                                enum pair_level level, int64_t row)
{
    struct table_cell cell = table_file_cell(&r->table, row, r->levels[level]);
    bool named = cell.n_items == 1 && cell.n > 0;
    pair->group[level] = -1;
    return named || level == PAIR_PARADIGM
               ? find_group(r->pairs, &pair->group[level], level, named ? cell.text : r->file_name)
               : status_ok();
}

static struct status read_sentence(const struct pair_reader *r, struct sentence_pair *pair,
                                   enum pair_side side, int64_t row)
{
    struct table_cell cell = table_file_cell(&r->table, row, r->columns[side]);
    struct buf *text = &r->pairs->text;
    if (!cell.is_there || cell.is_list || cell.text[strspn(cell.text, " \t\r\n")] == '\0') {
        return status_error(STATUS_DATA, "%s line %lld: \"%s\" %s; each line has a pair of sentences",
                            r->table.path, (long long)pair->line, r->options->columns[side],
                            !cell.is_there ? "is missing"
                            : cell.is_list ? "is a list"
                                           : "is empty");
    }
    pair->start[side] = text->n;
    pair->n[side] = cell.n;
    buf_append(text, cell.text, cell.n);
    return buf_status(text);
}

static bool differ(const struct sentence_pairs *p, const struct sentence_pair *pair)
{
    const char *good = p->text.data + pair->start[PAIR_GOOD], *bad = p->text.data + pair->start[PAIR_BAD];
    return pair->n[PAIR_GOOD] != pair->n[PAIR_BAD] || memcmp(good, bad, pair->n[PAIR_GOOD]) != 0;
}

static struct status read_pair(struct pair_reader *r, int64_t row)
{
    struct sentence_pairs *p = r->pairs;
    struct sentence_pair pair = {.file = r->file, .line = table_file_line(&r->table, row)};
    TRY(read_sentence(r, &pair, PAIR_GOOD, row));
    TRY(read_sentence(r, &pair, PAIR_BAD, row));
    r->n_differ += differ(p, &pair);
    TRY(read_group(r, &pair, PAIR_PARADIGM, row));
    if (r->options->limit > 0 &&
        sentence_pairs_group(p, PAIR_PARADIGM, pair.group[PAIR_PARADIGM])->n >= r->options->limit) {
        p->text.n = pair.start[PAIR_GOOD];
        return status_ok();
    }
    TRY(read_group(r, &pair, PAIR_CLASS, row));
    TRY(read_group(r, &pair, PAIR_FIELD, row));
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        if (pair.group[level] >= 0) {
            struct pair_group *g = &groups_of(p, (enum pair_level)level)[pair.group[level]];
            if (g->n++ == 0) {
                memcpy(g->of, pair.group, sizeof g->of);
            }
        }
    }
    buf_append(&p->pairs, &pair, sizeof pair);
    p->n++;
    return buf_status(&p->pairs);
}

static struct status read_rows(struct pair_reader *r)
{
    for (int side = 0; side < PAIR_N_SIDES; side++) {
        r->columns[side] = table_file_column(&r->table, r->options->columns[side]);
    }
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        r->levels[level] = table_file_column(&r->table, pair_level_names[level].key);
    }
    if (r->table.n_rows == 0) {
        return status_error(STATUS_DATA, "%s has no pairs", r->table.path);
    }
    for (int64_t row = 0; row < r->table.n_rows; row++) {
        TRY(read_pair(r, row));
    }
    if (r->n_differ == 0) {
        return status_error(STATUS_DATA,
                            "%s line %lld: \"%s\" and \"%s\" are the same, as in all pairs of this file",
                            r->table.path, (long long)table_file_line(&r->table, 0),
                            r->options->columns[PAIR_GOOD], r->options->columns[PAIR_BAD]);
    }
    return status_ok();
}

static struct status read_file(struct sentence_pairs *p, int64_t file, const struct pair_options *o)
{
    struct pair_reader r = {.pairs = p, .options = o, .file = file};
    TRY(table_file_open(&r.table, p->paths[file], &(struct table_options){0}));
    r.file_name = strdup(basename(p->paths[file]));
    struct status s = status_error(STATUS_MEMORY, "out of memory for the name of a file");
    if (r.file_name != NULL) {
        char *dot = strrchr(r.file_name, '.');
        *dot = '\0'; /* every table's name has an ending */
        s = read_rows(&r);
    }
    free(r.file_name);
    table_file_close(&r.table);
    return s;
}

struct status sentence_pairs_open(struct sentence_pairs *p, const char *const *paths, int64_t n_paths,
                                  const struct pair_options *o)
{
    *p = (struct sentence_pairs){.paths = paths, .n_paths = n_paths};
    for (int64_t i = 0; i < n_paths; i++) {
        struct status s = read_file(p, i, o);
        if (failed(s)) {
            sentence_pairs_close(p);
            return s;
        }
    }
    return status_ok();
}

void sentence_pairs_close(struct sentence_pairs *p)
{
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        for (int64_t i = 0; i < p->n_groups[level]; i++) {
            free(groups_of(p, (enum pair_level)level)[i].name);
        }
        buf_fini(&p->groups[level]);
    }
    buf_fini(&p->text);
    buf_fini(&p->pairs);
    *p = (struct sentence_pairs){0};
}

const struct sentence_pair *sentence_pairs_get(const struct sentence_pairs *p, int64_t i)
{
    return (const struct sentence_pair *)(const void *)p->pairs.data + i;
}

struct text_bytes sentence_pairs_text(const struct sentence_pairs *p, int64_t i, enum pair_side side)
{
    const struct sentence_pair *pair = sentence_pairs_get(p, i);
    return (struct text_bytes){p->text.data + pair->start[side], pair->n[side]};
}

const struct pair_group *sentence_pairs_group(const struct sentence_pairs *p, enum pair_level level,
                                              int64_t group)
{
    return &groups_of(p, level)[group];
}
