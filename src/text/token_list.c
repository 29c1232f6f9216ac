#include "text/token_list.h"

#include "core/array.h"

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

bool token_list_grow(struct token_list *l)
{
    return ARRAY_RESERVE(l->tokens, l->capacity, l->capacity + 1);
}

bool id_list_grow(struct id_list *l)
{
    return ARRAY_RESERVE(l->ids, l->capacity, l->capacity + 1);
}
