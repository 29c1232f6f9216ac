/* The device of the emulated cuda table: its memory is no host's (emulated_memory.h). */
#ifndef KILN_TESTS_PLAIN_PRODUCTS_H
#define KILN_TESTS_PLAIN_PRODUCTS_H

#include "dev/device.h"

extern const struct device device_emulated;

#endif
