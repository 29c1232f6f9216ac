/* sentence_pairs: minimal pairs, a sentence that is right and one that is wrong, from files of JSON lines as
 * BLiMP's (Warstadt et al. 2020, arXiv:1912.00582) or other tables (data/table_file.h), with the names by
 * which results are grouped.
 *
 * A paradigm is the pair's "UID" or, without one, the name of its file; "linguistics_term" and "field" may be
 * missing. */
#ifndef KILN_DATA_SENTENCE_PAIRS_H
#define KILN_DATA_SENTENCE_PAIRS_H

#include "core/buf.h"
#include "text/tokenizer.h"

/* BLiMP's key and the word for it in tables. */
enum pair_level { PAIR_PARADIGM, PAIR_CLASS, PAIR_FIELD, PAIR_N_LEVELS };
struct pair_level_name {
    const char *key, *word;
};
extern const struct pair_level_name pair_level_names[PAIR_N_LEVELS];

enum pair_side { PAIR_GOOD, PAIR_BAD, PAIR_N_SIDES };

struct pair_options {
    const char *columns[PAIR_N_SIDES]; /* of the two sentences */
    int64_t limit;                     /* pairs of a paradigm, the first ones; 0: all */
};

struct sentence_pair {
    size_t start[PAIR_N_SIDES], n[PAIR_N_SIDES]; /* in `text` */
    int64_t group[PAIR_N_LEVELS];                /* -1: none */
    int64_t file, line;                          /* line from 1 */
};

/* A name of a level. */
struct pair_group {
    char *name;
    int64_t of[PAIR_N_LEVELS]; /* the groups of its first pair */
    int64_t n;                 /* pairs */
};

struct sentence_pairs {
    struct buf text;                  /* of all sentences */
    struct buf pairs;                 /* struct sentence_pair */
    struct buf groups[PAIR_N_LEVELS]; /* struct pair_group, in the order of their first pair */
    int64_t n, n_groups[PAIR_N_LEVELS];
    const char *const *paths; /* [n_paths] borrowed */
    int64_t n_paths;
};

/* Reads the files; `paths` must outlive `p`.  STATUS_DATA names file and line: JSON that is broken, a
 * sentence that is missing or empty; a file without pairs, or with none whose sentences differ (in 7 of
 * BLiMP's they do not). */
struct status sentence_pairs_open(struct sentence_pairs *p, const char *const *paths, int64_t n_paths,
                                  const struct pair_options *o);
void sentence_pairs_close(struct sentence_pairs *p);

const struct sentence_pair *sentence_pairs_get(const struct sentence_pairs *p, int64_t i);
struct text_bytes sentence_pairs_text(const struct sentence_pairs *p, int64_t i, enum pair_side side);
const struct pair_group *sentence_pairs_group(const struct sentence_pairs *p, enum pair_level level,
                                              int64_t group);

#endif
