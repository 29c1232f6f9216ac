/* http_none: http/http.h in a build without libmicrohttpd. */
#include "http/http.h"

struct http_options http_defaults(void)
{
    return (struct http_options){.host = "127.0.0.1", .socket = -1};
}

struct status http_server_create(struct http_server **s, const struct http_options *o,
                                 const struct http_handler *handler)
{
    *s = NULL;
    (void)o, (void)handler;
    return status_error(STATUS_UNAVAILABLE,
                        "this kiln was built without libmicrohttpd, so it serves nothing; install "
                        "libmicrohttpd-dev (tools/install_deps.sh) and build again");
}

int http_server_port(const struct http_server *s)
{
    (void)s;
    return 0;
}

void http_server_close_door(struct http_server *s)
{
    (void)s;
}

int64_t http_server_exchanges(const struct http_server *s)
{
    (void)s;
    return 0;
}

bool http_server_wait(struct http_server *s, double seconds)
{
    (void)s;
    (void)seconds;
    return 0;
}

void http_server_destroy(struct http_server *s)
{
    (void)s;
}

const char *http_method(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

const char *http_path(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

const char *http_query(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

const char *http_body(const struct http_exchange *x, size_t *n)
{
    (void)x;
    (void)n;
    return 0;
}

const char *http_address(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    (void)x;
    (void)name;
    return 0;
}

int64_t http_began_ns(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

void http_set_owner(struct http_exchange *x, void *owner)
{
    (void)x;
    (void)owner;
}

void *http_owner(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

bool http_has_left(const struct http_exchange *x)
{
    (void)x;
    return 0;
}

void http_call(struct http_exchange *x, void (*f)(void *self), void *self)
{
    (void)x;
    (void)f;
    (void)self;
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    (void)x;
    (void)name;
    (void)value;
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct buf *body)
{
    (void)x;
    (void)status;
    (void)content_type;
    (void)body;
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    (void)x;
    (void)status;
    (void)content_type;
}

void http_stream_write(struct http_exchange *x, const void *bytes, size_t n)
{
    (void)x;
    (void)bytes;
    (void)n;
}

void http_stream_end(struct http_exchange *x, bool is_whole)
{
    (void)x;
    (void)is_whole;
}
