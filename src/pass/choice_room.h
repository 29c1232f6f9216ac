/* choice_room: memory on the device in which tokens are chosen (ops.h, choose_tokens): how, which the host
 * sends in a block for each group of rows, and what is told of each row of a batch. */
#ifndef KILN_PASS_CHOICE_ROOM_H
#define KILN_PASS_CHOICE_ROOM_H

#include "core/arena.h"
#include "core/tensor.h"

/* Tokens that are told of a row: the chosen or rated one, and the most probable ones. */
enum { CHOICE_ROOM_TOLD = 21 };

struct choice_room {
    void *memory;      /* of the block; NULL: there is no room, or it is being planned */
    tensor tokens;     /* i32 [rows, CHOICE_ROOM_TOLD] */
    tensor log_ps;     /* f32 [rows, CHOICE_ROOM_TOLD] */
    int64_t n_rows;    /* of a batch, at most */
    int64_t n_changes; /* of the rows of a group, at most */
};

/* Where in a block the parts for a group of rows are; the changes are the last. */
struct choice_parts {
    tensor options, starts, changes; /* f64 [n, CHOICE_N_OPTIONS], i32 [n + 1], f32 [..., CHANGE_N_COLUMNS] */
    size_t bytes;                    /* from the beginning to the end of n_changes changes */
};
struct choice_parts choice_room_parts(void *block, int64_t n_rows, int64_t n_changes);

/* Room for rows of logits of n_words words, each of which a row may change. */
void choice_room_carve(struct choice_room *room, struct arena *arena, int64_t n_rows, int64_t n_words);

#endif
