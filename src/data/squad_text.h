/* squad_text: strings as the Python programs around SQuAD see and write them, so that files and scores can be
 * compared byte for byte.
 * Source: the Python 3 documentation of str.split, float.__repr__ and json.dumps. */
#ifndef KILN_DATA_SQUAD_TEXT_H
#define KILN_DATA_SQUAD_TEXT_H

#include "core/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Appends " ".join(text.split()). */
void squad_text_join_words(struct buf *out, const char *text, size_t n);

/* Code points of text[0..n). */
int64_t squad_text_count_chars(const char *text, size_t n);

/* Appends what json.dumps writes for a string (ASCII only) or a finite number. */
void squad_text_json_string(struct buf *out, const char *text, size_t n);
void squad_text_json_real(struct buf *out, double value);

#endif
