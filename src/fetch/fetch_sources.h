/* fetch_sources: the named downloads of the replaced scripts' documents, and their paths below the output
 * directory, the same as the scripts'. */
#ifndef KILN_FETCH_FETCH_SOURCES_H
#define KILN_FETCH_FETCH_SOURCES_H

#include "fetch/unpack.h"

#include <stdint.h>

/* "{}" in URLs and paths is replaced by the language. */
struct fetch_file {
    const char *url, *path;
    int64_t bytes;                   /* -1: not known before */
    const char *about;               /* the size as text, if it changes; NULL: unknown */
    const char *sum;                 /* MD5 or SHA-256; NULL: not published with the source */
    const char *sums_url;            /* address of a published list of checksums; NULL: none */
    const struct unpack_sum *inside; /* checksums of the files of an archive */
    bool is_list; /* the file lists further files, in its directory on the server and here */
    bool unpack;  /* unless --unpack says otherwise */
};

struct fetch_source {
    const char *name, *help;
    const struct fetch_file *files; /* a row without a URL ends them */
};

/* NULL: no source has this name. */
const struct fetch_source *fetch_source_find(const char *name);

/* All of them; a row without a name ends them. */
const struct fetch_source *fetch_source_first(void);

#endif
