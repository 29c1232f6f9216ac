/* split_regex_absent: text/split_regex.h in a build without PCRE2: no expression is read. */
#include "text/split_regex.h"

struct status split_regex_create(struct split_regex **r, const char *pattern, size_t n, const char *source)
{
    *r = NULL;
    return status_error(STATUS_UNAVAILABLE,
                        "%s splits text by the regular expression '%.*s', but this kiln was built without "
                        "PCRE2; install libpcre2-dev (tools/install_deps.sh) and build again with "
                        "-DKILN_PCRE2=ON",
                        source, (int)(n > 200 ? 200 : n), pattern);
}

void split_regex_destroy(struct split_regex *r)
{
    (void)r;
}

struct status split_regex_scratch_create(struct split_regex_scratch **out)
{
    *out = NULL;
    return status_ok();
}

void split_regex_scratch_destroy(struct split_regex_scratch *s)
{
    (void)s;
}

struct status split_regex_find(struct split_regex_scratch *s, struct split_match *m,
                               const struct split_regex *r, const char *text, size_t n, size_t at)
{
    (void)s, (void)m, (void)r, (void)text, (void)n, (void)at;
    return status_error(STATUS_UNAVAILABLE, "this kiln was built without PCRE2");
}
