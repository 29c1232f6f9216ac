/* answer_headers: the headers of an answer: TEI's times and counts, and whether texts were cut. */
#ifndef KILN_SERVICE_ANSWER_HEADERS_H
#define KILN_SERVICE_ANSWER_HEADERS_H

#include "service/call.h"

/* Adds x-compute-type, x-compute-time, x-compute-characters, x-compute-tokens, x-total-time,
 * x-tokenization-time, x-queue-time and x-inference-time, in integer milliseconds; and kiln-truncated, the
 * number of texts that were cut, if there is one.  Call it before the reply to a call whose work has
 * ended. */
void answer_headers_add(struct call *c);

#endif
