#include "corpus/text_line.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

struct text_line text_line_trim(struct text_line l)
{
    while (l.n > 0 && is_blank(l.text[l.n - 1])) {
        l.n--;
    }
    while (l.n > 0 && is_blank(l.text[0])) {
        l.text++;
        l.n--;
    }
    return l;
}

struct text_line text_line_take(const char *text, size_t n, size_t *at)
{
    const char *begin = text + *at;
    const char *end = memchr(begin, '\n', n - *at);
    size_t length = end == NULL ? n - *at : (size_t)(end - begin);
    *at += length + (end != NULL);
    return text_line_trim((struct text_line){.text = begin, .n = length});
}

bool text_line_starts_with(struct text_line l, const char *prefix)
{
    size_t n = strlen(prefix);
    return l.n >= n && memcmp(l.text, prefix, n) == 0;
}

bool text_line_ends_sentence(struct text_line l)
{
    static const char *const ends[] = {".",      "!",      "?",      ":",      ";",
                                       "\"",     "'",      ")",      "\u201d", "\u2019",
                                       "\u00bb", "\u2026", "\u3002", "\uff01", "\uff1f"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i]);
        if (l.n >= n && memcmp(l.text + l.n - n, ends[i], n) == 0) {
            return true;
        }
    }
    return false;
}
