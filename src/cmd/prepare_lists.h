/* prepare_lists: flags of `kiln prepare` that are lists. */
#ifndef KILN_CMD_PREPARE_LISTS_H
#define KILN_CMD_PREPARE_LISTS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct prepare_word {
    const char *text; /* [n] borrowed */
    size_t n;
};

/* The next word of a list with commas, from *rest on, which may be NULL; false at the end. */
bool prepare_word_next(struct prepare_word *word, const char **rest);

struct prepare_formats {
    bool store, hdf5, packed, text;
};

/* --format; `packed` turns hdf5 into packed.  STATUS_USAGE. */
struct status prepare_formats_parse(struct prepare_formats *f, const char *list, bool packed);

enum { PREPARE_MOST_PHASES = 8 };

struct prepare_phase {
    int64_t max_seq_length, max_predictions_per_seq;
};

/* --max_seq_length and --max_predictions_per_seq, of as many numbers.  STATUS_USAGE. */
struct status prepare_phases_parse(struct prepare_phase phases[PREPARE_MOST_PHASES], int *n,
                                   const char *lengths, const char *predictions);

#endif
