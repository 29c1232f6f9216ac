#include "core/option_value.h"

#include "core/log.h"
#include "core/words.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool option_takes_value(const struct option *o)
{
    return o->kind != OPTION_FLAG && o->kind != OPTION_MEANS && o->kind != OPTION_IGNORED &&
           o->kind != OPTION_REFUSED && o->kind != OPTION_NOT_YET;
}

bool option_is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = choices; p != NULL; p = strchr(p, '|')) {
        p += *p == '|';
        if (strcspn(p, "|") == n && memcmp(p, text, n) == 0) {
            return true;
        }
    }
    return false;
}

/* 300_000_000: underscores between digits, as in Python, are left out. */
static void copy_digits(char out[64], const char *text)
{
    size_t n = 0;
    for (size_t i = 0; text[i] != '\0' && n < 63; i++) {
        bool between = i > 0 && text[i] == '_' && isdigit((unsigned char)text[i - 1]) &&
                       isdigit((unsigned char)text[i + 1]);
        out[n] = text[i];
        n += !between;
    }
    out[n] = '\0';
}

/* A limit in full where it is an integer: %g would round it. */
struct limit_text {
    char text[32];
};

static struct limit_text limit_text(double limit)
{
    struct limit_text t;
    if (fabs(limit) == 0x1p63) {
        snprintf(t.text, sizeof t.text, "%lld", limit > 0 ? LLONG_MAX : LLONG_MIN);
        return t;
    }
    bool whole = limit == floor(limit) && fabs(limit) <= 0x1p53;
    snprintf(t.text, sizeof t.text, whole ? "%.0f" : "%g", limit);
    return t;
}

static struct status beyond(const struct option *o, const char *text, double least, double most)
{
    return status_error(STATUS_USAGE, "--%s is %s, but must lie between %s and %s", o->name, text,
                        limit_text(least).text, limit_text(most).text);
}

static struct status parse_number(const struct option *o, const char *text, double *value)
{
    char digits[64], *end;
    copy_digits(digits, text);
    *value = strtod(digits, &end);
    FAIL_IF(end == digits || *end != '\0' || strlen(text) > 60 || !isfinite(*value), STATUS_USAGE,
            "--%s needs a number, not '%s'", o->name, text);
    bool has_limits = o->min != 0 || o->max != 0;
    return !has_limits || (*value >= o->min && *value <= o->max) ? status_ok()
                                                                 : beyond(o, text, o->min, o->max);
}

/* A limit of a table's row, which may be INT64_MAX as a double, 2^63. */
static int64_t int_limit(double limit)
{
    return limit >= 0x1p63 ? INT64_MAX : limit < -0x1p63 ? INT64_MIN : (int64_t)limit;
}

/* Digits are read as they are.  Other forms, 1e6, are read as a double, which rounds from 2^53 on. */
static struct status parse_int(const struct option *o, const char *text, int64_t *value)
{
    struct option any = {.name = o->name};
    bool has_limits = o->min != 0 || o->max != 0;
    double number, least = has_limits ? o->min : -0x1p63, most = has_limits ? o->max : 0x1p63;
    char digits[64], *end;
    TRY(parse_number(&any, text, &number));
    copy_digits(digits, text);
    errno = 0;
    *value = strtoll(digits, &end, 10);
    bool is_digits = *end == '\0';
    FAIL_IF(number != floor(number) || (!is_digits && fabs(number) >= 0x1p53 && fabs(number) <= 0x1p63),
            STATUS_USAGE, "--%s needs %s, not '%s'", o->name,
            number != floor(number) ? "a whole number" : "all digits of so large a number", text);
    *value = is_digits || fabs(number) >= 0x1p53 ? *value : (int64_t)number;
    return (errno == 0 || !is_digits) && fabs(number) <= 0x1p63 && *value >= int_limit(least) &&
                   *value <= int_limit(most)
               ? status_ok()
               : beyond(o, text, least, most);
}

bool option_takes_any(const struct option *o)
{
    return o->choices != NULL && strcmp(o->choices, OPTION_ANY_WORD) == 0;
}

bool option_find_bool(const char *text, bool *value)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static struct status parse_bool(const struct option *o, const char *text, bool *value)
{
    if (option_find_bool(text, value)) {
        return status_ok();
    }
    *value = true; /* a way in which it is */
    return option_takes_any(o) || (o->choices != NULL && option_is_choice(o->choices, text))
               ? status_ok()
               : status_error(STATUS_USAGE, "--%s is '%s', but must be true or false, yes or no, 1 or 0%s%s",
                              o->name, text, o->choices != NULL ? ", or one of " : "",
                              o->choices != NULL ? o->choices : "");
}

/* Two numbers with `between` between them. */
static struct status parse_pair(const struct option *o, const char *text, const char *between, double *values)
{
    char words[2][64] = {"", ""};
    size_t n = strcspn(text, between);
    const char *second = text + n + strspn(text + n, between);
    FAIL_IF(n >= sizeof words[0] || strlen(second) >= sizeof words[1] || *second == '\0', STATUS_USAGE,
            "--%s needs two numbers, not '%s'", o->name, text);
    memcpy(words[0], text, n);
    memcpy(words[1], second, strlen(second));
    TRY(parse_number(o, words[0], &values[0]));
    return parse_number(o, words[1], &values[1]);
}

static struct status parse_range(const struct option *o, const char *text, double *values)
{
    if (strchr(text, ':') != NULL) {
        return parse_pair(o, text, ":", values);
    }
    TRY(parse_number(o, text, &values[0]));
    values[1] = values[0];
    return status_ok();
}

