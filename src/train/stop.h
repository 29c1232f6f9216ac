/* stop: SIGTERM and SIGINT ask the training loop to save and leave; a second one ends the process at once. */
#ifndef KILN_TRAIN_STOP_H
#define KILN_TRAIN_STOP_H

#include <stdbool.h>

/* Installs the handlers; before MPI is initialised, once that is there. */
void stop_install(void);

/* True once a signal has come. */
bool stop_requested(void);

#endif
