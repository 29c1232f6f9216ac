/* endpoints: the paths that a service answers, by the files that do. */
#ifndef KILN_SERVICE_ENDPOINTS_H
#define KILN_SERVICE_ENDPOINTS_H

#include "service/call.h"

/* Each ends with a row of zeros. */
extern const struct endpoint operation_endpoints[]; /* health and metrics */

#endif
