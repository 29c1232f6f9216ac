/* quality: measures of a text that tell lists, menus and spam from prose, and limits of them.
 *
 * The measures are those of Rae et al. 2021 (Gopher, arXiv:2112.11446, appendix A.1), with the words of
 * corpus/text_words.h instead of what stands between blanks.
 *
 * The rule: a function of the text alone; the first limit that is exceeded, in their order, is the reason. */
#ifndef KILN_CORPUS_QUALITY_H
#define KILN_CORPUS_QUALITY_H

#include "corpus/document.h"

/* Limits; 0: none.  A repeated word is one of five in a row that stood in the document before. */
struct quality_limits {
    int64_t min_words, max_words;
    double min_word_length, max_word_length; /* limits of the mean, in code points */
    double max_symbols;                      /* "#" and ellipses, for each word */
    double max_repeated_lines;               /* lines equal to an earlier one, of all that are not empty */
    double max_repeated_words;               /* fraction of all words */
};

/* Whether there is a limit. */
bool quality_is_limited(const struct quality_limits *l);

/* Measures a document: DOCUMENT_KEPT, or the first limit that it exceeds.  STATUS_MEMORY. */
struct status quality_judge(enum document_fate *fate, const struct quality_limits *l,
                            const struct document *d);

#endif
