#include "corpus/quality.h"

#include "corpus/hash_set.h"
#include "corpus/repeats.h"
#include "corpus/text_line.h"
#include "corpus/text_words.h"

#include <string.h>

enum { SEQUENCE_WORDS = 5 };

struct measures {
    int64_t n_chars, n_symbols, n_lines, n_repeated_lines, n_repeated_words;
    int64_t counted; /* words up to which the repeated ones are counted */
    struct text_words words;
    struct hash_set lines, sequences;
};

bool quality_is_limited(const struct quality_limits *l)
{
    return l->min_words > 0 || l->max_words > 0 || l->min_word_length > 0 || l->max_word_length > 0 ||
           l->max_symbols > 0 || l->max_repeated_lines > 0 || l->max_repeated_words > 0;
}

static struct status add_words(struct measures *m, const char *text, size_t n)
{
    struct text_word word;
    for (size_t at = 0; text_words_next(&word, &at, text, n);) {
        bool is_new = true;
        m->n_chars += (int64_t)word.n_chars;
        text_words_add(&m->words, word.hash);
        if (m->words.n >= SEQUENCE_WORDS) {
            TRY(hash_set_add(&m->sequences, &(uint64_t){text_words_hash(&m->words, SEQUENCE_WORDS)},
                             &is_new));
        }
        if (!is_new) {
            int64_t begin = m->words.n - SEQUENCE_WORDS;
            m->n_repeated_words += m->words.n - (begin > m->counted ? begin : m->counted);
            m->counted = m->words.n;
        }
    }
    return status_ok();
}

static struct status add_lines(struct measures *m, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct text_line line = text_line_take(text, n, &at);
        bool is_new = true;
        if (line.n > 0) {
            TRY(hash_set_add(&m->lines, &(uint64_t){repeats_hash(line.text, line.n)}, &is_new));
            m->n_lines++;
            m->n_repeated_lines += !is_new;
        }
    }
    return status_ok();
}

/* The ellipsis is U+2026, or three points. */
static int64_t count_symbols(const char *text, size_t n)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_ellipsis =
            i + 2 < n && (memcmp(text + i, "...", 3) == 0 || memcmp(text + i, "\xe2\x80\xa6", 3) == 0);
        count += is_ellipsis || text[i] == '#';
        i += is_ellipsis ? 2 : 0;
    }
    return count;
}

static struct status measure(struct measures *m, const struct document *d)
{
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        TRY(add_words(m, p.text, p.n));
        TRY(add_lines(m, p.text, p.n));
        m->n_symbols += count_symbols(p.text, p.n);
    }
    return status_ok();
}

static bool is_over(double value, double most)
{
    return most > 0 && value > most;
}

static enum document_fate judge(const struct quality_limits *l, const struct measures *m)
{
    double n = (double)(m->words.n > 0 ? m->words.n : 1), length = (double)m->n_chars / n;
    double lines = (double)(m->n_lines > 0 ? m->n_lines : 1);
    return m->words.n < l->min_words || is_over((double)m->words.n, (double)l->max_words)
               ? DOCUMENT_NUMBER_OF_WORDS
           : length < l->min_word_length || is_over(length, l->max_word_length)  ? DOCUMENT_WORD_LENGTH
           : is_over((double)m->n_symbols / n, l->max_symbols)                   ? DOCUMENT_SYMBOLS
           : is_over((double)m->n_repeated_lines / lines, l->max_repeated_lines) ? DOCUMENT_REPEATED_LINES
           : is_over((double)m->n_repeated_words / n, l->max_repeated_words)     ? DOCUMENT_REPEATED_WORDS
                                                                                 : DOCUMENT_KEPT;
}

struct status quality_judge(enum document_fate *fate, const struct quality_limits *l,
                            const struct document *d)
{
    struct measures m = {.n_chars = 0};
    struct append_mark nowhere = {0};
    struct status s = hash_set_open(&m.lines, sizeof(uint64_t), SIZE_MAX, NULL, nowhere);
    s = failed(s) ? s : hash_set_open(&m.sequences, sizeof(uint64_t), SIZE_MAX, NULL, nowhere);
    s = failed(s) ? s : measure(&m, d);
    *fate = judge(l, &m);
    hash_set_close(&m.lines);
    hash_set_close(&m.sequences);
    return s;
}
