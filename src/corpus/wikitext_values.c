#include "corpus/wikitext_values.h"

#include <string.h>

bool wikitext_values_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == WIKITEXT_SIGN_LITERAL;
}

struct wikitext_value wikitext_values_trim(const char *text, size_t n)
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

static bool same(struct wikitext_value a, struct wikitext_value b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

bool wikitext_values_equal(struct wikitext_value value, const char *text)
{
    return same(value, (struct wikitext_value){text, strlen(text)});
}

struct wikitext_value wikitext_values_part(const struct wikitext_emit *e, size_t i, bool named)
{
    const struct wikitext_part *part = &e->parts[i];
    size_t begin = named && part->name_end > 0 ? part->name_end : part->begin;
    return wikitext_values_trim(e->text.data + begin, part->end - begin);
}

static struct wikitext_value find(const struct wikitext_emit *e, struct wikitext_value key)
{
    size_t first = e->frames[e->n_frames - 1].first_part;
    int64_t number = wikitext_values_number(key), position = 0;
    struct wikitext_value found = {"", 0};
    if (number == 0) {
        return wikitext_values_part(e, first, false);
    }
    for (size_t i = first + 1; i < e->n_parts; i++) {
        const struct wikitext_part *part = &e->parts[i];
        const char *name = e->text.data + part->begin;
        bool is_it = part->name_end > 0
                         ? same(key, wikitext_values_trim(name, part->name_end - 1 - part->begin))
                         : ++position == number;
        found = is_it ? wikitext_values_part(e, i, true) : found;
    }
    return found;
}

struct wikitext_value wikitext_values_find(const struct wikitext_emit *e, const char *keys)
{
    for (const char *end;; keys = end + 1) {
        end = strpbrk(keys, ",}");
        struct wikitext_value key = {keys, end == NULL ? strlen(keys) : (size_t)(end - keys)},
                              found = find(e, key);
        if (found.n > 0 || end == NULL || *end != ',') {
            return found;
        }
    }
}

struct wikitext_value wikitext_values_argument(const struct wikitext_emit *e, int number)
{
    char key[] = {(char)('0' + number / 10), (char)('0' + number % 10), '\0'};
    return wikitext_values_find(e, number < 10 ? key + 1 : key);
}

bool wikitext_values_entry(const char **table, struct wikitext_value *key, struct wikitext_value *text)
{
    size_t n = strcspn(*table, "|");
    const char *end = *table + n, *equals = n == 0 ? NULL : memchr(*table + 1, '=', n - 1);
    *key = (struct wikitext_value){*table, equals == NULL ? n : (size_t)(equals - *table)};
    *text = equals == NULL ? (struct wikitext_value){end, 0}
                           : (struct wikitext_value){equals + 1, (size_t)(end - equals - 1)};
    *table = *end == '|' ? end + 1 : end;
    return n > 0;
}

struct wikitext_value wikitext_values_look_up(const char *table, struct wikitext_value key)
{
    struct wikitext_value found, text;
    while (wikitext_values_entry(&table, &found, &text)) {
        if (same(found, key)) {
            return text;
        }
    }
    return (struct wikitext_value){NULL, 0};
}

void wikitext_values_put(struct wikitext_emit *e, struct wikitext_value value)
{
    buf_append(&e->scratch, value.text, value.n);
}

int64_t wikitext_values_number(struct wikitext_value value)
{
    enum { MOST_DIGITS = 9 };
    int64_t number = value.n == 0 || value.n > MOST_DIGITS ? -1 : 0;
    for (size_t i = 0; i < value.n && number >= 0; i++) {
        bool digit = value.text[i] >= '0' && value.text[i] <= '9';
        number = digit ? 10 * number + (value.text[i] - '0') : -1;
    }
    return number;
}

bool wikitext_values_are_english(const struct wikitext_emit *e)
{
    const char *language = buf_text(&e->site->language);
    return language[0] == '\0' || strcmp(language, "en") == 0 || strcmp(language, "simple") == 0;
}
