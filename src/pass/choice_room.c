#include "pass/choice_room.h"

#include "ops/ops.h"

struct choice_parts choice_room_parts(void *block, int64_t n_rows, int64_t n_changes)
{
    struct arena a = arena_over(block, SIZE_MAX);
    struct choice_parts p;
    p.options = arena_carve_2d(&a, DTYPE_F64, n_rows, CHOICE_N_OPTIONS);
    p.starts = arena_carve_1d(&a, DTYPE_I32, n_rows + 1);
    p.changes = arena_carve_2d(&a, DTYPE_F32, n_changes, CHANGE_N_COLUMNS);
    p.bytes = a.used;
    return p;
}

void choice_room_carve(struct choice_room *room, struct arena *arena, int64_t n_rows, int64_t n_words)
{
    room->n_rows = n_rows;
    room->n_changes = n_words;
    room->memory = arena_carve(arena, choice_room_parts(NULL, n_rows, n_words).bytes);
    room->tokens = arena_carve_2d(arena, DTYPE_I32, n_rows, CHOICE_ROOM_TOLD);
    room->log_ps = arena_carve_2d(arena, DTYPE_F32, n_rows, CHOICE_ROOM_TOLD);
}
