/* gguf_pair: a key of a GGUF file and its value, or a list of values, as io/gguf_file.h has checked it. */
#ifndef KILN_IO_GGUF_PAIR_H
#define KILN_IO_GGUF_PAIR_H

#include "core/bytes.h"
#include "core/json.h"
#include "io/gguf_types.h"

struct gguf_pair {
    const char *key;
    uint32_t type; /* enum gguf_value: of the value, or of each in a list */
    bool is_list;
    uint64_t n;         /* values: 1, or those of a list */
    struct span values; /* borrowed from the file: all n values, each text behind its length */
};

/* Bytes of a value of a type; 0: they vary, or a list. */
size_t gguf_value_bytes(uint32_t type);

/* A single value as JSON, which the caller json_decref's: an integer, a real, a boolean or a text.  A real of
 * fp32 is the decimal number with the fewest digits that is the same in fp32, so that 1e-5 is 1e-5.  NULL: a
 * list, a number that JSON lacks, a text that is not UTF-8 or has a NUL, or no memory. */
json_t *gguf_pair_to_json(const struct gguf_pair *p);

/* Value i of numbers of any type; 0 of texts. */
double gguf_pair_number(const struct gguf_pair *p, uint64_t i);

/* The next text of a span that begins as `values` of texts: n bytes, borrowed.  NULL: there is none. */
const char *gguf_next_text(struct span *s, size_t *n);

#endif
