/* http_absent: fetch/http.h in a build without libcurl. */
#include "fetch/http_get.h"

struct status http_get(const struct http_get *get, enum http_end *end, struct http_answer *answer)
{
    *end = HTTP_FAILED;
    http_answer_init(answer);
    return status_error(STATUS_UNAVAILABLE,
                        "%s: this kiln was built without libcurl, so it fetches nothing; install "
                        "libcurl4-openssl-dev (tools/install_deps.sh) and build again with -DKILN_CURL=ON",
                        get->url);
}

const char *http_version(void)
{
    return NULL;
}
