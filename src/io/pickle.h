/* pickle: reads a Python pickle as a tree of plain nodes, without running any of it.
 *
 * A pickle is a program for a stack machine (CPython, Lib/pickletools.py) and may call any function of
 * Python.  This machine only makes nodes: a call becomes an object node with the name of the function and its
 * arguments. Names must also be on the caller's list; a pickle that uses any other is refused, and the
 * message has the name.  Supported are the opcodes of protocols 2 to 5, except those for data outside the
 * pickle; the text opcodes of protocols 0 and 1 are refused.
 *
 * The rule: no recursion, texts are borrowed from the pickle, and all nodes of one pickle fit into
 * PICKLE_MAX_BYTES.  Nodes may be shared and may even contain themselves, so code that walks the tree must
 * limit the number of steps. */
#ifndef KILN_IO_PICKLE_H
#define KILN_IO_PICKLE_H

#include "core/status.h"
#include "io/bump.h"

#include <stdint.h>

enum { PICKLE_MAX_BYTES = 256 << 20, PICKLE_NAME_BYTES = 256 };

/* Node that the machine makes when an allowed name is called. */
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
    PICKLE_OBJECT,     /* the result that a call of a name would have had */
    PICKLE_PERSISTENT, /* something outside the pickle, by its id */
    PICKLE_TENSOR,     /* made from objects by io/torch_tensors */
};

struct stored_tensor;

struct pickle_node {
    enum pickle_kind kind;
    int meaning; /* meaning, in pickle_allowed, of a name and of objects made by calling it */
    union {
        int64_t integer; /* bool too: 0 or 1 */
        double real;
        struct {
            const char *data; /* [n], not NUL-terminated */
            size_t n;
            enum pickle_use use; /* result of calling a name */
        } text;                  /* text, bytes, long and name */
        struct {
            struct pickle_node **items; /* [n]; of a dict key, value, key, value, ... */
            size_t n;
            size_t capacity;
        } list; /* tuple, list and dict */
        struct {
            const struct pickle_node *name;
            const struct pickle_node *arguments; /* a tuple */
            const struct pickle_node *state;     /* set by BUILD, or NULL */
            struct pickle_node *next;            /* the object made after it */
        } object;
        struct {
            const struct pickle_node *id;
            struct pickle_node *next;
        } persistent;
        const struct stored_tensor *tensor;
    };
};

/* A name that a pickle may use.  "*" at the end of `module`, and at either end of `name`, matches
 * anything. */
struct pickle_allowed {
    const char *module;
    const char *name;
    enum pickle_use use;
    int meaning;
};

struct pickle {
    struct bump memory;             /* holds all nodes; callers may allocate from it too */
    const struct pickle_node *root; /* the unpickled object */
    struct pickle_node *objects;    /* in the order they were made: arguments before the call */
    struct pickle_node *persistents;
    size_t n_read; /* bytes up to its end; others may follow */
    unsigned char
        *decoded; /* [n_decoded] of n_read: bytes that it has as text (io/torch_tensors.c); NULL: none */
    size_t n_decoded;
};

/* `bytes` are the caller's, until the close.  STATUS_DATA says what is wrong in `source`. */
struct status pickle_parse(struct pickle *p, const void *bytes, size_t n,
                           const struct pickle_allowed *allowed, size_t n_allowed, const char *source);

/* Safe on a zeroed struct and after a failed parse. */
void pickle_close(struct pickle *p);

/* The value of a key of a dict, the last if it has several; NULL if there is none, or `dict` is NULL or
 * none. */
const struct pickle_node *pickle_find(const struct pickle_node *dict, const char *key);

/* The value of a key that is an int, found as pickle_find does. */
const struct pickle_node *pickle_find_integer(const struct pickle_node *dict, int64_t key);

/* Whether the node is this text, or the name "module.name". */
bool pickle_is_text(const struct pickle_node *node, const char *text);

/* The item of a tuple or list; NULL if it has fewer, or `list` is NULL or neither. */
const struct pickle_node *pickle_item(const struct pickle_node *list, size_t i);

#endif
