/* hub_list: the files of a Hugging Face repository, as GET /api/models/NAME/revision/REVISION?blobs=true
 * lists them (https://huggingface.co/docs/hub/api), and those of them that make a model for kiln:
 * safetensors, configuration, tokenizer and card, at the top or in a folder of a module (1_Pooling).  Never a
 * pickle, which may run code. */
#ifndef KILN_FETCH_HUB_LIST_H
#define KILN_FETCH_HUB_LIST_H

#include "core/json.h"

struct hub_list {
    json_t *root;
    const char *commit; /* commit of all files */
    size_t at;
};

struct hub_file {
    const char *name;   /* plain, or "1_Pooling/config.json" */
    const char *sha256; /* hash of its content; NULL: a small file, of which only the length is known */
    int64_t bytes;      /* -1: not known */
};

/* Whether a name is OWNER/MODEL, or MODEL alone, and also a plain path. */
bool hub_name_is_valid(const char *name);

/* STATUS_DATA if it is no list, has no configuration, or weights in other formats only, which it names. */
struct status hub_list_open(struct hub_list *list, const char *path);

/* The next file that is wanted; false: there is none. */
bool hub_list_next(struct hub_list *list, struct hub_file *file);

/* Safe on a zeroed struct. */
void hub_list_close(struct hub_list *list);

#endif
