#include "core/option.h"

#include "core/log.h"
#include "core/nearest.h"
#include "core/option_value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool next_row(struct option_walk *w, const struct command *c)
{
    if (w->tables[0].next == NULL) {
        w->tables[0].next = c->options;
    }
    for (;;) {
        const struct option *o = w->tables[w->depth].next;
        if (o->name == NULL && w->depth == 0) {
            return false;
        }
        if (o->name == NULL) {
            w->depth--;
            continue;
        }
        w->tables[w->depth].next++;
        size_t at = w->tables[w->depth].at + o->offset;
        if (o->kind == OPTION_ROWS) {
            CHECK(++w->depth < (int)(sizeof w->tables / sizeof w->tables[0]), "tables of kiln %s", c->name);
            w->tables[w->depth].next = o->rows;
            w->tables[w->depth].at = at;
            continue;
        }
        w->row = *o;
        w->row.offset = at;
        w->n++;
        return true;
    }
}

bool option_next(struct option_walk *w, const struct command *c)
{
    if (!next_row(w, c)) {
        return false;
    }
    if (w->row.kind == OPTION_SAME) {
        struct option_walk all = {0};
        bool is_found = false;
        while (!is_found && next_row(&all, c)) {
            is_found = strcmp(all.row.name, w->row.means) == 0;
        }
        CHECK(is_found, "kiln %s has no flag %s", c->name, w->row.means);
        all.row.name = w->row.name;
        all.row.help = w->row.help;
        all.row.required = false;
        all.row.env = NULL;
        w->row = all.row;
    }
    return true;
}

static bool stores(const struct option *o)
{
    return o->name[0] != '\0' && o->kind != OPTION_IGNORED && o->kind != OPTION_IGNORED_VALUE &&
           o->kind != OPTION_REFUSED && o->kind != OPTION_NOT_YET;
}

/* Compares the first n characters; '-' and '_' are equal. */
static bool same_name(const char *name, const char *given, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char a = name[i] == '-' ? '_' : name[i];
        char b = given[i] == '-' ? '_' : given[i];
        if (a != b || a == '\0') {
            return false;
        }
    }
    return true;
}

static struct status unknown_flag(const struct command *c, const char *given, size_t n)
{
    struct nearest best = {0};
    for (struct option_walk w = {0}; option_next(&w, c);) {
        nearest_try(&best, w.row.name, given, n);
    }
    return status_error(STATUS_USAGE, "unknown flag --%.*s%s `kiln %s --help` lists the flags%s", (int)n,
                        given, best.word == NULL ? ";" : nearest_question(&best, "--").text, c->name,
                        c->meant == NULL ? "" : c->meant);
}

static struct status find(const struct command *c, const char *given, size_t n, struct option *found)
{
    found->name = NULL;
    for (struct option_walk w = {0}; option_next(&w, c);) {
        if (w.row.name[0] == '\0' || !same_name(w.row.name, given, n)) {
            continue;
        }
        if (strlen(w.row.name) == n) {
            *found = w.row;
            return status_ok();
        }
        FAIL_IF(found->name != NULL, STATUS_USAGE, "--%.*s is ambiguous: --%s or --%s; write the whole name",
                (int)n, given, found->name, w.row.name);
        *found = w.row;
    }
    if (found->name == NULL) {
        return unknown_flag(c, given, n);
    }
    log_info("--%.*s stands for --%s", (int)n, given, found->name);
    return status_ok();
}

/* The environment variable of a flag: its own, or the command's with the flag's name; "": it has none. */
static struct option_key variable_of(const struct command *c, const struct option *o)
{
    struct option_key name = {""}, key = option_key(o);
    if (o->env != NULL) {
        snprintf(name.text, sizeof name.text, "%s", o->env);
    } else if (c->environment != NULL && option_takes_value(o)) {
        snprintf(name.text, sizeof name.text, "%s%.40s", c->environment, key.text);
        for (char *p = name.text; *p != '\0'; p++) {
            *p = (char)toupper((unsigned char)*p);
        }
    }
    return name;
}

static struct status store_defaults(const struct command *c, void *args)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        const struct option_key variable = variable_of(c, o);
        const char *from_env = variable.text[0] == '\0' ? NULL : getenv(variable.text);
        if (from_env != NULL && from_env[0] != '\0') {
            TRY(status_context(option_store(o, from_env, args), "environment variable %s", variable.text));
        } else if (o->default_text != NULL) {
            TRY(option_store(o, o->default_text, args));
        }
    }
    return status_ok();
}

