/* The help of a command: its flags in their groups, as its table has them. */
#include "core/option.h"

#include "core/buf.h"
#include "core/option_value.h"

#include <stdio.h>
#include <string.h>

/* Writes `text` from column `column` on, wrapped at 100 columns; later lines are indented by `indent`. */
static void print_wrapped(const char *text, int column, int indent)
{
    for (bool first = true; *text != '\0'; first = false) {
        int space = (int)strspn(text, " ");
        int word = (int)strcspn(text + space, " \n|");
        word += text[space + word] == '|'; /* a list of choices may be broken */
        if (!first && column + space + word > 100) {
            printf("\n%*s", indent, "");
            column = indent;
            text += space;
            space = 0;
        }
        printf("%.*s", space + word, text);
        column += space + word;
        text += space + word;
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
            text++;
        }
    }
    putchar('\n');
}

static bool is_ignored(const struct option *o)
{
    return o->kind == OPTION_IGNORED || o->kind == OPTION_IGNORED_VALUE;
}

static void print_ignored(const struct command *c)
{
    struct buf names = {0};
    for (struct option_walk w = {0}; option_next(&w, c);) {
        if (is_ignored(&w.row)) {
            buf_printf(&names, "%s--%s", names.n == 0 ? "  " : ", ", w.row.name);
        }
    }
    if (names.n > 0) {
        printf("\naccepted, and ignored with a line that says why:\n");
        print_wrapped(buf_text(&names), 0, 2);
    }
    buf_fini(&names);
}

/* The end of a flag's help: (fp32|bf16|fp16, default fp32) [VARIABLE] */
static void append_facts(struct buf *text, const struct option *o)
{
    const char *facts[] = {o->required ? "required" : NULL, option_takes_any(o) ? NULL : o->choices, NULL};
    char by_default[256];
    if (o->default_text != NULL && o->default_text[0] != '\0') {
        snprintf(by_default, sizeof by_default, "default %s", o->default_text);
        facts[2] = by_default;
    }
    const char *before = " (";
    for (int i = 0; i < 3; i++) {
        if (facts[i] != NULL) {
            buf_printf(text, "%s%s", before, facts[i]);
            before = ", ";
        }
    }
    buf_puts(text, before[0] == ',' ? ")" : "");
    if (o->env != NULL) {
        buf_printf(text, " [%s]", o->env);
    }
}

static void print_option(const struct option *o)
{
    enum { TEXT_COLUMN = 34 };
    int n = printf("  --%s%s%s", o->name, option_takes_value(o) ? " " : "",
                   option_takes_value(o) ? o->value_name : "");
    int column = n < TEXT_COLUMN - 1 ? TEXT_COLUMN : n + 1;
    printf("%*s", column - n, "");
    struct buf text = {0};
    buf_printf(&text, "%s%s",
               o->kind == OPTION_REFUSED   ? "refused: "
               : o->kind == OPTION_NOT_YET ? "not supported yet: "
                                           : "",
               o->help);
    append_facts(&text, o);
    print_wrapped(buf_text(&text), column, TEXT_COLUMN);
    buf_fini(&text);
}

/* Prints the flags in their groups, without headings of empty groups; returns how many were left out. */
static int print_options(const struct command *c, bool all)
{
    const char *heading = NULL;
    int n_shown = 0, n_left_out = 0, n_usual = 1;
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        if (o->name[0] == '\0') {
            heading = o->help;
        } else if (!all && !option_is_choice(c->usual, o->name)) {
            n_left_out++;
        } else if (!is_ignored(o)) {
            if (heading != NULL) {
                printf("\n%s:\n", heading);
                heading = NULL;
            }
            print_option(o);
            n_shown++;
        }
    }
    for (const char *p = c->usual; p != NULL && *p != '\0'; p++) {
        n_usual += *p == '|';
    }
    CHECK(all || n_shown == n_usual, "kiln %s has %d of its %d usual flags", c->name, n_shown, n_usual);
    return n_left_out;
}

void option_print_help(const struct command *c, enum option_help which)
{
    bool all = which == OPTION_ALL_HELP || c->usual == NULL;
    printf("usage: kiln %s [flags]%s%s\n\n", c->name, c->positional_usage == NULL ? "" : " ",
           c->positional_usage == NULL ? "" : c->positional_usage);
    print_wrapped(c->summary, 0, 0);
    if (c->details != NULL) {
        putchar('\n');
        print_wrapped(c->details, 0, 0);
    }
    struct option_walk first = {0};
    if (option_next(&first, c) && first.row.name[0] != '\0') {
        putchar('\n');
    }
    int n_left_out = print_options(c, all);
    if (all) {
        print_ignored(c);
    } else {
        printf("\n%d more flags: kiln help %s all\n", n_left_out, c->name);
    }
}
