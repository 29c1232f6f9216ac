/* http_mhd: connections and their parser, by libmicrohttpd; http_mhd_absent.c takes its place in a build
 * without it. */
#ifndef KILN_HTTP_HTTP_MHD_H
#define KILN_HTTP_HTTP_MHD_H

#include "http/http_exchange.h"

/* Accepts connections on the server's address.  STATUS_IO. */
struct status http_mhd_start(struct http_server *s);

/* Accepts no more connections; those that are open stay. */
void http_mhd_close_door(struct http_server *s);
void http_mhd_stop(struct http_server *s); /* breaks all off */

/* Lets a connection that is suspended fetch what its exchange has now. */
void http_mhd_resume(struct http_exchange *x);

/* RFC 9110's words for a status. */
const char *http_mhd_reason(int status);

#endif
