/* squad_batches: the features of questions as a source of examples (data/example_batches.h). */
#ifndef KILN_DATA_SQUAD_BATCHES_H
#define KILN_DATA_SQUAD_BATCHES_H

#include "data/example_batches.h"
#include "data/squad_features.h"

/* Borrows the features. */
struct example_source squad_batches_source(const struct squad_features *f);

#endif
