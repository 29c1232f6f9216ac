#include "text/sentence.h"

#include "text/unicode.h"
#include "text/utf8.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

/* Never the end of a sentence: a name or a word follows. */
static const char *const titles[] = {
    "mr",  "mrs", "ms",  "dr",  "prof", "st",  "gen",  "col",    "capt", "lt",   "sgt",  "maj",  "rev",
    "hon", "gov", "sen", "rep", "pres", "mme", "mlle", "messrs", "adm",  "supt", "fr",   "mt",   "ft",
    "vs",  "cf",  "viz", "ca",  "esp",  "bzw", "sra",  "dra",    "herr", "rt",   "cmdr", "insp", NULL};

/* The end of a sentence unless a number follows. */
static const char *const numbered[] = {
    "no", "nos", "nr",  "vol", "vols", "p",   "pp",  "fig", "figs", "ch",   "sec", "art", "op",  "ver",
    "eq", "jan", "feb", "mar", "apr",  "jun", "jul", "aug", "sep",  "sept", "oct", "nov", "dec", NULL};

/* The end of a sentence only if a word that often begins one follows; the same holds for words with stops
 * inside, such as
 * U.S. */
static const char *const ambiguous[] = {"inc", "ltd", "co",     "corp", "bros", "jr",
                                        "sr",  "ave", "blvd",   "rd",   "dept", "univ",
                                        "al",  "est", "approx", "assn", NULL};

static const char *const starters[] = {
    "the",  "a",        "an",      "he",    "she",   "it",   "they", "we",    "i",     "you",
    "in",   "on",       "at",      "but",   "and",   "this", "that", "these", "there", "his",
    "her",  "its",      "their",   "when",  "after", "as",   "if",   "for",   "from",  "by",
    "with", "although", "however", "while", "since", "then", "so",   "what",  NULL};

struct cursor {
    uint32_t c;  /* code point; 0 at the end of the text */
    size_t next; /* offset behind it */
};

static struct cursor look(const char *text, size_t n, size_t at)
{
    struct cursor k = {0, at};
    if (at < n) {
        k.next = at + (size_t)utf8_decode(&k.c, text + at, n - at);
    }
    return k;
}

static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x80 && unicode_is_space(c));
}

static bool is_one_of(uint32_t c, const uint32_t *list)
{
    while (*list != 0 && *list != c) {
        list++;
    }
    return *list != 0;
}

/* The first bytes of the characters that the two functions below know; a text is mostly other bytes. */
static const bool may_terminate[256] = {
    ['.'] = true,  ['!'] = true,  ['?'] = true,  [0xD6] = true, [0xD8] = true, [0xDB] = true,
    [0xE0] = true, [0xE1] = true, [0xE2] = true, [0xE3] = true, [0xEF] = true,
};

/* Ends a sentence if white space follows. */
static bool is_terminator(uint32_t c)
{
    static const uint32_t others[] = {0x2026, 0x203C, 0x2047, 0x2048, 0x2049, 0x0964, 0x0965,
                                      0x061F, 0x06D4, 0x1362, 0x0589, 0x17D4, 0x104B, 0};
    return c == '.' || c == '!' || c == '?' || (c >= 0x80 && is_one_of(c, others));
}

/* Ends a sentence whatever follows: ideographic and full-width forms. */
static bool is_wide_terminator(uint32_t c)
{
    static const uint32_t wide[] = {0x3002, 0xFF01, 0xFF1F, 0xFF0E, 0xFF61, 0};
    return c >= 0x3000 && is_one_of(c, wide);
}

static bool is_closer(uint32_t c)
{
    static const uint32_t closers[] = {'"',    '\'',   ')',    ']',    '}',    0x2019, 0x201D, 0x00BB,
                                       0x203A, 0x300D, 0x300F, 0xFF09, 0x3011, 0x300B, 0};
    return is_one_of(c, closers);
}

static bool is_opener(uint32_t c)
{
    static const uint32_t openers[] = {'"',    '\'',   '(',    '[',    '{', 0x2018, 0x201C, 0x00AB, 0x2039,
                                       0x201E, 0x201A, 0x00BF, 0x00A1, '-', 0x2013, 0x2014, 0};
    return is_one_of(c, openers);
}

