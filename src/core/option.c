#include "core/option.h"

#include "core/log.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool takes_value(const struct option *o)
{
    return o->kind != OPTION_FLAG && o->kind != OPTION_IGNORED && o->kind != OPTION_REFUSED;
}

/* Compares the first n characters, '-' and '_' alike. */
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

static struct status find(const struct command *c, const char *given, size_t n, const struct option **found)
{
    *found = NULL;
    const struct option *prefix_of = NULL;
    for (const struct option *o = c->options; o->name != NULL; o++) {
        if (o->name[0] == '\0' || !same_name(o->name, given, n)) {
            continue;
        }
        if (strlen(o->name) == n) {
            *found = o;
            return status_ok();
        }
        if (prefix_of != NULL) {
            return status_error(STATUS_USAGE, "--%.*s could be --%s or --%s; write more of it", (int)n, given,
                                prefix_of->name, o->name);
        }
        prefix_of = o;
    }
    if (prefix_of == NULL) {
        return status_error(STATUS_USAGE, "unknown flag --%.*s; `kiln %s --help` lists the flags", (int)n,
                            given, c->name);
    }
    *found = prefix_of;
    return status_ok();
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = choices; p != NULL; p = strchr(p, '|')) {
        p += *p == '|';
        if (strncmp(p, text, n) == 0 && (p[n] == '|' || p[n] == '\0')) {
            return true;
        }
    }
    return false;
}

static struct status parse_number(const struct option *o, const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*value)) {
        return status_error(STATUS_USAGE, "--%s wants a number, not '%s'", o->name, text);
    }
    if (o->kind == OPTION_INT && (*value != floor(*value) || fabs(*value) > 0x1p53)) {
        return status_error(STATUS_USAGE, "--%s wants a whole number, not '%s'", o->name, text);
    }
    if ((o->min != 0 || o->max != 0) && (*value < o->min || *value > o->max)) {
        return status_error(STATUS_USAGE, "--%s is %s, but must lie between %g and %g", o->name, text, o->min,
                            o->max);
    }
    return status_ok();
}

static struct status store(const struct option *o, const char *text, void *args)
{
    void *field = (char *)args + o->offset;
    double number = 0;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)field = true; break;
    case OPTION_BOOL: *(bool *)field = strcasecmp(text, "true") == 0; break;
    case OPTION_INT:
        TRY(parse_number(o, text, &number));
        *(int64_t *)field = (int64_t)number;
        break;
    case OPTION_REAL:
        TRY(parse_number(o, text, &number));
        *(double *)field = number;
        break;
    case OPTION_STRING:
        if (o->choices != NULL && !is_choice(o->choices, text)) {
            return status_error(STATUS_USAGE, "--%s is '%s', but must be one of %s", o->name, text,
                                o->choices);
        }
        *(const char **)field = text;
        break;
    case OPTION_IGNORED:
    case OPTION_IGNORED_VALUE:
        log_info("--%s has no meaning here and is ignored: %s", o->name, o->help);
        break;
    case OPTION_REFUSED: return status_error(STATUS_USAGE, "--%s is refused: %s", o->name, o->help);
    }
    return status_ok();
}

static json_t *value_of(const struct option *o, const void *args)
{
    const void *field = (const char *)args + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
    case OPTION_BOOL: return json_boolean(*(const bool *)field);
    case OPTION_INT: return json_integer(*(const int64_t *)field);
    case OPTION_REAL: return json_real(*(const double *)field);
    case OPTION_STRING: {
        const char *text = *(const char *const *)field;
        json_t *value = text == NULL ? NULL : json_string(text); /* NULL too where it is not UTF-8 */
        return value == NULL ? json_null() : value;
    }
    case OPTION_IGNORED:
    case OPTION_IGNORED_VALUE:
    case OPTION_REFUSED: break;
    }
    return NULL;
}

json_t *option_values(const struct command *c, const void *args)
{
    json_t *values = json_object();
    for (const struct option *o = c->options; o->name != NULL && values != NULL; o++) {
        char name[64];
        json_t *value = o->name[0] == '\0' ? NULL : value_of(o, args);
        if (value == NULL) {
            continue;
        }
        snprintf(name, sizeof name, "%s", o->name);
        for (char *p = name; *p != '\0'; p++) {
            *p = *p == '-' ? '_' : *p;
        }
        json_object_set_new(values, name, value);
    }
    return values;
}

