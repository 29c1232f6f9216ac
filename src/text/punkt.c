#include "text/punkt.h"

#include <string.h>

/* ---- common English abbreviations: a word that is not listed ends its sentence ---- */

/* Never the end of a sentence: a name or a word follows. */
static const char *const titles[] = {
    "mr",  "mrs", "ms",  "dr",  "prof", "st",  "gen",  "col",    "capt", "lt",   "sgt",  "maj",  "rev",
    "hon", "gov", "sen", "rep", "pres", "mme", "mlle", "messrs", "adm",  "supt", "fr",   "mt",   "ft",
    "vs",  "cf",  "viz", "ca",  "esp",  "bzw", "sra",  "dra",    "herr", "rt",   "cmdr", "insp", NULL};

/* The end of a sentence unless a number follows. */
static const char *const numbered[] = {
    "no", "nos", "nr",  "vol", "vols", "p",   "pp",  "fig", "figs", "ch",   "sec", "art", "op",  "ver",
    "eq", "jan", "feb", "mar", "apr",  "jun", "jul", "aug", "sep",  "sept", "oct", "nov", "dec", NULL};

/* Small letters that end a sentence unless a number follows: circa, born, died, reigned, verso.  A capital
 * may be the end (vitamin C). */
static const char *const small_letters[] = {"b", "c", "d", "r", "v", NULL};

/* The end of a sentence only if a word that often begins one follows; the same holds for words with stops
 * inside, such as U.S. */
static const char *const ambiguous[] = {"inc", "ltd", "co",     "corp", "bros", "jr",
                                        "sr",  "ave", "blvd",   "rd",   "dept", "univ",
                                        "al",  "est", "approx", "assn", NULL};

/* Words with stops inside that are abbreviations in all English text; others are learned. */
static const char *const dotted[] = {"u.s", "u.k", "u.n",  "u.s.a", "u.s.s.r", "d.c",
                                     "a.m", "p.m", "ph.d", "i.e",   "e.g",     NULL};

static const char *const starters[] = {
    "the",  "a",        "an",      "he",    "she",   "it",   "they", "we",    "i",     "you",
    "in",   "on",       "at",      "but",   "and",   "this", "that", "these", "there", "his",
    "her",  "its",      "their",   "when",  "after", "as",   "if",   "for",   "from",  "by",
    "with", "although", "however", "while", "since", "then", "so",   "what",  NULL};

/* The first letters differ nearly always, so they are compared first. */
static bool is_word(const char *word, size_t n, const char *const *list)
{
    if (n == 0) {
        return false;
    }
    while (*list != NULL && ((*list)[0] != word[0] || strlen(*list) != n || memcmp(*list, word, n) != 0)) {
        list++;
    }
    return *list != NULL;
}

/* Whether a word is written as u.s, p.m, ph.d: parts of at most two bytes between stops. */
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

bool punkt_knows(const char *word, size_t n)
{
    return is_word(word, n, titles) || is_word(word, n, ambiguous) || is_word(word, n, dotted);
}

/* Whether `word` is an abbreviation because of the next word: a number after No. or c., a name after v. */
static bool expects(const struct punkt_word *word, const struct punkt_word *next)
{
    size_t n = word->n - (word->n > 0);
    if (word->first_case == PUNKT_LOWER && is_word(word->text, n, small_letters)) {
        bool is_versus = n == 1 && word->text[0] == 'v' && next->first_case == PUNKT_UPPER;
        return next->is_number || is_versus;
    }
    return next->is_number && is_word(word->text, n, numbered);
}

/* Whether a sentence often begins with this word, in lower case. */
static bool starts_in_english(const char *word, size_t n)
{
    return is_word(word, n, starters);
}

/* Whether a word is a title or the like, which a name follows: a capital after it shows nothing. */
static bool is_english_title(const char *word, size_t n)
{
    return is_word(word, n, titles);
}

/* Whether a sentence ends after `word`, which ends in a full stop, when `next` follows. */
static bool ends_in_english(const struct punkt_word *word, const struct punkt_word *next)
{
    size_t n = word->n - (word->n > 0);
    if (next->first_case == PUNKT_LOWER && (word->is_number || word->is_ellipsis)) {
        return false;
    }
    if (word->is_ellipsis || word->is_number) {
        return true;
    }
    if (expects(word, next)) {
        return false;
    }
    if (word->is_initial) {
        return word->first_case != PUNKT_UPPER;
    }
    if (is_dotted(word->text, n) || is_word(word->text, n, ambiguous)) {
        return next->first_case == PUNKT_UPPER && is_word(next->text, next->n, starters);
    }
    return !is_word(word->text, n, titles);
}

/* ---- what was learned ---- */

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
    return (bits & PUNKT_ABBREVIATION) != 0 || punkt_knows(word->text, n) ||
           (next != NULL && expects(word, next));
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
        bool is_title = word->n > 0 && is_english_title(word->text, word->n - 1);
        bool starts = next->first_case == PUNKT_UPPER && (bits & PUNKT_STARTER) != 0;
        return is_title ? starts && starts_in_english(next->text, n_next) : begins == YES || starts;
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
        return !is_dotted_caseless(word) && ends_in_english(word, next);
    }
    return decide(p, word, next);
}
