/* wikitext_units: units of measurement, and numbers as they are written: what {{convert}} needs.
 * Source: the English Wikipedia's Module:Convert and Module:Convert/data; the yard and the pound of 1959. */
#ifndef KILN_CORPUS_WIKITEXT_UNITS_H
#define KILN_CORPUS_WIKITEXT_UNITS_H

#include "core/buf.h"

enum wikitext_dimension {
    WIKITEXT_LENGTH,
    WIKITEXT_AREA,
    WIKITEXT_VOLUME,
    WIKITEXT_MASS,
    WIKITEXT_SPEED,
    WIKITEXT_TEMPERATURE,
    WIKITEXT_POWER,
    WIKITEXT_ENERGY,
    WIKITEXT_PRESSURE,
    WIKITEXT_FORCE,
    WIKITEXT_DENSITY,
};

struct wikitext_unit {
    const char *code;
    enum wikitext_dimension dimension;
    double scale, offset; /* value in SI units = (value - offset) * scale */
    const char *one, *many, *symbol;
    const char *target; /* the code of the unit that it is converted to if none is named */
};

/* A number, and its digits behind the point; minus the zeros at the end of a whole number. */
struct wikitext_quantity {
    double value;
    int decimals;
};

/* The unit of a code, in any of the ways to write it; NULL: it is not in the table. */
const struct wikitext_unit *wikitext_units_find(const char *code, size_t n);

/* Reads digits, commas, a point and a sign; false for anything else. */
bool wikitext_units_read(struct wikitext_quantity *q, const char *text, size_t length);

/* The value rounded to so many digits behind the point, or before it where `decimals` is negative, with
 * commas. */
void wikitext_units_write(struct buf *out, double value, int decimals);

/* Digits with commas between every three of the whole part; anything else as it is. */
void wikitext_units_group(struct buf *out, const char *digits, size_t n);

double wikitext_units_convert(const struct wikitext_unit *from, const struct wikitext_unit *to, double value);

/* To how many digits a result is rounded: as many as the number that was given has, at least two in all; of
 * temperatures, three of the kelvins.  It is default_precision of Module:Convert. */
int wikitext_units_decimals(const struct wikitext_unit *from, const struct wikitext_unit *to,
                            struct wikitext_quantity q);

#endif
