#include "cmd/completion.h"

#include "cmd/commands.h"

#include <stdio.h>
#include <string.h>

extern const char completion_bash[], completion_zsh[], completion_fish[]; /* beside this file */

struct status completion_print_script(const char *shell)
{
    const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    for (int i = 0; i < 3; i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            fputs(scripts[i].script, stdout);
            return status_ok();
        }
    }
    return status_error(STATUS_USAGE, "there is no completion for '%.40s', only for bash, zsh and fish",
                        shell);
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static void print_word(const char *word, const char *about, const char *begin)
{
    if (begins_with(word, begin)) {
        printf("%s\t%.*s\n", word, (int)strcspn(about, "\n"), about);
    }
}

/* The choices of a flag's value, "a|b|c". */
static void print_choices(const struct option *o, const char *begin)
{
    const char *choices = o->kind == OPTION_BOOL ? "true|false" : o->choices;
    for (const char *p = choices; p != NULL && *p != '\0';) {
        char word[64];
        int n = (int)strcspn(p, "|");
        snprintf(word, sizeof word, "%.*s", n, p);
        print_word(word, "", begin);
        p += n + (p[n] == '|');
    }
}

/* Of a command: the value of the flag before it, or a flag. */
static void print_of_command(const struct command *c, const char *before, const char *begin)
{
    bool wants_flag = begin[0] == '-' || (begin[0] == '\0' && c->positional_usage == NULL);
    for (struct option_walk w = {0}; option_next(&w, c);) {
        if (begins_with(before, "--") && strcmp(w.row.name, before + 2) == 0 &&
            (w.row.kind == OPTION_BOOL || w.row.choices != NULL || w.row.value_name != NULL)) {
            print_choices(&w.row, begin);
            return;
        }
    }
    for (struct option_walk w = {0}; wants_flag && option_next(&w, c);) {
        char flag[80];
        snprintf(flag, sizeof flag, "--%s", w.row.name);
        if (w.row.name[0] != '\0' && w.row.kind != OPTION_REFUSED && w.row.kind != OPTION_NOT_YET) {
            print_word(flag, w.row.help, begin);
        }
    }
}

void completion_print_words(int n, const char *const *words)
{
#define COMMAND(NAME, GROUP) &command_##NAME,
    static const struct command *const commands[] = {COMMANDS(COMMAND) NULL};
    const char *last = n > 0 ? words[n - 1] : "", *before = n > 1 ? words[n - 2] : "";
    if (n > 2 && strcmp(before, "=") == 0) { /* bash splits --flag=value in three words, */
        before = words[n - 3];
    } else if (n > 2 && strcmp(last, "=") == 0) { /* and --flag= in two */
        last = "";
    }
    bool is_help = n == 2 && strcmp(words[0], "help") == 0;
    for (int i = 0; commands[i] != NULL; i++) {
        if (n < 2 || is_help) {
            print_word(commands[i]->name, commands[i]->summary, last);
        } else if (strcmp(commands[i]->name, words[0]) == 0) {
            print_of_command(commands[i], before, last);
        }
    }
}
