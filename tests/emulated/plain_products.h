/* The device of the emulated cuda table: its memory is no host's (emulated_memory.h). */
#ifndef KILN_TESTS_PLAIN_PRODUCTS_H
#define KILN_TESTS_PLAIN_PRODUCTS_H

#include "dev/device.h"

extern const struct device device_emulated;

/* The form of product (product_forms.h) to take where it fits.  -1: shapes take turns, so that the cases of a
 * test meet all of them. */
extern int emulated_form;

#endif