static struct status store_defaults(const struct command *c, void *args)
{
    for (const struct option *o = c->options; o->name != NULL; o++) {
        const char *from_env = o->env == NULL ? NULL : getenv(o->env);
        if (from_env != NULL && from_env[0] != '\0') {
            TRY(status_context(store(o, from_env, args), "environment variable %s", o->env));
        } else if (o->default_text != NULL) {
            TRY(store(o, o->default_text, args));
        }
    }
    return status_ok();
}

static struct status check_required(const struct command *c, const bool *given)
{
    for (int i = 0; c->options[i].name != NULL; i++) {
        if (c->options[i].required && !given[i]) {
            return status_error(STATUS_USAGE, "kiln %s needs --%s %s: %s", c->name, c->options[i].name,
                                c->options[i].value_name, c->options[i].help);
        }
    }
    return status_ok();
}

struct status option_parse(const struct command *c, int argc, const char **argv, void *args,
                           int *n_positional, bool *wants_help)
{
    enum { MAX_OPTIONS = 256 };
    bool given[MAX_OPTIONS] = {false};
    *n_positional = 0;
    *wants_help = false;
    memset(args, 0, c->args_bytes);
    TRY(store_defaults(c, args));
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *wants_help = true;
            return status_ok();
        }
        if (strncmp(word, "--", 2) != 0 || word[2] == '\0') {
            argv[(*n_positional)++] = word;
            continue;
        }
        const char *name = word + 2;
        const char *equals = strchr(name, '=');
        const struct option *o;
        TRY(find(c, name, equals == NULL ? strlen(name) : (size_t)(equals - name), &o));
        const char *value = equals == NULL ? NULL : equals + 1;
        bool alone = i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0;
        if (o->kind == OPTION_BOOL && value == NULL && alone) {
            value = "true";
        } else if (takes_value(o) && value == NULL) {
            if (i + 1 == argc) {
                return status_error(STATUS_USAGE, "--%s wants a value: %s", o->name, o->help);
            }
            value = argv[++i];
        } else if (!takes_value(o) && value != NULL) {
            return status_error(STATUS_USAGE, "--%s takes no value, but '%s' was given", o->name, value);
        }
        CHECK(o - c->options < MAX_OPTIONS, "too many flags");
        given[o - c->options] = true;
        TRY(store(o, value, args));
    }
    if (*n_positional < c->min_positional || *n_positional > c->max_positional) {
        return status_error(STATUS_USAGE, "kiln %s takes %s%s, but %d arguments without -- were given",
                            c->name, c->max_positional == 0 ? "flags only" : "flags and ",
                            c->positional_usage, *n_positional);
    }
    return check_required(c, given);
}

/* Writes `text` from column `column` on, wrapped at 100 columns with later lines indented by `indent`. */
static void print_wrapped(const char *text, int column, int indent)
{
    while (*text != '\0') {
        int word = (int)strcspn(text, " \n");
        if (column + word > 100 && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", word, text);
        column += word;
        text += word;
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
            text++;
        } else if (*text == ' ') {
            putchar(' ');
            column++;
            text++;
        }
    }
    putchar('\n');
}

void option_print_help(const struct command *c)
{
    printf("usage: kiln %s [flags] %s\n\n", c->name, c->positional_usage);
    print_wrapped(c->summary, 0, 0);
    if (c->details != NULL) {
        putchar('\n');
        print_wrapped(c->details, 0, 0);
    }
    for (const struct option *o = c->options; o->name != NULL; o++) {
        if (o->name[0] == '\0') {
            printf("\n%s:\n", o->help);
            continue;
        }
        if (o->kind == OPTION_IGNORED || o->kind == OPTION_IGNORED_VALUE) {
            continue;
        }
        enum { TEXT_COLUMN = 34 };
        int n = printf("  --%s%s%s", o->name, takes_value(o) ? " " : "", takes_value(o) ? o->value_name : "");
        printf("%*s", n < TEXT_COLUMN - 1 ? TEXT_COLUMN - n : 1, "");
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", o->help, o->required ? " (required)" : "",
                 o->default_text != NULL ? " (default " : "", o->default_text != NULL ? o->default_text : "",
                 o->default_text != NULL ? ")" : "", o->env != NULL ? " [" : "", o->env != NULL ? o->env : "",
                 o->env != NULL ? "]" : "");
        print_wrapped(text, n < TEXT_COLUMN - 1 ? TEXT_COLUMN : n + 1, TEXT_COLUMN);
    }
}
