/* http_mhd_absent: http/http.h in a build without libmicrohttpd.  No server can be created, so no other
 * function is ever called with one. */
#include "http/http.h"

#include <stddef.h>

struct http_options http_defaults(void)
{
    return (struct http_options){.socket = -1};
}

struct status http_server_create(struct http_server **s, const struct http_options *o,
                                 const struct http_handler *handler)
{
    (void)o, (void)handler;
    *s = NULL;
    return status_error(
        STATUS_UNAVAILABLE,
        "this kiln was built without libmicrohttpd, so it serves nothing; install "
        "libmicrohttpd-dev (tools/install_deps.sh) and build again with -DKILN_MICROHTTPD=ON");
}

const char *http_server_version(void)
{
    return NULL;
}

_Noreturn static void fail(void)
{
    CHECK(false, "no server");
}

int http_server_port(const struct http_server *s)
{
    (void)s;
    fail();
}

void http_server_close_door(struct http_server *s)
{
    (void)s;
    fail();
}

int64_t http_server_exchanges(const struct http_server *s)
{
    (void)s;
    fail();
}

bool http_server_wait(struct http_server *s, double seconds)
{
    (void)s, (void)seconds;
    fail();
}

void http_server_destroy(struct http_server *s)
{
    CHECK(s == NULL, "no server");
}

const char *http_method(const struct http_exchange *x)
{
    (void)x;
    fail();
}

const char *http_path(const struct http_exchange *x)
{
    (void)x;
    fail();
}

const char *http_query(const struct http_exchange *x)
{
    (void)x;
    fail();
}

const char *http_body(const struct http_exchange *x, size_t *n)
{
    (void)x, (void)n;
    fail();
}

const char *http_address(const struct http_exchange *x)
{
    (void)x;
    fail();
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    (void)x, (void)name;
    fail();
}

int64_t http_began_ns(const struct http_exchange *x)
{
    (void)x;
    fail();
}

void http_set_owner(struct http_exchange *x, void *owner)
{
    (void)x, (void)owner;
    fail();
}

void *http_owner(const struct http_exchange *x)
{
    (void)x;
    fail();
}

bool http_has_left(const struct http_exchange *x)
{
    (void)x;
    fail();
}

void http_call(struct http_exchange *x, void (*f)(void *self), void *self)
{
    (void)x, (void)f, (void)self;
    fail();
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    (void)x, (void)name, (void)value;
    fail();
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct buf *body)
{
    (void)x, (void)status, (void)content_type, (void)body;
    fail();
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    (void)x, (void)status, (void)content_type;
    fail();
}

void http_stream_write(struct http_exchange *x, const void *bytes, size_t n)
{
    (void)x, (void)bytes, (void)n;
    fail();
}

void http_stream_end(struct http_exchange *x, bool is_whole)
{
    (void)x, (void)is_whole;
    fail();
}
