#include "corpus/wikitext_values.h"

#include <stdlib.h>
#include <string.h>

bool wikitext_values_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == WIKITEXT_SIGN_LITERAL;
}

static struct wikitext_value trim(const char *text, size_t n)
{
    while (n > 0 && wikitext_values_is_blank(text[0])) {
        text++;
        n--;
    }
    while (n > 0 && wikitext_values_is_blank(text[n - 1])) {
        n--;
    }
    return (struct wikitext_value){text, n};
}

bool wikitext_values_equal(struct wikitext_value value, const char *text)
{
    return value.n == strlen(text) && (value.n == 0 || memcmp(value.text, text, value.n) == 0);
}

struct wikitext_value wikitext_values_part(const struct wikitext_emit *e, size_t i, bool named)
{
    const struct wikitext_part *part = &e->parts[i];
    size_t begin = named && part->name_end > 0 ? part->name_end : part->begin;
    return trim(e->text.data + begin, part->end - begin);
}

struct wikitext_value wikitext_values_find(const struct wikitext_emit *e, const char *key)
{
    size_t first = e->frames[e->n_frames - 1].first_part;
    int64_t number = key[0] >= '0' && key[0] <= '9' ? strtol(key, NULL, 10) : -1, position = 0;
    struct wikitext_value found = {"", 0};
    if (number == 0) {
        return wikitext_values_part(e, first, false);
    }
    for (size_t i = first + 1; i < e->n_parts; i++) {
        const struct wikitext_part *part = &e->parts[i];
        bool is_it;
        if (part->name_end > 0) {
            struct wikitext_value name = trim(e->text.data + part->begin, part->name_end - 1 - part->begin);
            is_it = wikitext_values_equal(name, key);
        } else {
            is_it = ++position == number;
        }
        found = is_it ? wikitext_values_part(e, i, true) : found;
    }
    return found;
}

struct wikitext_value wikitext_values_argument(const struct wikitext_emit *e, int number)
{
    char key[2] = {(char)('0' + number % 10), '\0'};
    return wikitext_values_find(e, key);
}

void wikitext_values_put(struct wikitext_emit *e, struct wikitext_value value)
{
    buf_append(&e->scratch, value.text, value.n);
}

int64_t wikitext_values_number(struct wikitext_value value)
{
    enum { MOST_DIGITS = 9 };
    int64_t number = 0;
    if (value.n == 0 || value.n > MOST_DIGITS) {
        return -1;
    }
    for (size_t i = 0; i < value.n; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            return -1;
        }
        number = 10 * number + (value.text[i] - '0');
    }
    return number;
}

bool wikitext_values_are_english(const struct wikitext_emit *e)
{
    const char *language = buf_text(&e->site->language);
    return language[0] == '\0' || strcmp(language, "en") == 0 || strcmp(language, "simple") == 0;
}
