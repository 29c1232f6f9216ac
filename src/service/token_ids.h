/* token_ids: ids of tokens that a client sends instead of a text. */
#ifndef KILN_SERVICE_TOKEN_IDS_H
#define KILN_SERVICE_TOKEN_IDS_H

#include "service/call.h"

/* Appends an array of ids of the model's vocabulary, the field `name` in messages.  Ids of another model are
 * noticed only where the vocabulary does not have them.  False: the call has failed. */
bool token_ids_read(struct call *c, struct id_list *to, const struct served_model *m, const json_t *ids,
                    const char *name);

#endif
