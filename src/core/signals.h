/* signals: blocks signals in a thread while it must not be interrupted. */
#ifndef KILN_CORE_SIGNALS_H
#define KILN_CORE_SIGNALS_H

#include <signal.h>

/* Blocks all signals in the calling thread except those it causes itself (SIGSEGV and the like).  `before`
 * gets the old mask, for signals_restore.  Blocked signals are delivered then, or to another thread. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

#endif
