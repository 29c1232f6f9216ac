/* script: the script that a code point belongs to, by Unicode's property Script (Scripts.txt, UAX #24).
 *
 * The table has the scripts that text is commonly written in by name, and all others as one; characters that
 * several scripts share (digits, punctuation, marks without a script of their own) have none. */
#ifndef KILN_TEXT_SCRIPT_H
#define KILN_TEXT_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

enum { SCRIPT_NONE = -1 };

/* The number of the script, below script_n. */
int script_of(uint32_t c);

/* The number of the script of this name, such as "latin"; SCRIPT_NONE if the table has none. */
int script_find(const char *name, size_t n);

/* The generated table (tools/make_scripts.py): names in lower case, and ranges in ascending order. */
struct script_range {
    uint32_t first, last;
    int script;
};
extern const char *const script_names[];
extern const int script_n;
extern const struct script_range script_ranges[];
extern const int script_n_ranges;

#endif
