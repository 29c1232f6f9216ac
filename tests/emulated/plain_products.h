/* The device of the emulated cuda table: its memory is the host's, though it does not say so. */
#ifndef KILN_TESTS_PLAIN_PRODUCTS_H
#define KILN_TESTS_PLAIN_PRODUCTS_H

#include "dev/device.h"

extern const struct device device_emulated;

#endif
