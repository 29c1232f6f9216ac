#include "text/punkt_word.h"

#include "text/letter_case.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

enum {
    SPACE = 1,
    ENDS = 2,      /* ends a word */
    NO_START = 4,  /* begins none */
    LETTER = 8,    /* letter of ASCII */
    DIGIT = 16,    /* digit of ASCII */
    LOOK = 32,     /* may end a word: the next byte decides */
    NOT_ASCII = 64 /* needs to be decoded, where it may be white space or a quote */
};

/* Classes of bytes.  Of the bytes above ASCII only those that begin white space or a quote need decoding. */
static const unsigned char classes[256] = {
    ['\t'] = SPACE,
    ['\n'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
    ['\r'] = SPACE,
    [' '] = SPACE,
    ['('] = ENDS | NO_START,
    [')'] = ENDS | NO_START,
    ['"'] = ENDS | NO_START,
    [';'] = ENDS | NO_START,
    ['}'] = ENDS | NO_START,
    [']'] = ENDS | NO_START,
    ['*'] = ENDS | NO_START,
    [':'] = ENDS | NO_START,
    ['@'] = ENDS | NO_START,
    ['{'] = ENDS | NO_START,
    ['['] = ENDS | NO_START,
    ['\''] = ENDS,
    ['?'] = ENDS,
    ['!'] = ENDS,
    ['`'] = NO_START,
    ['&'] = NO_START,
    ['#'] = NO_START,
    ['-'] = NO_START | LOOK,
    [','] = NO_START | LOOK,
    ['.'] = LOOK,
    [0xC2] = NOT_ASCII,
    [0xE1] = NOT_ASCII,
    [0xE2] = NOT_ASCII,
    [0xE3] = NOT_ASCII,
    ['0'] = DIGIT,
    ['1'] = DIGIT,
    ['2'] = DIGIT,
    ['3'] = DIGIT,
    ['4'] = DIGIT,
    ['5'] = DIGIT,
    ['6'] = DIGIT,
    ['7'] = DIGIT,
    ['8'] = DIGIT,
    ['9'] = DIGIT,
    ['A'] = LETTER,
    ['B'] = LETTER,
    ['C'] = LETTER,
    ['D'] = LETTER,
    ['E'] = LETTER,
    ['F'] = LETTER,
    ['G'] = LETTER,
    ['H'] = LETTER,
    ['I'] = LETTER,
    ['J'] = LETTER,
    ['K'] = LETTER,
    ['L'] = LETTER,
    ['M'] = LETTER,
    ['N'] = LETTER,
    ['O'] = LETTER,
    ['P'] = LETTER,
    ['Q'] = LETTER,
    ['R'] = LETTER,
    ['S'] = LETTER,
    ['T'] = LETTER,
    ['U'] = LETTER,
    ['V'] = LETTER,
    ['W'] = LETTER,
    ['X'] = LETTER,
    ['Y'] = LETTER,
    ['Z'] = LETTER,
    ['a'] = LETTER,
    ['b'] = LETTER,
    ['c'] = LETTER,
    ['d'] = LETTER,
    ['e'] = LETTER,
    ['f'] = LETTER,
    ['g'] = LETTER,
    ['h'] = LETTER,
    ['i'] = LETTER,
    ['j'] = LETTER,
    ['k'] = LETTER,
    ['l'] = LETTER,
    ['m'] = LETTER,
    ['n'] = LETTER,
    ['o'] = LETTER,
    ['p'] = LETTER,
    ['q'] = LETTER,
    ['r'] = LETTER,
    ['s'] = LETTER,
    ['t'] = LETTER,
    ['u'] = LETTER,
    ['v'] = LETTER,
    ['w'] = LETTER,
    ['x'] = LETTER,
    ['y'] = LETTER,
    ['z'] = LETTER,
};

bool punkt_word_is_space(uint32_t c)
{
    return c < 0x80 ? (classes[c] & SPACE) != 0 : unicode_class(c) == UNICODE_SPACE;
}

/* Curly quotes and guillemets. */
static bool is_quote(uint32_t c)
{
    return c == 0x2018 || c == 0x2019 || c == 0x201C || c == 0x201D || c == 0xAB || c == 0xBB;
}

/* The class of the character at `at`, and the bytes that it takes. */
static int classify(size_t *n_bytes, const char *text, size_t n, size_t at)
{
    int class = classes[(unsigned char)text[at]];
    *n_bytes = 1;
    if ((class & NOT_ASCII) != 0) {
        uint32_t c = 0;
        *n_bytes = (size_t)utf8_decode(&c, text + at, n - at);
        class = punkt_word_is_space(c) ? SPACE : is_quote(c) ? ENDS : 0;
    }
    return class;
}

/* Whether ". . ." begins at `at`, a full stop. */
static bool is_spaced_ellipsis(const char *text, size_t n, size_t at)
{
    return n - at >= 5 && text[at + 2] == '.' && text[at + 4] == '.' &&
           (classes[(unsigned char)text[at + 1]] & SPACE) != 0 &&
           (classes[(unsigned char)text[at + 3]] & SPACE) != 0;
}

/* The end of the dashes or the ellipsis that begin at `at`; `at` if none do. */
static size_t skip_marks(const char *text, size_t n, size_t at)
{
    char c = text[at];
    size_t end = at;
    if ((c == '-' || c == '.') && at + 1 < n && text[at + 1] == c) {
        while (end < n && text[end] == c) {
            end++;
        }
    } else if (c == '.' && is_spaced_ellipsis(text, n, at)) {
        end = at + 5;
        while (end + 1 < n && (classes[(unsigned char)text[end]] & SPACE) != 0 && text[end + 1] == '.') {
            end += 2;
        }
    }
    return end;
}

/* Whether the comma, dash or full stop at `at` ends the word before it. */
static bool ends_word(const char *text, size_t n, size_t at)
{
    if (text[at] != ',') {
        return skip_marks(text, n, at) > at;
    }
    size_t n_bytes = 0;
    return at + 1 >= n || (classify(&n_bytes, text, n, at + 1) & (SPACE | ENDS)) != 0 ||
           skip_marks(text, n, at + 1) > at + 1;
}

static size_t find_word_end(const char *text, size_t n, size_t at)
{
    while (at < n) {
        int class = classes[(unsigned char)text[at]];
        size_t n_bytes = 1;
        if ((class & NOT_ASCII) != 0) {
            class = classify(&n_bytes, text, n, at);
        }
        if ((class & (SPACE | ENDS)) != 0 || ((class & LOOK) != 0 && ends_word(text, n, at))) {
            break;
        }
        at += n_bytes;
    }
    return at;
}

bool punkt_word_next(struct punkt_span *word, size_t *at, const char *text, size_t n)
{
    int class = SPACE;
    size_t n_bytes = 0, start = *at;
    while (start < n && ((class = classify(&n_bytes, text, n, start)) & SPACE) != 0) {
        start += n_bytes;
    }
    *at = start;
    if (start >= n) {
        return false;
    }
    size_t end = (class & LOOK) != 0 ? skip_marks(text, n, start) : start;
    if (end == start) {
        end = start + n_bytes;
        while (end < n && ((unsigned char)text[end] & 0xC0) == 0x80) { /* the rest of the character */
            end++;
        }
        end = (class & NO_START) != 0 ? end : find_word_end(text, n, end);
    }
    *word = (struct punkt_span){start, end};
    *at = end;
    return true;
}

static bool is_digit(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

static bool is_letter(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

/* -?[.,]?\d[\d,.-]*: the numbers of Punkt.  Digits of ASCII; others are few, and their words words. */
static bool is_number(const char *text, size_t n)
{
    size_t at = n > 0 && text[0] == '-';
    at += at < n && (text[at] == '.' || text[at] == ',');
    if (at >= n || !is_digit((unsigned char)text[at])) {
        return false;
    }
    while (at < n &&
           (is_digit((unsigned char)text[at]) || text[at] == ',' || text[at] == '.' || text[at] == '-')) {
        at++;
    }
    return at == n;
}

static bool is_ellipsis(const char *text, size_t n)
{
    size_t n_stops = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '.' && (classes[(unsigned char)text[i]] & SPACE) == 0) {
            return false;
        }
        n_stops += text[i] == '.';
    }
    return n_stops > 1;
}

/* Counts that are made while a word is converted to lower case. */
struct letters {
    size_t n_characters, n_letters;
    bool last_is_caseless;
};

static size_t lower_other(struct punkt_word *w, struct letters *l, const char *text, size_t n)
{
    uint32_t c = 0;
    size_t n_bytes = (size_t)utf8_decode(&c, text, n);
    bool letter = is_letter(c), has_case = letter && letter_case_has(c);
    uint32_t lower = has_case ? letter_case_lower(c) : c;
    if (l->n_characters == 0 && has_case) {
        w->first_case = lower == c ? PUNKT_LOWER : PUNKT_UPPER;
    }
    l->last_is_caseless = letter ? !has_case : l->last_is_caseless;
    l->n_letters += letter;
    w->n += (size_t)utf8_write(w->text + w->n, lower);
    return n_bytes;
}

static void lower_word(struct punkt_word *w, struct letters *l, const char *text, size_t n)
{
    for (size_t at = 0; at < n; l->n_characters++) {
        unsigned char c = (unsigned char)text[at];
        if (c >= 0x80) {
            at += lower_other(w, l, text + at, n - at);
            continue;
        }
        bool letter = (classes[c] & LETTER) != 0;
        if (letter) {
            l->n_letters++;
            l->last_is_caseless = false;
        }
        w->text[w->n++] = (char)(letter ? c | 0x20 : c);
        at++;
    }
}

static void describe_first(struct punkt_word *w, unsigned char c)
{
    if ((classes[c] & LETTER) != 0) {
        w->first_case = c >= 'a' ? PUNKT_LOWER : PUNKT_UPPER;
    }
}

void punkt_word_describe(struct punkt_word *w, const char *text, size_t n)
{
    struct letters l = {0};
    w->n = 0;
    w->first_case = PUNKT_NO_CASE;
    w->ends_in_stop = text[n - 1] == '.';
    w->is_end = n == 1 && (text[0] == '.' || text[0] == '?' || text[0] == '!');
    w->is_ellipsis = w->ends_in_stop && is_ellipsis(text, n);
    w->is_number = is_number(text, n);
    describe_first(w, (unsigned char)text[0]);
    if (w->is_number) {
        w->n = strlen(PUNKT_NUMBER);
        memcpy(w->text, PUNKT_NUMBER, w->n);
    } else if (n <= PUNKT_WORD_BYTES) {
        lower_word(w, &l, text, n);
    }
    w->is_initial = w->ends_in_stop && l.n_letters == 1 && l.n_characters == 2;
    w->is_letters = l.n_letters > 0 && l.n_letters == l.n_characters;
    w->has_letter = w->is_number || l.n_letters > 0;
    w->is_caseless = l.last_is_caseless;
}