static struct status check_required(const struct command *c, const void *args)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        const char *text = o->required ? *(const char *const *)((const char *)args + o->offset) : "";
        FAIL_IF(text == NULL, STATUS_USAGE, "kiln %s needs --%s %s: %s", c->name, o->name, o->value_name,
                o->help);
    }
    return status_ok();
}

static bool is_flag(const char *word)
{
    return strncmp(word, "--", 2) == 0;
}

/* A walk that stands at a flag. */
static struct option_walk row_of(const struct command *c, const char *name)
{
    struct option_walk w = {0};
    while (option_next(&w, c)) {
        if (strlen(w.row.name) == strlen(name) && same_name(w.row.name, name, strlen(name))) {
            return w;
        }
    }
    CHECK(false, "kiln %s has no flag %s", c->name, name);
    return w;
}

static struct option_given *given_of(const struct command *c, const void *args)
{
    return c->given == 0 ? NULL : (struct option_given *)((char *)args + c->given);
}

/* Marks all rows that store in the same place as given. */
static void note_given(const struct command *c, const struct option *given_row, void *args)
{
    struct option_given *given = given_of(c, args);
    for (struct option_walk w = {0}; given != NULL && option_next(&w, c);) {
        size_t row = (size_t)w.n - 1;
        CHECK(row < sizeof given->rows * 8, "kiln %s has too many flags", c->name);
        if (w.row.name == given_row->name ||
            (stores(&w.row) && stores(given_row) && w.row.offset == given_row->offset)) {
            given->rows[row / 64] |= UINT64_C(1) << row % 64;
        }
    }
}

bool option_was_given(const struct command *c, const void *args, const char *name)
{
    size_t row = (size_t)row_of(c, name).n - 1;
    return given_of(c, args)->rows[row / 64] >> row % 64 & 1;
}

