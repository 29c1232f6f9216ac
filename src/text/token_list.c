#include "text/token_list.h"

#include <stdlib.h>

void token_list_fini(struct token_list *l)
{
    free(l->tokens);
    *l = (struct token_list){0};
}

void id_list_fini(struct id_list *l)
{
    free(l->ids);
    *l = (struct id_list){0};
}

/* Doubles the array; NULL leaves everything unchanged. */
static void *grow(void *items, size_t *capacity, size_t item_bytes)
{
    size_t wanted = *capacity == 0 ? 256 : *capacity * 2;
    void *grown = wanted > SIZE_MAX / item_bytes ? NULL : realloc(items, wanted * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

bool token_list_grow(struct token_list *l)
{
    struct token *grown = grow(l->tokens, &l->capacity, sizeof *grown);
    l->tokens = grown != NULL ? grown : l->tokens;
    return grown != NULL;
}

bool id_list_grow(struct id_list *l)
{
    int32_t *grown = grow(l->ids, &l->capacity, sizeof *grown);
    l->ids = grown != NULL ? grown : l->ids;
    return grown != NULL;
}
