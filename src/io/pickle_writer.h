/* pickle_writer: appends opcodes of a Python pickle, protocol 2 (CPython, Lib/pickletools.py), to a buffer:
 * what a dict of tensors needs, and no more.  io/pickle.h reads it.
 *
 * A pickle is a program for a stack machine: an opcode that is put alone, and each function below, leaves one
 * value on its stack, except those that end or join what lies above a mark: TUPLE; SETITEMS, which ends a
 * dict of alternating keys and values; APPENDS, which ends a list.  REDUCE calls the function below the tuple
 * of its arguments, BINPERSID refers to something outside the pickle by the tuple of its id, BUILD gives the
 * object below it the attributes that a dict has, and STOP ends the pickle. */
#ifndef KILN_IO_PICKLE_WRITER_H
#define KILN_IO_PICKLE_WRITER_H

#include "core/buf.h"
#include "io/pickle_opcodes.h"

/* The protocol, with which a pickle begins. */
void pickle_put_begin(struct buf *b);

/* An opcode without an argument. */
void pickle_put(struct buf *b, enum opcode opcode);

/* A string. */
void pickle_put_text(struct buf *b, const char *text);
void pickle_put_int(struct buf *b, int64_t value);
void pickle_put_real(struct buf *b, double value);
void pickle_put_bool(struct buf *b, bool value);
void pickle_put_global(struct buf *b, const char *module, const char *name); /* a function or a class */

/* An empty dict or list and a mark; and an empty collections.OrderedDict, without one. */
void pickle_put_dict_begin(struct buf *b);
void pickle_put_list(struct buf *b);
void pickle_put_ordered_dict(struct buf *b);

/* A key and its value above the mark of a dict; of the list, which is empty. */
void pickle_put_key_int(struct buf *b, const char *key, int64_t value);
void pickle_put_key_real(struct buf *b, const char *key, double value);
void pickle_put_key_text(struct buf *b, const char *key, const char *text);
void pickle_put_key_none(struct buf *b, const char *key);
void pickle_put_key_bool(struct buf *b, const char *key, bool value);
void pickle_put_key_list(struct buf *b, const char *key);

/* A key, and the beginning of its dict or list. */
void pickle_put_key_dict_begin(struct buf *b, const char *key);
void pickle_put_key_list_begin(struct buf *b, const char *key);

#endif
