/* punkt_word: the words of a text as Punkt takes them, and what it asks about each.
 *
 * A word keeps a full stop at its end; other punctuation is a word of its own, and so are dashes and
 * ellipses.  Source: Kiss & Strunk 2006 (doi:10.1162/coli.2006.32.4.485) and the patterns of NLTK's
 * nltk/tokenize/punkt.py (PunktLanguageVars, PunktToken), which these functions follow without regular
 * expressions. */
#ifndef KILN_TEXT_PUNKT_WORD_H
#define KILN_TEXT_PUNKT_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer word is known only as long: no language has an abbreviation of this length.  In lower case it may
 * be longer: an ill-formed byte becomes U+FFFD, of three bytes. */
enum { PUNKT_WORD_BYTES = 64, PUNKT_LOWER_BYTES = 3 * PUNKT_WORD_BYTES };

/* The word that stands for every number. */
#define PUNKT_NUMBER "##number##"

struct punkt_span {
    size_t start, end; /* bytes of the text */
};

/* Finds the next word of text[0..n), from *at, and moves *at past it; false if there is none left. */
bool punkt_word_next(struct punkt_span *word, size_t *at, const char *text, size_t n);

enum punkt_case { PUNKT_NO_CASE, PUNKT_LOWER, PUNKT_UPPER };

struct punkt_word {
    char text[PUNKT_LOWER_BYTES]; /* [n] lower case, or PUNKT_NUMBER */
    size_t n;                     /* 0: longer than PUNKT_WORD_BYTES */
    enum punkt_case first_case;   /* case of the first letter, if the word begins with one */
    bool ends_in_stop;            /* a full stop is its last character, perhaps its only one */
    bool is_end;                  /* the word is one full stop, question or exclamation mark */
    bool is_ellipsis;
    bool is_number;   /* digits, with points, commas, dashes and perhaps a full stop at its end */
    bool is_initial;  /* a letter and a full stop */
    bool is_letters;  /* nothing but letters */
    bool has_letter;  /* a number counts as one */
    bool is_caseless; /* the last letter is of a script without upper and lower case */
};

/* Describes text[0..n), one word. */
void punkt_word_describe(struct punkt_word *w, const char *text, size_t n);

/* White space as Unicode has it. */
bool punkt_word_is_space(uint32_t c);

#endif