static bool is_small_letter(uint32_t c)
{
    return c < 0x80 ? c >= 'a' && c <= 'z' : utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL;
}

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(const char *word, size_t n, const char *const *list)
{
    for (; *list != NULL && n > 0; list++) {
        if ((*list)[0] == (word[0] | 0x20) && strlen(*list) == n && strncasecmp(*list, word, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_ascii_boundary(char c)
{
    return (unsigned char)c < 0x80 && (is_space((uint32_t)c) || is_opener((uint32_t)c));
}

/* The word that ends at `end`, at most LONGEST bytes of it, without brackets and quotes before it. */
static size_t word_start(const char *text, size_t start, size_t end)
{
    enum { LONGEST = 16 };
    size_t at = end;
    while (at > start && end - at < LONGEST && !is_ascii_boundary(text[at - 1])) {
        at--;
    }
    return at;
}

/* Whether the word at `at` is one that often begins a sentence. */
static bool begins_with_starter(const char *text, size_t n, size_t at)
{
    size_t end = at;
    while (end < n && ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= 'A' && text[end] <= 'Z'))) {
        end++;
    }
    bool is_initial = end - at == 1 && end < n && text[end] == '.';
    return !is_initial && is_word(text + at, end - at, starters);
}

static bool is_number(const char *word, size_t n)
{
    size_t i = 0;
    while (i < n && is_digit((unsigned char)word[i])) {
        i++;
    }
    return n > 0 && i == n;
}

/* As U.S, p.m, Ph.D: parts of at most two bytes between stops. */
static bool is_dotted(const char *word, size_t n)
{
    size_t part = 0;
    bool has_stop = false;
    for (size_t i = 0; i < n && part <= 2; i++) {
        has_stop = has_stop || word[i] == '.';
        part = word[i] == '.' ? 0 : part + 1;
    }
    return has_stop && part <= 2;
}

/* Whether the full stop at `stop` belongs to the word before it and ends no sentence; what follows begins at
 * `next`. */
static bool is_abbreviation(const char *text, size_t n, size_t start, size_t stop, size_t next)
{
    size_t at = word_start(text, start, stop);
    const char *word = text + at;
    size_t n_word = stop - at;
    if (is_number(word, n_word)) {
        return at == start; /* the number of a list's item */
    }
    if (n_word == 1 && word[0] >= 'A' && word[0] <= 'Z') {
        return true; /* an initial */
    }
    if (is_word(word, n_word, numbered)) {
        return next < n && is_digit((unsigned char)text[next]);
    }
    if (is_dotted(word, n_word) || is_word(word, n_word, ambiguous)) {
        return !begins_with_starter(text, n, next);
    }
    return is_word(word, n_word, titles);
}

/* Whether a sentence can begin after the terminators that end at `end`; the last of them is at
 * `last`. */
static bool ends_here(const char *text, size_t n, size_t start, size_t last, size_t end, bool one_full_stop)
{
    struct cursor k = look(text, n, end);
    if (end < n && !is_space(k.c)) {
        return false;
    }
    while (end < n && is_space(k.c)) {
        end = k.next;
        k = look(text, n, end);
    }
    size_t next = end;
    while (next < n && is_opener(k.c)) {
        next = k.next;
        k = look(text, n, next);
    }
    if (next < n && (is_small_letter(k.c) || is_terminator(k.c))) { /* a terminator: a spaced ellipsis */
        return false;
    }
    return next >= n || !one_full_stop || !is_abbreviation(text, n, start, last, next);
}

/* Skips terminators and closers from the terminator at `at`, and returns the end of the sentence if it is
 * one. */
static size_t skip_terminators(const char *text, size_t n, size_t at, bool *wide, int *n_terminators)
{
    struct cursor k = look(text, n, at);
    while (at < n && (is_terminator(k.c) || is_wide_terminator(k.c) || is_closer(k.c))) {
        *wide = *wide || is_wide_terminator(k.c);
        *n_terminators += !is_closer(k.c);
        at = k.next;
        k = look(text, n, at);
    }
    return at;
}

/* The end of text[0..n) without the white space at its end; there is none before `from`. */
static size_t end_of_text(const char *text, size_t n, size_t from)
{
    size_t end = from;
    for (size_t at = from; at < n;) {
        struct cursor k = look(text, n, at);
        at = k.next;
        end = is_space(k.c) ? end : at;
    }
    return end;
}

bool sentence_next(struct sentence *s, size_t *at, const char *text, size_t n)
{
    struct cursor k = look(text, n, *at);
    while (*at < n && is_space(k.c)) {
        *at = k.next;
        k = look(text, n, *at);
    }
    if (*at >= n) {
        return false;
    }
    s->start = *at;
    size_t read = *at; /* the last place where white space was looked for */
    while (*at < n) {
        if (!may_terminate[(unsigned char)text[*at]]) {
            ++*at;
            continue;
        }
        k = look(text, n, *at);
        if (!is_terminator(k.c) && !is_wide_terminator(k.c)) {
            *at = k.next;
            continue;
        }
        bool wide = false;
        int n_terminators = 0;
        size_t last = *at;
        bool full_stop = k.c == '.';
        *at = read = skip_terminators(text, n, *at, &wide, &n_terminators);
        if (wide || ends_here(text, n, s->start, last, *at, full_stop && n_terminators == 1)) {
            s->end = *at;
            return true;
        }
    }
    s->end = end_of_text(text, n, read);
    return true;
}