struct status option_add_word(const struct option *o, const char *text, struct option_words *words)
{
    FAIL_IF(words->n == OPTION_MOST_WORDS, STATUS_USAGE,
            "--%s takes at most %d words, and '%.80s' is one more", o->name, OPTION_MOST_WORDS, text);
    words->of[words->n++] = text;
    return status_ok();
}

struct status option_store(const struct option *o, const char *text, void *args)
{
    void *field = (char *)args + o->offset;
    double number = 0;
    switch (o->kind) {
    case OPTION_FLAG:
    case OPTION_BOOL: return parse_bool(o, text, field);
    case OPTION_INT: return parse_int(o, text, field);
    case OPTION_REAL:
        TRY(parse_number(o, text, &number));
        *(double *)field = number;
        break;
    case OPTION_PAIR: return parse_pair(o, text, ",", field);
    case OPTION_RANGE: return parse_range(o, text, field);
    case OPTION_WORDS: return option_add_word(o, text, field);
    case OPTION_STRING:
        FAIL_IF(text[0] == '\0' && !o->is_text && (o->default_text == NULL || o->default_text[0] != '\0'),
                STATUS_USAGE, "--%s is empty: %s", o->name, o->help);
        FAIL_IF(o->choices != NULL && !option_is_choice(o->choices, text), STATUS_USAGE,
                "--%s is '%s', but must be one of %s", o->name, text, o->choices);
        *(const char **)field = text[0] == '\0' && !o->is_text ? NULL : text;
        break;
    case OPTION_MEANS: *(const char **)field = o->means; break;
    case OPTION_IGNORED:
    case OPTION_IGNORED_VALUE:
        log_info("--%s has no meaning here and is ignored: %s", o->name, o->help);
        break;
    case OPTION_NOT_YET:
        return status_error(STATUS_UNAVAILABLE, "--%s is not supported yet: %s", o->name, o->help);
    case OPTION_REFUSED: return status_error(STATUS_USAGE, "--%s is refused: %s", o->name, o->help);
    case OPTION_SAME:
    case OPTION_ROWS: CHECK(false, "--%s is not resolved", o->name);
    }
    return status_ok();
}

static json_t *words_of(const struct option_words *words)
{
    json_t *list = words->n == 0 ? json_null() : json_array();
    for (int i = 0; i < words->n; i++) {
        json_array_append_new(list, json_text(words->of[i]));
    }
    return list;
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
        json_t *value = text == NULL ? NULL : json_text(text);
        return value == NULL ? json_null() : value;
    }
    case OPTION_RANGE: {
        const double *ends = field;
        char text[64];
        snprintf(text, sizeof text, "%.9g:%.9g", ends[0], ends[1]);
        return ends[0] < ends[1] || ends[0] > ends[1] ? json_text(text) : json_real(ends[0]);
    }
    case OPTION_WORDS: return words_of((const struct option_words *)field);
    case OPTION_PAIR: /* numbers of a pair have flags of their own */
    case OPTION_MEANS:
    case OPTION_IGNORED:
    case OPTION_IGNORED_VALUE:
    case OPTION_NOT_YET:
    case OPTION_REFUSED:
    case OPTION_SAME:
    case OPTION_ROWS: break;
    }
    return NULL;
}

struct option_key option_key(const struct option *o)
{
    struct option_key key;
    snprintf(key.text, sizeof key.text, "%s", o->name);
    for (char *p = key.text; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    return key;
}

json_t *option_values(const struct command *c, const void *args)
{
    json_t *values = json_object();
    for (struct option_walk w = {0}; values != NULL && option_next(&w, c);) {
        const struct option *o = &w.row;
        json_t *value = o->name[0] == '\0' ? NULL : value_of(o, args);
        if (value != NULL) {
            json_object_set_new(values, option_key(o).text, value);
        }
    }
    return values;
}

static void add_given(struct words *w, const char *name, const json_t *value)
{
    if (json_is_array(value)) {
        words_add(w, "--%s", name);
        for (size_t i = 0; i < json_array_size(value); i++) {
            words_add(w, "%s", json_string_value(json_array_get(value, i)));
        }
    } else if (json_is_string(value)) {
        words_add(w, "--%s=%s", name, json_string_value(value));
    } else if (json_is_real(value)) {
        words_add(w, "--%s=%.9g", name, json_real_value(value));
    } else if (json_is_integer(value)) {
        words_add(w, "--%s=%" JSON_INTEGER_FORMAT, name, json_integer_value(value));
    } else if (json_is_boolean(value)) {
        words_add(w, "--%s%s", name, json_is_true(value) ? "" : "=false");
    }
}

/* Rows that are other names of a flag's field, and hold no value of their own, are passed over. */
void option_append_line(struct buf *out, const struct command *c, const void *args)
{
    struct words line = {0};
    json_t *told = json_object();
    words_add(&line, "kiln");
    words_add(&line, "%s", c->name);
    for (struct option_walk w = {0}; option_next(&w, c);) {
        json_t *value =
            w.row.name[0] == '\0' || !option_was_given(c, args, w.row.name) ? NULL : value_of(&w.row, args);
        char field[32];
        snprintf(field, sizeof field, "%zu", w.row.offset);
        if (value != NULL && json_object_get(told, field) == NULL) {
            add_given(&line, w.row.name, value);
            json_object_set_new(told, field, json_true());
        }
        json_decref(value);
    }
    words_print(out, &line);
    out->failed |= line.failed;
    words_fini(&line);
    json_decref(told);
}
