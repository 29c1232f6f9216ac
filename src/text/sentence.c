#include "text/sentence.h"

#include "text/utf8.h"

#include <stdint.h>
#include <string.h>

struct cursor {
    uint32_t c;  /* code point; 0 at the end of the text */
    size_t next; /* offset after it */
};

static struct cursor look(const char *text, size_t n, size_t at)
{
    struct cursor k = {0, at};
    if (at < n) {
        k.next = at + (size_t)utf8_decode(&k.c, text + at, n - at);
    }
    return k;
}

static bool is_one_of(uint32_t c, const uint32_t *list)
{
    while (*list != 0 && *list != c) {
        list++;
    }
    return *list != 0;
}

enum mark {
    MARK_NONE,
    MARK_STOP,     /* a full stop or an ellipsis: the words decide */
    MARK_TERMINAL, /* ends a sentence if white space follows */
    MARK_FREE      /* ends a sentence whatever follows */
};

static enum mark find_mark(uint32_t c)
{
    static const uint32_t terminal[] = {0x203C, 0x2047, 0x2048, 0x2049, 0x061F,
                                        0x06D4, 0x0589, 0x1362, 0x1367, 0};
    static const uint32_t free_marks[] = {0x3002, 0xFF01, 0xFF1F, 0xFF0E, 0xFF61, 0x0964,
                                          0x0965, 0x17D4, 0x17D5, 0x104B, 0};
    if (c == '.' || c == 0x2026) {
        return MARK_STOP;
    }
    if (c == '!' || c == '?') {
        return MARK_TERMINAL;
    }
    if (c < 0x0589) {
        return MARK_NONE;
    }
    return is_one_of(c, free_marks) ? MARK_FREE : is_one_of(c, terminal) ? MARK_TERMINAL : MARK_NONE;
}

static bool is_closer(uint32_t c)
{
    static const uint32_t closers[] = {'"',    '\'',   ')',    ']',    '}',    0x2019, 0x201D, 0x00BB,
                                       0x203A, 0x300D, 0x300F, 0xFF09, 0x3011, 0x300B, 0};
    return is_one_of(c, closers);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return (unsigned char)c < 0x80 && punkt_word_is_space((uint32_t)c);
}

/* A text and what decides about its full stops. */
struct splitter {
    const struct punkt *punkt;
    const char *text;
    size_t n, start; /* `start`: of the sentence */
};

/* Marks and closers, as they follow one another. */
struct marks {
    size_t first, last, end; /* the first mark, the last mark, the end of all */
    enum mark kind;          /* the last; MARK_FREE if any is */
    uint32_t c;              /* the last mark */
};

static struct marks read_marks(const struct splitter *r, size_t at)
{
    struct marks m = {.first = at, .last = at};
    struct cursor k = look(r->text, r->n, at);
    enum mark mark = find_mark(k.c);
    while (at < r->n && (mark != MARK_NONE || is_closer(k.c))) {
        if (mark != MARK_NONE) {
            m.last = at;
            m.c = k.c;
            m.kind = m.kind == MARK_FREE ? MARK_FREE : mark;
        }
        at = k.next;
        k = look(r->text, r->n, at);
        mark = find_mark(k.c);
    }
    m.end = at;
    return m;
}

/* The offset of the word that ends with the full stop at `stop`; of a spaced ellipsis, the offset of its
 * first stop. */
static size_t find_word(const struct splitter *r, size_t stop)
{
    size_t at = stop;
    while (at > r->start && stop - at < PUNKT_WORD_BYTES && !is_blank(r->text[at - 1])) {
        at--;
    }
    while (at >= r->start + 2 && stop - at < PUNKT_WORD_BYTES && r->text[at] == '.' &&
           r->text[at - 1] == ' ' && r->text[at - 2] == '.') {
        at -= 2;
    }
    return at;
}