const char *option_first_given(const struct command *c, const void *args, const char *names)
{
    for (size_t n; *names != '\0'; names += n + (names[n] == '|')) {
        char name[64];
        n = strcspn(names, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        if (option_was_given(c, args, name)) {
            return row_of(c, name).row.name;
        }
    }
    return NULL;
}

void option_set_default(const struct command *c, void *args, const char *name, const char *text)
{
    if (!option_was_given(c, args, name)) {
        struct option_walk w = row_of(c, name);
        struct status s = option_store(&w.row, text, args);
        CHECK(!failed(s), "default of --%s: %s", name, s.message);
    }
}

bool option_give(const struct command *c, void *args, const char *name, const char *text)
{
    bool given = option_was_given(c, args, name);
    option_set_default(c, args, name, text);
    struct option_walk w = row_of(c, name);
    note_given(c, &w.row, args);
    return !given;
}

/* The rest of a word after the blanks and backslashes before a flag, or of a word that has nothing else;
 * NULL: the word is neither. */
static const char *without_backslash(const struct command *c, const char *word)
{
    const char *rest = word + strspn(word, "\\ \t\r\n");
    return c->max_positional == 0 && rest != word && (is_flag(rest) || *rest == '\0') ? rest : NULL;
}

/* The word after argv[i], which may be the value of a flag; NULL: there is none. */
static const char *value_after(const struct command *c, int argc, const char *const *argv, int i)
{
    const char *next = i + 1 < argc ? argv[i + 1] : NULL;
    return next == NULL || is_flag(next) || without_backslash(c, next) != NULL ? NULL : next;
}

/* Stores a pair whose second number, without a comma, is the next word. */
static struct status store_pair(const struct command *c, const struct option *o, int argc,
                                const char *const *argv, int *i, const char *first, void *args)
{
    char both[140];
    const char *second = strchr(first, ',') == NULL ? value_after(c, argc, argv, *i) : NULL;
    *i += second != NULL;
    int n =
        snprintf(both, sizeof both, "%s%s%s", first, second != NULL ? "," : "", second != NULL ? second : "");
    return n < (int)sizeof both ? option_store(o, both, args)
                                : status_error(STATUS_USAGE, "--%s needs two numbers", o->name);
}

/* Stores `first`, if it is not NULL, and the words after argv[*i].  They replace earlier words; those of a
 * flag that `adds` are appended to them. */
static struct status store_words(const struct command *c, const struct option *o, int argc,
                                 const char *const *argv, int *i, const char *first, bool adds, void *args)
{
    struct option_words *words = (struct option_words *)(void *)((char *)args + o->offset);
    words->n = adds ? words->n : 0;
    TRY(first != NULL ? option_add_word(o, first, words) : status_ok());
    for (const char *next; (next = value_after(c, argc, argv, *i)) != NULL; ++*i) {
        TRY(option_add_word(o, next, words));
    }
    return status_ok();
}

static struct status missing_value(const struct option *o, const char *next)
{
    if (next != NULL && next[strspn(next, "\\ \t\r\n")] == '\0') { /* a slip, or --prompt ' ' */
        return status_error(STATUS_USAGE, "--%s needs a value, not blanks, which --%s=' ' would give: %s",
                            o->name, o->name, o->help);
    }
    return status_error(STATUS_USAGE, "--%s needs a value%s%s: %s", o->name,
                        next != NULL ? ", not the flag " : "", next != NULL ? next : "", o->help);
}

/* The text that was given for each row of a command, or for another row that stores in the same place, and
 * the name of that row; NULL: none. */
struct given_texts {
    struct {
        const char *text, *by;
    } of[sizeof(((struct option_given *)0)->rows) * 8];
};

static struct status given_again(const struct option *o, const char *text, const char *first,
                                 const char *before)
{
    bool same = strcmp(first, o->name) == 0;
    FAIL_IF(o->once && same, STATUS_USAGE, "--%s is given twice, as '%.80s' and as '%.80s': give it once",
            o->name, before, text);
    FAIL_IF(o->once, STATUS_USAGE,
            "--%s '%.80s' and --%s '%.80s' are two names of the same flag: give one of them", first, before,
            o->name, text);
    if (same) {
        log_warning("--%s is given twice: '%.80s' is used, not '%.80s'", o->name, text, before);
    } else {
        log_warning("--%s and --%s are two names of the same flag: '%.80s' of --%s is used, not '%.80s'",
                    first, o->name, text, o->name, before);
    }
    return status_ok();
}

/* Gives a flag its value.  The last of several values counts, so that a script may append to a command line;
 * but of two contents one would be lost. */
static struct status give(struct given_texts *texts, const struct command *c, const struct option *o,
                          const char *text, void *args)
{
    const char *before = NULL, *first = NULL;
    for (struct option_walk w = {0}; option_takes_value(o) && option_next(&w, c);) {
        if (stores(&w.row) && stores(o) && w.row.offset == o->offset) {
            before = texts->of[w.n - 1].text;
            first = texts->of[w.n - 1].by;
            texts->of[w.n - 1].text = text;
            texts->of[w.n - 1].by = o->name;
        }
    }
    if (before != NULL && strcmp(before, text) != 0) {
        TRY(given_again(o, text, first, before));
    }
    return option_store(o, text, args);
}

/* Stores the flag `word`, which is argv[*i] or the end of it, and leaves *i at its last word. */
static struct status parse_flag(const struct command *c, const char *word, int argc, const char *const *argv,
                                int *i, struct given_texts *texts, void *args)
{
    const char *name = word + 2;
    const char *value = strchr(name, '=');
    size_t n = value == NULL ? strlen(name) : (size_t)(value - name);
    const char *next = value_after(c, argc, argv, *i);
    struct option found = {0};
    const struct option *o = &found;
    TRY(find(c, name, n, &found));
    bool adds = o->adds && option_was_given(c, args, o->name);
    note_given(c, o, args);
    bool is_lacking = o->kind == OPTION_REFUSED || o->kind == OPTION_NOT_YET; /* whatever its value */
    FAIL_IF(value != NULL && !option_takes_value(o) && o->kind != OPTION_FLAG && !is_lacking, STATUS_USAGE,
            "--%s takes no value, but '%s' was given", o->name, value + 1);
    bool is_bool;
    if (o->kind == OPTION_BOOL && o->choices == NULL && c->max_positional > 0 && next != NULL &&
        !option_find_bool(next, &is_bool)) {
        next = NULL; /* a positional argument */
    }
    bool needs_value = option_takes_value(o) && o->kind != OPTION_BOOL && o->kind != OPTION_IGNORED_VALUE;
    if (value != NULL && value[1] == '\0' && needs_value && next != NULL && c->max_positional == 0) {
        log_info("--%s= %s: the space after '=' is ignored", o->name, next);
        value = NULL;
    }
    if (o->kind == OPTION_WORDS && (value != NULL || next != NULL)) {
        return store_words(c, o, argc, argv, i, value != NULL ? value + 1 : NULL, adds, args);
    }
    if (value != NULL && o->kind != OPTION_PAIR) {
        return give(texts, c, o, value + 1, args);
    }
    if (value == NULL && option_takes_value(o) && next != NULL) {
        (*i)++;
    }
    if (o->kind == OPTION_PAIR && (value != NULL || next != NULL)) {
        return store_pair(c, o, argc, argv, i, value != NULL ? value + 1 : next, args);
    }
    if (option_takes_value(o) && next != NULL) {
        return give(texts, c, o, next, args);
    }
    return needs_value ? missing_value(o, *i + 1 < argc ? argv[*i + 1] : NULL)
                       : option_store(o, "true", args);
}

static bool is_placeholder(const char *text)
{
    size_t n = text == NULL ? 0 : strlen(text);
    return n > 2 && text[0] == '<' && text[n - 1] == '>';
}

static bool is_dry_run(const struct command *c, const void *args)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        if (o->kind == OPTION_FLAG && strlen(o->name) == 7 && same_name(o->name, "dry_run", 7)) {
            return *(const bool *)((const char *)args + o->offset);
        }
    }
    return false;
}

