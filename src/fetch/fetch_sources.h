/* fetch_sources: what the documents of the replaced scripts tell users to download, by names, and where it lies below the
 * directory that it is fetched to: as those scripts lay it. */
#ifndef KILN_FETCH_FETCH_SOURCES_H
#define KILN_FETCH_FETCH_SOURCES_H

#include "fetch/unpack.h"

#include <stdint.h>

/* "{}" in URLs and paths stands for the language. */
struct fetch_file {
    const char *url, *path;
    int64_t bytes;                   /* -1: not known before */
    const char *about;               /* of a length that changes; NULL: nothing is known */
    const char *sum;                 /* MD5 or SHA-256; NULL: not published with the source */
    const char *sums_url;            /* of a list where it is published; NULL: none */
    const struct unpack_sum *inside; /* of the files of an archive */
    bool is_list;                    /* of further files, which lie beside it there and here */
    bool unpack;                     /* unless --unpack says otherwise */
};

struct fetch_source {
    const char *name, *help;
    const struct fetch_file *files; /* a row without a URL ends them */
};

/* NULL: no source is called so. */
const struct fetch_source *fetch_source_find(const char *name);

/* All of them; a row without a name ends them. */
const struct fetch_source *fetch_source_first(void);

#endif
