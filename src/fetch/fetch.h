/* fetch: downloads the files of named sources, or of any URL: plan, download, check, unpack. */
#ifndef KILN_FETCH_FETCH_H
#define KILN_FETCH_FETCH_H

#include "fetch/download.h"
#include "io/sum_list.h"
#include "fetch/unpack.h"

enum fetch_unpack { FETCH_UNPACK_AUTO, FETCH_UNPACK_YES, FETCH_UNPACK_NO };

struct fetch_request {
    const char *directory; /* all files are written below it */
    const char *language;  /* language of a dump or a corpus: "en" */
    const char *mirror;    /* replaces "https://": MIRROR/HOST/PATH, the layout of `wget -x`; NULL: none */
    const char *only;      /* fnmatch(3) of a file's name; NULL: all */
    const char *sums_file; /* checksums that replace the published ones; NULL: none */
    enum fetch_unpack unpack;
    struct download_manner manner;
};

enum { FETCH_URL_BYTES = 1024 };

struct fetch_item {
    char url[FETCH_URL_BYTES], sums_url[FETCH_URL_BYTES]; /* "": no list of checksums */
    char path[FILE_PATH_BYTES];
    char target[FILE_PATH_BYTES];         /* file or directory to unpack into */
    enum unpack_kind kind;                /* UNPACK_NONE: not unpacked */
    char sum[sizeof(struct digest_text)]; /* "": not known */
    int64_t bytes;                        /* -1: not known */
    const char *about;                    /* NULL: nothing */
    const struct unpack_sum *inside;
    bool is_list;
    const char *hub_name; /* the list is of this Hugging Face repository; NULL: of checksums */
};

struct fetch_plan {
    struct fetch_request request;
    struct sum_list sums; /* checksums of request.sums_file */
    struct fetch_item *items;
    size_t n, capacity;
};

/* STATUS_USAGE: an invalid language or mirror; STATUS_DATA: the file of checksums. */
struct status fetch_plan_init(struct fetch_plan *plan, const struct fetch_request *request);
void fetch_plan_fini(struct fetch_plan *plan);

/* STATUS_USAGE, with a list of the sources, if there is none of this name. */
struct status fetch_plan_source(struct fetch_plan *plan, const char *name);

/* A file by its URL, under its last name; `sum` may be NULL.  STATUS_USAGE: neither http:// nor https://, or
 * without a name. */
struct status fetch_plan_url(struct fetch_plan *plan, const char *url, const char *sum);

/* A Hugging Face repository at a revision, into DIRECTORY/NAME.  Its list of files stays there: the same
 * command resumes with the files of the same commit.  STATUS_USAGE: not a name. */
struct status fetch_plan_hub(struct fetch_plan *plan, const char *name, const char *revision);

/* A line for messages: source, target, length, and how the file is checked. */
void fetch_print_item(const struct fetch_item *item);

/* Downloads what is missing and checks what is there.  After a file that is wrong, or that the server does
 * not have, it goes on with the others.  If no server can be reached, prints which files are missing and
 * where they belong. */
struct status fetch_run(struct fetch_plan *plan);

#endif
