/* token_list: the output of encoding: tokens with their places in the text, or only ids.  A zeroed list is
 * empty; its fini frees it; n = 0 empties it and keeps the memory. */
#ifndef KILN_TEXT_TOKEN_LIST_H
#define KILN_TEXT_TOKEN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token {
    int32_t id;
    size_t start, end; /* bytes of the original text */
};

struct token_list {
    struct token *tokens; /* [n] */
    size_t n, capacity;
};
struct id_list {
    int32_t *ids; /* [n] */
    size_t n, capacity;
};
void token_list_fini(struct token_list *l);
void id_list_fini(struct id_list *l);

/* Reserves space for one more item; false: out of memory. */
bool token_list_grow(struct token_list *l);
bool id_list_grow(struct id_list *l);

/* Both return false if memory runs out.  They are in the header because they run for each token. */
static inline bool token_list_append(struct token_list *l, struct token token)
{
    if (l->n == l->capacity && !token_list_grow(l)) {
        return false;
    }
    l->tokens[l->n++] = token;
    return true;
}

static inline bool id_list_append(struct id_list *l, int32_t id)
{
    if (l->n == l->capacity && !id_list_grow(l)) {
        return false;
    }
    l->ids[l->n++] = id;
    return true;
}

#endif
