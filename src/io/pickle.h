/* pickle: what a Python pickle says, as plain nodes; nothing of it is run.
 *
 * A pickle is a program for a machine with a stack (CPython, Lib/pickletools.py), and may name any function of Python to
 * be called.  This machine makes nodes only: what would be a call becomes an object that tells what was asked for.  Even so
 * the names that may be asked for are a list, which the caller gives; a pickle that asks for another is refused by name.
 * Opcodes of protocols 2 to 5; what earlier protocols wrote as text, and what needs memory from outside, is refused.
 *
 * The rule: no depth of nesting is followed by recursion, texts are borrowed from the pickle, and all that is made of one
 * is within PICKLE_MAX_BYTES.  Parts may be shared, and may even contain themselves: who walks them bounds his steps. */
#ifndef KILN_IO_PICKLE_H
#define KILN_IO_PICKLE_H

#include "core/status.h"
#include "io/bump.h"

#include <stdint.h>

enum { PICKLE_MAX_BYTES = 256 << 20, PICKLE_NAME_BYTES = 256 };

/* What the machine makes of the call of an allowed name. */
enum pickle_use {
    PICKLE_KEEP_OBJECT, /* an object */
    PICKLE_MAKE_DICT,   /* a dict: collections.OrderedDict */
};

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_BYTES,
    PICKLE_LONG, /* an int of more than 64 bits: its bytes, the lowest first */
    PICKLE_TUPLE,
    PICKLE_LIST, /* a list or a set */
    PICKLE_DICT,
    PICKLE_NAME,       /* "module.name" of a function or class */
    PICKLE_OBJECT,     /* what a call of a name would have given */
    PICKLE_PERSISTENT, /* what the file has outside the pickle, by what it is called there */
    PICKLE_TENSOR,     /* made of objects by io/torch_tensors */
};

struct stored_tensor;

struct pickle_node {
    enum pickle_kind kind;
    int meaning; /* of a name, or of what it was called for: the caller's, pickle_allowed */
    union {
        int64_t integer; /* bool too: 0 or 1 */
        double real;
        struct {
            const char *data; /* [n], not NUL-terminated */
            size_t n;
            enum pickle_use use; /* of a name */
        } text;                  /* text, bytes, long and name */
        struct {
            struct pickle_node **items; /* [n]; of a dict key, value, key, value, ... */
            size_t n;
            size_t capacity;
        } list; /* tuple, list and dict */
        struct {
            const struct pickle_node *name;
            const struct pickle_node *arguments; /* a tuple */
            const struct pickle_node *state;     /* what it was told to be (BUILD), or NULL */
            struct pickle_node *next;            /* the object that was made after it */
        } object;
        struct {
            const struct pickle_node *id;
            struct pickle_node *next;
        } persistent;
        const struct stored_tensor *tensor;
    };
};

/* A name that may be asked for.  "*" at the end of `module`, and at either end of `name`, stands for anything. */
struct pickle_allowed {
    const char *module;
    const char *name;
    enum pickle_use use;
    int meaning;
};

struct pickle {
    struct bump memory;             /* of all nodes; a caller may take his own from it */
    const struct pickle_node *root; /* what the pickle is */
    struct pickle_node *objects;    /* in the order of their making: parts before what they are parts of */
    struct pickle_node *persistents;
    size_t n_read; /* bytes up to its end; others may follow */
};

/* `bytes` are the caller's, until the close.  STATUS_DATA says what is wrong in `source`. */
struct status pickle_parse(struct pickle *p, const void *bytes, size_t n,
                           const struct pickle_allowed *allowed, size_t n_allowed, const char *source);

/* Safe on a zeroed struct and after a failed parse. */
void pickle_close(struct pickle *p);

/* The value of a key of a dict, the last if it has several; NULL if there is none, or `dict` is NULL or none. */
const struct pickle_node *pickle_find(const struct pickle_node *dict, const char *key);

/* Whether it is this text, or the name "module.name". */
bool pickle_is_text(const struct pickle_node *node, const char *text);

/* The item of a tuple or list; NULL if it has fewer, or `list` is NULL or neither. */
const struct pickle_node *pickle_item(const struct pickle_node *list, size_t i);

#endif
