#define _GNU_SOURCE
#include "launch/program.h"

#include <stdlib.h>
#include <string.h>

/* Commands that train, and so can be resumed; and the scripts they stand for. */
static const struct trainer {
    const char *command, *script;
} trainers[] = {
    {"pretrain", "run_pretraining.py"},
    {"squad", "run_squad.py"},
    {"classify", NULL},
    {"tag", NULL},
};
enum { N_TRAINERS = sizeof trainers / sizeof trainers[0] };

void program_fini(struct program *p)
{
    words_fini(&p->words);
    free(p->self);
    p->self = NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static const struct trainer *find_trainer(const char *word, bool is_script)
{
    for (int i = 0; word != NULL && i < N_TRAINERS; i++) {
        const char *name = is_script ? trainers[i].script : trainers[i].command;
        if (name != NULL && strcmp(word, name) == 0) {
            return &trainers[i];
        }
    }
    return NULL;
}

static bool is_python(const char *word)
{
    return strncmp(base_name(word), "python", 6) == 0;
}

static bool is_launcher(const char *word)
{
    const char *name = base_name(word);
    return strcmp(name, "mpirun") == 0 || strcmp(name, "mpiexec") == 0 || strcmp(name, "srun") == 0;
}

static struct status find_self(char **self)
{
    *self = realpath("/proc/self/exe", NULL);
    return *self != NULL ? status_ok()
                         : status_error(STATUS_INTERNAL,
                                        "/proc/self/exe cannot be read, so the ranks' program is unknown");
}

/* Adds the command that the words before the flags of kiln stand for; *n_read of them were read. */
static struct status add_begin(struct words *w, const char *self, int n, const char *const *words,
                               int *n_read)
{
    int i = 0;
    while (i < n && (is_python(words[i]) || (i > 0 && words[i][0] == '-' && is_python(words[0])))) {
        i++;
    }
    const struct trainer *script = i < n ? find_trainer(base_name(words[i]), true) : NULL;
    if (script != NULL) {
        *n_read = i + 1;
        words_add(w, "%s", self);
        words_add(w, "%s", script->command);
        return words_status(w);
    }
    FAIL_IF(i > 0, STATUS_USAGE,
            "%.80s is not one of the scripts that kiln replaces, run_pretraining.py and run_squad.py; write "
            "the command as kiln pretrain ...",
            i < n ? words[i] : words[i - 1]);
    *n_read = 0;
    bool is_kiln = strcmp(words[0], "kiln") == 0;
    if (is_kiln || find_trainer(words[0], false) != NULL) {
        *n_read = is_kiln;
        words_add(w, "%s", self);
    }
    return status_ok();
}

/* Index of kiln's first flag in the words, after "kiln" and a command that trains; 0: there is none. */
static int find_flags(const struct words *w)
{
    for (int i = 0; i + 1 < w->n; i++) {
        if (strcmp(base_name(w->owned[i]), "kiln") == 0 && find_trainer(w->owned[i + 1], false) != NULL) {
            return i + 2;
        }
    }
    return 0;
}

/* The text after the name of this flag in a word, in which '-' and '_' are the same: "", or "=" and a value;
 * NULL: it is another word. */
static const char *after_flag(const char *word, const char *name)
{
    while (*name != '\0' && (*word == *name || (*word == '-' && *name == '_'))) {
        word++;
        name++;
    }
    return *name == '\0' && (*word == '\0' || *word == '=') ? word : NULL;
}

/* The value of --output_dir; of several the last, as kiln takes it. */
static const char *find_output_dir(const struct words *w, int first)
{
    const char *found = NULL;
    for (int i = first; i < w->n; i++) {
        const char *rest = after_flag(w->owned[i], "--output_dir");
        if (rest != NULL && *rest == '=') {
            found = rest + 1;
        } else if (rest != NULL && i + 1 < w->n) {
            found = w->owned[i + 1];
        }
    }
    return found;
}

static bool has_dry_run(const struct words *w, int first)
{
    for (int i = first; i < w->n; i++) {
        if (after_flag(w->owned[i], "--dry_run") != NULL) {
            return true;
        }
    }
    return false;
}

struct status program_init(struct program *p, int n, const char *const *words)
{
    *p = (struct program){.is_line = is_launcher(words[0])};
    int n_read = 0;
    struct status s = find_self(&p->self);
    s = failed(s) || p->is_line ? s : add_begin(&p->words, p->self, n, words, &n_read);
    for (int i = n_read; i < n; i++) {
        words_add(&p->words, "%s", words[i]);
    }
    s = failed(s) ? s : words_status(&p->words);
    if (failed(s)) {
        program_fini(p);
        return s;
    }
    p->first_flag = find_flags(&p->words);
    p->command = p->first_flag > 0 ? p->words.owned[p->first_flag - 1] : NULL;
    p->output_dir = p->first_flag > 0 ? find_output_dir(&p->words, p->first_flag) : NULL;
    p->is_dry_run = p->first_flag > 0 && has_dry_run(&p->words, p->first_flag);
    return status_ok();
}