/* Whether a sentence ends with the full stop at m->last; the next word begins at `next`. */
static bool words_end(const struct splitter *r, const struct marks *m, size_t next)
{
    struct punkt_word word, after;
    struct punkt_span span = {0, 0}, follows = {0, 0};
    size_t end = m->last + 1, following = m->end > end ? end : next;
    if (m->c != '.') { /* U+2026 */
        punkt_word_describe(&word, "...", 3);
        punkt_word_next(&follows, &next, r->text, r->n);
        punkt_word_describe(&after, r->text + follows.start, follows.end - follows.start);
        return punkt_ends_sentence(r->punkt, &word, &after);
    }
    size_t at = find_word(r, m->last);
    bool has_word = punkt_word_next(&span, &at, r->text, end);
    while (has_word) {
        punkt_word_describe(&word, r->text + span.start, span.end - span.start);
        has_word = punkt_word_next(&follows, &at, r->text, end);
        span = follows;
        if (!has_word) {
            punkt_word_next(&follows, &following, r->text, r->n);
        }
        if (word.is_end) {
            return true;
        }
        if (word.ends_in_stop) {
            punkt_word_describe(&after, r->text + follows.start, follows.end - follows.start);
            if (punkt_ends_sentence(r->punkt, &word, &after)) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the sentence so far is a number with a full stop, or a part of a spaced ellipsis. */
static bool is_item_or_dots(const struct splitter *r, const struct marks *m, size_t next)
{
    size_t at = r->start;
    while (at < m->last && is_digit(r->text[at])) {
        at++;
    }
    bool is_item = at > r->start && at == m->last;
    bool dot_follows = r->text[next] == '.' && (next + 1 >= r->n || is_blank(r->text[next + 1]));
    return m->c == '.' && (is_item || dot_follows);
}

/* The mark of a note, [1] or :23 (a page), which NLTK lets begin the next sentence. */
static bool begins_note(const struct splitter *r, size_t at)
{
    return r->text[at] == '[' || (r->text[at] == ':' && at + 1 < r->n && is_digit(r->text[at + 1]));
}

static bool ends_here(const struct splitter *r, const struct marks *m)
{
    struct cursor k = look(r->text, r->n, m->end);
    size_t next = m->end;
    if (m->kind == MARK_FREE || next >= r->n) {
        return true;
    }
    if (begins_note(r, next)) {
        return m->kind == MARK_TERMINAL || words_end(r, m, next);
    }
    if (!punkt_word_is_space(k.c)) {
        return false;
    }
    while (next < r->n && punkt_word_is_space(k.c)) {
        next = k.next;
        k = look(r->text, r->n, next);
    }
    if (next >= r->n || m->kind == MARK_TERMINAL) {
        return true;
    }
    return !is_item_or_dots(r, m, next) && words_end(r, m, next);
}

static bool is_thai(uint32_t c)
{
    return c >= 0x0E00 && c < 0x0F00;
}

/* Counts letters of Thai; whether the sentence ends after the one before `k.next`. */
static bool thai_ends(const struct splitter *r, int *n_letters, struct cursor k)
{
    if (!is_thai(k.c)) {
        return false;
    }
    ++*n_letters;
    return *n_letters >= SENTENCE_THAI_LETTERS && k.next + 1 < r->n && r->text[k.next] == ' ' &&
           is_thai(look(r->text, r->n, k.next + 1).c);
}

/* Behind the last character of text[0..end) that is not white space; there is one. */
static size_t trim(const char *text, size_t end)
{
    for (;;) {
        size_t at = end - 1;
        while (at > 0 && end - at < UTF8_MAX_BYTES && ((unsigned char)text[at] & 0xC0) == 0x80) {
            at--;
        }
        struct cursor k = look(text, end, at);
        if (k.next != end || !punkt_word_is_space(k.c)) {
            return end;
        }
        end = at;
    }
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Bytes at which a mark or a letter of Thai or Lao may begin.  None is inside a character, ill-formed or
 * not. */
static const bool may_matter[256] = {
    ['.'] = true,  ['!'] = true,  ['?'] = true,  [0xD6] = true, [0xD8] = true, [0xDB] = true,
    [0xE0] = true, [0xE1] = true, [0xE2] = true, [0xE3] = true, [0xEF] = true,
};

/* Whether eight bytes of text are ASCII without marks.  A byte below 128 plus 127 has its highest bit set
 * unless it is 0. */
static bool is_plain(const char *text)
{
    uint64_t w;
    memcpy(&w, text, sizeof w);
    uint64_t low = w & EACH(0x7F);
    uint64_t others = ((low ^ EACH('.')) + EACH(0x7F)) & ((low ^ EACH('!')) + EACH(0x7F)) &
                      ((low ^ EACH('?')) + EACH(0x7F));
    return ((~others | w) & EACH(0x80)) == 0;
}

/* The first byte that may matter, from `at` on. */
static size_t skip_plain(const char *text, size_t n, size_t at)
{
    while (at < n) {
        size_t end = n - at < sizeof(uint64_t) ? n : at + sizeof(uint64_t);
        if (end - at == sizeof(uint64_t) && is_plain(text + at)) {
            at = end;
            continue;
        }
        for (; at < end; at++) {
            if (may_matter[(unsigned char)text[at]]) {
                return at;
            }
        }
    }
    return n;
}

bool sentence_next(struct sentence *s, size_t *at, const struct punkt *p, const char *text, size_t n)
{
    struct splitter r = {p, text, n, *at};
    struct cursor k = look(text, n, r.start);
    while (r.start < n && punkt_word_is_space(k.c)) {
        r.start = k.next;
        k = look(text, n, r.start);
    }
    *at = r.start;
    int n_thai = 0;
    while ((*at = skip_plain(text, n, *at)) < n) {
        k = look(text, n, *at);
        if (find_mark(k.c) == MARK_NONE) {
            *at = k.next;
            if (thai_ends(&r, &n_thai, k)) {
                *s = (struct sentence){r.start, *at};
                return true;
            }
            continue;
        }
        struct marks m = read_marks(&r, *at);
        *at = m.end;
        if (ends_here(&r, &m)) {
            *s = (struct sentence){r.start, m.end};
            return true;
        }
    }
    *s = (struct sentence){r.start, n > r.start ? trim(text, n) : n};
    return n > r.start;
}
