/* call_cut: the part that a text of too many tokens loses, by two fields that TEI and huggingface_hub
 * send. */
#ifndef KILN_SERVICE_CALL_CUT_H
#define KILN_SERVICE_CALL_CUT_H

#include "data/encoded_texts.h"
#include "service/call.h"

/* Reads "truncate" and "truncation_direction"; by default ends are cut.  False: the call has failed. */
bool call_cut(struct call *c, const json_t *o, enum text_cut *cut);

#endif
