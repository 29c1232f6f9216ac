#include "text/punkt_english.h"

#include <string.h>

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

bool punkt_english_ends(const struct punkt_word *word, const struct punkt_word *next)
{
    size_t n = word->n - (word->n > 0);
    if (next->first_case == PUNKT_LOWER && (word->is_number || word->is_ellipsis)) {
        return false;
    }
    if (word->is_ellipsis || word->is_number) {
        return true;
    }
    if (punkt_english_expects(word, next)) {
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

bool punkt_english_knows(const char *word, size_t n)
{
    return is_word(word, n, titles) || is_word(word, n, ambiguous) || is_word(word, n, dotted);
}

bool punkt_english_expects(const struct punkt_word *word, const struct punkt_word *next)
{
    size_t n = word->n - (word->n > 0);
    if (word->first_case == PUNKT_LOWER && is_word(word->text, n, small_letters)) {
        bool is_versus = n == 1 && word->text[0] == 'v' && next->first_case == PUNKT_UPPER;
        return next->is_number || is_versus;
    }
    return next->is_number && is_word(word->text, n, numbered);
}

bool punkt_english_starts(const char *word, size_t n)
{
    return is_word(word, n, starters);
}

bool punkt_english_is_title(const char *word, size_t n)
{
    return is_word(word, n, titles);
}
