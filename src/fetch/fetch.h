/* fetch: files of named sources, or of any URL, to their places: planned, downloaded, checked, unpacked. */
#ifndef KILN_FETCH_FETCH_H
#define KILN_FETCH_FETCH_H

#include "fetch/download.h"
#include "fetch/sum_list.h"
#include "fetch/unpack.h"

enum fetch_unpack { FETCH_UNPACK_AUTO, FETCH_UNPACK_YES, FETCH_UNPACK_NO };

struct fetch_request {
    const char *directory; /* that everything lies below */
    const char *language;  /* of a dump or a corpus: "en" */
    const char
        *mirror; /* stands in place of "https://": MIRROR/HOST/PATH, as `wget -x` lays files; NULL: none */
    const char *only;      /* fnmatch(3) of a file's name; NULL: all */
    const char *sums_file; /* of checksums that count in place of the published ones; NULL: none */
    enum fetch_unpack unpack;
    struct download_manner manner;
};

enum { FETCH_URL_BYTES = 1024 };

struct fetch_item {
    char url[FETCH_URL_BYTES], sums_url[FETCH_URL_BYTES]; /* "": no list of checksums */
    char path[FILE_PATH_BYTES];
    char target[FILE_PATH_BYTES];         /* that it is unpacked to */
    enum unpack_kind kind;                /* UNPACK_NONE: it stays as it is */
    char sum[sizeof(struct digest_text)]; /* "": not known */
    int64_t bytes;                        /* -1: not known */
    const char *about;                    /* NULL: nothing */
    const struct unpack_sum *inside;
    bool is_list;
};

struct fetch_plan {
    struct fetch_request request;
    struct sum_list sums; /* of request.sums_file */
    struct fetch_item *items;
    size_t n, capacity;
};

/* STATUS_USAGE: a language or a mirror that is none; STATUS_DATA: the file of checksums. */
struct status fetch_plan_init(struct fetch_plan *plan, const struct fetch_request *request);
void fetch_plan_fini(struct fetch_plan *plan);

/* STATUS_USAGE names the sources if it is none of them. */
struct status fetch_plan_source(struct fetch_plan *plan, const char *name);

/* A file by its URL, under its last name; `sum` may be NULL.  STATUS_USAGE: neither http:// nor https://, or without a name. */
struct status fetch_plan_url(struct fetch_plan *plan, const char *url, const char *sum);

/* Whether the file, or what it was unpacked to, is there. */
bool fetch_item_is_there(const struct fetch_item *item);

/* One line: from where, to where, how long, and what is known of it. */
void fetch_print_item(const struct fetch_item *item);

/* Fetches what is not there and checks what is; a file that the server does not have, or that is wrong, does not keep the others
 * away.  When no server can be reached, prints what is missing and where it belongs, for someone who can fetch it elsewhere. */
struct status fetch_run(struct fetch_plan *plan);

#endif
