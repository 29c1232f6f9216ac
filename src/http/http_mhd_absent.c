/* http_mhd_absent: http/http_mhd.h in a build without libmicrohttpd: no server starts. */
#include "http/http_mhd.h"

#include <stddef.h>

const char *http_server_library(void)
{
    return NULL;
}

struct status http_mhd_start(struct http_server *s)
{
    (void)s;
    return status_error(
        STATUS_UNAVAILABLE,
        "this kiln was built without libmicrohttpd, so it serves nothing; install "
        "libmicrohttpd-dev (tools/install_deps.sh) and build again with -DKILN_MICROHTTPD=ON");
}

void http_mhd_close_door(struct http_server *s)
{
    (void)s;
}

void http_mhd_stop(struct http_server *s)
{
    (void)s;
}

void http_mhd_resume(struct http_exchange *x)
{
    (void)x;
}

const char *http_mhd_reason(int status)
{
    (void)status;
    return "";
}
