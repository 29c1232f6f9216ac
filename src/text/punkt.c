#include "text/punkt.h"

#include "text/punkt_english.h"

#include <string.h>

void punkt_fini(struct punkt *p)
{
    word_counts_fini(&p->words);
    word_counts_fini(&p->pairs);
    *p = (struct punkt){0};
}

static unsigned find_bits(const struct punkt *p, const char *text, size_t n)
{
    return n == 0 ? 0 : (unsigned)word_counts_find(&p->words, text, n);
}

/* Whether the word, which ends in a full stop, or its part after the last hyphen is an abbreviation; `next`
 * may be NULL. */
static bool is_abbreviation(const struct punkt *p, const struct punkt_word *word,
                            const struct punkt_word *next)
{
    if (word->is_number || word->n < 2) {
        return false;
    }
    size_t n = word->n - 1, start = n;
    while (start > 0 && word->text[start - 1] != '-') {
        start--;
    }
    unsigned bits = find_bits(p, word->text, n);
    bits |= start > 0 ? find_bits(p, word->text + start, n - start) : 0;
    return (bits & PUNKT_ABBREVIATION) != 0 || punkt_english_knows(word->text, n) ||
           (next != NULL && punkt_english_expects(word, next));
}

/* Letters of a script without case, each with a full stop: no words are known by their case there, but these
 * are abbreviations, such as the Thai for years and months. */
static bool is_dotted_caseless(const struct punkt_word *w)
{
    size_t n_stops = 0;
    for (size_t i = 0; i < w->n; i++) {
        n_stops += w->text[i] == '.';
    }
    bool one_each = w->is_caseless && n_stops > 1;
    for (size_t i = 0, n_in_part = 0; i < w->n && one_each; i++) {
        bool begins = ((unsigned char)w->text[i] & 0xC0) != 0x80;
        n_in_part = w->text[i] == '.' ? 0 : n_in_part + begins;
        one_each = n_in_part <= 1;
    }
    return one_each;
}

enum answer { NO, YES, UNKNOWN };

/* Section 4.1.1: what the case of a word says about whether it begins a sentence. */
static enum answer begins_sentence(const struct punkt_word *w, unsigned bits)
{
    if (w->n == 1 && strchr(";:,.!?", w->text[0]) != NULL) {
        return NO;
    }
    if (w->first_case == PUNKT_UPPER && (bits & PUNKT_LOWER_BITS) != 0 && (bits & PUNKT_INSIDE_UPPER) == 0) {
        return YES;
    }
    if (w->first_case == PUNKT_LOWER &&
        ((bits & PUNKT_UPPER_BITS) != 0 || (bits & PUNKT_BEGINS_LOWER) == 0)) {
        return NO;
    }
    return UNKNOWN;
}

static bool are_pair(const struct punkt *p, const struct punkt_word *word, const char *next, size_t n_next)
{
    char text[2 * PUNKT_LOWER_BYTES + 1];
    size_t n = word->n - !word->is_number;
    if ((!word->is_initial && !word->is_number) || n_next == 0 || p->pairs.n == 0) {
        return false;
    }
    memcpy(text, word->text, n);
    text[n] = ' ';
    memcpy(text + n + 1, next, n_next);
    return word_counts_find(&p->pairs, text, n + 1 + n_next) != 0;
}

/* Section 4.2 and 4.3. */
static bool decide(const struct punkt *p, const struct punkt_word *word, const struct punkt_word *next)
{
    bool plain_stop = next->ends_in_stop && !next->is_ellipsis && !next->is_number && next->n > 1 &&
                      !is_abbreviation(p, next, NULL);
    size_t n_next = next->n - plain_stop;
    if (are_pair(p, word, next->text, n_next)) {
        return false;
    }
    unsigned bits = find_bits(p, next->text, n_next);
    enum answer begins = begins_sentence(next, bits);
    bool abbreviated = !word->is_ellipsis && (is_abbreviation(p, word, next) || is_dotted_caseless(word));
    if ((abbreviated || word->is_ellipsis) && !word->is_initial) {
        bool is_title = word->n > 0 && punkt_english_is_title(word->text, word->n - 1);
        bool starts = next->first_case == PUNKT_UPPER && (bits & PUNKT_STARTER) != 0;
        return is_title ? starts && punkt_english_starts(next->text, n_next) : begins == YES || starts;
    }
    if (word->is_initial || word->is_number) {
        bool is_name = word->is_initial && begins == UNKNOWN && next->first_case == PUNKT_UPPER &&
                       (bits & PUNKT_LOWER_BITS) == 0;
        return begins != NO && !is_name && !abbreviated;
    }
    return true;
}

bool punkt_ends_sentence(const struct punkt *p, const struct punkt_word *word, const struct punkt_word *next)
{
    if (word->is_end || !word->ends_in_stop) {
        return word->is_end;
    }
    if (p == NULL || !p->has_learned) {
        return !is_dotted_caseless(word) && punkt_english_ends(word, next);
    }
    return decide(p, word, next);
}
