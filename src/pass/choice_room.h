/* choice_room: memory on the device in which tokens are chosen (ops.h, choose_tokens): a block with the
 * options, which the host sends for each group of rows, and the results for each row of a batch. */
#ifndef KILN_PASS_CHOICE_ROOM_H
#define KILN_PASS_CHOICE_ROOM_H

#include "core/arena.h"
#include "core/tensor.h"

/* Tokens that are reported for a row: the chosen or rated one, and the most probable ones. */
enum { CHOICE_ROOM_TOLD = 21 };

struct choice_room {
    void *memory;      /* memory of the block; NULL: there is none, or it is being planned */
    tensor tokens;     /* i32 [rows, CHOICE_ROOM_TOLD] */
    tensor log_ps;     /* f32 [rows, CHOICE_ROOM_TOLD] */
    int64_t n_rows;    /* most rows of a batch */
    int64_t n_changes; /* most changes of the rows of a group */
};

/* Places in a block of the parts for a group of rows; the changes are the last. */
struct choice_parts {
    tensor options, starts, changes; /* f64 [n, CHOICE_N_OPTIONS], i32 [n + 1], f32 [..., CHANGE_N_COLUMNS] */
    size_t bytes;                    /* bytes from the beginning to the end of n_changes changes */
};
struct choice_parts choice_room_parts(void *block, int64_t n_rows, int64_t n_changes);

/* Carves memory for rows of logits of n_words words, each of which a row may change. */
void choice_room_carve(struct choice_room *room, struct arena *arena, int64_t n_rows, int64_t n_words);

#endif
