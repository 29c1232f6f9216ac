#define _GNU_SOURCE
#include "core/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_fini(struct words *w)
{
    for (int i = 0; i < w->n; i++) {
        free(w->owned[i]);
    }
    free(w->list);
    free(w->owned);
    *w = (struct words){0};
}

static bool reserve(struct words *w)
{
    if (w->n + 1 < w->capacity) {
        return true;
    }
    int capacity = w->capacity == 0 ? 32 : 2 * w->capacity;
    const char **list = realloc(w->list, (size_t)capacity * sizeof *list);
    w->list = list != NULL ? list : w->list;
    char **owned = realloc(w->owned, (size_t)capacity * sizeof *owned);
    w->owned = owned != NULL ? owned : w->owned;
    if (list == NULL || owned == NULL) {
        return false;
    }
    w->capacity = capacity;
    return true;
}

/* Takes ownership of the word; NULL: memory ran out. */
static void take(struct words *w, char *word)
{
    if (w->failed || word == NULL || !reserve(w)) {
        w->failed = true;
        free(word);
        return;
    }
    w->owned[w->n] = word;
    w->list[w->n++] = word;
    w->list[w->n] = NULL;
    w->owned[w->n] = NULL;
}

void words_add(struct words *w, const char *format, ...)
{
    va_list arguments;
    char *word = NULL;
    va_start(arguments, format);
    int n = vasprintf(&word, format, arguments);
    va_end(arguments);
    take(w, n < 0 ? NULL : word);
}

void words_add_list(struct words *w, const char *const *list)
{
    for (; *list != NULL; list++) {
        take(w, strdup(*list));
    }
}

struct status words_status(const struct words *w)
{
    return w->failed ? status_error(STATUS_MEMORY, "out of memory for a command line") : status_ok();
}

bool words_set_variable(const struct words *w, const char *entry)
{
    size_t n = strcspn(entry, "=") + 1;
    for (int i = 0; i < w->n; i++) {
        if (strncmp(w->owned[i], entry, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+";
    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

void words_print(struct buf *out, const struct words *w)
{
    for (int i = 0; i < w->n; i++) {
        buf_puts(out, i == 0 ? "" : " ");
        if (is_plain(w->list[i])) {
            buf_puts(out, w->list[i]);
            continue;
        }
        buf_putc(out, '\'');
        for (const char *p = w->list[i]; *p != '\0'; p++) {
            if (*p == '\'') {
                buf_puts(out, "'\\''");
            } else {
                buf_putc(out, *p);
            }
        }
        buf_putc(out, '\'');
    }
}
