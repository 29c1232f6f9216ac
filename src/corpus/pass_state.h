/* pass_state: how far `kiln prepare` has come, in a file that a later run continues from.
 *
 *   DIR/.prepare/run.json     what the run is: its settings, and path, size and time of each input
 *   DIR/.prepare/state.json   how far it is: the place in the inputs, marks of the files that grow, counts
 *   DIR/.prepare/memory.0, memory.1   alternately: state that is too large for JSON
 *
 * The rule: everything that a state refers to is durable before the state is; a state replaces the earlier
 * one completely.  So whenever a run is killed, the last state and the files before their marks are there.
 * docs/formats.md. */
#ifndef KILN_CORPUS_PASS_STATE_H
#define KILN_CORPUS_PASS_STATE_H

#include "core/json.h"
#include "corpus/cleaning.h"
#include "corpus/corpus.h"
#include "corpus/store_builder.h"
#include "corpus/text_output.h"

enum pass_stage {
    PASS_READING, /* the inputs */
    PASS_READ,    /* the stores and the text are complete, in .prepare */
    PASS_MADE,    /* all outputs are */
    PASS_MOVING,  /* the outputs are being moved to their places, and those of an earlier run were removed */
};

struct pass_state {
    enum pass_stage stage;
    struct corpus_place place;
    uint64_t done_bytes;
    struct source_counts counts;
    int64_t fates[DOCUMENT_N_FATES];
    struct store_builder_place store;
    struct text_output_place text;
    struct cleaning_place cleaning;
    struct append_mark memory; /* mark of memory.(n_saves % 2) */
    int64_t n_saves;
    double seconds; /* time that reading took, over all runs */
};

/* What was read, and the stores that were made of it. */
struct pass_report {
    struct pass_state read; /* counts, fates, cleaning and seconds */
    uint64_t total_bytes;   /* size of the files */
    json_t *sources; /* corpus_file_counts_json's, which the caller json_decref's; NULL: no text was read */
    struct token_store_info infos[SOURCE_MOST_KEYS]; /* [n_stores] */
    char prefixes[SOURCE_MOST_KEYS][FILE_PATH_BYTES];
    int n_stores;
};

/* Writes `memory` and then the state, whose `memory` and `n_saves` it sets. */
struct status pass_state_save(struct pass_state *s, const char *directory, const struct buf *memory);

/* *found is false if the directory has no state, which is then {0}.  STATUS_DATA: it is damaged. */
struct status pass_state_load(struct pass_state *s, const char *directory, bool *found);

/* Opens the file that pass_state_save wrote as `memory`; file_map_close it.  STATUS_DATA: it is not there, or
 * damaged. */
struct status pass_state_map_memory(struct file_map *map, const struct pass_state *s, const char *directory);

/* ---- what the run is ---- */

/* Writes settings, an object of texts and numbers, and the files. */
struct status pass_state_write_run(const char *path, json_t *settings, const struct input_files *f);

/* STATUS_USAGE, naming the first thing that is not as it was written. */
struct status pass_state_check_run(const char *path, const json_t *settings, const struct input_files *f);

#endif