/* Values that a document wrote for the reader's own. */
static struct status check_placeholders(const struct command *c, const void *args)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        const char *text =
            o->kind == OPTION_STRING ? *(const char *const *)((const char *)args + o->offset) : NULL;
        if (o->is_text || !is_placeholder(text)) {
            continue;
        }
        struct status s =
            status_error(STATUS_USAGE, "--%s is %s, a placeholder: put your own value there", o->name, text);
        if (!is_dry_run(c, args)) {
            return s;
        }
        log_warning("%s", s.message);
    }
    return status_ok();
}

static struct status check_positional(const struct command *c, int n, const char *const *words)
{
    if (n >= c->min_positional && n <= c->max_positional) {
        return status_ok();
    }
    FAIL_IF(n > c->max_positional, STATUS_USAGE, "unexpected argument '%s': kiln %s takes flags%s%s",
            words[c->max_positional], c->name, c->max_positional == 0 ? " only" : " and ",
            c->max_positional == 0 ? "" : c->positional_usage);
    return status_error(STATUS_USAGE, "kiln %s needs %s, but %d arguments without -- were given%s", c->name,
                        c->positional_usage, n, c->meant == NULL ? "" : c->meant);
}

struct status option_parse(const struct command *c, int argc, const char **argv, void *args,
                           int *n_positional, enum option_help *help)
{
    bool only_positional = false; /* "--" was seen */
    struct given_texts texts = {{{0}}};
    *n_positional = 0;
    *help = OPTION_NO_HELP;
    memset(args, 0, c->args_bytes);
    TRY(store_defaults(c, args));
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *rest = only_positional ? NULL : without_backslash(c, word);
        if (rest != NULL) {
            log_info("a backslash before '%s' is ignored", rest);
            word = rest;
        }
        if (rest != NULL && *rest == '\0') {
            continue;
        }
        if (only_positional || (!is_flag(word) && strcmp(word, "-h") != 0)) {
            argv[(*n_positional)++] = word;
            only_positional = only_positional || c->ends_at_word;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            bool all = i + 1 < argc && strcmp(argv[i + 1], "all") == 0;
            *help = all ? OPTION_ALL_HELP : OPTION_USUAL_HELP;
            return status_ok();
        } else if (strcmp(word, "--help=all") == 0) {
            *help = OPTION_ALL_HELP;
            return status_ok();
        } else if (strcmp(word, "--") == 0) {
            only_positional = true;
        } else {
            TRY(parse_flag(c, word, argc, argv, &i, &texts, args));
        }
    }
    TRY(check_positional(c, *n_positional, argv));
    TRY(check_required(c, args));
    return check_placeholders(c, args);
}
